"""A guide's checkpoints under the guide's own names, and what becomes of those of earlier runs.

A file holds weights in the form the original reads; what a run needs to continue (optimizer, data order, random
numbers) stays in the run directory, and `guide.json` there says which files the run has written, and where they are.

One rule for every guide: a new run moves the earlier run's files to `<folder>/<earlier run>/` and says so. The best
model alone stays where it is until a run finds a better one; a run whose best is worse keeps it in a folder of its own.
A run that begins while another one writes to the folder keeps all its other files in its own folder: epochs of two runs
are never mixed.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import queue
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from headway.config import load_config
from headway.errors import HeadwayError
from headway.guide.log import free_names
from headway.messages import say
from headway.task import find_recipe
from headway.telemetry import RunDir, is_supervised, list_runs, read_record, write_json

NOTE = "archive/headway.json"
"""Inside a `.pt`, below the folder that torch gives its own records; it reads no archive with a file outside of it."""
_RECORD = "guide.json"
EARLIER = "earlier"
"""Folder of files that no run has written."""
_FORGOTTEN_S = 3600.0
_REMOVAL_S = 1.0
"""A large checkpoint is removed within that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """What is known of a checkpoint when its file is written."""

    run: RunDir
    step: int
    epoch: int
    """As the guide counts."""
    measures: Mapping[str, float] = field(default_factory=dict)
    """What the validation of its step found; empty where there was none."""
    best: float | None = None
    """The best loss so far, as the originals keep it."""
    decides: str = ""
    """Name of the measure that decides which is best."""
    sense: str = "min"

    def note(self) -> dict[str, Any]:
        """Return the record of the file. Any: plain values."""
        return {
            "run": self.run.name,
            "step": self.step,
            "epoch": self.epoch,
            "measures": dict(self.measures),
            "decides": self.decides,
            "sense": self.sense,
        }


class Writer(Protocol):
    """Writes one checkpoint in a form of its own."""

    def write(self, checkpoint: Path, out: Path, made: Made) -> None:
        """Write the file or folder `out`, whole or not at all."""
        ...

    def close(self) -> None:
        """End what was started."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """The run and step that a guide's checkpoint comes from."""

    run: RunDir
    step: int
    path: Path
    """Where the file is now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A file that some run has written."""

    path: Path
    run: RunDir
    note: Mapping[str, Any]


class NamedCheckpoints:
    """The files of one run, written one after the other in a thread of its own: a large one must not hold up lines."""

    def __init__(
        self,
        folder: Path,
        *,
        writer: Writer,
        write: Callable[[str], None],
        warn: Callable[[str], None] | None = None,
        best: str | None = None,
        tell: Callable[[Path, Made], str | None] = lambda path, made: say("guide/saved", path=path, step=made.step),
    ) -> None:
        self.folder, self._writer, self._write, self._best, self._tell = folder, writer, write, best, tell
        self._warn = warn or write
        self._wanted: queue.SimpleQueue[tuple[Path, str, Made] | None] = queue.SimpleQueue()
        self._is_told = False
        self._is_beside = False
        self.last: Path | None = None
        """The newest file that can be continued from by its name."""
        self._thread = threading.Thread(target=self._work)
        self._thread.start()

    def begin(self, run: RunDir) -> RunDir | None:
        """Take the folder for a run; return the run that is at work in it, whose names are then left alone."""
        with _locked(self.folder):
            other = _at_work(self.folder, run)
            self._is_beside = other is not None
            _record(run, self.folder, {})  # the next one to begin sees it before there is a file
        return other

    def add(self, checkpoint: Path, name: str, made: Made) -> None:
        """Ask for a file; it is written when those before it are."""
        self._wanted.put((checkpoint, name, made))

    def drop(self, name: str, run: RunDir) -> None:
        """Forget a file whose checkpoint is gone."""
        for held in held_in(self.folder, run):
            if held.path.name == name:
                _remove(held.path)
                _record(run, self.folder, {name: None})

    def close(self) -> None:
        """Write what is still to be written, and end what was started."""
        self._wanted.put(None)
        self._thread.join()
        self._writer.close()

    def _work(self) -> None:
        while (wanted := self._wanted.get()) is not None:
            checkpoint, name, made = wanted
            try:
                with _locked(self.folder):
                    out = self._place(name, made)
                    out.parent.mkdir(parents=True, exist_ok=True)
                    self._writer.write(checkpoint, out, made)
                    _record(made.run, self.folder, {str(out.relative_to(self.folder)): made.note()})
            except (HeadwayError, OSError) as error:
                # The run's own checkpoint is safe; only its copy under the guide's name is not there.
                why = f"{error.text()} [{error.code}]" if isinstance(error, HeadwayError) else str(error)
                if _stays(checkpoint):  # else a newer one has taken its place, and its own file follows
                    self._warn(say("guide/not-copied", name=name, why=why, checkpoint=checkpoint))
                continue
            if self.last is None or name != self._best:
                self.last = out
            line = self._tell(out, made)
            if line:
                self._write(line)

    def _place(self, name: str, made: Made) -> Path:
        """Return where a file goes: its name in the folder, freed first where another run's file has it."""
        out = self.folder / name
        if self._is_beside and name != self._best:
            return self.folder / made.run.name / name
        there = holder_of(out, made.run.root.parent)
        if not out.exists() or (there is not None and there.run.name == made.run.name):
            return out
        if name == self._best and there is not None and is_better(there, made):
            if not self._is_told:
                self._is_told = True
                self._write(
                    say(
                        "guide/best-stays",
                        path=out,
                        run=there.run.name,
                        best=measure_text(there.note),
                        own=measure_text(made.note()),
                        place=self.folder / made.run.name / name,
                    )
                )
            return self.folder / made.run.name / name
        moved = _move(out, there.run if there else None, self.folder)
        self._write(say("guide/moved-one", path=out, place=moved))
        return out


