"""The loop, for MindSpore: the same steps as engine/loop.py.

Forward and backward are one compiled call. Its gradients are added up over micro-batches and ranks, divided once by how
much there was, clipped, and handed to the optimizer.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any, Literal

import mindspore as ms
import numpy as np
from mindspore import nn

from headway.engine.due import is_due
from headway.engine.mindspore.meter import BACKWARD, COMM, DATA, EVAL, OPTIMIZER, SAVE, STOPPING
from headway.engine.mindspore.ranks import Ranks
from headway.engine.mindspore.run import Loaded, MindRun, resume, save, share_statistics, wait_for_save
from headway.engine.mindspore.sink import open_sink
from headway.engine.mindspore.task import ArrayData, MindTask, tensors_of
from headway.engine.mindspore.update import Add, Grads, Norm, Reduce, Scaled
from headway.engine.order import after_skips
from headway.errors import TrainError
from headway.plan import lr_at

_NAMED = 8
_FLUSH_S = 0.25


class Stepper:
    """The compiled parts of a step."""

    def __init__(self, run: MindRun) -> None:
        self.scale = run.task.settings.loss_scale
        loss = run.loss if self.scale == 1 else Scaled(run.loss, self.scale)
        self.gradient = ms.value_and_grad(loss, None, run.params, has_aux=True)
        self.add, self.norm = Add(), Norm()
        self.reduce = Reduce() if run.ranks.world_size > 1 else None
        self.sink: Callable[[], Any] | None = None

    def open_data(self, run: MindRun) -> None:
        """Begin to load where the run stands."""
        run.open_data()
        self.sink = open_sink(self.gradient, run) if run.task.settings.has_sink else None

    def differentiate(self, task: MindTask, loaded: Loaded) -> tuple[float, Grads]:
        """Return the sum of the loss over a micro-batch, and its gradients times the scale."""
        (total, _), grads = self.sink() if self.sink else self.gradient(*tensors_of(task, loaded.batch))
        # Mutable: a plain tuple counts as a constant, and every step would be compiled anew.
        return float(total.asnumpy()) / self.scale, ms.mutable(grads)


def train(run: MindRun) -> Literal["done", "stopped"]:
    """Train from where the run stands to its end, or until all ranks agree to stop."""
    config, plan = run.config, run.plan
    stepper = Stepper(run)
    run.loss.set_train(True)
    stepper.open_data(run)
    flushed = time.monotonic()
    batch, in_epoch = plan.batch_samples, len(run.data)
    if run.progress.step and is_due(config.eval, run.progress, batch, in_epoch):
        validate(run)
    while run.progress.step < plan.total_steps:
        is_stop, is_save = take_step(run, stepper)
        step, now = run.progress.step, time.monotonic()
        if now - flushed > _FLUSH_S:
            run.metrics.flush()
            flushed = now
        if is_stop:
            run.meter.enter(STOPPING)
            save(run)
            wait_for_save(run, config.launch.grace_s)
            return "stopped"
        is_last = step >= plan.total_steps
        if is_last or is_save or is_due(config.save, run.progress, batch, in_epoch):
            run.meter.enter(SAVE)
            save(run)
        if (is_last or is_due(config.eval, run.progress, batch, in_epoch)) and validate(run) == "stale":
            break
    wait_for_save(run)
    run.metrics.flush()
    return "done"


def take_step(run: MindRun, stepper: Stepper) -> tuple[bool, bool]:
    """Do one optimizer step, or let the guard answer for it; tell whether to stop and whether to save."""
    plan, progress, meter = run.plan, run.progress, run.meter
    start = after_skips(progress.position, progress.skips)
    run.seed_step()
    grads: Grads | None = None
    loss, taken = 0.0, []
    for _ in range(plan.accumulation):
        meter.enter(DATA)
        loaded = next(run.batches)
        meter.enter(BACKWARD)
        total, part = stepper.differentiate(run.task, loaded)
        grads = part if grads is None else ms.mutable(stepper.add(grads, part))
        loss += total
        taken.append(loaded)
    meter.enter(COMM)
    assert grads is not None
    grads = ms.mutable(stepper.reduce(grads)) if stepper.reduce is not None else grads
    wishes = (float(run.is_stop_wanted()), float(_is_save_time(run)))
    count = float(plan.micro_batch * plan.accumulation)
    sums = run.ranks.sum(np.array([loss, count, *wishes], np.float64))
    meter.enter(OPTIMIZER)
    divisor = float(sums[1]) * stepper.scale
    norm = float(stepper.norm(grads).asnumpy()) / divisor
    mean = float(sums[0] / sums[1])
    if not math.isfinite(mean) or not math.isfinite(norm):
        if _guard(run, taken, start, "loss" if not math.isfinite(mean) else "gradient") == "back":
            stepper.open_data(run)
        return sums[2] > 0, sums[3] > 0
    clip = run.config.optimizer.clip
    factor = 1.0 if clip is None or norm <= clip else clip / (norm + 1e-6)
    lr = run.config.lr.base * plan.lr_factor * lr_at(progress.position, run.schedule)
    run.adam.step(grads, factor / divisor, lr, progress.updates)
    progress.updates += 1
    progress.step += 1
    progress.position = start + plan.batch_samples
    run.taken.extend(taken)
    took, parts = meter.end_step(progress.step, progress.position, mean, lr)
    run.metrics.add(
        progress.step, progress.position, mean, lr, norm, time.time(), took, *parts, meter.memory_bytes
    )  # fmt: skip
    return sums[2] > 0, sums[3] > 0


def _guard(run: MindRun, taken: list[Loaded], start: int, what: str) -> Literal["on", "back"]:
    """Record a loss or gradient that is not finite, then stop, skip or roll back."""
    progress, policy = run.progress, run.config.guard.policy
    progress.guard_events += 1
    step = progress.step + 1
    samples = [int(one) for part in taken for one in part.ids][:_NAMED]
    rank = run.ranks.rank
    if rank == 0:
        event = {"kind": "guard", "step": step, "rank": rank, "samples": samples, "policy": policy, "what": what}
        run.reporter.event(event)
    facts: dict[str, Any] = {"what": what, "rank": rank, "step": step, "samples": ", ".join(map(str, samples))}
    if policy == "stop":
        raise TrainError("engine/not-finite", **facts)
    if progress.guard_events > run.config.guard.limit:
        raise TrainError("engine/not-finite-limit", limit=run.config.guard.limit, **facts)
    if policy == "skip":
        progress.step += 1
        progress.position = start + run.plan.batch_samples
        run.taken.extend(taken)
        return "on"
    events = progress.guard_events
    run.saver.wait()
    if run.saved_step is None:
        raise TrainError("engine/nothing-to-roll-back", **facts)
    resume(run)
    run.taken.clear()
    run.progress.guard_events = events
    run.progress.skips.append((start, start + run.plan.batch_samples))
    return "back"


def validate(run: MindRun) -> Literal["better", "worse", "stale"]:
    """Measure the model, remember the best, and say when it is time to stop early."""
    run.meter.enter(EVAL)
    run.measures = measures = evaluate(run)
    progress, (name, sense) = run.progress, run.task.best
    value = measures[name] if sense == "min" else -measures[name]
    is_best = math.isfinite(value) and (progress.best_value is None or value < progress.best_value)
    progress.stale = 0 if is_best else progress.stale + 1
    if is_best:
        progress.best_value, progress.best_step = value, progress.step
        if run.config.save.keep_best and run.saved_step != progress.step:
            save(run)
    if run.ranks.rank == 0:
        event = {"kind": "validation", "step": progress.step, "measures": measures, "best": is_best}
        run.reporter.event({**event, "measure": name, "sense": sense})
    run.meter.pause()
    patience = run.config.eval.patience
    return "stale" if patience and progress.stale >= patience else "better" if is_best else "worse"


def evaluate(run: MindRun) -> dict[str, float]:
    """Return the measures over the validation set, the same on every rank."""
    share_statistics(run)
    run.loss.set_train(False)
    size, total = run.plan.micro_batch, run.config.eval.samples
    sums = sum_measures(run.task, run.loss, run.eval_data, ranks=run.ranks, size=size, total=total)
    run.loss.set_train(True)
    return run.task.summarize(sums)


def sum_measures(
    task: MindTask, loss: nn.Cell, data: ArrayData, *, ranks: Ranks, size: int, total: int | None
) -> dict[str, float]:
    """Add up the task's measures over the first `total` samples, dealt out over the ranks batch by batch."""
    total = min(len(data), total or len(data))
    sums = dict.fromkeys(task.measure_names, 0.0)
    for index in range(ranks.rank, -(-total // size), ranks.world_size):
        ids = np.arange(index * size, (index + 1) * size)
        real = int((ids < total).sum())
        # A short last batch is filled up, because another shape would be another graph to compile.
        batch = data.arrays(np.minimum(ids, total - 1), np.zeros_like(ids))
        found, output = loss(*tensors_of(task, batch))
        own = {name: value[:real] for name, value in batch.items()}
        measured = task.measures(float(found.asnumpy()) * real / size, output.asnumpy()[:, :real], own)
        sums = {name: value + measured[name] for name, value in sums.items()}
    values = ranks.sum(np.array(list(sums.values())))
    return dict(zip(sums, (float(value) for value in values), strict=True))


def _is_save_time(run: MindRun) -> bool:
    every_s = run.config.save.every_s
    return every_s is not None and time.monotonic() - run.saved_at >= every_s
