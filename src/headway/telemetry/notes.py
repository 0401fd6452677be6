"""What people write about a run: a note and tags, in a file of its own that no supervisor touches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from headway.telemetry.reading import read_record
from headway.telemetry.rundir import RunDir, write_json

MOST_TAGS: Final = 20
MOST_LETTERS: Final = 2000
_TAG_LETTERS: Final = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """Words about a run."""

    text: str = ""
    tags: tuple[str, ...] = ()


def note_path(run: RunDir) -> Path:
    """Return where a run's note is."""
    return run.root / "note.json"


def read_note(run: RunDir) -> Note:
    """Return the note of a run; a file that is missing or foreign is an empty one."""
    found = read_record(note_path(run))
    text, tags = found.get("text"), found.get("tags")
    known = [tag[:_TAG_LETTERS] for tag in tags if isinstance(tag, str) and tag] if isinstance(tags, list) else []
    return Note(text=text[:MOST_LETTERS] if isinstance(text, str) else "", tags=tuple(known[:MOST_TAGS]))


def write_note(run: RunDir, note: Note) -> None:
    """Replace the note of a run."""
    write_json(note_path(run), {"schema": "note/1", "text": note.text, "tags": list(note.tags)})


def changed_note(note: Note, text: str | None, add: Sequence[str], drop: Sequence[str]) -> Note:
    """Return a note with another text (None: the same) and with tags added and dropped."""
    tags = dict.fromkeys([*note.tags, *(tag.strip()[:_TAG_LETTERS] for tag in add if tag.strip())])
    kept = [tag for tag in tags if tag not in drop]
    return Note(text=note.text if text is None else text[:MOST_LETTERS], tags=tuple(kept[:MOST_TAGS]))