def _stays(checkpoint: Path) -> bool:
    """Say whether a checkpoint is still there a moment later: one that is removed goes file by file."""
    until = time.monotonic() + _REMOVAL_S
    while checkpoint.exists():
        if time.monotonic() > until:
            return True
        time.sleep(0.02)
    return False


def is_better(there: Held, made: Made) -> bool:
    """Say whether the file that is there is better than one just made, as far as the two can be compared."""
    name = made.decides
    old, new = there.note.get("measures", {}).get(name), made.measures.get(name)
    if old is None or new is None or not _has_same_data(there.run, made.run):
        return False
    return bool(old > new if made.sense == "max" else old < new)


def measure_text(note: Mapping[str, Any]) -> str:
    """Return the deciding measure of a file: `mean_iou 0.8460`. Any: plain values."""
    name = str(note.get("decides") or "")
    value = note.get("measures", {}).get(name)
    return f"{name} {value:.4f}" if isinstance(value, float | int) else "n/a"


def _has_same_data(one: RunDir, other: RunDir) -> bool:
    """Say whether two runs validate on the same data, so that their measures mean the same."""
    try:
        configs = [load_config(run.config, recipe=find_recipe).config for run in (one, other)]
    except (HeadwayError, OSError):  # a run of an older version, or one that was cleaned up
        return False
    tasks = [config.task.model_dump(mode="json") for config in configs]
    keys = [key for key in tasks[0] if "data" in key or "split" in key or "label" in key or key == "synthetic"]
    return [tasks[0][key] for key in keys] == [tasks[1].get(key) for key in keys]


def keep_earlier(folder: Path, *, out: Path, best: str | None, since: Source | None = None) -> list[str]:
    """Move the files of earlier runs out of the way of the next; return the lines that say so.

    Args:
        best: the file that stays until a better one comes.
        since: the run that is continued, and its step: its files up to there stay, they belong to the next run too.
    """
    lines = []
    with _locked(folder):
        _drop_unfinished(folder)
        for run in list_runs(out):
            if is_supervised(run):
                continue  # somebody else's, at work at this moment
            held = [one for one in held_in(folder, run) if one.path.parent == folder and one.path.name != best]
            if since is not None:
                held = [one for one in held if run.name != since.run.name or int(one.note["step"]) > since.step]
            for one in held:
                _move(one.path, run, folder)
            if held:
                lines.append(say("guide/moved", run=run.name, num=len(held), place=f"{folder / run.name}/"))
    there = holder_of(folder / best, out) if best is not None else None
    if there is not None and since is None:
        code, facts = "guide/best-kept", {"run": there.run.name, "best": measure_text(there.note)}
        lines.append(say(code, path=there.path, **facts))
    return lines


