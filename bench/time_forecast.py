"""After a short probe on 1 and 2 CPU ranks: how well is the time of other steps foreseen?

    python bench/time_forecast.py [--rounds 5] [--seconds 1.0]

Two micro-batches are probed on one rank and on two. From that alone the step time is foreseen for micro-batches,
accumulations and a network latency that were not probed; then each is measured. Latency is injected in the ranks: no
collective's `wait` returns before it was that long under way. Rounds go through all points in turn, and every point,
probed or asked for, counts with its best round: other work on the machine only makes steps longer.
Last line: {"worst_error": …, "median_error": …, "rows": …}.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from headway.config import LoadedConfig, load_config
from headway.launch import start_nursery
from headway.machine import MachineReport, inspect_machine
from headway.planner import Plan, expect, make_plan
from headway.task import find_recipe
from headway.tune import Effort, Prober, remember_probe, settings_of

WORDS = ("recipe=nanochat", "parallel.gpus=0", "parallel.threads=1", "batch.unit=samples", "task.depth=3")
PROBED = (8, 16)
ASKED = ((1, 4, 1, 0.0), (1, 12, 1, 0.0), (1, 8, 4, 0.0), (1, 24, 2, 0.0), (2, 4, 1, 0.0), (2, 12, 1, 0.0))
ASKED += ((2, 8, 4, 0.0), (2, 24, 2, 0.0), (2, 8, 1, 0.02), (2, 16, 2, 0.05))
"""Ranks, micro-batch, accumulation, seconds of latency."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.0)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        print(json.dumps(compare(Path(place), given.rounds, Effort(seconds=given.seconds, least=5))))


def compare(place: Path, rounds: int, effort: Effort) -> dict[str, float | int]:
    """Probe and measure in turns, then foresee every point from the probes alone."""
    points = [(ranks, micro, 1, 0.0) for ranks in (1, 2) for micro in PROBED]
    times: dict[tuple, list] = {point: [] for point in (*points, *ASKED)}
    for turn in range(rounds):
        for number, point in enumerate((*points, *ASKED)):
            loaded, machine, plan = lay_out(place, *point[:3])
            probe = measure(place / f"{turn}-{number}", loaded, machine, plan, effort, latency_s=point[3])
            times[point].append((probe, plan, loaded, machine))
    seen = []
    for point in points:
        probe, plan, loaded, machine = min(times[point], key=lambda one: one[0].step_s)
        seen.append(remember_probe(probe, plan, loaded.config, machine, place / "calibration"))
    errors = []
    for point in ASKED:
        plan = times[point][0][1]
        truth = min(probe.step_s for probe, *_ in times[point])
        found = expect([one for one in seen if one is not None], plan, latency_s=point[3])
        assert found is not None
        errors.append(found.step_s / truth - 1)
        ranks, micro, accumulation, latency = point
        title = f"{ranks} ranks, micro-batch {micro:2d}, accumulation {accumulation}, latency {latency * 1e3:3.0f} ms"
        print(f"{title}: {found.step_s * 1e3:8.1f} ms foreseen {truth * 1e3:8.1f} ms true {errors[-1]:+.1%}")
    sizes = [abs(error) for error in errors]
    return {
        "worst_error": round(max(sizes), 4),
        "median_error": round(statistics.median(sizes), 4),
        "rows": len(sizes),
    }


def lay_out(place: Path, ranks: int, micro: int, accumulation: int) -> tuple[LoadedConfig, MachineReport, Plan]:
    """Return config, machine and plan of a point."""
    total = ranks * micro * accumulation
    batch = (f"batch.per_device={micro}", f"batch.total={total}", f"parallel.cpus={ranks}", f"out={place}")
    loaded = load_config(None, recipe=find_recipe, overrides=[*WORDS, *batch])
    if loaded.recipe.prepare is not None:
        __import__(loaded.recipe.prepare, fromlist=["prepare"]).prepare(loaded.config.task, lambda _: None)
    machine = inspect_machine(place, config=loaded.config)
    return loaded, machine, make_plan(loaded, machine, loaded.recipe)


def measure(place: Path, loaded, machine, plan: Plan, effort: Effort, *, latency_s: float):
    """Probe one point, with the network slowed down by so much."""
    entry = "slow_network:main" if latency_s else "headway.engine.probe:main"
    if latency_s:
        place.mkdir(parents=True)
        (place / "slow_network.py").write_text(SLOW.format(latency=latency_s))
        sys.path.insert(0, str(place))

    def nursery():
        return start_nursery(None, ["headway.engine.probe", loaded.recipe.task], entry)

    prober = Prober(place=place, loaded=loaded, machine=machine, plan=plan, start_nursery=nursery, effort=effort)
    before = os.environ.get("PYTHONPATH", "")
    os.environ["PYTHONPATH"] = f"{place}{os.pathsep}{before}" if latency_s else before
    try:
        probe = prober.measure(replace(settings_of(plan, loaded.config)), 1)
    finally:
        prober.close()
        os.environ["PYTHONPATH"] = before
    assert probe.is_ok, (probe.code, probe.facts)
    print(
        f"  {plan.world_size} x {plan.micro_batch} x {plan.accumulation}: {probe.step_s:.4f} s",
        file=sys.stderr,
        flush=True,
    )
    return probe


SLOW = '''"""A rank whose collectives take at least so long."""

import time

import torch.distributed as dist

from headway.engine import probe

LATENCY_S = {latency}
_real = dist.all_reduce


class Slow:
    def __init__(self, work):
        self._work, self._due = work, time.perf_counter() + LATENCY_S

    def wait(self, *args):
        self._work.wait(*args)
        time.sleep(max(0.0, self._due - time.perf_counter()))


def slow_all_reduce(*args, async_op=False, **more):
    work = Slow(_real(*args, async_op=True, **more))
    if async_op:
        return work
    work.wait()


def main(job):
    dist.all_reduce = slow_all_reduce
    return probe.main(job)
'''


if __name__ == "__main__":
    main()
