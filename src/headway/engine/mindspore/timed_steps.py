"""One MindSpore rank of a probe: a few real steps of a config, timed, with a validation batch.

The same questions as engine/probe.py. Nothing is saved and nothing is resumed: a probe leaves no checkpoint.
"""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np

from headway.engine.mindspore.explain import explain
from headway.engine.mindspore.loop import Stepper, sum_measures, take_step
from headway.engine.mindspore.meter import EVAL
from headway.engine.mindspore.rank import prepare
from headway.engine.mindspore.rank_state import MindRun
from headway.engine.reporter import Reporter
from headway.engine.timing import limit_memory, split_steps, spread, typical
from headway.messages import set_language
from headway.telemetry import HeartbeatWriter, RunDir, read_json

_CALM, _ALIKE = 3, 2.0
"""Steps in a row, and how far they may be above the quickest."""
_MOST_WARM = 40


def main(job: dict[str, Any]) -> int:
    """Probe one rank; return its exit code."""
    set_language(job["lang"])
    reporter = Reporter(job["report_fd"])
    run: MindRun | None = None
    try:
        place = RunDir(Path(job["run_dir"]))
        wish = read_json(place.job)["probe"]
        limit_memory(wish.get("limit_bytes"))
        run = prepare(job, reporter, HeartbeatWriter(place.heartbeat(job["rank"]), job["attempt"]))
        found = measure(run, wish)
        reporter.event({"kind": "probed", "rank": run.ranks.rank, **found})
        reporter.finished("done", run.progress.step)
        run.ranks.leave()
    except Exception as error:  # border: whatever ends a rank is reported to the supervisor, then it ends
        reporter.error(explain(error), run.progress.step if run else 0)
        return 1
    return 0


def measure(run: MindRun, wish: dict[str, Any]) -> dict[str, Any]:
    """Take steps of one and, where the plan adds up several, two micro-batches; return their times and the peak."""
    stepper = Stepper(run)
    run.loss.set_train(True)
    stepper.open_data(run)
    counts = (1, 2) if run.plan.accumulation > 1 else (1,)
    quick = _warm_up(run, stepper, wish["warmup"])
    wanted = wish["seconds"] / max(1e-6, quick * sum(counts))
    rounds = int(_say_first(run, min(max(wanted, wish["least"]), wish["most"])))
    times: dict[int, list[float]] = {count: [] for count in counts}
    singles = []
    for _ in range(rounds):
        for count in counts:
            times[count].append(_timed(run, stepper, count))
            if count == 1:
                singles.append(run.progress.step)
    steps_bytes = _peak(run)
    eval_s = _validate_one(run)
    first = typical(times[1])
    each = max(0.0, typical(times[2]) - first) if 2 in times else None
    return {
        "first_s": first,
        "more_s": each,
        "step_s": first + (run.plan.accumulation - 1) * (each or 0.0),
        "spread": spread(times[1]),
        "rounds": rounds,
        "parts": split_steps(run.metrics, singles),
        "eval_s": eval_s,
        "steps_bytes": steps_bytes,
        "peak_bytes": _peak(run),
        "reserved_bytes": None,
    }


def _warm_up(run: MindRun, stepper: Stepper, least: int) -> float:
    """Take steps until some in a row took about as long as the quickest; return its time.

    Batches of another length compile another graph, and such a step takes many times as long.
    """
    times: list[float] = []
    while len(times) < _MOST_WARM:
        times.append(_timed(run, stepper, 1))
        is_calm = len(times) >= least + _CALM and max(times[-_CALM:]) < _ALIKE * min(times)
        if _say_first(run, float(is_calm)):
            break
    return min(times)


def _say_first(run: MindRun, value: float) -> float:
    """Return rank 0's number on every rank: all must take the same steps."""
    return float(run.ranks.from_first(np.array([value], np.float32))[0])


def _timed(run: MindRun, stepper: Stepper, accumulation: int) -> float:
    """Do one step of so many micro-batches; return its time. The loop reads the loss, so it has waited for it all."""
    plan = run.plan
    samples = plan.micro_batch * accumulation * plan.world_size
    run.plan = replace(plan, accumulation=accumulation, batch_samples=samples)
    began = time.perf_counter()
    take_step(run, stepper)
    took = time.perf_counter() - began
    run.plan = plan
    return took


def _validate_one(run: MindRun) -> float:
    """Validate one batch per rank, as a run would."""
    run.meter.enter(EVAL)
    began = time.perf_counter()
    size, ranks = run.plan.micro_batch, run.ranks
    run.loss.set_train(False)
    sum_measures(run.task, run.loss, run.eval_data, ranks=ranks, size=size, total=size * ranks.world_size)
    return time.perf_counter() - began


def _peak(run: MindRun) -> int:
    """Return the most memory held so far: on the device, or by the process."""
    return run.meter.memory_bytes if run.plan.device == "cpu" else int(ms.runtime.max_memory_reserved())
