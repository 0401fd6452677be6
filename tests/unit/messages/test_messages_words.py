"""The rules of words over help, keys, hints and recipes' pages; how a value is spoken."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from message_rules import all_texts, load_catalogue, placeholders
from reference_pages import render_commands
from rich.cells import cell_len
from word_rules import CHINESE, ENGLISH, KEY, Rule, find_words

from headway.config import RunConfig, explain
from headway.messages import LANGUAGES, fill, say, speak
from headway.messages.spoken import ENGLISH_WORDS, WORDS
from headway.task import RECIPES, find_recipe

FULL_WIDTH = "，；：。！？（）、“”"
SAMPLES = {"python": "/opt/venv/bin/python", "quoted": "'./a folder'", "gpus": "0,1", "names": "RANK", "pids": "4242"}
"""Values for hints whose placeholder is more than one plain word."""


def typed_lines() -> Iterator[tuple[str, str]]:
    """Yield every line of a hint that is to be typed, with sample values filled in."""
    for code, text in all_texts(load_catalogue()).items():
        for lang, part in zip(LANGUAGES, (text.en_hint, text.zh_hint), strict=True):
            facts = {name: SAMPLES.get(name, "7") for name in placeholders(part)}
            yield from ((code, line.strip()) for line in fill(part, facts, lang).splitlines() if line.startswith("  "))


def test_every_line_to_type_is_one_that_bash_reads():
    lines = sorted(set(typed_lines()))
    assert len(lines) > 200
    wrong = [f"{code}: full-width punctuation in a command: {line}" for code, line in lines if _has_full_width(line)]
    script = "\n".join(line for _, line in lines)
    if subprocess.run(["bash", "-n"], input=script, capture_output=True, text=True).returncode:
        checked = (
            (code, line, subprocess.run(["bash", "-n", "-c", line], capture_output=True)) for code, line in lines
        )
        wrong += [f"{code}: bash does not read this line: {line}" for code, line, run in checked if run.returncode]
    assert "\n".join(wrong) == ""


def _has_full_width(line: str) -> bool:
    """Say whether the command itself, without its remark, holds punctuation that bash does not know."""
    return any(letter in FULL_WIDTH for letter in re.sub(r"\s#\s.*$", "", line))


@pytest.mark.parametrize("lang", LANGUAGES)
def test_help_keeps_to_80_columns_and_to_the_rules_of_words(lang):
    page = render_commands(lang)
    pages = re.findall(r"(?ms)^```text\n(.*?)^```", page)
    assert len(pages) > 20
    assert [line for one in pages for line in one.splitlines() if cell_len(line) > 80] == []
    rules: tuple[Rule, ...] = CHINESE if lang == "zh" else ENGLISH
    assert "\n".join(found for one in pages for found in find_words(" ".join(one.split()), rules)) == ""


@pytest.mark.parametrize("name", sorted(RECIPES))
def test_keys_are_explained_by_the_rules_of_words(name):
    recipe = find_recipe(name)
    keys = set().union(*({key, *explain(key, recipe).keys} for key in RunConfig.model_fields))
    wrong = [
        f"{key}: {found}"
        for key in sorted(keys)
        for lang, rules in (("en", ENGLISH), ("zh", (*CHINESE, KEY)))
        for found in find_words(explain(key, recipe, lang).description, rules)
    ]
    assert "\n".join(wrong) == ""


PAGES = sorted(Path(__file__).parents[3].glob("src/headway/recipes/*/README*.md"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: f"{page.parent.name}/{page.name}")
def test_a_recipes_page_follows_the_rules_of_words(page):
    rules = CHINESE if ".zh-CN" in page.name else ENGLISH
    assert "\n".join(found for line in prose(page) for found in find_words(line, rules)) == ""


def prose(page: Path) -> list[str]:
    """Return the lines of a Markdown page without code, addresses and the guide's own words."""
    text = re.sub(r"(?ms)^```.*?^```", "", page.read_text(encoding="utf-8"))
    return re.sub(r"`[^`\n]*`|「[^」]*」|\]\([^)]*\)", "", text).splitlines()


@pytest.mark.parametrize(
    ("kind", "value", "english", "chinese"),
    [
        ("list", ["a", "b"], "a, b", "a、b"),
        ("list", "a, b", "a, b", "a、b"),
        ("list", [], "none", "无"),
        ("list", "n/a", "none", "无"),
        ("word", "backward", "the backward pass", "反向传播"),
        ("word", "gradient", "gradient", "梯度"),
        ("word", "somebody's own", "somebody's own", "somebody's own"),
        ("said", "Permission denied", "Permission denied", "没有权限"),
        (
            "said",
            "[Errno 2] No such file or directory: 'a.py'",
            "[Errno 2] No such file or directory: 'a.py'",
            "文件或目录不存在（'a.py'）",
        ),
        ("said", "odd token", "odd token", "“odd token”（原文）"),
        ("said", "已有中文", "已有中文", "已有中文"),
        (",", 151040, "151,040", "151,040"),
        (",", "999", "999", "999"),
        ("", None, "n/a", "未知"),
        ("", "n/a", "n/a", "未知"),
        (".2f", 1.5, "1.50", "1.50"),
    ],
)
def test_a_value_speaks_the_language_of_its_sentence(kind, value, english, chinese):
    assert (speak(value, "en", kind), speak(value, "zh", kind)) == (english, chinese)


def test_a_sentence_holds_no_word_of_the_other_language():
    facts = {"what": "gradient", "step": 4, "rank": 1, "samples": [3, 9]}
    assert say("engine/not-finite", "zh", **facts) == "第 4 步的梯度出现 NaN/Inf；最先出现在 rank 1，样本 3、9"
    assert (
        say("engine/not-finite", "en", **facts) == "NaN or Inf in the gradient of step 4; first on rank 1, samples 3, 9"
    )
    assert set(ENGLISH_WORDS) <= set(WORDS)
