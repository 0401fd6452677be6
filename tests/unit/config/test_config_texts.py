"""Every text of the stage in both languages, and every code that is raised has one."""

from __future__ import annotations

import re
from pathlib import Path
from string import Formatter

import pytest

import headway.cli.config as commands
import headway.config as stage
import headway.secret as secret
from headway.messages.config import TEXTS


def _fields(text: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(text) if name}


@pytest.mark.parametrize("code", TEXTS)
def test_both_languages_have_the_same_placeholders(code):
    text = TEXTS[code]
    assert _fields(text.en) == _fields(text.zh)
    assert _fields(text.en_hint) == _fields(text.zh_hint)
    assert bool(text.en_hint) == bool(text.zh_hint)


@pytest.mark.parametrize("code", [code for code in TEXTS if "help" not in code and "type" not in code])
def test_messages_follow_the_house_style(code):
    text = TEXTS[code]
    names = ("NaN", "JSON", "Hugging", "Anthropic", "OpenAI", "GitHub", "GitLab", "AWS", "Slack", "Google")
    assert not text.en[:1].isupper() or text.en.startswith(names)
    assert not text.en.endswith(".")
    assert "please" not in text.en + text.en_hint
    assert "invalid" not in (text.en + text.en_hint).lower()


def test_every_code_in_the_source_has_a_text_and_every_text_is_used():
    files = [*Path(stage.__file__).parent.rglob("*.py"), Path(commands.__file__), Path(secret.__file__)]
    assert len(files) > 20
    source = "\n".join(file.read_text(encoding="utf-8") for file in files)
    used = set(re.findall(r"[\"'](config/[a-z0-9-]+)[\"']", source)) - {"config/1"}
    built = {code for code in TEXTS if code.startswith(("config/type-", "config/place-"))}
    assert used - set(TEXTS) == set()
    assert set(TEXTS) - used - built == set()
