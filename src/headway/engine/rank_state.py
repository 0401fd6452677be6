"""Everything one rank trains with, and where it is."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import torch
from torch import Tensor, nn

from headway.checkpoint.torch_state import Saver
from headway.config import RunConfig
from headway.engine.ema import Ema
from headway.engine.loader import Loaded, load
from headway.engine.meter import Meter
from headway.engine.optim import Optimizer
from headway.engine.parallel import Layout, Ranks
from headway.engine.policy import Course
from headway.engine.precision import Precision
from headway.engine.progress import Progress
from headway.engine.reporter import Reporter
from headway.planner import LrSchedule, Plan, Standing, continue_plan, make_schedule
from headway.task import Data, Task
from headway.task.order import Ledger, Share, count_taken, end_of_step
from headway.telemetry import MetricsWriter

if TYPE_CHECKING:  # it keeps a run, and a run has it
    from headway.engine.last_step import LastStep


@dataclass(slots=True, kw_only=True)
class Run:
    """One rank's model, data and tools."""

    config: RunConfig
    plan: Plan
    task: Task
    ranks: Ranks
    model: nn.Module
    buffers: list[Tensor]
    """Persistent buffers of the model: running statistics that replicas share."""
    layout: Layout
    optimizers: list[Optimizer]
    schedule: LrSchedule
    precision: Precision
    ema: Ema | None
    data: Data
    eval_data: Data
    checkpoints: Path
    events: Path
    """The run's history, written by the supervisor; a rank only reads it."""
    saver: Saver
    frozen_id: str | None
    """Fingerprint of the weights that do not train."""
    meter: Meter
    metrics: MetricsWriter
    reporter: Reporter
    is_stop_wanted: Callable[[], bool]
    save_asked_at: Callable[[], float]
    """When a checkpoint was last asked for from outside, on the monotonic clock; 0: never."""
    shrunk: Mapping[str, Any] | None = None
    """After an attempt that was out of memory: what its ranks prove before they train (`launch.job.Training`)."""
    progress: Progress = field(default_factory=Progress)
    kept_buffers: list[Tensor] = field(default_factory=list)
    """The buffers as they were before the step."""
    ledger: Ledger = field(default_factory=Ledger)
    """What this rank has trained on since the run's ledger was last brought up to date."""
    measures: dict[str, float] = field(default_factory=dict)
    """What the last validation found, at `measured_step`."""
    measured_step: int | None = None
    saved_step: int | None = None
    """Step of the newest checkpoint that was begun or loaded."""
    saved_at: float = field(default_factory=time.monotonic)
    is_saved_suspect: bool = False
    guard_events_saved: int = 0
    """Events of the guard that were over when the newest checkpoint was begun or loaded."""
    last_step: LastStep | None = None
    """What keeps the last finished step in memory; None: nothing does."""
    came_from: Literal["start", "checkpoint", "memory"] = "start"
    """Which state this attempt began with."""
    needs_checkpoint: bool = False
    """A copy in memory was taken up in part: to begin again would be to train something else."""
    owes_save: bool = False
    """A checkpoint that had been begun before a fault is not there."""
    batches: Iterator[Loaded] = field(default_factory=lambda: iter(()))

    @property
    def course(self) -> Course:
        """What decides the end of every step."""
        return Course(config=self.config, total_steps=self.plan.total_steps, in_epoch=len(self.data))

    @property
    def share(self) -> Share:
        """This rank's part of every step."""
        plan = self.plan
        in_step = plan.batch_samples // plan.micro_batch
        return Share(self.ranks.rank, self.ranks.world_size, plan.micro_batch, plan.accumulation, in_step)

    def keep_buffers(self) -> None:
        """Remember the running statistics: a step that the guard rejects must leave nothing in them."""
        if not self.kept_buffers:
            self.kept_buffers = [buffer.clone() for buffer in self.buffers]
        else:
            torch._foreach_copy_(self.kept_buffers, self.buffers)

    def put_buffers_back(self) -> None:
        """Undo what was done to the running statistics since they were kept."""
        for buffer, kept in zip(self.buffers, self.kept_buffers, strict=True):
            buffer.copy_(kept)

    def move_on(self, taken: Sequence[Loaded], start: int) -> None:
        """Note a step's samples as used up and move behind them."""
        for part in taken:
            self.ledger.add(part.ids, part.epochs)
        self.progress.step += 1
        self.progress.position = self.end_of_step(start)

    def end_of_step(self, start: int) -> int:
        """Return the position behind the samples of a step that starts here."""
        return end_of_step(start, self.plan.batch_samples, self.progress.skips)

    def continue_plan(self) -> None:
        """Count the length from where the run is: its batch may have been another one so far."""
        done = Standing(step=self.progress.step, samples=count_taken(self.progress.position, self.progress.skips))
        self.plan = continue_plan(self.plan, done)
        self.schedule = make_schedule(self.config.lr, self.plan)

    def open_data(self) -> None:
        """Load from where the run is."""
        self.batches = load(
            self.data,
            self.share,
            seed=self.config.seed,
            position=self.progress.position,
            workers=self.plan.workers,
            device=self.ranks.device,
            skips=self.progress.skips,
            prefetch=self.config.parallel.prefetch,
        )

    def close_data(self) -> None:
        """Let go of the loader and its processes."""
        self.batches = iter(())
