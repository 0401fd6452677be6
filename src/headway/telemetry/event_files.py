"""TensorBoard event files that a script writes: found while it has them open, read beside it, kept as `scalars.jsonl`.

In: the processes of a run and the folder of its script. Out: one line per number, thinned to some thousand per name.
The sampler looks for files that a process of the run has open for writing. A child of its own, which starts with the
first of them or after ten seconds, looks below the folder too (torch's writer closes its file between two writes) and
reads them, for they may hold anything.
`python -m headway.telemetry.event_files PARENT RUN_DIR FOLDER SINCE`, paths on the standard input.
"""

from __future__ import annotations

import contextlib
import math
import os
import re
import select
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from headway.process import descendants, die_with_parent, name_process
from headway.telemetry.lines import decode_lines, encode_line, number, read_tail
from headway.telemetry.reading import open_beneath, read_part, whole, words
from headway.telemetry.rundir import RunDir
from headway.telemetry.tfevents import Scalar, ScalarFile

SCALARS: Final = "scalars.jsonl"
_NAME: Final = "tfevents"
_LOOK_S: Final = 5.0
_SHORT_S: Final = 10.0
"""A run that ends sooner has no reader; its files are read once it is over."""
_WALK_S: Final = 15.0
_NICE: Final = 10
_READ_S: Final = 2.0
_ROUND_BYTES: Final = 1 << 20
"""Of each file in a round: reading must not take a core from the training."""
_ROUND_S: Final = 0.5
_LAST_BYTES: Final = 16 << 20
_TAIL_BYTES: Final = 16 << 10
_EVALUATES: Final = re.compile(r"val|eval|test|dev")
_MOST_FILES: Final = 64
_MOST_TAGS: Final = 64
_MOST_POINTS: Final = 2000
_END_S: Final = 0.5
_MOST_PLACES: Final = 4000
_DEEPEST: Final = 5

Points = dict[str, list[tuple[int, float]]]
"""Name to steps and values, in the order of their steps."""


class EventFileWatch:
    """The sampler's end: looks for open event files and hands them to a reader."""

    def __init__(self, run: RunDir, supervisor: int, folder: str) -> None:
        self._run, self._supervisor, self._folder = run, supervisor, folder
        self._since = time.time()
        self._begun: float | None = None
        self._seen: set[str] = set()
        self._due = 0.0
        self._reader: subprocess.Popen[bytes] | None = None

    def look(self, now: float) -> None:
        """Look for new files, now and then."""
        if now < self._due:
            return
        self._due = now + _LOOK_S
        self._begun = now if self._begun is None else self._begun
        if self._reader is None and now - self._begun > _SHORT_S:
            self._start()
        for path in find_open(descendants(self._supervisor)):
            if path not in self._seen and len(self._seen) < _MOST_FILES and "\n" not in path:
                self._seen.add(path)
                self._hand_over(path)

    def close(self) -> None:
        """Let the reader take what is left."""
        if self._reader is None:
            return
        assert self._reader.stdin is not None
        with contextlib.suppress(OSError):
            self._reader.stdin.close()
        try:
            self._reader.wait(_END_S)
        except subprocess.TimeoutExpired:
            self._reader.kill()
            self._reader.wait()

    def _hand_over(self, path: str) -> None:
        reader = self._start()
        assert reader.stdin is not None
        with contextlib.suppress(OSError):  # it is gone: the report looks once more
            reader.stdin.write(os.fsencode(path) + b"\n")
            reader.stdin.flush()

    def _start(self) -> subprocess.Popen[bytes]:
        """Start the reader, once."""
        if self._reader is None:
            words = [str(os.getpid()), str(self._run.root), self._folder, str(self._since)]
            self._reader = subprocess.Popen(
                [sys.executable, "-P", "-m", "headway.telemetry.event_files", *words],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
            )
        return self._reader


def find_open(pids: Iterable[int]) -> Iterator[str]:
    """Yield event files that one of the processes has open for writing."""
    for pid in pids:
        with contextlib.suppress(OSError):
            for entry in os.scandir(f"/proc/{pid}/fd"):
                with contextlib.suppress(OSError):
                    path = os.readlink(entry.path)
                    if _NAME in os.path.basename(path) and os.path.isabs(path) and _is_written(pid, entry.name):
                        yield path


def _is_written(pid: int, fd: str) -> bool:
    info = Path(f"/proc/{pid}/fdinfo/{fd}").read_text(encoding="ascii", errors="replace")
    flags = next((line.split()[1] for line in info.splitlines() if line.startswith("flags:")), "0")
    return int(flags, 8) & (os.O_WRONLY | os.O_RDWR) != 0


