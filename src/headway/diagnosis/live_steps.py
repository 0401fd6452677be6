"""What the times of steps say: a rank that waits for data, a rank that is slower than the others, a plan that is
missed, saving that takes too long, ranks that wait for one of them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import Any, Final

from headway.diagnosis.live_scene import Scene, Step, held_median, quarters
from headway.telemetry import number, section, whole
from headway.telemetry.open_findings import Sighting
from headway.units import duration, size

_LEAST: Final = 24
"""Measured steps before anything is said about them: a quarter is then six, and one of each six may be a pause."""
_SPAN_S: Final = 20.0
_PLAN_SPAN_S: Final = 60.0
_LEAST_GAP_S: Final = 1e-3
_SPARE: Final = 1.15
_SLOW_SAVE: Final = 3.0
_SAVE_S: Final = 5.0
_MORE_BYTES: Final = 512 << 20
_WAITING: Final = ("backward",)
"""Where a rank is while it waits for the others' gradients."""
_MAY_TAKE_LONG: Final = ("eval", "save", "start", "restore", "stopping", "ended")
_LONG_S: Final = 600.0


def find_starved(scene: Scene) -> Iterator[Sighting]:
    """Find the rank that waits longest for its data."""
    shares = {rank: share for rank, steps in scene.measured.items() if (share := _wait_share(steps)) is not None}
    if not shares:
        return
    rank = max(shares, key=lambda one: shares[one])
    share = shares[rank]
    if share <= scene.targets.data_wait:
        return
    steps = scene.measured[rank]
    own, wait = (math.fsum(getattr(one, name) for one in steps) / len(steps) for name in ("own", "data"))
    now, wanted = _workers(scene, own, wait)
    cores = whole(scene.about.get("cores")) or 1
    facts = {
        "rank": rank,
        "percent": f"{100 * share:.0f}",
        "wait": duration(wait),
        "step": duration(own),
        "now": now,
        "wanted": wanted,
        "cores": cores,
        "run": scene.name,
    }
    is_possible = wanted * max(1, len(scene.beats) or len(scene.ranks)) <= cores
    code = "live/data-starved" if is_possible else "live/data-starved-cores"
    yield Sighting(code=code, key=str(rank), facts=facts, slower=share, cure=f"parallel.workers={wanted}")


