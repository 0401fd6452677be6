"""What a hint tells to type, ready to paste: the user's own program and arguments around what the hint changes.

In a hint, a line indented by two spaces is typed, every other line is read. Such a line is a command, or only the words
that change (`batch.total=2048`, `--yes`). On the screen those words become the whole command as the user typed it, with
the words replaced or added, and `headway` is written with its path where the name alone would not be found.
"""

from __future__ import annotations

import re
import shlex
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from headway.redact import redact

MARGIN: Final = "  "
"""What begins a line that is typed."""
_WORDS: Final = re.compile(r"(?:--[a-z][\w-]*|[a-z_][\w.]*=\S)")
_SETTING: Final = re.compile(r"(?:--)?([A-Za-z_][\w.-]*)=")
_REMARK: Final = re.compile(r"\s+#\s.*$")
_UNTYPED: Final = frozenset({"guide", "supervise", "conclude"})
"""Commands of ours that a user's own script or another command has typed."""

_given: list[tuple[str, ...]] = [()]
_program: list[str] = [""]


def remember_words(words: Sequence[str], *, program: str = "") -> None:
    """Keep what the user typed after `headway`, or after another program, for the hints of this process."""
    _given[0], _program[0] = tuple(words), program


def given_words() -> tuple[str, ...]:
    """Return what the user typed after `headway`."""
    return _given[0]


def find_program() -> str:
    """Return `headway` as it can be typed here: by its path where the name alone would not be found."""
    if shutil.which("headway"):
        return "headway"
    place = Path(sys.executable).parent / "headway"
    return shlex.quote(str(place.relative_to(Path.cwd()) if place.is_relative_to(Path.cwd()) else place))


def retype(words: Iterable[str] = (), *, swap: Mapping[str, str] | None = None, drop: Iterable[str] = ()) -> str:
    """Return the user's command line with some words replaced (`swap`), left out (`drop`), changed or added."""
    kept = list(_given[0])
    for old, new in (swap or {}).items():
        form = next((form for form in _forms(old) if _find(kept, form) is not None), [old])
        is_flag = form[0].startswith("--") and not old.startswith("-") and not new.startswith("-")
        _swap(kept, form, f"--{new}" if is_flag else new)
    for word in drop:
        kept.remove(word) if word in kept else None
    line = [shlex.quote(word) for word in kept]
    for group in _groups(words):
        _put(group, line)
    # A secret among the words is not shown again, although the line then has to be completed by hand.
    return redact(" ".join([_program[0] or find_program(), *line]))


def _forms(word: str) -> Iterator[list[str]]:
    """Yield how a word may have been typed: `a=1`, `a 1`, and where a script takes flags `--a=1`, `--a 1`."""
    yield from ([word], word.split(" "))
    if not word.startswith("-"):
        name, *value = word.split("=", 1)
        yield from ([f"--{word}"], [f"--{name}", *value])


def _find(words: Sequence[str], old: Sequence[str]) -> int | None:
    places = range(len(words) - len(old) + 1)
    return next((place for place in places if list(words[place : place + len(old)]) == list(old)), None)


def _swap(words: list[str], old: Sequence[str], new: str) -> None:
    place = _find(words, old)
    if place is not None:
        words[place : place + len(old)] = [new]


def paste_ready(hint: str) -> str:
    """Return a hint whose typed lines are whole commands."""
    return "\n".join(_paste(line) if line.startswith(MARGIN) else line for line in hint.splitlines())


def _paste(line: str) -> str:
    text = line.strip()
    if text.startswith("headway ") or text == "headway":
        return MARGIN + find_program() + text.removeprefix("headway")
    is_typed = bool(_program[0] or (_given[0] and _given[0][0] not in _UNTYPED))
    if not _WORDS.match(text) or not is_typed:
        return line
    found = _REMARK.search(text)
    words = (text[: found.start()] if found else text).split(" ")
    return f"{MARGIN}{retype(words)}{found[0] if found else ''}"


def _groups(words: Iterable[str]) -> list[list[str]]:
    """Return settings alone, and every option with the value that follows it."""
    groups: list[list[str]] = []
    for word in words:
        if groups and groups[-1][0].startswith("--") and "=" not in groups[-1][0] and "=" not in word:
            groups[-1].append(word) if not word.startswith("--") else groups.append([word])
        else:
            groups.append([word])
    return groups


def _put(group: list[str], words: list[str]) -> None:
    """Replace a setting or an option where it was typed; otherwise add it where the command takes it."""
    found = _SETTING.match(group[0])
    for place, word in enumerate(words):
        if found and (same := _SETTING.match(word)) and same[1] == found[1]:
            words[place] = group[0]
            return
        if not found and word == group[0]:
            words[place : place + len(group)] = group
            return
    # What follows the options of `run` is the user's own line.
    end = words.index("run") + 1 if words[:1] == ["run"] else len(words)
    words[end:end] = group
