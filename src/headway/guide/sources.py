"""The run and step that a guide's checkpoint comes from, found by the name that the reader typed."""

from __future__ import annotations

import difflib
import json
import os
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from headway.errors import UsageError
from headway.guide.checkpoints import EARLIER, NOTE, Held, Source, folder_of, held_below, held_in, holder_of
from headway.messages import say
from headway.telemetry import RunDir, is_run, list_runs

_SHOWN = 8
"""Names listed when one is not found."""


def find_source(path: Path, out: Path, write: Callable[[str], None] = lambda _: None) -> Source:
    """Return the run and step of a guide's checkpoint, wherever it was moved, or refuse with those that are there."""
    found = path if path.exists() else _find_moved(path, out)
    if found is None:
        known = _list_names(path, out)
        if known:
            raise UsageError("guide/no-checkpoint", path=path, known=known)
        elsewhere = ", ".join(f"{folder}/" for folder in _folders(out))
        code = "guide/no-checkpoint-folder" if elsewhere else "guide/no-checkpoint-yet"
        raise UsageError(code, path=path, folders=elsewhere)
    source = _source_of(found, out)
    if found != path:
        # A name without its folder is not a file that was moved.
        is_moved = found.parent.name in (source.run.name, EARLIER)
        code = "guide/found-elsewhere" if is_moved else "guide/found-near"
        write(say(code, path=path, place=found, run=source.run.name))
    return source


def _find_moved(path: Path, out: Path) -> Path | None:
    """Return a file that a later run has moved: the newest run's, where several have written that name."""
    held = [one.path for one in held_below(path.parent, out) if one.path.name == path.name]
    beside = sorted(path.parent.glob(f"*/{path.name}"), reverse=True)
    return next(iter([*held, *beside]), None)


def _source_of(path: Path, out: Path) -> Source:
    note = read_note(path)
    if note is None:
        holder = holder_of(path, out)
        if holder is None:
            raise UsageError("guide/foreign", path=path)
        return Source(run=holder.run, step=int(holder.note["step"]), path=path)
    run = RunDir(out.absolute() / str(note["run"]))
    if not is_run(run.root):
        raise UsageError("guide/run-gone", path=path, run=run.root)
    return Source(run=run, step=int(note["step"]), path=path)


def read_note(path: Path) -> dict[str, Any] | None:
    """Return what a `.pt` says of itself; none where it was not made here. Nothing is unpickled. Any: JSON."""
    try:
        with zipfile.ZipFile(path) as archive:
            note = json.loads(archive.read(NOTE))
    except (OSError, KeyError, ValueError, zipfile.BadZipFile):
        return None
    return note if isinstance(note, dict) and {"run", "step"} <= note.keys() else None


def _folders(out: Path) -> list[Path]:
    """Return the folders in which runs have written files that are still there, as they are typed here."""
    found: dict[Path, None] = {}
    for run in list_runs(out):
        where = folder_of(run)
        if where is not None and held_in(Path(where), run):
            found[Path(os.path.relpath(where))] = None
    return list(found)


def _list_names(path: Path, out: Path) -> str:
    """Return the names in a file's folder: all of a few, of many those most like the one that was asked for."""
    of_runs = {EARLIER, *(run.name for run in list_runs(out))}
    found = (one for one in path.parent.glob("[!.]*") if one.suffix not in (".json", ".log"))
    names = sorted((one.name for one in found if one.name not in of_runs), key=_by_number)
    if len(names) <= _SHOWN:
        return ", ".join(names)
    near = sorted(names, key=lambda name: _distance(name, path.name))[:_SHOWN]
    return ", ".join(sorted(near, key=_by_number)) + f" … ({len(names)})"


def _distance(name: str, asked: str) -> tuple[bool, int, float]:
    """Return how far a name is from the one asked for: another kind of name, then the number, then the spelling."""
    (kind, number), (wanted, near) = _by_number(Path(name).stem), _by_number(Path(asked).stem)
    alike = difflib.SequenceMatcher(None, name, asked).ratio()
    return kind != wanted, abs(number - near), -alike


def _by_number(name: str) -> tuple[str, int]:
    digits = "".join(letter for letter in name if letter.isdigit())
    return name.rstrip("0123456789."), int(digits or 0)


def best_of(held: Sequence[Held]) -> Held | None:
    """Return the best of some files by the measure that decides in the newest; the newest step where none has one."""
    if not held:
        return None
    measured = [one for one in held if _value(one) is not None]
    if not measured:
        return max(held, key=lambda one: int(one.note["step"]))
    name = measured[0].note.get("decides")
    same = [one for one in measured if one.note.get("decides") == name]
    sign = 1 if same[0].note.get("sense") == "max" else -1
    return max(same, key=lambda one: (sign * (_value(one) or 0.0), int(one.note["step"])))


def _value(held: Held) -> float | None:
    value = held.note.get("measures", {}).get(held.note.get("decides"))
    return float(value) if isinstance(value, int | float) else None
