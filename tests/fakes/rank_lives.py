"""Lives of runs on several ranks: real processes that train one after the other, without the launcher."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist

from fakes.engine_run import make_job, reports
from fakes.ranks import run_ranks
from headway.engine import rank
from headway.engine.loop import train
from headway.engine.parallel import Ranks
from headway.engine.rank_state import Run
from headway.engine.reporter import Reporter
from headway.task import Loss
from headway.task.order import Order
from headway.telemetry import RunDir, read_metrics

FIXED = ("parallel.threads=1", "parallel.workers=0", "train.precision=fp32")


@dataclass(frozen=True)
class Life:
    """One attempt at a run, in the folder `place`."""

    place: str
    words: tuple[str, ...]
    attempt: int = 1
    stop_at: int = 0
    """Step at which it is asked to stop; 0: it is not."""
    poison: tuple[int, ...] = ()
    """Positions in the data order whose samples are bad."""
    poison_in: str = "loss"
    """What is not a finite number then: `loss`, or `gradient` alone."""


class Poisoned:
    """Samples that say which of them are bad."""

    def __init__(self, data: Any, positions: tuple[int, ...], seed: int) -> None:
        self._data = data
        self._bad = Order(len(data), seed).samples(np.array(positions, np.int64))[0]

    def __len__(self) -> int:
        return len(self._data)

    def batch(self, ids: Any, epochs: Any) -> dict[str, Any]:
        return {**self._data.batch(ids, epochs), "bad": torch.from_numpy(np.isin(ids, self._bad))}


def poison(run: Run, life: Life) -> None:
    """Make the loss or its gradient NaN where a bad sample is in the batch."""
    run.data = Poisoned(run.data, life.poison, run.config.seed)
    plain = run.task.loss

    def loss(model: Any, batch: dict[str, Any]) -> Loss:
        rest = {name: value for name, value in batch.items() if name != "bad"}
        found = plain(model, rest)
        if not batch["bad"].any():
            return found
        # The root of zero: its value is a number, its slope is none.
        harm = torch.nan if life.poison_in == "loss" else (found.total * 0).sqrt()
        return Loss(found.total + harm, found.count)

    run.task.loss = loss


def open_run(ranks: Ranks, life: Life) -> Run:
    """Return this rank of the run, at the place where its folder says."""
    place = Path(life.place)
    if ranks.rank == 0:
        make_job(place, *FIXED, f"parallel.cpus={ranks.world_size}", *life.words)
    if ranks.world_size > 1:
        dist.barrier()
    fd = os.open(place / "reports" if ranks.rank == 0 else os.devnull, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    rank.join = lambda job, **_: ranks
    job = {"rank": ranks.rank, "local_rank": ranks.rank, "world_size": ranks.world_size, "attempt": life.attempt}
    run = rank.prepare({**job, "run_dir": life.place, "report_fd": fd, "lang": "en"}, Reporter(fd))
    if life.poison:
        poison(run, life)
    if life.stop_at:
        run.is_stop_wanted = lambda: run.progress.step + 1 >= life.stop_at
    return run


def live(ranks: Ranks, lives: list[Life]) -> list[dict[str, Any]]:
    """Live one life after the other; return what each has come to."""
    return [_live(ranks, life) for life in lives]


def _live(ranks: Ranks, life: Life) -> dict[str, Any]:
    run = open_run(ranks, life)
    try:
        end = train(run)
    except Exception as error:
        end = f"{type(error).__name__}: {error}"
    run.saver.wait()
    run.metrics.flush()
    if ranks.world_size > 1:
        dist.barrier()
    rows = read_metrics(RunDir(Path(life.place)).metrics(0))
    progress = run.progress
    told = [{key: event[key] for key in ("step", "rank", "samples", "what")} for event in reports_of(life, "guard")]
    return {
        "end": end,
        "steps": list(rows["step"]),
        "losses": list(rows["loss"]),
        "norms": list(rows["grad_norm"]),
        "rates": list(rows["lr"]),
        "validations": [[event["step"], event["measures"], event["best"]] for event in reports_of(life, "validation")],
        "guard": told,
        "place": [progress.step, progress.position, progress.updates, progress.ledger, progress.skips],
        "buffers": {name: value.flatten().tolist() for name, value in run.model.named_buffers()},
    }


def reports_of(life: Life, kind: str) -> list[dict[str, Any]]:
    """Return the events of a kind that rank 0 has sent."""
    return reports(Path(life.place), kind)


def live_on(world_size: int, lives: list[Life]) -> list[dict[str, Any]]:
    """Return what the lives have come to on so many ranks, as rank 0 saw it."""
    return json.loads(json.dumps(run_ranks(live, world_size, lives)[0]))
