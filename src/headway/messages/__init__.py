"""Every sentence a person reads, by code, in Chinese and English.

A code is `stage/what`; its texts live in `messages/<stage>.py`, both languages side by side, so that a change
to one is seen beside the other. Placeholders are `{name}`; a test compares them between the languages. A placeholder
may say what kind of value it shows (`{names:list}`), which `spoken` then puts into the sentence's language. A recipe's
texts are `texts.py` in its own folder, under the recipe's name; the registry of recipes says where that is.
"""

from __future__ import annotations

import functools
import importlib
import re
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Literal

from headway.messages.spoken import fill, speak

__all__ = [
    "COMMANDS",
    "LANGUAGES",
    "Language",
    "Text",
    "add_texts",
    "fill",
    "find_module",
    "find_text",
    "follow_language",
    "hint",
    "language",
    "say",
    "set_language",
    "speak",
]

Language = Literal["en", "zh"]
LANGUAGES: tuple[Language, ...] = ("en", "zh")


@dataclass(frozen=True, slots=True)
class Text:
    """One message in both languages, with what to do about it when there is something to do."""

    en: str
    zh: str
    en_hint: str = ""
    zh_hint: str = ""


COMMANDS = frozenset({"again", "choices", "command", "fix", "line", "names", "one", "pids", "text", "typed", "words"})
"""Facts that are commands or parts of one."""
_PLAIN = re.compile(r"[\w@%+=:,./-]+", re.ASCII)

_current: list[Language] = ["en"]
_is_chosen = [False]
_added: dict[str, str] = {}
"""Recipe to the module of its texts."""


def set_language(lang: Language, *, is_chosen: bool = False) -> None:
    """Use a language for every later message of this process.

    Args:
        is_chosen: the user has named it for this command, so that no config changes it.
    """
    _current[0], _is_chosen[0] = lang, is_chosen


def follow_language(wanted: str) -> None:
    """Use the `lang` of a config unless the user has chosen a language."""
    if not _is_chosen[0] and wanted in LANGUAGES:
        _current[0] = "zh" if wanted == "zh" else "en"


def language() -> Language:
    """Return the language in use."""
    return _current[0]


def add_texts(recipe: str, module: str) -> None:
    """Say which module holds the texts of a recipe; it is imported when one of them is asked for."""
    _added[recipe] = module


def find_module(stage: str) -> str:
    """Return the name of the module that holds the texts of a stage or recipe."""
    if _is_stage(stage):
        return f"headway.messages.{stage}"
    # The second is of a built-in recipe that nobody has looked up here: `report` reads a run another process made.
    return _added.get(stage, f"headway.recipes.{stage}.texts")


@functools.cache
def _is_stage(stage: str) -> bool:
    return find_spec(f"headway.messages.{stage}") is not None


def find_text(code: str) -> Text:
    """Return both texts of a code."""
    texts: dict[str, Text] = importlib.import_module(find_module(code.partition("/")[0])).TEXTS
    return texts[code]


def say(code: str, lang: Language | None = None, /, **facts: object) -> str:
    """Return the text of a code with its facts filled in."""
    text = find_text(code)
    lang = lang or language()
    return fill(text.zh if lang == "zh" else text.en, facts, lang)


def hint(code: str, lang: Language | None = None, /, **facts: object) -> str:
    """Return what to do about a code, or an empty text.

    A line indented by two spaces is to be typed, so what is filled in there is quoted for the shell; only facts that
    are commands, or parts of one, go in as they are. Where no run is given, a command takes the newest one.
    """
    text = find_text(code)
    lang = lang or language()
    lines = (text.zh_hint if lang == "zh" else text.en_hint).splitlines()
    typed = {"run": "", **{name: fact if name in COMMANDS else _quote(fact) for name, fact in facts.items()}}
    read = {"run": "", **facts}
    return "\n".join(fill(line, typed if line.startswith("  ") else read, lang).rstrip() for line in lines)


def _quote(fact: object) -> str:
    text = str(fact)
    return text if not text or _PLAIN.fullmatch(text) else "'" + text.replace("'", "'\"'\"'") + "'"
