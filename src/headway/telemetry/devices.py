"""Readings of GPUs, host and ranks over a run: `devices.jsonl`, written by the sampler alone and bounded by thinning.

A line is either `{"about": …}`, what does not change (names, sizes, limits), written whenever a sampler starts, or a
reading. The last ten minutes stay as they were read; of what is older, neighbours are merged, so that the file never
holds more than a few thousand lines, however long a run takes. `n` says how many readings a line stands for.
"""

from __future__ import annotations

import logging
import math
import os
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from headway.telemetry.lines import decode_lines, encode_line, number, open_lines, write_all
from headway.telemetry.reading import read_part, section, whole, write_whole

Reading = dict[str, Any]

GPU_KEYS: Final = (
    *("util", "mem", "temp", "power", "clock", "mem_clock", "throttle", "ecc", "xid", "pcie_rx", "pcie_tx"),
    *("nvlink_rx", "nvlink_tx", "sm", "tensor", "dram", "procs", "lost"),
)
"""Keys of one GPU of a reading after `i`, its number in the driver's own count."""
HOST_KEYS: Final = ("cpu", "mem", "swap", "disk_free", "net_rx", "net_tx", "stall_cpu", "stall_mem", "stall_io")
JOB_KEYS: Final = ("cpu", "mem", "own", "num", "read", "write")
RANK_KEYS: Final = ("cpu", "mem", "own", "num")

_MOST_LINES: Final = 2400
_KEPT_OLD: Final = 1000
"""Lines that everything older than `_FRESH_S` is merged into."""
_FRESH_S: Final = 600.0
_MOST_BYTES: Final = 4 << 20
_HIGHEST: Final = frozenset({"temp", "mem", "own", "ecc", "num", "swap", "xid"})
_LOWEST: Final = frozenset({"disk_free"})
_log: Final = logging.getLogger(__name__)


