"""Out of memory: the same batch in smaller pieces.

The effective batch and the learning rate are part of the training; the micro-batch is not. Fewer samples at a time with
more gradient accumulation give the same step. Whether they do for this model is proven by the ranks before they train
on (engine/neutral.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from headway.launch.job import Job, Training, write_job
from headway.messages import say
from headway.telemetry import RunDir, write_json

_DEVICE: Final = ("device-out-of-memory",)
_HOST: Final = ("host-out-of-memory", "host-oom-kill")
"""On a machine with GPUs the batch lies in their memory, and the host's is taken by something else."""
OUT_OF_MEMORY: Final = (*_DEVICE, *_HOST)
"""Classes of failure."""
_LESS: Final = 0.75
"""A micro-batch only a little smaller would most likely fail again, and a restart of a large model takes minutes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Smaller:
    """The same batch in smaller pieces."""

    job: Job
    facts: Mapping[str, object]
    """Of the message `launch/batch-reduced`."""


def smaller_micro_batch(micro_batch: int, accumulation: int) -> int | None:
    """Return the largest micro-batch that divides a rank's share and is clearly smaller; None: it is one sample."""
    share = micro_batch * accumulation
    return next((size for size in range(int(micro_batch * _LESS), 0, -1) if share % size == 0), None)


def shrink(job: Job, kind: str, *, attempt: int) -> Smaller | None:
    """Return the job with a smaller micro-batch; None where that is not wanted, would not help or is not possible.

    Args:
        kind: class of the failure.
        attempt: number of the attempt that failed.
    """
    training = job.program
    if kind not in OUT_OF_MEMORY or not isinstance(training, Training) or training.probe is not None:
        return None
    plan = training.plan
    wish = training.config["launch"].get("on_oom", "shrink")
    if wish == "stop" or (plan["device"] == "cuda" and kind not in _DEVICE):
        return None
    before = plan["micro_batch"]
    # Where ranks are lost, the share of each with all of them: it divides when they are back.
    full = (training.lost or {}).get("full", plan)["world_size"]
    share = plan["batch_samples"] // full
    micro_batch = smaller_micro_batch(before, share // before)
    if micro_batch is None:
        return None
    accumulation = -(-(plan["batch_samples"] // micro_batch) // plan["world_size"])
    rows = [_row(row, before, micro_batch, accumulation) for row in plan.get("rows", ())]
    # What was foreseen was foreseen for the micro-batch that did not fit.
    smaller = {"micro_batch": micro_batch, "accumulation": accumulation, "rows": rows, "forecast": None}
    shrunk = {"attempt": attempt + 1, "before": before, "is_agreed": wish == "always"}
    return Smaller(
        job=replace(job, program=replace(training, plan={**plan, **smaller}, shrunk=shrunk)),
        facts={
            "before": before,
            "after": micro_batch,
            "accumulation": accumulation,
            "batch": plan["batch_samples"],
        },
    )


def write_smaller(run: RunDir, smaller: Smaller) -> None:
    """Let every rank that starts from now on, and every later resume, take the smaller micro-batch."""
    assert isinstance(smaller.job.program, Training)
    write_job(run, smaller.job)
    write_json(run.plan, dict(smaller.job.program.plan))


def _row(row: Mapping[str, Any], before: int, micro_batch: int, accumulation: int) -> dict[str, Any]:
    """Return a row of the plan's table with the new numbers and where they come from."""
    values = {"batch-per-device": micro_batch, "batch-accumulation": accumulation}
    if row["key"] not in values:
        return dict(row)
    code, facts = "plan/from-out-of-memory", {"before": str(before)}
    origin = {"origin": say(code, "en", **facts), "origin_code": code, "facts": facts}
    return {**row, "value": str(values[row["key"]]), **origin}
