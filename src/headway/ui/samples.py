"""What a run's task has produced: pictures, GIFs and texts below its directory, by number and never by path."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from headway.redact import redact_lines
from headway.telemetry import RunDir
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
    root: Path
    """The run's folder."""
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
        text = "" if media else _read_text(run.root, path)
        name = clean_text(str(path.relative_to(run.root)))
        kind: Literal["picture", "text"] = "picture" if media else "text"
        samples.append(
            Sample(number=len(samples), name=name, kind=kind, text=text, root=run.root, path=path, media=media)
        )
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
    data = _read(sample.root, sample.path, _MOST_BYTES + 1)
    return data if data is not None and len(data) <= _MOST_BYTES else None


def _read(root: Path, path: Path, num: int) -> bytes | None:
    """Return the beginning of a file below a folder; a link on the way, planted even now, is not followed."""
    *folders, name = path.relative_to(root).parts
    fd = -1
    try:
        fd = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        for folder in folders:
            below = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=fd)
            os.close(fd)
            fd = below
        # A FIFO must not hold up the page.
        file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=fd)
        with open(file, "rb") as opened:
            return opened.read(num) if stat.S_ISREG(os.fstat(file).st_mode) else None
    except OSError:
        return None
    finally:
        if fd >= 0:
            os.close(fd)


def _read_text(root: Path, path: Path) -> str:
    data = _read(root, path, _TEXT_BYTES) or b""
    return "\n".join(redact_lines([clean_text(line) for line in data.decode("utf-8", "replace").split("\n")]))