class DeviceLog:
    """Appends readings; a disk that fails loses readings and nothing else."""

    def __init__(
        self, path: Path, *, most_lines: int = _MOST_LINES, kept_old: int = _KEPT_OLD, fresh_s: float = _FRESH_S
    ) -> None:
        self.path = path
        self._most_lines, self._kept_old, self._fresh_s = most_lines, kept_old, fresh_s
        self._fd: int | None = None
        self._num_lines = self._num_bytes = 0
        self._is_failing = False
        self._guard(self._open)

    def about(self, facts: Reading) -> None:
        """Write what does not change."""
        self._guard(lambda: self._write({"about": facts}))

    def add(self, reading: Reading) -> None:
        """Write one reading, and thin the file when it has become long."""
        self._guard(lambda: self._write({"n": 1, **reading}))
        if self._num_lines > self._most_lines or self._num_bytes > _MOST_BYTES:
            self._guard(self._thin)

    def close(self) -> None:
        """Close the file."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def _open(self) -> None:
        self._fd = open_lines(self.path)
        data = read_part(self.path)
        self._num_lines, self._num_bytes = data.count(b"\n"), len(data)

    def _write(self, record: Reading) -> None:
        if self._fd is None:
            self._open()
        assert self._fd is not None
        line = encode_line(record)
        if rest := write_all(self._fd, line):
            raise OSError(f"{len(rest)} bytes could not be written")
        self._num_lines += 1
        self._num_bytes += len(line)
        self._is_failing = False

    def _thin(self) -> None:
        """Replace the file by a shorter one, whole."""
        records = decode_lines(read_part(self.path))
        abouts = [record for record in records if "about" in record][-1:]
        readings = [record for record in records if "about" not in record]
        data = b"".join(map(encode_line, [*abouts, *thin_readings(readings, self._kept_old, self._fresh_s)]))
        # Where the last ten minutes alone are too much (very many ranks), they are merged too.
        if data.count(b"\n") > self._most_lines * 3 // 4 or len(data) > _MOST_BYTES * 3 // 4:
            data = b"".join(map(encode_line, [*abouts, *thin_readings(readings, self._most_lines // 2, 0.0)]))
        write_whole(self.path, data)
        self.close()
        self._open()

    def _guard(self, act: Callable[[], None]) -> None:
        try:
            act()
        except OSError as err:
            if not self._is_failing:
                _log.warning("%s: %s", self.path, err)
            self._is_failing = True


def thin_readings(readings: Sequence[Reading], num_old: int, fresh_s: float) -> list[Reading]:
    """Return the readings with all but the last seconds merged into at most `num_old` stretches of equal time."""
    timed = [reading for reading in readings if math.isfinite(number(reading.get("t")))]
    if not timed:
        return []
    edge = max(number(reading["t"]) for reading in timed) - fresh_s
    old = [reading for reading in timed if number(reading["t"]) <= edge]
    fresh = [reading for reading in timed if number(reading["t"]) > edge]
    if len(old) <= num_old:
        return timed
    start = number(old[0]["t"])
    width = max((edge - start) / num_old, 1e-9)
    stretches: dict[int, list[Reading]] = {}
    for reading in old:
        stretches.setdefault(min(num_old - 1, int((number(reading["t"]) - start) / width)), []).append(reading)
    return [*(merge_readings(stretches[key]) for key in sorted(stretches)), *fresh]


def merge_readings(readings: Sequence[Reading]) -> Reading:
    """Return one reading for several: means, but the highest temperature and the least room."""
    if len(readings) == 1:
        return readings[0]
    weights = [max(1, whole(reading.get("n")) or 1) for reading in readings]
    found: Reading = {"t": number(readings[-1].get("t")), "n": sum(weights)}
    for part in ("host", "job"):
        parts = [section(reading.get(part)) for reading in readings]
        if any(parts):
            found[part] = _merge(parts, weights)
    for part, name in (("gpus", "i"), ("ranks", "r")):
        keyed = [{one.get(name): one for one in _objects(reading.get(part))} for reading in readings]
        names = sorted({key for one in keyed for key in one if isinstance(key, int)})
        if names:
            found[part] = [{name: key, **_merge([one.get(key, {}) for one in keyed], weights, name)} for key in names]
    return found


def _merge(parts: Sequence[Reading], weights: Sequence[int], name: str = "") -> Reading:
    found: Reading = {}
    for key in dict.fromkeys(key for part in parts for key in part if key != name):
        values = [(part[key], weight) for part, weight in zip(parts, weights, strict=True) if part.get(key) is not None]
        if values:
            found[key] = values[-1][0] if key == "procs" else _merge_values(key, values)
    return found


def _merge_values(key: str, values: Sequence[tuple[Any, int]]) -> Any:
    first = values[0][0]
    if isinstance(first, bool):
        return any(value for value, _ in values)
    if isinstance(first, list):
        return sorted({str(one) for value, _ in values if isinstance(value, list) for one in value})
    numbers = [(number(value), weight) for value, weight in values]
    numbers = [(value, weight) for value, weight in numbers if math.isfinite(value)]
    if not numbers:
        return None
    if key in _HIGHEST:
        return max(value for value, _ in numbers)
    if key in _LOWEST:
        return min(value for value, _ in numbers)
    return round(math.fsum(v * w for v, w in numbers) / sum(w for _, w in numbers), 3)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceHistory:
    """What the sampler wrote over a run."""

    about: Reading = field(default_factory=dict)
    """Of the last sampler: `gpus` (name, total bytes, power cap, clock), `cores`, `mem`, `interval_s`."""
    readings: list[Reading] = field(default_factory=list)
    """In order of time."""

    @property
    def last(self) -> Reading:
        """The last reading; empty: there is none."""
        return self.readings[-1] if self.readings else {}

    def gpus(self) -> list[int]:
        """Return the numbers of all GPUs that were read, in order."""
        found = {one.get("i") for reading in self.readings for one in _objects(reading.get("gpus"))}
        return sorted(index for index in found if isinstance(index, int))

    def ranks(self) -> list[int]:
        """Return the ranks that were read, in order."""
        found = {one.get("r") for reading in self.readings for one in _objects(reading.get("ranks"))}
        return sorted(rank for rank in found if isinstance(rank, int))

    def gpu_about(self, index: int) -> Reading:
        """Return what does not change about a GPU."""
        return next((one for one in _objects(self.about.get("gpus")) if one.get("i") == index), {})

    def times(self) -> array[float]:
        """Return the time of every reading, unix seconds."""
        return array("d", [number(reading.get("t")) for reading in self.readings])

    def column(self, part: str, key: str, index: int | None = None) -> array[float]:
        """Return one value of every reading; NaN where it was not read.

        Args:
            part: `gpus`, `ranks`, `host` or `job`.
            index: which GPU or rank.
        """
        return array("d", [number(self.at(reading, part, index).get(key)) for reading in self.readings])

    def at(self, reading: Reading, part: str, index: int | None = None) -> Reading:
        """Return a part of one reading; empty where it was not read."""
        if index is None:
            return section(reading.get(part))
        name = "i" if part == "gpus" else "r"
        return next((one for one in _objects(reading.get(part)) if one.get(name) == index), {})


def read_devices(path: Path) -> DeviceHistory:
    """Return what was sampled over a run; a run without the file has none."""
    records = decode_lines(read_part(path, 0, 2 * _MOST_BYTES))
    abouts = [section(record["about"]) for record in records if "about" in record]
    readings = [record for record in records if math.isfinite(number(record.get("t")))]
    return DeviceHistory(about=abouts[-1] if abouts else {}, readings=sorted(readings, key=lambda one: one["t"]))


def tail_devices(path: Path, num_bytes: int = 64 << 10) -> Reading:
    """Return the last reading, from the end of the file alone."""
    data = read_part(path, -num_bytes, num_bytes)
    records = decode_lines(data[data.find(b"\n") + 1 :] if len(data) == num_bytes else data)
    return next((one for one in reversed(records) if math.isfinite(number(one.get("t")))), {})


def _objects(value: Any) -> list[Reading]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
