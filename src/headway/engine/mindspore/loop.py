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

from headway.engine import policy
from headway.engine.mindspore import guard
from headway.engine.mindspore.inputs import tensors_of
from headway.engine.mindspore.meter import BACKWARD, COMM, DATA, EVAL, OPTIMIZER, SAVE, STOPPING
from headway.engine.mindspore.optim import Add, Grads, Norm, Reduce, Scaled
from headway.engine.mindspore.rank_state import Loaded, MindRun, save, share_statistics, wait_for_save
from headway.engine.mindspore.ranks import Ranks
from headway.engine.mindspore.sink import open_sink
from headway.planner import lr_at
from headway.task.mindspore import ArrayData, Arrays, MindTask
from headway.task.order import after_skips, count_taken, end_of_step

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
        """Begin to load where the run is."""
        run.open_data()
        self.sink = open_sink(self.gradient, run) if run.task.settings.has_sink else None

    def differentiate(self, task: MindTask, loaded: Loaded) -> tuple[float, Grads]:
        """Return the sum of the loss over a micro-batch, and its gradients times the scale."""
        (total, _), grads = self.sink() if self.sink else self.gradient(*tensors_of(task, loaded.batch))
        # Mutable: a plain tuple counts as a constant, and every step would be compiled again.
        return float(total.asnumpy()) / self.scale, ms.mutable(grads)


def train(run: MindRun) -> Literal["done", "stopped"]:
    """Train from where the run is to its end, or until all ranks agree to stop; the order is that of policy.py."""
    stepper = Stepper(run)
    run.loss.set_train(True)
    stepper.open_data(run)
    flushed = time.monotonic()
    while True:
        if run.progress.owes_validation:
            validate(run)
        if policy.is_over(run.course, run.progress):
            break
        before = run.progress.step, run.progress.position
        is_stop, is_save = take_step(run, stepper)
        now = time.monotonic()
        if now - flushed > _FLUSH_S:
            run.metrics.flush()
            flushed = now
        end_step(run, before, is_stop=is_stop, is_save=is_save)
        if is_stop:
            wait_for_save(run, run.config.launch.grace_s)
            return "stopped"
    early = policy.early_stop_event(run.course, run.progress)
    if early is not None and run.ranks.rank == 0:
        run.reporter.event(early)
    if run.saved_step != run.progress.step:
        run.meter.enter(SAVE)
        save(run)
    wait_for_save(run)
    run.metrics.flush()
    return "done"


def end_step(run: MindRun, before: tuple[int, int], *, is_stop: bool, is_save: bool) -> None:
    """Note what the step owes, and save it where that is due; there are no trials in MindSpore."""
    course = run.course
    if run.progress.step <= before[0]:
        # Taken back to before the guard's event, the run is as good as the checkpoint it came from.
        run.guard_events_saved = run.progress.guard_events
    run.progress = policy.end_step(course, run.progress, before=before)
    how = policy.choose_save(course, run.progress, before=before, is_stop_wanted=is_stop, is_save_wanted=is_save)
    if how != "no" and run.saved_step != run.progress.step:
        run.meter.enter(STOPPING if is_stop else SAVE)
        save(run)


def take_step(run: MindRun, stepper: Stepper) -> tuple[bool, bool]:
    """Do one optimizer step, or let the guard answer for it; tell whether to stop and whether to save."""
    plan, progress, meter = run.plan, run.progress, run.meter
    start = after_skips(progress.position, progress.skips)
    run.seed_step()
    # A batch that the guard rejects must not stay in the running statistics: not in those that train on, and not in
    # those by which its bad samples are found.
    kept = run.keep_statistics()
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
        run.put_statistics_back(kept)
        if guard.answer(run, stepper.gradient, taken, start, "loss" if not math.isfinite(mean) else "gradient"):
            stepper.open_data(run)
        return sums[2] > 0, sums[3] > 0
    clip = run.config.optimizer.clip
    factor = 1.0 if clip is None or norm <= clip else clip / (norm + 1e-6)
    lr = run.config.lr.base * plan.lr_factor * lr_at(count_taken(progress.position, progress.skips), run.schedule)
    run.adam.step(grads, factor / divisor, lr, progress.updates)
    progress.updates += 1
    progress.step += 1
    progress.position = end_of_step(start, plan.batch_samples, progress.skips)
    run.taken.extend(taken)
    took, parts = meter.end_step(progress.step, progress.position, mean, lr)
    run.metrics.add(
        progress.step, progress.position, mean, lr, norm, time.time(), took, *parts, meter.memory_bytes
    )  # fmt: skip
    return sums[2] > 0, sums[3] > 0


def validate(run: MindRun) -> None:
    """Measure the model and remember the best."""
    run.meter.enter(EVAL)
    run.measures = measures = evaluate(run)
    run.measured_step = run.progress.step
    name, sense = run.task.best
    run.progress = progress = policy.judge(run.progress, measures[name] if sense == "min" else -measures[name])
    is_best = progress.best_step == progress.step
    if run.ranks.rank == 0:
        event = {"kind": "validation", "step": progress.step, "measures": measures, "best": is_best}
        run.reporter.event({**event, "measure": name, "sense": sense})
    if is_best and run.config.save.keep_best and (run.saved_step != progress.step or run.is_saved_suspect):
        save(run)
    run.meter.pause()


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
        lost = float(found.asnumpy()) - (_filling(task, loss, batch, real, size) if real < size else 0.0)
        measured = task.measures(lost, output.asnumpy()[:, :real], own)
        sums = {name: value + measured[name] for name, value in sums.items()}
    values = ranks.sum(np.array(list(sums.values())))
    return dict(zip(sums, (float(value) for value in values), strict=True))


def _filling(task: MindTask, loss: nn.Cell, batch: Arrays, real: int, size: int) -> float:
    """Return what the copies that fill up a batch add to its loss: a whole batch of them, in its shape, tells."""
    same = {name: np.repeat(value[real - 1 : real], size, axis=0) for name, value in batch.items()}
    return float(loss(*tensors_of(task, same))[0].asnumpy()) * (size - real) / size


def _is_save_time(run: MindRun) -> bool:
    asked_at, now = run.save_asked_at(), time.monotonic()
    return policy.is_save_time(run.config.save, saved_at=run.saved_at, asked_at=asked_at, now=now)
