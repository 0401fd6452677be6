"""The findings a log is searched for: one TOML file each, ours in `rules/`, the user's own in a folder of theirs."""

from __future__ import annotations

import os
import re
import string
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal

from headway.errors import ConfigError
from headway.home import user_folder
from headway.messages import Language, language
from headway.messages.diagnose import RULES_FOLDER

Audience = Literal["headway", "script", "any"]
_KEYS: Final = frozenset({"category", "kind", "weight", "transient", "echo", "explains", "signs", "unless", "needs"})
_MORE_KEYS: Final = frozenset(
    {"framework", "frames", "quiet", "recovered", "trigger", "words", "values", "text", "fix", "reproducer"}
)
_FIX_KEYS: Final = frozenset({"for", "set", "command", "en", "zh"})
_QUOTED: Final = re.compile(r"\\[.()\[\]{}|*+?^$/\\<>'\" -]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sign:
    """One way a fault is worded."""

    pattern: re.Pattern[str]
    literals: tuple[str, ...]
    """Lower-case texts of which every match holds one: looked for first, because that is many times as fast."""

    def find(self, text: str, lowered: str) -> re.Match[str] | None:
        """Return its first place in a text."""
        if self.literals and not any(literal in lowered for literal in self.literals):
            return None
        return self.pattern.search(text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fix:
    """One thing to do about a finding; the cheapest comes first in the file."""

    audience: Audience
    """Whom it is for: a run of a recipe, somebody's own script, or both."""
    en: str
    zh: str
    command: str = ""
    """What to type, values filled in."""
    setting: str = ""
    """`key=value` of a Headway config that does it."""

    def text(self, lang: Language | None = None) -> str:
        """Return its words."""
        return self.zh if (lang or language()) == "zh" else self.en

    def fields(self) -> set[str]:
        """Return the values it needs."""
        texts = (self.en, self.zh, self.command, self.setting)
        return {name for text in texts for _, name, _, _ in string.Formatter().parse(text) if name}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One finding: how it is worded, what it means, what to do."""

    code: str
    category: str
    kind: str
    """Class of the failure as the supervisor knows it; several rules may share one."""
    weight: int
    """4 names the cause itself, 3 a cause, 2 one that may follow from another, 1 hardly more than that it failed."""
    is_echo: bool
    """Only says that another process has failed."""
    is_transient: bool
    is_quiet: bool
    """Counts in lines that a logger calls information or a warning, too."""
    explains: tuple[str, ...]
    """Codes of findings that follow from this one wherever they are."""
    signs: tuple[Sign, ...]
    unless: re.Pattern[str] | None
    """Words that make a line harmless."""
    needs: re.Pattern[str] | None
    """Words that the log must hold somewhere."""
    recovered: re.Pattern[str] | None
    """Words of a later line that show that the fault was overcome."""
    frames: re.Pattern[str] | None
    """Files or functions that the traceback must pass through."""
    frameworks: tuple[str, ...]
    words: tuple[str, ...]
    """Lower-case words to look for in a log of gigabytes, where the signs hold none of the usual ones."""
    values: Mapping[str, re.Pattern[str]]
    en: str
    zh: str
    fixes: tuple[Fix, ...] = field(default=())
    reproducer: str = ""
    """The test that raises the fault."""

    def text(self, lang: Language | None = None) -> str:
        """Return its words."""
        return self.zh if (lang or language()) == "zh" else self.en

    def find(self, text: str, lowered: str) -> re.Match[str] | None:
        """Return the place of the first sign in a text."""
        for sign in self.signs:
            if (hit := sign.find(text, lowered)) is not None:
                return None if self.unless is not None and self.unless.search(line_at(text, hit.start())) else hit
        return None


@dataclass(frozen=True, slots=True)
class Rulebook:
    """All rules by code."""

    rules: Mapping[str, Rule]

    def match(self, text: str, frames: str = "") -> list[tuple[Rule, re.Match[str]]]:
        """Return the rules that a text satisfies, in the order of the book.

        Args:
            text: a line, or an exception with its message.
            frames: the files and functions of its traceback.
        """
        lowered = text.lower()
        found = ((rule, rule.find(text, lowered)) for rule in self.rules.values() if _passes(rule, frames))
        return [(rule, hit) for rule, hit in found if hit is not None]


def line_at(text: str, place: int) -> str:
    """Return the line that a place of a text is in."""
    start = text.rfind("\n", 0, place) + 1
    return text[start:].partition("\n")[0]


def _passes(rule: Rule, frames: str) -> bool:
    return rule.frames is None or rule.frames.search(frames) is not None


def user_rules_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """Return where a user keeps rules of their own."""
    return user_folder(environ) / "rules"


@cache
def load_rules(*folders: Path) -> Rulebook:
    """Return our rules and those of further folders; a file with the name of one of ours takes its place.

    Raises:
        ConfigError: a file cannot be used.
    """
    paths = [path for folder in (RULES_FOLDER, *folders) for path in sorted(folder.glob("*.toml"))]
    return Rulebook({path.stem: read_rule(path) for path in paths})


def supervisor_rules() -> Rulebook:
    """Return the rules of this package and of this user; ours alone when a file of the user's cannot be used.

    A run that is being supervised is not ended by a spelling mistake in a rule; `headway diagnose` names it.
    """
    try:
        return load_rules(user_rules_folder())
    except ConfigError:
        return load_rules()


def read_rule(path: Path) -> Rule:
    """Return the rule of one file.

    Raises:
        ConfigError: the file cannot be used; the message names the place.
    """
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as err:
        raise ConfigError("diagnose/rule-unreadable", path=path, why=err) from err
    more = {key for fix in data.get("fix", ()) if isinstance(fix, dict) for key in fix} - _FIX_KEYS
    if unknown := sorted((set(data) - _KEYS - _MORE_KEYS) | more):
        raise ConfigError("diagnose/rule-wrong", path=path, why=f"unknown: {', '.join(unknown)}")
    try:
        return _make_rule(path.stem, data)
    except (KeyError, TypeError, ValueError, AttributeError, re.error) as err:
        raise ConfigError("diagnose/rule-wrong", path=path, why=f"{type(err).__name__}: {err}") from err


def _make_rule(code: str, data: Mapping[str, Any]) -> Rule:  # Any: what a TOML file may hold
    text = data["text"]
    return Rule(
        code=code,
        category=str(data["category"]),
        kind=str(data.get("kind", code)),
        weight=int(data.get("weight", 3)),
        is_echo=bool(data.get("echo", False)),
        is_transient=bool(data.get("transient", False)),
        is_quiet=bool(data.get("quiet", False)),
        explains=tuple(data.get("explains", ())),
        signs=tuple(_make_sign(pattern) for pattern in data["signs"]),
        unless=re.compile(data["unless"]) if "unless" in data else None,
        needs=re.compile(data["needs"]) if "needs" in data else None,
        recovered=re.compile(data["recovered"]) if "recovered" in data else None,
        frames=re.compile(data["frames"]) if "frames" in data else None,
        frameworks=tuple(data.get("framework", ())),
        words=tuple(str(word).lower() for word in data.get("words", ())),
        values={name: re.compile(pattern) for name, pattern in data.get("values", {}).items()},
        en=str(text["en"]),
        zh=str(text["zh"]),
        fixes=tuple(_make_fix(one) for one in data.get("fix", ())),
        reproducer=str(data.get("reproducer", "")),
    )


def _make_sign(pattern: str) -> Sign:
    return Sign(pattern=re.compile(pattern), literals=required_texts(pattern))


def _make_fix(data: Mapping[str, Any]) -> Fix:
    audience: Audience = {"headway": "headway", "script": "script"}.get(data.get("for", ""), "any")  # type: ignore[assignment]  # a Literal of the same words
    return Fix(
        audience=audience,
        en=str(data["en"]),
        zh=str(data["zh"]),
        command=str(data.get("command", "")),
        setting=str(data.get("set", "")),
    )


def required_texts(pattern: str) -> tuple[str, ...]:
    """Return plain texts in lower case of which every match of a pattern holds one; none: nothing is certain."""
    found = tuple(_longest_plain(branch) for branch in _branches(pattern.removeprefix("(?i)")))
    return found if all(found) else ()


def _branches(pattern: str) -> list[str]:
    """Return the alternatives at the outermost level of a pattern."""
    parts, depth, start, place = [], 0, 0, 0
    while place < len(pattern):
        char = pattern[place]
        if char == "\\":
            place += 1
        elif char in "([":
            depth += 1
        elif char in ")]":
            depth -= 1
        elif char == "|" and depth == 0:
            parts.append(pattern[start:place])
            start = place + 1
        place += 1
    return [*parts, pattern[start:]]


def _longest_plain(pattern: str) -> str:
    """Return the longest run of characters that stand for themselves and are not optional."""
    best, run, place, depth = "", "", 0, 0
    while place < len(pattern):
        char, step = pattern[place], 1
        if quoted := _QUOTED.match(pattern, place):
            char, step = quoted[0][1], 2
        elif char in "([":
            depth += 1
        elif char in ")]":
            depth -= 1
        is_plain = depth == 0 and (step == 2 or char not in r"\.^$*+?{}[]()|")
        if char == "\\" and step == 1:
            step = 2
        elif char == "{" and step == 1:
            step = pattern.index("}", place) - place + 1
        after = pattern[place + step : place + step + 1]
        if is_plain and after not in ("?", "*", "{"):
            run += char
        else:
            best, run = max(best, run, key=len), ""
        if after == "+":
            best, run = max(best, run, key=len), ""
        place += step
    return max(best, run, key=len).lower()


def fill(text: str, facts: Mapping[str, object]) -> str:
    """Return a text with its values."""
    return text.format_map(facts)


def usable_fixes(rule: Rule, facts: Mapping[str, object], audience: Audience) -> list[Fix]:
    """Return the fixes that are for this audience and whose values are known, cheapest first."""
    wanted = ("any", audience)
    return [fix for fix in rule.fixes if fix.audience in wanted and fix.fields() <= set(facts)]


def list_categories(rules: Iterable[Rule]) -> Sequence[str]:
    """Return the categories in use, sorted."""
    return sorted({rule.category for rule in rules})