def _at_work(folder: Path, own: RunDir) -> RunDir | None:
    """Return another run that is supervised and writes to a folder."""
    for run in list_runs(own.root.parent):
        if run.name != own.name and folder_of(run) == os.path.abspath(folder) and is_supervised(run):
            return run
    return None


def folder_of(run: RunDir) -> str | None:
    """Return the folder that a run writes to, in full."""
    where = read_record(run.root / _RECORD).get("folder")
    return os.path.abspath(run.root / str(where)) if where else None


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Let one command at a time move and write the files of a folder; the lock is on the folder, and leaves no file."""
    folder.mkdir(parents=True, exist_ok=True)
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with contextlib.suppress(OSError):  # a file system without locks has one command at a time
            fcntl.flock(opened, fcntl.LOCK_EX)
        yield
    finally:
        os.close(opened)


def _drop_unfinished(folder: Path) -> None:
    """Remove what a writer that was killed has left; one that is at work has touched its files lately."""
    for path in (*folder.glob(".export-*"), *folder.glob(".new-*"), *folder.glob(".eval-*")):
        files = [path, *path.rglob("*")]
        if all(time.time() - file.stat().st_mtime > _FORGOTTEN_S for file in files):
            _remove(path)


def held_in(folder: Path, run: RunDir) -> list[Held]:
    """Return the files of one run that are in a folder, or below it."""
    if folder_of(run) != os.path.abspath(folder):
        return []
    found = []
    for name, note in read_record(run.root / _RECORD).get("files", {}).items():
        path = next((one for one in (folder / name, folder / run.name / Path(name).name) if one.exists()), None)
        if path is not None and isinstance(note, dict):
            found.append(Held(path=path, run=run, note=note))
    return found


def held_below(folder: Path, out: Path) -> list[Held]:
    """Return the files of all runs that are in a folder, or below it, the newest run first."""
    found: dict[Path, Held] = {}
    for run in list_runs(out):
        for held in held_in(folder, run):
            found.setdefault(held.path, held)  # a file that is gone does not make another run's its own
    return list(found.values())


def holder_of(path: Path, out: Path) -> Held | None:
    """Return which run has written a file, where that is known."""
    if not path.exists():
        return None
    near = [held for place in (path.parent, path.parent.parent) for held in held_below(place, out)]
    return next((held for held in near if held.path == path), None)


def _move(path: Path, run: RunDir | None, folder: Path) -> Path:
    """Move a file, and its note beside it, into the folder of its run; one of no known run into `earlier`."""
    place = folder / (run.name if run is not None else EARLIER)
    place.mkdir(parents=True, exist_ok=True)
    target = next(name for name in free_names(place / path.name) if not name.exists())
    path.rename(target)
    note = note_beside(path)
    if note is not None and note.is_file():
        note.rename(note_beside(target) or target)
    told = read_record(run.root / _RECORD).get("files", {}).get(path.name) if run is not None else None
    if run is not None and told is not None:
        # Else the run would take the next run's file of that name for its own.
        _record(run, folder, {path.name: None, str(target.relative_to(folder)): told})
    return target


def note_beside(path: Path) -> Path | None:
    """Return the name of a file's note: `best_model.json` of `best_model.pth`, `meta_0200.json` of `model_0200.pt`."""
    if not path.suffix:
        return None
    is_numbered = path.stem.startswith("model_")
    return path.with_name(f"{path.stem.replace('model_', 'meta_', 1) if is_numbered else path.stem}.json")


def _remove(path: Path) -> None:
    if path.is_dir():
        for file in sorted(path.rglob("*"), reverse=True):
            file.rmdir() if file.is_dir() else file.unlink(missing_ok=True)
        path.rmdir()
    else:
        path.unlink(missing_ok=True)


def _record(run: RunDir, folder: Path, files: Mapping[str, Mapping[str, Any] | None]) -> None:
    """Note in the run's directory what was written, relative: a project that is moved keeps its way back."""
    path = run.root / _RECORD
    known = read_record(path)
    kept = {**known.get("files", {}), **files}
    where = os.path.relpath(folder.absolute(), run.root.absolute())
    write_json(path, {"schema": "guide/1", "folder": where, "files": {n: f for n, f in kept.items() if f}})
