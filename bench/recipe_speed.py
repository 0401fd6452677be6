"""What Headway's loop costs each recipe: samples per second against the straightforward eager loop of the same model.

Both take the recipe's own model, data code, loss and batch, at its default size, in one process on one thread. The
plain loop is what a person writes with torch: zero_grad, forward, loss, backward, clip, AdamW, an average where the
recipe keeps one. Headway's is the loop every run takes, with metrics, heartbeat, guard and ledger. Rounds are
interleaved; a ratio is the median over rounds, above 1 where Headway is faster. The wait for data is its share of
Headway's own steps.

    python bench/recipe_speed.py [--recipe rdt …] [--steps 20] [--rounds 5]
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from headway.config import load_config
from headway.engine.loop import take_step
from headway.engine.rank import prepare
from headway.engine.rank_state import Run
from headway.engine.reporter import Reporter
from headway.machine import inspect_machine
from headway.planner import make_plan
from headway.task import RECIPES, find_recipe
from headway.telemetry import RunDir, new_run_dir, read_metrics, write_json

WORDS = {"tfnet": ["task.framework=torch"], "nanochat": ["optimizer.name=adamw"]}
"""What makes both loops do the same: torch, and one optimizer that plain torch has too."""


def stored_run(name: str, place: Path, more: Sequence[str]) -> RunDir:
    """Write the run of a recipe for one CPU rank; its data is made where it is missing."""
    words = [f"recipe={name}", "parallel.cpus=1", "parallel.threads=1", "train.steps=1000000", f"out={place}"]
    loaded = load_config(None, recipe=find_recipe, overrides=[*words, *more])
    if loaded.recipe.prepare is not None:
        module = importlib.import_module(loaded.recipe.prepare)
        module.prepare(loaded.config.task, lambda line: print(line, file=sys.stderr))
    plan = make_plan(loaded, inspect_machine(place, config=loaded.config), loaded.recipe)
    run_dir = new_run_dir(place, name)
    config = loaded.config.model_dump(mode="json")
    write_json(run_dir.job, {"recipe": name, "config": config, "plan": plan.to_json()})
    return run_dir


def make_run(name: str, place: Path) -> tuple[RunDir, Run]:
    """Return one rank of a recipe's default run, ready to take steps."""
    run_dir = stored_run(name, place, WORDS.get(name, []))
    ends = {"report_fd": os.open(os.devnull, os.O_WRONLY), "listen_fd": None, "master_port": 0}
    who = {"rank": 0, "local_rank": 0, "world_size": 1, "attempt": 1, "lang": "en"}
    return run_dir, prepare({"run_dir": str(run_dir.root), **ends, **who}, Reporter(ends["report_fd"]))


def headway_loop(run: Run) -> Callable[[int], None]:
    """Return Headway's own loop."""
    for module in run.task.frozen(run.model.train()):
        module.eval()
    run.open_data()
    run.meter.restart()

    def steps(count: int) -> None:
        run.meter.restart()
        for _ in range(count):
            take_step(run)
        run.metrics.flush()
        run.ledger.settle()

    return steps


def plain_loop(run: Run) -> Callable[[int], None]:
    """Return the loop a person would write, on a model, an optimizer and batches of its own."""
    task, plan = run.task, run.plan
    torch.manual_seed(0)
    model = task.build_model().train()
    for module in task.frozen(model):
        module.eval()
    params = [param for param in model.parameters() if param.requires_grad]
    optimizer = torch.optim.AdamW(params, lr=1e-4)
    average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.99)) if run.ema else None
    data, size = task.train_data(), plan.micro_batch
    clip = run.config.optimizer.clip
    order, at = np.random.default_rng(0).permutation(len(data)), 0

    def next_batch() -> dict[str, torch.Tensor]:
        nonlocal at
        ids = np.take(order, np.arange(at, at + size), mode="wrap")
        at += size
        return data.batch(ids, np.zeros_like(ids))

    def steps(count: int) -> None:
        for _ in range(count):
            optimizer.zero_grad()
            for _ in range(plan.accumulation):
                loss = task.loss(model, next_batch())
                (loss.total / (loss.count * plan.accumulation)).backward()
            if clip is not None:
                torch.nn.utils.clip_grad_norm_(params, clip)
            optimizer.step()
            if average is not None:
                average.update_parameters(model)

    return steps


def measure(name: str, place: Path, *, steps: int, rounds: int) -> dict[str, float]:
    """Return the samples per second of both loops, their ratio, and the share of a step that waits for data."""
    run_dir, run = make_run(name, place)
    loops = {"headway": headway_loop(run), "plain": plain_loop(run)}
    for loop in loops.values():
        loop(max(3, steps // 2))
    warm = run.progress.step
    times: dict[str, list[float]] = {who: [] for who in loops}
    for turn in range(rounds):
        for who in sorted(loops, reverse=turn % 2 == 1):
            began = time.perf_counter()
            loops[who](steps)
            times[who].append((time.perf_counter() - began) / steps)
    ratio = statistics.median(plain / own for plain, own in zip(times["plain"], times["headway"], strict=True))
    rows = read_metrics(run_dir.metrics(0))
    data, whole = (sum(rows[part][warm:]) for part in ("data", "dt"))
    rates = {f"{who}_samples_s": run.plan.batch_samples / statistics.median(each) for who, each in times.items()}
    run.batches = iter(())
    return {"ratio": round(ratio, 3), "data_wait": round(data / whole, 4), **rates}


def main() -> None:
    """Print the table and, last, the figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recipe", nargs="*", choices=sorted(RECIPES), default=sorted(RECIPES))
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    torch.set_num_threads(1)
    found: dict[str, dict[str, float]] = {}
    print(f"{'recipe':<14} {'headway, samples/s':>19} {'plain loop':>11} {'ratio':>7} {'data wait':>10}")
    for name in args.recipe:
        with tempfile.TemporaryDirectory() as folder:
            one = measure(name, Path(folder), steps=args.steps, rounds=args.rounds)
        rates = f"{one['headway_samples_s']:>19.1f} {one['plain_samples_s']:>11.1f}"
        print(f"{name:<14} {rates} {one['ratio']:>7.3f} {one['data_wait']:>10.1%}", flush=True)
        found[name] = {"ratio": one["ratio"], "data_wait": one["data_wait"]}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
