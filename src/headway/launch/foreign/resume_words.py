"""The user's own words to continue: `--resume {latest}` is added to the line when it starts again.

A script that is not ours saves as it likes. Which argument or variable makes it continue, only its user knows; where
its checkpoints are can be seen: files and folders with the names that trainers give them, newer than the run.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from headway.errors import UsageError

_PLACE: Final = re.compile(r"\{latest(?::([^{}]+))?\}")
_VARIABLE: Final = re.compile(r"[A-Z_][A-Z0-9_]*=")
_NAMED: Final = re.compile(
    r"(?i)(?:.*\.(?:pt|pth|ckpt|pkl|safetensors|bin|tar|pdparams)|(?:checkpoint|ckpt|step|epoch|iter|global_step)[-_]?\d.*)"
)
"""Names that trainers give to what they can continue from."""
_NEVER: Final = frozenset({".git", "__pycache__", "node_modules", "wandb", "mlruns", "venv", ".venv"})
_DEPTH: Final = 4
_MOST_ENTRIES: Final = 20_000


@dataclass(frozen=True, slots=True)
class Resumed:
    """A line that continues."""

    argv: tuple[str, ...]
    env: dict[str, str]
    place: str
    """The checkpoint it continues from; empty: the words name none."""


def refuse_bad_words(text: str, argv: Sequence[str]) -> None:
    """Refuse words that no shell can read, or that have no place in the line, before anything is started."""
    try:
        words = shlex.split(text)
    except ValueError:
        words = []
    if not words:
        raise UsageError("run/resume-with", text=text)
    if list(argv[1:2]) == ["-c"] and not all(_is_variable(word) for word in words):
        raise UsageError("run/resume-with-shell", text=text)


def add_words(text: str, argv: Sequence[str], cwd: Path, since: float, *, not_in: Path) -> Resumed | None:
    """Return the line with the words that make it continue; None: there is no checkpoint to continue from.

    Args:
        text: what the user typed: arguments, or `NAME=value` for a variable.
        argv: the line.
        cwd: where its checkpoints are looked for, with the folders that its arguments name.
        since: when the run began, in Unix seconds; what is older is of another run.
        not_in: our own run directory.
    """
    found = _PLACE.search(text)
    place = _newest(_candidates(found[1], argv, cwd, not_in), since) if found is not None else ""
    if place is None:
        return None
    words, env = list(argv), dict[str, str]()
    for word in shlex.split(text):
        word = _PLACE.sub(lambda _: place, word)
        if _is_variable(word):
            name, _, env[name] = word.partition("=")
        else:
            words.append(word)
    return Resumed(tuple(words), env, place)


def _is_variable(word: str) -> bool:
    """Say whether a word is `NAME=value`; `trainer.resume=x` and `resume=x` are arguments of the script."""
    return bool(_VARIABLE.match(word))


def _candidates(pattern: str | None, argv: Sequence[str], cwd: Path, not_in: Path) -> Iterator[Path]:
    if pattern is not None:
        base = Path(pattern).anchor or str(cwd)
        yield from Path(base).glob(str(Path(pattern).relative_to(Path(pattern).anchor)))
        return
    named = (Path(cwd, os.path.expanduser(word.rpartition("=")[2])) for word in argv)
    folders = {cwd.resolve(), *(one.resolve() for one in named if one.is_dir())}
    left = _MOST_ENTRIES
    for folder in sorted(folders):
        for one in _walk(folder, _DEPTH, not_in.resolve()):
            left -= 1
            if left < 0:
                return
            if _NAMED.fullmatch(one.name):
                yield one


def _walk(folder: Path, depth: int, not_in: Path) -> Iterator[Path]:
    try:
        entries = sorted(os.scandir(folder), key=lambda one: one.name)
    except OSError:
        return
    for entry in entries:
        path = Path(entry.path)
        if entry.name in _NEVER or entry.name.startswith(".") or path == not_in:
            continue
        yield path
        # Inside a folder that is a checkpoint itself are only its parts.
        if depth > 1 and entry.is_dir(follow_symlinks=False) and not _NAMED.fullmatch(entry.name):
            yield from _walk(path, depth - 1, not_in)


def _newest(candidates: Iterator[Path], since: float) -> str | None:
    best, best_at = None, since
    for one in candidates:
        try:
            at = one.stat().st_mtime
        except OSError:
            continue
        if at > best_at:
            best, best_at = str(one), at
    return best
