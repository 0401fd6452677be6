"""What the loop costs beside the work: one optimizer step of a tiny network, Headway against a hand-written loop.

The hand-written loop has AdamW, clipping by norm and a cosine schedule, and takes its batches by plain indexing: the
least a person could write. Headway's is the loop every recipe runs on, with its metrics, heartbeat, guard and ledger.
Peers (loop_peers.py) run beside it when bench/requirements/loop_overhead.txt is installed.
Rounds are interleaved in one process, on one thread; a ratio is the median over rounds, to the plain loop and to the
same loop with the fused AdamW that Headway and the peers have.

    python bench/loop_overhead.py [--steps 400] [--rounds 15]
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import sys
import tempfile
from pathlib import Path

import torch
import torch.nn.functional as F

sys.path.insert(0, str(Path(__file__).parent))
from headway.config import load_config
from headway.engine.loop import take_step
from headway.engine.rank import prepare
from headway.engine.reporter import Reporter
from headway.machine import inspect_machine
from headway.planner import make_plan
from headway.task import find_recipe
from headway.telemetry import new_run_dir, write_json
from loop_peers import TimedLoop, find, timed
from tiny.work import make_data, make_model

BATCH = 32


def raw(*, fused: bool) -> TimedLoop:
    """Return the loop a person would write by hand."""
    torch.manual_seed(0)
    model, (x, y) = make_model(), make_data()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=fused)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 0.5 + 0.5 * math.cos(step / 1e6))

    def steps(count: int) -> None:
        order = torch.randperm(len(x))
        for step in range(count):
            at = step * BATCH % len(x)
            rows = order[at : at + BATCH]
            loss = F.cross_entropy(model(x[rows]), y[rows])
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()

    return timed(steps)


def headway(place: Path) -> TimedLoop:
    """Return Headway's own loop, one rank, as a run would have it."""
    words = [f"recipe={Path(__file__).parent / 'tiny'}", "parallel.cpus=1", "train.steps=100000000", f"out={place}"]
    loaded = load_config(None, recipe=find_recipe, overrides=words)
    machine = inspect_machine(place, config=loaded.config)
    plan = make_plan(loaded, machine, loaded.recipe)
    run_dir = new_run_dir(place, "tiny")
    config = loaded.config.model_dump(mode="json")
    write_json(run_dir.job, {"recipe": loaded.config.recipe, "config": config, "plan": plan.to_json()})
    ends = {"report_fd": os.open(os.devnull, os.O_WRONLY), "listen_fd": None, "master_port": 0}
    who = {"rank": 0, "local_rank": 0, "world_size": 1, "attempt": 1, "lang": "en"}
    run = prepare({"run_dir": str(run_dir.root), **ends, **who}, Reporter(ends["report_fd"]))
    run.open_data()
    run.meter.restart()

    def steps(count: int) -> None:
        for step in range(count):
            take_step(run)
            if step % 200 == 0:
                run.metrics.flush()
        # A run does this at its next save; it is part of what a step costs.
        run.ledger.settle()

    return timed(steps)


def measure(contenders: dict[str, TimedLoop], *, steps: int, rounds: int) -> dict[str, list[float]]:
    """Return seconds per step for each contender and round, taken in turn."""
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for loop in contenders.values():
        loop(50)
    for _ in range(rounds):
        for name, loop in contenders.items():
            times[name].append(loop(steps) / steps)
            assert torch.get_num_threads() == 1, f"{name} changed the number of threads"
    return times


def main() -> None:
    """Print the table and, last, the figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--rounds", type=int, default=15)
    args = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        contenders: dict[str, TimedLoop] = {
            "raw torch loop": raw(fused=False),
            "raw torch loop, fused AdamW": raw(fused=True),
            "headway": headway(Path(folder)),
        }
        contenders.update(find(BATCH))
        torch.set_num_threads(1)
        times = measure(contenders, steps=args.steps, rounds=args.rounds)
    base, best = times["raw torch loop"], times["raw torch loop, fused AdamW"]
    print(f"{'loop':<30} {'µs a step':>10} {'ratio':>7} {'to fused':>9}")
    ratios: dict[str, float] = {}
    for name, each in times.items():
        ratio = statistics.median(mine / theirs for mine, theirs in zip(each, base, strict=True))
        strict = statistics.median(mine / theirs for mine, theirs in zip(each, best, strict=True))
        ratios[name] = round(ratio, 3)
        print(f"{name:<30} {1e6 * statistics.median(each):>10.1f} {ratio:>7.2f} {strict:>9.2f}")
        if name == "headway":
            to_fused = round(strict, 3)
    print(json.dumps({"ratio_to_raw": ratios["headway"], "ratio_to_raw_fused": to_fused, "ratios": ratios}))


if __name__ == "__main__":
    main()