class ScalarLog:
    """Writes numbers, each name thinned: twice as far apart as soon as there are too many."""

    def __init__(self, path: Path) -> None:
        self._fd = open_beneath(path, os.O_WRONLY | os.O_APPEND)
        self._num: dict[str, int] = {}
        self._written: dict[str, int] = {}

    def begin(self, path: Path) -> None:
        """Note which file is read."""
        os.write(self._fd, encode_line({"file": str(path)}))

    def add(self, scalars: Iterable[Scalar]) -> None:
        """Write some numbers with one call."""
        lines = []
        for one in scalars:
            if one.tag not in self._num and len(self._num) >= _MOST_TAGS:
                continue
            num = self._num[one.tag] = self._num.get(one.tag, 0) + 1
            stride = 1 << (self._written.get(one.tag, 0) // _MOST_POINTS)
            if num % stride == 0:
                self._written[one.tag] = self._written.get(one.tag, 0) + 1
                lines.append(encode_line({"tag": one.tag, "step": one.step, "value": one.value, "t": one.t}))
        if lines:
            os.write(self._fd, b"".join(lines))

    def close(self) -> None:
        """Close the file."""
        os.close(self._fd)


def read_scalars(run: RunDir) -> Points:
    """Return what a script has written into event files; of a step that was done again, the last."""
    found: dict[str, dict[int, float]] = {}
    for line in _lines(run):
        tag, step, value = words(line.get("tag")), whole(line.get("step")), number(line.get("value"))
        if tag and step is not None and not math.isnan(value) and (tag in found or len(found) < _MOST_TAGS):
            found.setdefault(tag, {})[step] = value
    return {tag: sorted(points.items()) for tag, points in found.items()}


def has_scalars(run: RunDir) -> bool:
    """Say whether a script has written any."""
    return (run.root / SCALARS).is_file()


def last_loss(run: RunDir) -> float | None:
    """Return the training loss that a script has written last; none: it has written none lately."""
    for line in reversed(decode_lines(read_tail(run.root / SCALARS, _TAIL_BYTES))):
        tag, value = (words(line.get("tag")) or "").lower(), number(line.get("value"))
        if "loss" in tag and not _EVALUATES.search(tag) and not math.isnan(value):
            return value
    return None


def _lines(run: RunDir) -> list[dict[str, object]]:
    return decode_lines(read_part(run.root / SCALARS, 0, 64 << 20))


def collect_left(run: RunDir, folder: Path, since: float) -> None:
    """Read once more what was read while the run continued, whole; where nobody saw a file open, look below a folder.

    Call it once the run is over: it takes the place of what the reader has written.
    """
    known = [Path(told) for line in _lines(run) if (told := words(line.get("file")))]
    files = [path for path in dict.fromkeys(known or _walk(folder, since)) if path.is_file()]
    if not files or sum(path.stat().st_size for path in files) > _LAST_BYTES:
        return  # nothing, or so much that what was read on the way must do
    part = run.root / f".{SCALARS}.{os.getpid()}"
    log = ScalarLog(part)
    for path in files[:_MOST_FILES]:
        log.begin(path)
        log.add(ScalarFile(path).read(_LAST_BYTES))
    log.close()
    part.replace(run.root / SCALARS)


def _walk(folder: Path, since: float) -> list[Path]:
    """Return event files that are new, as far as a quick look finds them; runs of ours and hidden folders apart."""
    found: list[Path] = []
    places, num = [(folder, 0)], 0
    while places and num < _MOST_PLACES and len(found) < _MOST_FILES:
        place, depth = places.pop(0)
        try:
            entries = sorted(os.scandir(place), key=lambda one: one.name)
        except OSError:
            continue
        if any(one.name == "job.json" for one in entries):
            continue
        for entry in entries:
            num += 1
            with contextlib.suppress(OSError):
                if entry.is_dir(follow_symlinks=False):
                    if depth < _DEEPEST and not entry.name.startswith(".") and entry.name != "node_modules":
                        places.append((Path(entry.path), depth + 1))
                elif _NAME in entry.name and entry.stat(follow_symlinks=False).st_mtime >= since:
                    found.append(Path(entry.path))
    return found


def main(argv: Sequence[str]) -> int:
    """Read the files that are named on the standard input until it ends."""
    parent, place, folder, since = argv
    die_with_parent(int(parent))
    name_process("headway-events")
    os.nice(_NICE)
    run = RunDir(Path(place))
    log: ScalarLog | None = None
    files: dict[str, ScalarFile] = {}
    rest, is_over, walk_at = b"", False, 0.0
    while not is_over:
        began = time.monotonic()
        ready, _, _ = select.select([sys.stdin.fileno()], [], [], _READ_S)
        found: list[Path] = []
        if ready:
            data = os.read(sys.stdin.fileno(), 1 << 16)
            is_over = not data
            *lines, rest = (rest + data).split(b"\n")
            found = [Path(os.fsdecode(line)) for line in lines]
        if is_over or began >= walk_at:
            found += _walk(Path(folder), float(since))
            walk_at = time.monotonic() + _WALK_S
        for path in found:
            if str(path) not in files and len(files) < _MOST_FILES:
                log = log or ScalarLog(run.root / SCALARS)
                files[str(path)] = ScalarFile(path)
                log.begin(path)
        for file in files.values():
            assert log is not None, "made with the first file"
            log.add(file.read(_LAST_BYTES if is_over else _ROUND_BYTES))
        if not is_over and (spent := time.monotonic() - began) < _ROUND_S:
            time.sleep(_ROUND_S - spent)  # a new path wakes us, but not more often than that
    if log is not None:
        log.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
