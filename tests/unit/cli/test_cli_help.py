"""Help: every command, in both languages, on a page of 80 columns, with an example at the end."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import click
import pytest

from headway.cli.help_page import cells, wrap
from headway.cli.main import main, root
from headway.messages import set_language

READING = {"check", "plan", "tune", "eval", "predict", "watch", "runs", "report", "export"}
READING |= {"ckpt list", "ckpt verify", "config show", "config schema", "config explain"}
CHANGING = {"train", "tune", "resume", "report", "export", "ckpt export", "ckpt prune"}


def walk(command, path=()):
    """Return every command and sub-command with the words that call it."""
    context = click.Context(command, info_name=" ".join(path) or "headway")
    yield " ".join(path), command
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            yield from walk(command.get_command(context, name), (*path, name))


COMMANDS = dict(walk(root))


@pytest.fixture(autouse=True)
def english_afterwards(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    yield
    set_language("en")


def run(capsys, *words):
    """Return the exit code and both streams of a command."""
    with pytest.raises(SystemExit) as end:
        main(words)
    said = capsys.readouterr()
    return end.value.code, said.out, said.err


def test_the_walk_sees_every_command():
    assert len(COMMANDS) >= 23 and set(COMMANDS) >= READING | CHANGING


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("path", COMMANDS)
def test_help_fits_the_page_and_ends_with_an_example(capsys, path, lang):
    code, out, err = run(capsys, *path.split(), "--help", "--lang", lang)
    assert (code, err) == (0, "")
    assert max(cells(line) for line in out.splitlines()) <= 80
    head, options, example = {"en": ("Usage:", "Options:", "Example:"), "zh": ("用法：", "选项：", "示例：")}[lang]
    assert out.startswith(head) and f"\n{options}\n" in out
    last = out.partition(f"\n{example}\n")[2].splitlines()
    assert last and all(line.startswith("  headway ") for line in last)
    assert f"headway {path}".strip() in "\n".join(last)


@pytest.mark.parametrize("path", COMMANDS)
def test_chinese_help_has_no_word_of_clicks_own(capsys, path):
    _, out, _ = run(capsys, *path.split(), "--help", "--lang", "zh")
    english = re.search(r"Usage|Options|Commands|Show|exit\.|default:|INTEGER|FLOAT|TEXT|\[OPTIONS\]|COMMAND", out)
    assert english is None
    assert "显示本帮助" in out


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("path", COMMANDS)
def test_no_word_of_help_is_broken(capsys, path, lang):
    _, out, _ = run(capsys, *path.split(), "--help", "--lang", lang)
    whole = re.findall(r"[A-Za-z0-9_.=/-]+", _wide_help(capsys, path, lang))
    assert set(re.findall(r"[A-Za-z0-9_.=/-]+", out)) <= set(whole)


def _wide_help(capsys, path, lang):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", "1000")
        patch.setattr(root, "context_settings", {**root.context_settings, "max_content_width": 1000})
        return run(capsys, *path.split(), "--help", "--lang", lang)[1]


@pytest.mark.parametrize("path", sorted(READING))
def test_reading_commands_give_json(path):
    assert "--json" in _options(COMMANDS[path])


@pytest.mark.parametrize("path", sorted(CHANGING))
def test_changing_commands_can_be_tried_without_a_change(path):
    assert "--dry-run" in _options(COMMANDS[path])


def _options(command):
    return {name for param in command.params for name in param.opts}


def test_the_language_may_stand_before_or_after_the_command(capsys):
    before = run(capsys, "--lang", "zh", "train", "--help")
    assert before == run(capsys, "train", "--help", "--lang=zh") == run(capsys, "train", "--lang", "zh", "--help")
    assert "在后台训练" in before[1]


def test_a_group_without_a_command_shows_its_help(capsys):
    for words in ((), ("ckpt",), ("config",)):
        code, out, err = run(capsys, *words, "--lang", "zh")
        assert (code, out) == (2, "") and err.startswith("用法：headway")


def test_defaults_are_shown_in_both_languages(capsys):
    assert "[default: latest]" in run(capsys, "eval", "--help")[1]
    assert "[默认：latest]" in run(capsys, "eval", "--help", "--lang", "zh")[1]


def test_text_wraps_by_columns_and_keeps_words_and_punctuation_together():
    assert wrap("检查点：步数、latest 或 best", 12) == ["检查点：步", "数、latest", "或 best"]
    assert wrap("保存检查点，训练继续", 10) == ["保存检查", "点，训练继", "续"]
    assert wrap("a-very-long-word here", 6) == ["a-very-long-word", "here"]
    assert wrap("", 10) == []


@pytest.mark.parametrize("width", range(8, 40))
def test_wrapped_lines_fit_and_lose_nothing(width):
    text = "WHAT 是配方名（nanochat）或配置文件（.yaml .json）；省略时用内置数据训练默认配方。"
    lines = wrap(text, width)
    longest = max(cells(word) for word in re.findall(r"[!-~]+[）；。]*", text)) + 2
    assert all(cells(line) <= max(width, longest) for line in lines)
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")
    assert not any(line[0] in "，。；：、）" or line[-1] in "（“" for line in lines)


def test_help_takes_less_than_a_quarter_of_a_second_of_processor_time():
    """Wall time on a busy machine says nothing, so what the process itself took is counted; the best of three."""
    taken = []
    for _ in range(3):
        before = os.times()
        subprocess.run([sys.executable, "-P", "-m", "headway", "--help"], capture_output=True, check=True)
        after = os.times()
        taken.append(after.children_user + after.children_system - before.children_user - before.children_system)
    assert min(taken) < 0.25, taken


def test_braces_in_help_are_shown_as_they_are_typed(capsys):
    with pytest.raises(SystemExit):
        main(["run", "--help"])
    assert "'--resume {latest}'" in capsys.readouterr().out
