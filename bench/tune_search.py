"""How near to the best point of a whole grid does `tune` come, and with how many probes?

    python bench/tune_search.py [--recipe atlas|layoutmaster|nanochat|rdt|tfnet] [--seconds 0.6] [key=value …]

Every point of the grid is probed for real, on this machine; then `tune` searches the same space from a start that
nobody chose well. What `tune` found and the grid's best points are measured again, in turns, so that both see the same
machine. Last line: {"share_of_best": …, "probes": …, "grid": …}.
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from headway.config import load_config
from headway.launch import start_nursery
from headway.machine import inspect_machine
from headway.planner import make_plan
from headway.task import find_recipe
from headway.tune import ENTRY, KEYS, Effort, Probe, Prober, Question, Settings, tune

BATCH = "batch: {unit: samples, total: 32, per_device: 2}\nparallel: {gpus: 0, cpus: 1}\n"
SMALL = "batch: {unit: samples, total: 8, per_device: 1}\nparallel: {gpus: 0, cpus: 1}\n"
FILES = {
    "atlas": BATCH,
    "layoutmaster": BATCH,
    "nanochat": BATCH + "task: {depth: 2}\n",
    "rdt": BATCH,
    "tfnet": SMALL + "task: {framework: torch, synthetic: true}\n",
}
"""A start that nobody chose well, of a size that a CPU can try hundreds of times."""
FIXED = ("train.compile=false", "parallel.prefetch=2")
"""Compiling takes half a minute a point on a CPU, and nothing is prefetched without workers."""
AGAIN = 3


class Talk:
    """Says what is going on, on stderr."""

    def begin(self, settings: Settings, number: int) -> None:
        pass

    def begin_rates(self) -> None:
        pass

    def tick(self) -> None:
        pass

    def end(self, probe: Probe) -> None:
        rate = f"{probe.samples_s:.1f} samples/s" if probe.is_ok else f"{probe.ending} {probe.code}"
        print(f"  {probe.number:3d}  {probe.settings.words()}  {rate}", file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recipe", default="nanochat", choices=FILES)
    parser.add_argument("--seconds", type=float, default=0.6, help="measured a probe")
    parser.add_argument("words", nargs="*", help="settings that stay as they are")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        print(json.dumps(compare(Path(place), given.recipe, given.seconds, given.words)))


def compare(place: Path, recipe: str, seconds: float, words: list[str]) -> dict[str, float | int]:
    """Search, try the whole grid, then measure the best of both again."""
    (place / "run.yaml").write_text(FILES[recipe])
    loaded = load_config(
        place / "run.yaml", recipe=find_recipe, overrides=[f"recipe={recipe}", f"out={place}", *FIXED, *words]
    )
    machine = inspect_machine(place, config=loaded.config)
    plan = make_plan(loaded, machine, loaded.recipe)
    if loaded.recipe.prepare is not None:
        __import__(loaded.recipe.prepare, fromlist=["prepare"]).prepare(loaded.config.task, lambda _: None)
    effort = Effort(seconds=seconds, least=3)
    question = Question(
        loaded=loaded, machine=machine, plan=plan, place=place / "search", budget_s=3600.0, effort=effort
    )
    question.place.mkdir()
    space = question.space()

    def nursery():
        return start_nursery(None, ["headway.engine.probe", loaded.recipe.task, *loaded.recipe.preload], ENTRY)

    print(f"search over {space.grid} points", file=sys.stderr)
    began = time.monotonic()
    found, _ = tune(question, start_nursery=nursery, watcher=Talk())
    search_s = time.monotonic() - began
    prober = Prober(
        place=place / "grid", loaded=loaded, machine=machine, plan=plan, start_nursery=nursery, effort=effort
    )
    try:
        began = time.monotonic()
        grid = measure_grid(prober, space.values)
        grid_s = time.monotonic() - began
        share = measure_again(prober, found.best.settings, grid, len(grid))
    finally:
        prober.close()
    return {
        "share_of_best": round(share, 4),
        "probes": len(found.probes),
        "grid": space.grid,
        "probe_share": round(len(found.probes) / space.grid, 4),
        "search_s": round(search_s, 1),
        "grid_s": round(grid_s, 1),
    }


def measure_grid(prober: Prober, values) -> list[Probe]:
    """Try every point."""
    probes = []
    for number, point in enumerate(itertools.product(*(values[axis] for axis in KEYS)), 1):
        probes.append(measure(prober, Settings(**dict(zip(KEYS, point, strict=True))), number))
    return probes


def measure(prober: Prober, point: Settings, number: int) -> Probe:
    """Try one point; whoever interrupts it gets no figure at all rather than one with a hole in it."""
    probe = prober.measure(point, number)
    Talk().end(probe)
    if probe.ending == "interrupted":
        raise KeyboardInterrupt
    return probe


def measure_again(prober: Prober, chosen: Settings, grid: list[Probe], number: int) -> float:
    """Return the chosen point's rate as a share of the best, each the median of measurements taken in turns."""
    best = sorted((one for one in grid if one.is_ok), key=lambda one: -one.samples_s)[:3]
    points = list(dict.fromkeys([chosen, *(one.settings for one in best)]))
    rates: dict[Settings, list[float]] = {point: [] for point in points}
    prober.effort = replace(prober.effort, seconds=2 * prober.effort.seconds)
    for point in points * AGAIN:
        number += 1
        rates[point].append(measure(prober, point, number).samples_s)
    medians = {point: statistics.median(found) for point, found in rates.items()}
    return medians[chosen] / max(medians.values())


if __name__ == "__main__":
    main()