def _wait_share(steps: Sequence[Step]) -> float | None:
    """Return the share of its time that a rank waits for data, in the quarter where it is least."""
    split = _measured(steps)
    if split is None:
        return None
    shares = []
    for part in quarters(list(range(len(split)))):
        rows = sorted((split[int(at)] for at in part), key=lambda one: one.data)
        rows = rows[: -max(1, len(rows) // 20)]  # the longest wait of a quarter may be a pause of another kind
        own = math.fsum(one.own for one in rows)
        shares.append(math.fsum(one.data for one in rows) / own if own > 0 else 0.0)
    return min(shares)


def _workers(scene: Scene, own: float, wait: float) -> tuple[int, int]:
    """Return the loader workers there are, and how many it takes that none is waited for.

    Without workers the wait is the time to load a step. With them the loader is what sets the pace: each worker loads
    a step in as many steps as there are workers. One worker is needed per time of a step's own work.
    """
    now = whole(scene.plan.get("workers")) or 0
    loads_s = wait if now == 0 else now * own
    work_s = max(own - wait, _LEAST_GAP_S)
    return now, max(now + 1, math.ceil(_SPARE * loads_s / work_s))


def _measured(steps: Sequence[Step]) -> list[Step] | None:
    """Return the steps that were measured in parts, once there are enough of them."""
    if len(steps) < _LEAST or steps[-1].t - steps[0].t < _SPAN_S:
        return None
    return list(steps)


def find_straggler(scene: Scene) -> Iterator[Sighting]:
    """Find the rank that works longer on its steps than the others, who wait for it."""
    measured = {rank: found for rank, steps in scene.measured.items() if (found := _measured(steps)) is not None}
    if len(measured) < 2 or len(measured) < len(scene.ranks):
        return
    works = {
        rank: [[(one.own - one.comm) * _weight(scene, rank) for one in part] for part in _parts(steps)]
        for rank, steps in measured.items()
    }
    middles = {rank: [median(part) for part in parts] for rank, parts in works.items()}
    slow = max(middles, key=lambda rank: median(middles[rank]))
    others = [[middles[rank][at] for rank in middles if rank != slow] for at in range(4)]
    usual = [median(part) for part in others]
    gaps = [mine - theirs for mine, theirs in zip(middles[slow], usual, strict=True)]
    least = min(gap / max(theirs, 1e-9) for gap, theirs in zip(gaps, usual, strict=True))
    # The others wait for it: work that is done beside the wait of the others costs nothing.
    waits = min(median(one.comm for one in steps) for rank, steps in measured.items() if rank != slow)
    gap = median(gaps)
    if least <= scene.targets.straggler or min(gaps) < _LEAST_GAP_S or waits < gap / 2:
        return
    own = median(one.own for one in measured[slow])
    facts = {
        "rank": slow,
        "percent": f"{100 * least:.0f}",
        "work": duration(median(middles[slow])),
        "usual": duration(median(usual)),
        "run": scene.name,
    }
    cure = _without(scene, slow)
    facts["setting"] = cure
    yield Sighting(code="live/straggler", key=str(slow), facts=facts, slower=gap / own, cure=cure)


def _weight(scene: Scene, rank: int) -> float:
    """Return by what a rank's work is multiplied to be compared: where ranks are lost, some take more micro-batches."""
    samples, size, ranks = (whole(scene.plan.get(key)) for key in ("batch_samples", "micro_batch", "world_size"))
    if not samples or not size or not ranks or samples % (size * ranks) == 0 or rank >= ranks:
        return 1.0
    most = -(-(samples // size) // ranks)
    return most / len(range(rank, samples // size, ranks))


def _parts(steps: list[Step]) -> list[list[Step]]:
    length = len(steps) // 4
    return [steps[at * length : (at + 1) * length] for at in range(4)]


def _without(scene: Scene, rank: int) -> str:
    """Return the setting that leaves a rank's device out."""
    gpus = [int(one) for one in scene.plan.get("gpus") or ()]
    if rank < len(gpus):
        return f"parallel.gpus={','.join(str(one) for at, one in enumerate(gpus) if at != rank)}"
    return f"parallel.cpus={max(1, len(scene.ranks) - 1)}"


def find_missed_plan(scene: Scene) -> Iterator[Sighting]:
    """Find steps that take much longer, or hold much more memory, than was planned."""
    forecast = section(scene.plan.get("forecast"))
    steps = list(next(iter(scene.ranks.values()), ()))
    own = [one.own for one in steps if math.isfinite(one.took)]
    planned = number(forecast.get("step_s"))
    if len(own) >= _LEAST and steps[-1].t - steps[0].t >= _PLAN_SPAN_S and planned > 0:
        real = held_median(own)
        if real > (1 + scene.targets.plan_off) * planned:
            facts = {"planned": duration(planned), "real": duration(real), "run": scene.name}
            yield Sighting(code="live/plan-slow", facts=facts, slower=1 - planned / real, cure="headway tune")
    yield from _find_more_memory(scene, forecast)


def _find_more_memory(scene: Scene, forecast: Mapping[str, Any]) -> Iterator[Sighting]:
    is_gpu = scene.plan.get("device") == "cuda"
    planned = number(forecast.get("allocated_bytes" if is_gpu else "used_bytes"))
    held = [(steps[-1].memory, rank) for rank, steps in scene.ranks.items() if steps and steps[-1].memory > 0]
    if not held or not planned > 0:
        return
    most, rank = max(held)
    if most > (1 + scene.targets.plan_off) * planned and most - planned > _MORE_BYTES:
        half = max(1, (whole(scene.plan.get("micro_batch")) or 1) // 2)
        facts = {"rank": rank, "planned": size(planned), "real": size(most), "half": half, "run": scene.name}
        cure = f"batch.per_device={half}"
        yield Sighting(code="live/plan-memory", facts=facts, ignored_s=scene.at_risk_s, cure=cure)


def find_slow_saving(scene: Scene) -> Iterator[Sighting]:
    """Find saving that takes much of the time, and a disk that has become slow."""
    steps = next(iter(scene.ranks.values()), ())
    saves = [one.save for one in steps if one.save > 0]
    spent = math.fsum(one.took for one in steps if math.isfinite(one.took))
    every = whole(section(scene.config.get("save")).get("every")) or 0
    facts: dict[str, object] = {"every": max(2, 2 * every), "run": scene.name}
    cure = f"save.every={max(2, 2 * every)}"
    if len(saves) >= 3 and spent > 0 and (share := math.fsum(saves) / spent) > scene.targets.save_share:
        facts |= {"percent": f"{100 * share:.0f}", "taken": duration(median(saves))}
        yield Sighting(code="live/save-share", facts=facts, slower=share, cure=cure)
    rates = [
        (number(one.get("bytes")) / number(one.get("write_s")), number(one.get("write_s"))) for one in scene.commits
    ]
    rates = [one for one in rates if math.isfinite(one[0]) and one[0] > 0]
    if len(rates) >= 5:
        usual = median(rate for rate, _ in rates[:-2])
        if all(rate < usual / _SLOW_SAVE and took > _SAVE_S for rate, took in rates[-2:]):
            facts |= {"rate": size(rates[-1][0]), "usual": size(usual), "taken": duration(rates[-1][1])}
            yield Sighting(code="live/disk-slow", facts=facts, ignored_s=_wait_for_saves(scene), cure=cure)


def _wait_for_saves(scene: Scene) -> float:
    """Return what the stalls of saves still to come cost, as long as the last."""
    times = [number(one.get("t")) for one in scene.commits[-4:]]
    apart = (times[-1] - times[0]) / (len(times) - 1)
    stall = number(scene.commits[-1].get("stall_s"))
    return scene.left_s / apart * stall if apart > 0 and math.isfinite(stall) else 0.0


def find_waiting(scene: Scene) -> Iterator[Sighting]:
    """Find the rank that the others wait for in a collective; ranks of a script are looked at by their own watch."""
    if scene.is_script or len(scene.beats) < 2 or len(scene.beats) < (whole(scene.plan.get("world_size")) or 0):
        return
    ages = {rank: (scene.monotonic_ns - beat.monotonic_ns) / 1e9 for rank, beat in scene.beats.items()}
    quiet_s = min(ages.values())
    longest = max((one.own for steps in scene.ranks.values() for one in steps if math.isfinite(one.took)), default=0.0)
    waiting = [rank for rank, beat in scene.beats.items() if beat.phase in _WAITING]
    odd = [rank for rank in scene.beats if rank not in waiting]
    if not odd:  # the one that moved last came last: the others wait for it, or it for what never comes
        odd = [min(ages, key=lambda rank: (scene.beats[rank].step, ages[rank]))]
        waiting = [rank for rank in waiting if rank not in odd]
    late = odd[0]
    phase = scene.beats[late].phase
    limit = _LONG_S if phase in _MAY_TAKE_LONG else max(scene.targets.quiet_s, 5 * longest)
    if not waiting or not longest or quiet_s < limit:
        return
    facts = {
        "ranks": ", ".join(map(str, waiting)),
        "rank": late,
        "seconds": round(quiet_s),
        "phase": phase,
        "step": scene.beats[late].step,
        "run": scene.name,
    }
    cure = "launch.on_hang=restart"
    yield Sighting(code="live/rank-waits", key=str(late), facts=facts, slower=1.0, cure=cure, calm_s=1.0)
