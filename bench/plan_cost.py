"""What does a forecast cost?

    python bench/plan_cost.py [--on 8xH100] [--params 1e9]

Traces a decoder of so many parameters (the nanochat recipe at the depth that comes nearest) in a child, with an empty
cache; then asks again, which reads the kept trace, and asks for the formula. Each answer is timed in this process
(median of seven) and as a command (best of three, with the start of the interpreter in it).
Last line: {"params": …, "trace_s": …, "trace_cpu_s": …, "trace_rss_gb": …, "cached_s": …, "formula_s": …,
"cached_command_s": …, "formula_command_s": …}.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from headway.config import load_config
from headway.machine import find_machine
from headway.planner import know_model, look_ahead, make_plan
from headway.task import find_recipe

SHAPE = (
    *("recipe=nanochat", "task.aspect=64", "task.head_dim=128", "task.vocab_size=65536", "task.max_seq_len=2048"),
    *("batch.per_device=8", "train.precision=bf16"),
)
"""The published family: 64 of width for each block."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--on", default="8xH100")
    parser.add_argument("--params", type=float, default=1e9)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        os.environ["HOME"] = home  # traces of earlier days are not ours
        print(json.dumps(measure(given.on, given.params)))


def measure(wanted: str, params: float) -> dict[str, float]:
    """Return seconds and bytes of each kind of answer."""
    words = [*SHAPE, f"task.depth={find_depth(params)}"]
    loaded = load_config(None, recipe=find_recipe, overrides=words)
    machine = find_machine(Path(), loaded.config, wanted=wanted)
    plan = make_plan(loaded, machine, loaded.recipe)

    def answer(trace: bool) -> dict[str, object]:
        made, _ = look_ahead(make_plan(loaded, machine, loaded.recipe), loaded, machine, loaded.recipe, trace=trace)
        assert made.forecast is not None
        return dict(made.forecast)

    formula_s = clock(lambda: answer(trace=False), times=7)
    formula_command_s = command(words, wanted)
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    before = spent.ru_utime + spent.ru_stime
    began = time.monotonic()
    traced = answer(trace=True)
    trace_s = time.monotonic() - began
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    rss, cpu_s = used.ru_maxrss * 1024, used.ru_utime + used.ru_stime - before
    assert traced["source"] == "trace", traced
    cached_s = clock(lambda: answer(trace=True), times=7)
    model = know_model(loaded.recipe, loaded.config, None)
    assert model is not None
    print(f"{model.params / 1e9:.2f} billion parameters, micro-batch {plan.micro_batch}, {wanted}")
    print(f"trace           {trace_s:6.2f} s ({cpu_s:.2f} s of processor time), child at most {rss / 1e9:.2f} GB")
    kept = command([*words, "--trace"], wanted)
    print(f"kept trace      {cached_s:6.3f} s in this process, {kept:.2f} s as a command")
    print(f"formula         {formula_s:6.3f} s in this process, {formula_command_s:.2f} s as a command")
    return {
        "params": model.params,
        "trace_s": round(trace_s, 2),
        "trace_cpu_s": round(cpu_s, 2),
        "trace_rss_gb": round(rss / 1e9, 2),
        "cached_s": round(cached_s, 4),
        "formula_s": round(formula_s, 4),
        "cached_command_s": round(kept, 3),
        "formula_command_s": round(formula_command_s, 3),
    }


def find_depth(params: float) -> int:
    """Return the depth whose decoder has about so many parameters."""

    def count(depth: int) -> int:
        loaded = load_config(None, recipe=find_recipe, overrides=[*SHAPE, f"task.depth={depth}"])
        model = know_model(loaded.recipe, loaded.config, None)
        assert model is not None
        return model.params

    return min(range(4, 49, 2), key=lambda depth: abs(count(depth) - params))


def clock(answer: Callable[[], object], *, times: int) -> float:
    """Return the median of so many goes."""
    took = []
    for _ in range(times):
        began = time.monotonic()
        answer()
        took.append(time.monotonic() - began)
    return statistics.median(took)


def command(words: list[str], wanted: str) -> float:
    """Return the seconds of `headway plan`, the best of three."""
    took = []
    for _ in range(3):
        began = time.monotonic()
        subprocess.run(
            [sys.executable, "-m", "headway", "plan", *words, "--on", wanted, "--json"],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        took.append(time.monotonic() - began)
    return min(took)


if __name__ == "__main__":
    main()
