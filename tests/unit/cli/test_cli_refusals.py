"""What makes no sense is refused in one error with a code, in both languages, with what to type instead."""

from __future__ import annotations

import re

import pytest

from headway.cli.main import main
from headway.messages import set_language


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        monkeypatch.delenv(name, raising=False)
    yield
    set_language("en")


def run(capsys, *words):
    """Return the exit code and what was said on stderr."""
    with pytest.raises(SystemExit) as end:
        main(words)
    said = capsys.readouterr()
    assert said.out == ""
    return end.value.code, said.err


REFUSED = {
    ("trian",): ("cli/no-command-near", "headway has no command trian; the nearest is train"),
    ("ckpt", "lst"): ("cli/no-command-near", "headway ckpt list"),
    ("zzz",): ("cli/no-command", "headway --help"),
    ("runs", "--jsn"): ("cli/no-option-near", "headway runs --json"),
    ("runs", "--zzz"): ("cli/no-option", "headway runs --help"),
    ("runs", "--out"): ("cli/option-needs-value", "--out needs a value"),
    ("runs", "--json=3"): ("cli/option-is-flag", "--json does not take a value"),
    ("runs", "extra"): ("cli/no-command", "headway runs --help"),
    ("board", "extra"): ("cli/extra-words", "headway board does not accept: extra"),
    ("completion",): ("cli/missing-choice", "one of bash, zsh, fish"),
    ("completion", "tcsh"): ("cli/not-a-choice", "SHELL is tcsh"),
    ("config", "explain"): ("cli/missing", "headway config explain needs KEY"),
    ("eval", "--samples", "0"): ("cli/not-an-integer", "--samples is 0, but must be a whole number >= 1"),
    ("eval", "--samples", "x"): ("cli/not-an-integer", "--samples is x"),
    ("stop", "--wait", "x"): ("cli/not-a-number", "--wait is x, but must be a number >= 0"),
    ("report", "--to", "."): ("cli/path-is-folder", "a file is needed"),
    ("export", "--to", "file"): ("cli/path-is-file", "a folder is needed"),
    ("export", "--format", "cvs"): ("cli/not-a-choice", "export --format csv"),
    ("supervise", "nowhere"): ("cli/no-path", "nowhere, which does not exist"),
    ("--lang", "fr"): ("cli/not-a-choice", "--lang is fr, but must be one of en, zh"),
    ("runs", "--lang"): ("cli/option-needs-value", "--lang needs a value"),
    ("runs", "--color", "blue"): ("cli/not-a-choice", "auto, always, never"),
    ("runs", "--out=x", "--color", "blue", "--lang", "en"): ("cli/not-a-choice", "blue"),
    ("resume",): ("telemetry/no-runs", "headway train"),
    ("train", "--depht=4"): ("config/unknown-key-near", "type: depth=4"),
    ("plan", "--depht=4"): ("config/unknown-key-near", "type: depth=4"),
    ("config", "show", "--depht=4"): ("config/unknown-key-near", "type: depth=4"),
    ("config", "show", "nanochat", "data.path=x"): ("config/unknown-key-near", "type: task.data_dir=x"),
    ("config", "show", "nanochat", "dataset=x"): ("config/unknown-key-near", "type: task.data_dir=x"),
    ("train", "nanocht"): ("recipes/unknown-near", "headway train nanochat"),
    ("train", "nope"): ("recipes/unknown", "use one of these"),
    ("ckpt", "list", "--out", "none"): ("telemetry/no-runs", "none"),
    ("ckpt", "list", "--runs", "none"): ("telemetry/no-runs", "none"),
    ("report", "--runs", "none"): ("telemetry/no-runs", "none"),
    ("ckpt", "export", "--runs", "none", "--to", "x"): ("telemetry/no-runs", "none"),
}


@pytest.mark.parametrize("words", REFUSED, ids=" ".join)
def test_bad_lines_are_refused_with_a_code_and_what_to_type(capsys, tmp_path, words):
    (tmp_path / "file").write_text("")
    code, said = run(capsys, *words)
    wanted, part = REFUSED[words]
    assert code == 2
    assert said.startswith("error: ") and f"[{wanted}]" in said and part in said
    assert "Traceback" not in said and not re.search(r"\binvalid\b|No such|Usage:", said)


@pytest.mark.parametrize("words", [words for words in REFUSED if "--lang" not in words], ids=" ".join)
def test_the_same_refusals_speak_chinese(capsys, tmp_path, words):
    (tmp_path / "file").write_text("")
    code, said = run(capsys, *words, "--lang", "zh")
    assert code == 2 and said.startswith("错误：") and f"[{REFUSED[words][0]}]" in said
    words_alone = re.sub(r"\[[a-z/-]+\]", "", said.removeprefix("错误："))
    assert re.search("[\u4e00-\u9fff]", words_alone)
    assert not re.search(r"error:|hint:|needs|must be|has no", words_alone)


def test_an_unknown_option_of_resume_goes_to_the_config(capsys, tmp_path):
    run_dir = tmp_path / "runs" / "20260101-000000_nanochat_abcd"
    run_dir.mkdir(parents=True)
    (run_dir / "job.json").write_text("{}")
    (run_dir / "events.jsonl").write_text("")
    (run_dir / "config.yaml").write_text("recipe: nanochat\n")
    code, said = run(capsys, "resume", "--depht=4")
    assert code == 2 and "[config/unknown-key-near]" in said and "type: depth=4" in said


def test_no_plan_ends_with_4_and_a_stopped_check_with_3(capsys, monkeypatch):
    batch = ("preset=balanced", "device_batch_size=16", "total_batch_size=49152", "parallel.cpus=2")
    code, said = run(capsys, "plan", "nanochat", *batch)
    assert code == 4 and "[plan/batch-does-not-divide]" in said
    code, said = run(capsys, "plan", "parallel.gpus=3", "--lang", "zh")
    assert code in (3, 4) and "parallel.gpus=3" in said


def test_a_check_that_finds_a_stop_ends_with_3(tmp_path):
    import subprocess
    import sys

    (tmp_path / "runs").write_text("a file where the folder should be")
    done = subprocess.run(
        [sys.executable, "-P", "-m", "headway", "check"], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert done.returncode == 3 and "[machine/stopped]" in done.stderr and "machine/out-not-writable" in done.stdout


def test_a_bug_is_told_as_one(capsys, monkeypatch):
    def broken(*_args, **_more):
        raise ZeroDivisionError

    monkeypatch.setattr("headway.cli.runs.list_rows", broken)
    code, said = run(capsys, "runs", "--lang", "zh")
    assert code == 1 and "ZeroDivisionError" in said and "[cli/bug]" in said
