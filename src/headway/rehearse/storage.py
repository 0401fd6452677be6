"""What the disk of a folder guarantees: asked of the kernel where it tells, tried where it does not."""

from __future__ import annotations

import contextlib
import fcntl
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Literal

from headway.rehearse.record import Storage

_SYNCS: Final = 24
_TOO_FAST_MS: Final = 0.02
"""Flash needs 20 µs to program a page, and a network longer to answer: what is faster has asked nobody."""
_RENAMES: Final = 1500
_BYTES: Final = 8192
_WRITE_BYTES: Final = 32 << 20
_IN_MEMORY: Final = ("tmpfs", "ramfs", "devtmpfs")
_READER: Final = """
import sys
place, size = sys.argv[1], int(sys.argv[2])
torn = reads = 0
print("ready", flush=True)
while True:
    try:
        with open(place, "rb") as file:
            data = file.read()
    except FileNotFoundError:
        torn += 1
        continue
    if data == b"end":
        break
    reads += 1
    torn += len(data) != size or data != data[:1] * size
print(torn, reads)
"""
_LOCKER: Final = """
import fcntl, sys
with open(sys.argv[1], "rb+") as file:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        print("taken")
    except OSError:
        print("kept")
"""


def look_at_storage(place: Path) -> Storage:
    """Return what can be found out about a folder in a few seconds; what is written there is removed.

    Raises:
        OSError: nothing can be written there.
    """
    place.mkdir(parents=True, exist_ok=True)
    kind, device = _mount_of(place)
    with tempfile.TemporaryDirectory(prefix=".headway-rehearse-", dir=place) as name:
        scratch = Path(name)
        times = _time_syncs(scratch)
        torn, renames = _try_renames(scratch)
        return Storage(
            place=str(place.absolute()),
            kind=kind,
            fsync_ms=None if times is None else round(statistics.median(times), 3),
            fsync=_judge_sync(kind, times),
            cache=_cache_of(device),
            syncs_folders=_syncs_folder(scratch),
            renames=renames,
            torn=torn,
            locks=_keeps_locks(scratch),
            write_mb_s=_write_rate(scratch),
        )


def _judge_sync(
    kind: str | None, times_ms: Sequence[float] | None
) -> Literal["memory", "too-fast", "plausible", "refused"]:
    if times_ms is None:
        return "refused"
    if kind in _IN_MEMORY:
        return "memory"
    return "too-fast" if statistics.median(times_ms) < _TOO_FAST_MS else "plausible"


def _mount_of(place: Path) -> tuple[str | None, str | None]:
    """Return type and number (`259:1`) of the file system that a folder is on."""
    whole, best = os.path.realpath(place), ""
    found: tuple[str | None, str | None] = (None, None)
    try:
        lines = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None, None
    for line in lines:
        words, _, rest = line.partition(" - ")
        fields, after = words.split(), rest.split()
        if len(fields) < 5 or not after:
            continue
        point = fields[4].encode().decode("unicode_escape")
        is_above = whole == point or whole.startswith(point.rstrip("/") + "/")
        if is_above and len(point) >= len(best):
            best, found = point, (after[0], fields[2])
    return found


def _cache_of(device: str | None) -> str | None:
    """Return what the kernel says of the write cache of a disk; a partition's is its disk's."""
    if device is None:
        return None
    for folder in (Path("/sys/dev/block") / device, Path("/sys/dev/block") / device / ".."):
        with contextlib.suppress(OSError):
            return (folder / "queue" / "write_cache").read_text(encoding="ascii").strip()
    return None


def _time_syncs(scratch: Path) -> list[float] | None:
    """Return the milliseconds of each sync of 4 KiB that were just written; None: syncing is refused."""
    times = []
    with (scratch / "sync").open("wb", buffering=0) as file:
        for turn in range(_SYNCS):
            file.write(bytes([turn]) * 4096)
            began = time.perf_counter()
            try:
                os.fsync(file.fileno())
            except OSError:
                return None
            times.append(1000 * (time.perf_counter() - began))
    return times


def _syncs_folder(scratch: Path) -> bool:
    folder = os.open(scratch, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    except OSError:
        return False
    finally:
        os.close(folder)
    return True


def _try_renames(scratch: Path) -> tuple[int, int]:
    """Return how often a reader found a file that was not whole, and how often it was replaced meanwhile."""
    target, fresh = scratch / "target", scratch / "fresh"
    target.write_bytes(b"a" * _BYTES)
    with subprocess.Popen(
        [sys.executable, "-I", "-c", _READER, str(target), str(_BYTES)], stdout=subprocess.PIPE, text=True
    ) as reader:
        assert reader.stdout is not None
        try:
            reader.stdout.readline()
            for turn in range(_RENAMES):
                fresh.write_bytes(bytes([97 + turn % 26]) * _BYTES)
                fresh.rename(target)
        finally:
            fresh.write_bytes(b"end")
            fresh.rename(target)
        torn, _ = reader.stdout.readline().split()
    return int(torn), _RENAMES


def _keeps_locks(scratch: Path) -> bool:
    place = scratch / "lock"
    place.touch()
    with place.open("rb+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        asked = [sys.executable, "-I", "-c", _LOCKER, str(place)]
        said = subprocess.run(asked, stdout=subprocess.PIPE, text=True, check=False, timeout=30).stdout
    return said.strip() == "kept"


def _write_rate(scratch: Path) -> float | None:
    """Return megabytes per second to the disk; None: there is no room to try."""
    data, began = os.urandom(1 << 20), time.perf_counter()
    try:
        with (scratch / "data").open("wb", buffering=0) as file:
            for _ in range(_WRITE_BYTES >> 20):
                file.write(data)
            os.fsync(file.fileno())
    except OSError:
        return None
    return round(_WRITE_BYTES / 1e6 / (time.perf_counter() - began), 1)
