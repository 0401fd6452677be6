"""Everything one MindSpore rank trains with, its snapshots, and the way back to one."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, nn

from headway.checkpoint import Patience, find_resumable, read_manifest, refuse_lost
from headway.config import RunConfig
from headway.engine.mindspore.checkpoint_arrays import Array, ArraySaver, read_arrays
from headway.engine.mindspore.meter import Meter
from headway.engine.mindspore.optim import Adam
from headway.engine.mindspore.ranks import Ranks
from headway.engine.policy import Course, is_suspect
from headway.engine.progress import Progress, read_progress
from headway.engine.reporter import Reporter
from headway.errors import CheckpointError, TrainError
from headway.planner import LrSchedule, Plan, Standing, continue_plan, make_schedule
from headway.task.mindspore import ArrayData, Arrays, Ids, MindTask
from headway.task.order import Order, Share, count_taken, ledger_of, micro_batches, mix_one
from headway.telemetry import MetricsWriter, read_events

_NAME_BYTES = 64
_STATISTICS = ("running_mean", "running_var", "moving_mean", "moving_variance")
"""How the names of running statistics end: in checkpoints of any framework, and MindSpore's own."""


@dataclass(slots=True)
class Loaded:
    """One micro-batch and which samples it holds."""

    batch: Arrays
    ids: Ids
    epochs: Ids


@dataclass(slots=True, kw_only=True)
class MindRun:
    """One rank's model, data and tools."""

    config: RunConfig
    plan: Plan
    task: MindTask
    ranks: Ranks
    loss: nn.Cell
    names: Mapping[str, Parameter]
    """Weights and running statistics by their name in checkpoints."""
    params: list[Parameter]
    adam: Adam
    schedule: LrSchedule
    data: ArrayData
    eval_data: ArrayData
    checkpoints: Path
    events: Path
    """The run's history, written by the supervisor; a rank only reads it."""
    saver: ArraySaver
    meter: Meter
    metrics: MetricsWriter
    reporter: Reporter
    is_stop_wanted: Callable[[], bool]
    save_asked_at: Callable[[], float]
    """When a checkpoint was last asked for from outside, on the monotonic clock; 0: never."""
    progress: Progress = field(default_factory=Progress)
    taken: list[Loaded] = field(default_factory=list)
    measures: dict[str, float] = field(default_factory=dict)
    """What the last validation found, at `measured_step`."""
    measured_step: int | None = None
    saved_step: int | None = None
    """Step of the newest checkpoint that was begun or loaded."""
    saved_at: float = field(default_factory=time.monotonic)
    is_saved_suspect: bool = False
    guard_events_saved: int = 0
    """Events of the guard that were over when the newest checkpoint was begun or loaded."""
    batches: Iterator[Loaded] = field(default_factory=lambda: iter(()))

    @property
    def course(self) -> Course:
        """What decides the end of every step."""
        return Course(config=self.config, total_steps=self.plan.total_steps, in_epoch=len(self.data))

    def continue_plan(self) -> None:
        """Count the length from where the run is: its batch may have been another one so far."""
        done = Standing(step=self.progress.step, samples=count_taken(self.progress.position, self.progress.skips))
        self.plan = continue_plan(self.plan, done)
        self.schedule = make_schedule(self.config.lr, self.plan)

    def keys(self, position: int, skips: list[tuple[int, int]]) -> Iterator[tuple[Ids, Ids]]:
        """Return which samples of which epochs come to this rank after a position."""
        plan = self.plan
        share = Share(self.ranks.rank, self.ranks.world_size, plan.micro_batch, plan.accumulation)
        return micro_batches(Order(len(self.data), self.config.seed), share, position, skips)

    def open_data(self) -> None:
        """Load from where the run is, a few batches ahead in a thread."""
        keys = self.keys(self.progress.position, self.progress.skips)
        if self.task.settings.has_sink:
            # The device's queue is fed by MindSpore itself (see sink.py); here it is only told which samples those are.
            self.batches = (Loaded({}, ids, epochs) for ids, epochs in keys)
        else:
            self.batches = _ahead(self.data, keys, self.task.settings.prefetch)

    def seed_step(self) -> None:
        """Seed every generator by the step: what a resumed run draws needs no saved state."""
        seed = mix_one(self.config.seed, self.progress.step, self.ranks.rank)
        random.seed(seed)
        np.random.seed(seed & 0xFFFFFFFF)
        ms.set_seed(seed & 0x7FFFFFFF)

    @property
    def statistics(self) -> list[Parameter]:
        """Return the running means and variances."""
        return [param for name, param in self.names.items() if name.endswith(_STATISTICS)]

    def keep_statistics(self) -> list[Array]:
        """Return copies of the running statistics."""
        return [param.asnumpy().copy() for param in self.statistics]

    def put_statistics_back(self, kept: Sequence[Array]) -> None:
        """Set the running statistics to what was kept."""
        for param, value in zip(self.statistics, kept, strict=True):
            param.set_data(Tensor(value))

    def state(self) -> dict[str, Parameter]:
        """Return every tensor a resumed run needs, by name."""
        by_id = {id(param): name for name, param in self.names.items()}
        state = {f"model/{name}": param for name, param in self.names.items()}
        for param, first, second in zip(self.params, self.adam.first, self.adam.second, strict=True):
            state[f"optim/{by_id[id(param)]}/exp_avg"] = first
            state[f"optim/{by_id[id(param)]}/exp_avg_sq"] = second
        return state


