"""What a run's task has produced: pictures, GIFs and texts below its directory, by number and never by path."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from headway.redact import redact_lines
from headway.telemetry import RunDir, open_regular
from headway.ui.text import clean_text

_FOLDERS: Final = ("predictions", "samples", "trials", "eval")
_PICTURES: Final = {
    ".png": "image/png",
    ".gif": "image/gif",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".webp": "image/webp",
}
_TEXTS: Final = (".txt", ".md", ".json", ".jsonl", ".csv")
_MOST_FILES: Final = 240
_MOST_ENTRIES: Final = 5000
_MOST_DEPTH: Final = 4
_MOST_BYTES: Final = 24 << 20
_TEXT_BYTES: Final = 4 << 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One file that a task has produced."""

    number: int
    name: str
    kind: Literal["picture", "text"]
    text: str
    path: Path
    media: str


def list_samples(run: RunDir) -> list[Sample]:
    """Return the files, newest folder first; links are not followed."""
    found: list[Path] = []
    budget = [_MOST_ENTRIES]
    for folder in _FOLDERS:
        _walk(run.root / folder, 0, found, budget)
    samples: list[Sample] = []
    for path in found[:_MOST_FILES]:
        media = _PICTURES.get(path.suffix.lower(), "")
        text = "" if media else _read_text(path)
        name = clean_text(str(path.relative_to(run.root)))
        kind: Literal["picture", "text"] = "picture" if media else "text"
        samples.append(Sample(number=len(samples), name=name, kind=kind, text=text, path=path, media=media))
    return samples


def _walk(folder: Path, depth: int, found: list[Path], budget: list[int]) -> None:
    try:
        with os.scandir(folder) as entries:
            listed = sorted(entries, key=lambda entry: entry.name)
    except OSError:
        return
    for entry in listed:
        budget[0] -= 1
        if budget[0] < 0 or len(found) >= _MOST_FILES:
            return
        if entry.is_symlink():
            continue
        if entry.is_dir(follow_symlinks=False):
            if depth < _MOST_DEPTH:
                _walk(Path(entry.path), depth + 1, found, budget)
        elif Path(entry.name).suffix.lower() in (*_PICTURES, *_TEXTS):
            found.append(Path(entry.path))


def read_picture(sample: Sample) -> bytes | None:
    """Return a picture's bytes; None: it is gone, has become something else, or is too large."""
    try:
        if stat.S_ISLNK(os.lstat(sample.path).st_mode):
            return None
        with open(open_regular(sample.path), "rb") as file:
            data = file.read(_MOST_BYTES + 1)
    except OSError:
        return None
    return data if len(data) <= _MOST_BYTES else None


def _read_text(path: Path) -> str:
    try:
        with open(open_regular(path), "rb") as file:
            data = file.read(_TEXT_BYTES)
    except OSError:
        return ""
    return "\n".join(redact_lines([clean_text(line) for line in data.decode("utf-8", "replace").split("\n")]))
