"""What readings of the machine say over minutes: memory that grows, a disk that fills, a stranger on our GPU, a GPU
that has little to do or is warm."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median
from typing import Any, Final

from headway.diagnosis.live_scene import Scene
from headway.telemetry import number, section, whole
from headway.telemetry.open_findings import Sighting
from headway.units import duration, size

_POINTS: Final = 96
_LEAST_POINTS: Final = 24
_WARM_UP_S: Final = 60.0
_SPAN_S: Final = 120.0
_STEADY: Final = 0.4
"""Every sixth of the time brings at least this share of the usual growth; caches that fill slow down."""
_GROWTH: Final = 0.5
_GROWTH_BYTES: Final = 1 << 30
_DAY_S: Final = 86400.0
_STRANGER_MIB: Final = 512
_STRANGER_S: Final = 20.0
_TARGET_S: Final = 300.0
_TARGET_READINGS: Final = 40


@dataclass(slots=True)
class Series:
    """A value over a run in few points, each the least of its stretch: what comes and goes is not in them."""

    points: list[tuple[float, float]] = field(default_factory=list)
    _stride: int = 1
    _waiting: list[float] = field(default_factory=list)

    def add(self, now: float, value: float) -> None:
        """Take a value."""
        if not math.isfinite(value):
            return
        self._waiting.append(value)
        if len(self._waiting) < self._stride:
            return
        self.points.append((now, min(self._waiting)))
        self._waiting.clear()
        if len(self.points) >= 2 * _POINTS:
            self._stride *= 2
            pairs = zip(self.points[::2], self.points[1::2], strict=True)
            self.points = [(b[0], min(a[1], b[1])) for a, b in pairs]

    def growth(self) -> tuple[float, float, float] | None:
        """Return growth per second, the first and the last level, if it grows steadily now; None: it does not."""
        # It may have begun late: what was before would hide it.
        lengths = {len(self.points) // share for share in (4, 2, 1)}
        found = (_grows(self.points[-length:]) for length in sorted(lengths) if length >= _LEAST_POINTS)
        return next((one for one in found if one is not None), None)


def _grows(points: list[tuple[float, float]]) -> tuple[float, float, float] | None:
    """Say whether values rise steadily, over six stretches.

    The least of each is higher than of the one before, by no less than a share of the usual step.
    """
    length = len(points) // 6
    if points[-1][0] - points[0][0] < _SPAN_S:
        return None
    parts = [points[at * length : (at + 1) * length] for at in range(6)]
    levels = [min(value for _, value in part) for part in parts]
    rises = [b - a for a, b in pairwise(levels)]
    usual = median(rises)
    if usual <= 0 or min(rises) < _STEADY * usual or rises[-1] < 2 * _STEADY * rises[0]:
        return None
    apart = (parts[-1][0][0] - parts[0][0][0]) / 5
    return usual / apart, levels[0], levels[-1]


@dataclass(slots=True)
class MachineFinder:
    """Remembers readings."""

    _memory: dict[str, Series] = field(default_factory=dict)
    _disk: Series = field(default_factory=Series)
    _gpus: dict[int, list[tuple[float, float, float, float]]] = field(default_factory=dict)
    """Per GPU: time, utilisation, share of memory, temperature of the last minutes."""

    def find(self, scene: Scene, explained: bool = False) -> Iterator[Sighting]:
        """Return what is wrong now.

        Args:
            scene: the run.
            explained: something else that was found says already why a GPU waits.
        """
        if scene.began is None or scene.now - scene.began < _WARM_UP_S:
            return
        yield from self._find_creep(scene)
        yield from self._find_filling(scene)
        yield from self._find_off_target(scene, explained)

    def _find_creep(self, scene: Scene) -> Iterator[Sighting]:
        host = section(scene.reading.get("host"))
        total = number(scene.about.get("mem"))
        room = total - number(host.get("mem"))
        levels = {f"rank {one['r']}": (number(one.get("own")), room) for one in scene.reading.get("ranks") or ()}
        for gpu in scene.reading.get("gpus") or ():
            about = _about(scene, gpu["i"])
            used = number(gpu.get("mem"))
            levels[f"GPU {gpu['i']}"] = (used, number(about.get("mem")) - used)
        worst: tuple[float, Sighting] | None = None
        for who, (level, free) in levels.items():
            series = self._memory.setdefault(who, Series())
            series.add(scene.now, level)
            found = series.growth()
            if found is None:
                continue
            rate, first, last = found
            full_s = free / rate if math.isfinite(free) else math.inf
            is_large = last - first > max(_GROWTH * first, _GROWTH_BYTES)
            is_fatal = full_s < min(scene.left_s, _DAY_S) and last - first > 0.05 * first
            if not is_large and not is_fatal:
                continue
            facts = {
                "who": who,
                "first": size(first),
                "last": size(last),
                "rate": size(60 * rate),
                "left": duration(full_s),
                "run": scene.name,
            }
            code = "live/memory-creep" if is_fatal else "live/memory-grows"
            cost = scene.at_risk_s + scene.left_s - full_s if is_fatal else 0.0
            cure = "" if scene.is_script else "save.every_s=300"
            sighting = Sighting(code=code, key="", facts=facts, ignored_s=cost, cure=cure)
            if worst is None or full_s < worst[0]:
                worst = full_s, sighting
        if worst is not None:
            yield worst[1]

    def _find_filling(self, scene: Scene) -> Iterator[Sighting]:
        free = number(section(scene.reading.get("host")).get("disk_free"))
        save = section(scene.config.get("save"))
        kept = {number(one.get("step")): number(one.get("bytes")) for one in scene.commits}
        last = (whole(save.get("keep_last")) or 0) if save else len(kept)
        one_more = max(kept.values(), default=0.0)
        # Our own checkpoints fill the disk only at first, until the oldest is removed for each new one.
        ours = one_more * min(len(kept), last + 1) if save.get("keep_every") is None else 0.0
        self._disk.add(scene.now, -(free + ours))
        found = self._disk.growth()
        if found is None:
            return
        full_s = free / found[0]
        if full_s < min(scene.left_s, _DAY_S):
            facts = {"free": size(free), "rate": size(60 * found[0]), "left": duration(full_s), "run": scene.name}
            cost = scene.left_s - full_s
            cure = "" if scene.is_script else "save.keep_last=1"
            yield Sighting(code="live/disk-filling", facts=facts, ignored_s=cost, cure=cure)

    def _find_off_target(self, scene: Scene, explained: bool) -> Iterator[Sighting]:
        for gpu in scene.reading.get("gpus") or ():
            total = number(_about(scene, gpu["i"]).get("mem"))
            held = number(gpu.get("mem"))
            kept = self._gpus.setdefault(int(gpu["i"]), [])
            kept.append(
                (scene.now, number(gpu.get("util")), held / total if total else math.nan, number(gpu.get("temp")))
            )
            while len(kept) > _TARGET_READINGS and kept[1][0] <= scene.now - _TARGET_S:
                del kept[0]
            if len(kept) >= _TARGET_READINGS and kept[-1][0] - kept[0][0] >= _TARGET_S:
                yield from _judge_gpu(scene, int(gpu["i"]), kept, held, explained)


def _judge_gpu(
    scene: Scene, index: int, kept: list[tuple[float, float, float, float]], held: float, explained: bool
) -> Iterator[Sighting]:
    targets = scene.targets
    busy, used = median(one[1] for one in kept) / 100, max(one[2] for one in kept)
    facts: dict[str, Any] = {"gpu": index, "run": scene.name, "used": f"{100 * used:.0f}"}
    if busy < targets.gpu_busy and not explained and not scene.is_script:
        micro = whole(scene.plan.get("micro_batch")) or 1
        setting = f"batch.per_device={2 * micro}" if used < targets.memory_least else "train.compile=true"
        facts |= {"busy": f"{100 * busy:.0f}", "target": f"{100 * targets.gpu_busy:.0f}", "setting": setting}
        # Not busy for a share of the time is at most that share faster.
        slower = 1 - busy / targets.gpu_busy
        yield Sighting(code="live/gpu-idle", key=str(index), facts=facts, slower=slower, cure=setting)
    planned = number(section(scene.plan.get("forecast")).get("used_bytes"))
    if used > targets.memory_most and not held <= 1.05 * planned:
        facts |= {"target": f"{100 * targets.memory_most:.0f}"}
        half = max(1, (whole(scene.plan.get("micro_batch")) or 1) // 2)
        facts["setting"] = cure = "" if scene.is_script else f"batch.per_device={half}"
        code = "live/gpu-memory-script" if scene.is_script else "live/gpu-memory"
        yield Sighting(code=code, key=str(index), facts=facts, ignored_s=scene.at_risk_s, cure=cure)
    if min(one[3] for one in kept) >= targets.temp_c:
        facts |= {"temp": f"{kept[-1][3]:.0f}", "target": f"{targets.temp_c:g}"}
        yield Sighting(code="live/gpu-warm", key=str(index), facts=facts, ignored_s=0.0)


def find_strangers(scene: Scene) -> Iterator[Sighting]:
    """Find processes of others on the GPUs of the run.

    Only where our own are seen beside them: in a container the driver counts processes by other numbers.
    """
    gpus = [one for one in scene.reading.get("gpus") or () if one.get("procs")]
    holders = {int(gpu["i"]): [one.split(" ") for one in gpu["procs"]] for gpu in gpus}
    if not any(int(one[0]) in scene.pids for found in holders.values() for one in found if one[0].isdigit()):
        return
    for index, found in holders.items():
        for pid, user, program, held in found:
            is_small = not held.isdigit() or int(held) < _STRANGER_MIB
            if is_small or not pid.isdigit() or int(pid) in scene.pids or user == "?":
                continue
            facts = {
                "gpu": index,
                "pid": pid,
                "user": user,
                "program": program,
                "held": size(int(held) << 20),
                "run": scene.name,
            }
            slower = _lost_since(scene)
            setting = _other_gpus(scene, index)
            facts["setting"] = setting
            code = "live/stranger-script" if scene.is_script or not setting else "live/stranger"
            key = f"{index}:{pid}"
            yield Sighting(code=code, key=key, facts=facts, slower=slower, cure=setting, lasts_s=_STRANGER_S)


def _other_gpus(scene: Scene, index: int) -> str:
    gpus = [str(one) for one in scene.plan.get("gpus") or () if one != index]
    return f"parallel.gpus={','.join(gpus)}" if gpus else ""


def _lost_since(scene: Scene) -> float:
    """Return by how much the last steps are slower than those before."""
    own = [one.own for one in next(iter(scene.ranks.values()), ()) if math.isfinite(one.took)]
    if len(own) < 40:
        return 0.0
    usual, last = median(own[: len(own) // 2]), median(own[-10:])
    return max(0.0, 1 - usual / last) if last > 0 else 0.0


def _about(scene: Scene, index: int) -> dict[str, Any]:
    return next((one for one in scene.about.get("gpus") or () if one.get("i") == index), {})
