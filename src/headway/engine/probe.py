"""One rank of a probe: a few real steps of a config, timed, with optimizer state, average and a validation batch.

Started like a worker, by module name, from the nursery. What it finds goes to the supervisor as a `probed` event of
each rank. Nothing is saved and nothing is resumed: a probe leaves no checkpoint.
"""

from __future__ import annotations

import math
import resource
import time
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from headway.engine.evaluate import set_train_mode, sum_measures
from headway.engine.loop import take_step
from headway.engine.meter import EVAL
from headway.engine.rank import prepare
from headway.engine.rank_state import Run
from headway.engine.reporter import Reporter
from headway.engine.timing import limit_memory, split_steps, spread, typical
from headway.errors import TrainError
from headway.messages import set_language
from headway.telemetry import RunDir, read_json


def main(job: dict[str, Any]) -> int:
    """Probe one rank; return its exit code."""
    set_language(job["lang"])
    reporter = Reporter(job["report_fd"])
    run: Run | None = None
    try:
        wish = read_json(RunDir(Path(job["run_dir"])).job)["probe"]
        limit_memory(wish.get("limit_bytes"))
        run = prepare(job, reporter)
        set_train_mode(run)
        run.open_data()
        run.meter.restart()
        found = sweep_rates(run, wish["lr_range"]) if wish.get("lr_range") else measure(run, wish)
        reporter.event({"kind": "probed", "rank": run.ranks.rank, **found})
        reporter.finished("done", run.progress.step)
        if run.ranks.world_size > 1:
            # Rank 0 holds the store: it must not leave while others still talk to it.
            dist.barrier()
    except Exception as error:  # border: whatever ends a rank is reported to the supervisor, then it ends
        reporter.error(error, run.progress.step if run else 0)
        return 1
    return 0


def measure(run: Run, wish: dict[str, Any]) -> dict[str, Any]:
    """Take steps of one and, where the plan adds up several, two micro-batches; return their times and the peak."""
    counts = (1, 2) if run.plan.accumulation > 1 else (1,)
    warm = [_timed(run, 1) for _ in range(wish["warmup"])]
    rounds = _agree(run, wish["seconds"] / max(1e-6, warm[-1] * sum(counts)))
    rounds = min(max(rounds, wish["least"]), wish["most"])
    times: dict[int, list[float]] = {count: [] for count in counts}
    singles = []
    for _ in range(rounds):
        for count in counts:
            times[count].append(_timed(run, count))
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
        # On a GPU the host cannot tell how a step splits.
        "parts": {} if _is_cuda(run) else split_steps(run.metrics, singles),
        "eval_s": eval_s,
        "steps_bytes": steps_bytes,
        "peak_bytes": _peak(run),
        "reserved_bytes": torch.cuda.max_memory_reserved(run.ranks.device) if _is_cuda(run) else None,
    }


def _timed(run: Run, accumulation: int) -> float:
    """Do one step of so many micro-batches; return its time."""
    plan = run.plan
    samples = plan.micro_batch * accumulation * plan.world_size
    run.plan = replace(plan, accumulation=accumulation, batch_samples=samples)
    _wait(run)
    began = time.perf_counter()
    take_step(run)
    _wait(run)
    took = time.perf_counter() - began
    run.plan = plan
    return took


def _validate_one(run: Run) -> float:
    """Validate one batch per rank, with the average in place, as a run would."""
    run.meter.enter(EVAL)
    began = time.perf_counter()
    total = min(len(run.eval_data), run.plan.micro_batch * run.plan.world_size)
    with run.ema.applied() if run.ema else nullcontext():
        run.model.eval()
        sum_measures(
            run.task,
            run.model,
            run.eval_data,
            ranks=run.ranks,
            precision=run.precision,
            size=run.plan.micro_batch,
            total=total,
        )
    _wait(run)
    return time.perf_counter() - began


def sweep_rates(run: Run, wish: dict[str, Any]) -> dict[str, Any]:
    """Raise the rate from step to step by one factor; return each factor and its loss, until the loss runs away."""
    run.schedule = replace(run.schedule, shape="constant", warmup_samples=0)
    low, high, steps = wish["low"], wish["high"], wish["steps"]
    base, curve, best = run.plan.lr_factor, [], math.inf
    for step in range(steps):
        factor = low * (high / low) ** (step / max(1, steps - 1))
        run.plan = replace(run.plan, lr_factor=base * factor)
        try:
            totals = take_step(run)
        except TrainError:  # the guard: a loss or gradient ran away
            break
        loss = totals.loss / totals.count if totals.count else math.nan
        if not math.isfinite(loss) or (math.isfinite(best) and loss > 4 * max(best, 1e-9)):
            break
        curve.append((factor, loss))
        best = min(best, loss)
    return {"curve": curve}


def _agree(run: Run, wanted: float) -> int:
    """Return the same number on every rank, the largest that any wants."""
    count = torch.tensor([float(math.ceil(wanted))], device=run.ranks.device)
    if run.ranks.world_size > 1:
        dist.all_reduce(count, op=dist.ReduceOp.MAX)
    return int(count.item())


def _wait(run: Run) -> None:
    if _is_cuda(run):
        torch.cuda.synchronize(run.ranks.device)


def _is_cuda(run: Run) -> bool:
    return run.ranks.device.type == "cuda"


def _peak(run: Run) -> int:
    """Return the most memory held so far: by tensors on the device, or by the process."""
    if _is_cuda(run):
        return torch.cuda.max_memory_allocated(run.ranks.device)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