def _ahead(data: ArrayData, keys: Iterator[tuple[Ids, Ids]], depth: int) -> Iterator[Loaded]:
    """Yield batches in order; with a depth, a thread works on the next ones."""
    if depth == 0:
        for ids, epochs in keys:
            yield Loaded(data.arrays(ids, epochs), ids, epochs)
    with ThreadPoolExecutor(1, "headway-data") as pool:
        waiting: list[tuple[Future[Arrays], Ids, Ids]] = []
        while True:
            while len(waiting) < depth:
                ids, epochs = next(keys)
                waiting.append((pool.submit(data.arrays, ids, epochs), ids, epochs))
            future, ids, epochs = waiting.pop(0)
            yield Loaded(future.result(), ids, epochs)


def share_statistics(run: MindRun) -> None:
    """Give every rank rank 0's running statistics, before they are saved or used."""
    if run.ranks.world_size == 1:
        return
    own = run.statistics
    if not own:
        return
    flat = run.ranks.from_first(np.concatenate([param.asnumpy().reshape(-1) for param in own]))
    cuts = np.cumsum([param.size for param in own])[:-1]
    for param, part in zip(own, np.split(flat, cuts), strict=True):
        param.set_data(Tensor(part.reshape(param.shape)))


def save(run: MindRun) -> None:
    """Copy the state and let a thread write it."""
    progress = run.progress
    mine = sum(ledger_of(part.ids, part.epochs) for part in run.taken)
    run.taken.clear()
    # Sixteen bits at a time: what is sent has 24 bits of precision.
    words = run.ranks.sum(np.array([(mine >> shift) & 0xFFFF for shift in (0, 16, 32, 48)], np.float32))
    total = sum(int(word) << (16 * place) for place, word in enumerate(words))
    progress.ledger = (progress.ledger + total) & ((1 << 64) - 1)
    share_statistics(run)
    run.metrics.flush()
    measures = run.measures if run.measured_step == progress.step else {}
    fields = {
        "samples": progress.position,
        "ledger": f"{progress.ledger:016x}",
        "strategy": run.plan.strategy,
        "best_step": progress.best_step,
        "older_bests": progress.older_bests,
        "suspect": is_suspect(progress, run.guard_events_saved),
        "measures": measures,
        "meta": {
            "export": run.task.describe(progress.step, measures),
            "progress": asdict(progress),
            "trained": count_taken(progress.position, progress.skips),
            "framework": "mindspore",
            "seed": run.config.seed,
            "batch_samples": run.plan.batch_samples,
            "data_size": len(run.data),
            "data_id": dict(run.task.data_id()),
        },
    }
    run.saver.save(progress.step, {name: param.asnumpy() for name, param in run.state().items()}, fields)
    run.saved_step, run.saved_at = progress.step, time.monotonic()
    run.is_saved_suspect, run.guard_events_saved = bool(fields["suspect"]), progress.guard_events


def wait_for_save(run: MindRun, deadline_s: float | None = None) -> None:
    """Wait for the last save to be on disk and proven; a run without it has not ended well."""
    run.saver.wait(deadline_s)
    if run.ranks.rank == 0 and run.saver.last_committed != run.saved_step:
        raise CheckpointError("engine/last-save-lost", step=run.saved_step, path=run.checkpoints)


def resume(run: MindRun) -> list[tuple[Path, str]]:
    """Go back to the newest checkpoint that passes verification; return those that did not and why."""
    found = find_resumable(run.checkpoints) if run.ranks.rank == 0 else None
    if found is not None and found.path is None:
        refuse_lost(found, run.checkpoints, read_events(run.events))
    path = _name_from_first(run, found.path if found else None)
    if path is not None:
        _load(run, path)
    skipped = found.skipped if found else ()
    run.saver.distrust(skipped)
    run.metrics.go_back(run.progress.step)
    return [(bad, why.text()) for bad, why in skipped]


def _load(run: MindRun, path: Path) -> None:
    patience = Patience()
    manifest = patience.read(lambda: read_manifest(path))
    meta = manifest.meta
    if meta.get("framework") != "mindspore":
        raise TrainError("mindspore/other-framework", path=path)
    if (meta["data_size"], meta["data_id"]) != (len(run.data), dict(run.task.data_id())):
        raise TrainError("engine/data-changed", before=meta["data_size"], now=len(run.data))
    if meta["seed"] != run.config.seed:
        raise TrainError("engine/seed-changed", before=meta["seed"], now=run.config.seed)
    state = run.state()
    shapes = {name: tuple(param.shape) for name, param in state.items()}
    fill(state, patience.read(lambda: read_arrays(path, manifest, shapes)))
    run.saver.trust(path, manifest.step)
    run.progress = read_progress(meta)
    run.continue_plan()
    run.saved_step, run.is_saved_suspect = manifest.step, manifest.suspect
    run.guard_events_saved = run.progress.guard_events
    run.measures, run.measured_step = dict(manifest.measures), manifest.step if manifest.measures else None


def fill(params: Mapping[str, Parameter], arrays: Mapping[str, Array]) -> None:
    """Set parameters to arrays of the same names."""
    for name, param in params.items():
        param.set_data(Tensor(arrays[name]))


def _name_from_first(run: MindRun, path: Path | None) -> Path | None:
    """Tell every rank the checkpoint that rank 0 has found."""
    told = np.zeros(_NAME_BYTES, np.float32)
    if path is not None:
        name = path.name.encode()
        told[: len(name)] = np.frombuffer(name, np.uint8)
    text = bytes(run.ranks.from_first(told).astype(np.uint8)).rstrip(b"\0").decode()
    return run.checkpoints / text if text else None
