"""The loop: the page everybody reads.

A step is: take micro-batches, add their gradients up, sum them over the ranks, divide once by how much there was,
clip, update. Everything else a run needs hangs on the end of a step: the guard, checkpoints, validation, stopping.
"""

from __future__ import annotations

import math
import time
from contextlib import nullcontext
from typing import Literal

from headway.engine import guard, policy
from headway.engine.evaluate import evaluate, run_trial, set_train_mode
from headway.engine.loader import Loaded
from headway.engine.meter import BACKWARD, COMM, DATA, EVAL, FORWARD, OPTIMIZER, SAVE, STOPPING, Meter
from headway.engine.parallel import share_buffers
from headway.engine.rank_state import Run
from headway.engine.snapshot import save, wait_for_save
from headway.engine.sums import StepSums, Totals
from headway.planner import grace_s, lr_at
from headway.task import Task, to_device
from headway.task.order import after_skips, count_taken

_FLUSH_S = 0.25
"""Metrics are written this often; a line a step would cost more than a small step."""


def train(run: Run) -> Literal["done", "stopped"]:
    """Train from where the run is to its end, or until all ranks agree to stop; the order is that of policy.py."""
    set_train_mode(run)
    _say_no_trials(run)
    run.open_data()
    run.meter.restart()
    flushed = time.monotonic()
    if run.owes_save:
        run.meter.enter(SAVE)
        save(run, is_needed=True)
        run.owes_save = False
    while True:
        if run.progress.owes_validation:
            validate(run)
        if policy.is_over(run.course, run.progress):
            break
        if run.progress.owes_trial:
            try_out(run)
            keep_again(run)
        before = run.progress.step, run.progress.position
        totals = take_step(run)
        now = time.monotonic()
        if now - flushed > _FLUSH_S:
            run.metrics.flush()
            flushed = now
        end_step(run, totals, before)
        if totals.is_stop_wanted:
            wait_for_save(run, grace_s(run.config.launch, run.plan))
            return "stopped"
    # Before the last save and the trial: loader processes would hold their memory and batches nobody will take. A run
    # that is stopped leaves them to the end of the process, as waiting for a slow one would cost its time of grace.
    run.close_data()
    early = policy.early_stop_event(run.course, run.progress)
    if early is not None and run.ranks.rank == 0:
        run.reporter.event(early)
    if run.saved_step != run.progress.step:
        run.meter.enter(SAVE)
        save(run, is_needed=True)
    # A trial is an extra and may take the process with it: first the run must be safe on disk.
    wait_for_save(run)
    try_out(run)
    run.metrics.flush()
    return "done"


def take_step(run: Run) -> Totals:
    """Do one optimizer step, or let the guard answer for it."""
    plan, progress, layout, meter = run.plan, run.progress, run.layout, run.meter
    start = after_skips(progress.position, progress.skips)
    expected = plan.batch_samples * (plan.tokens_per_sample or 1)
    meter.start_step(progress.step)
    meter.enter(COMM)
    # Shared first, then kept: what the guard puts back after a bad step is the same on every rank.
    share_buffers(run.buffers, run.ranks)
    run.keep_buffers()
    layout.zero_grad()
    sums, own = StepSums(run.ranks), run.share.count
    taken: list[Loaded] = []
    # Where fewer ranks than planned share a step, some take one micro-batch less. Sharded layers meet in each, so those
    # ranks fill in with one that they have taken already and that counts for nothing.
    turns = plan.accumulation if layout.is_sharded else own
    for turn in range(turns):
        filler = taken[-1] if turn >= own else None
        loaded = _backward_one(
            run, sums, is_last=turn + 1 == turns, scale=run.precision.scale / expected, filler=filler
        )
        taken += [loaded] if filler is None else []
    meter.enter(COMM)
    # Gradients first: the sums were sent before the last backward and have arrived by now, so that waiting for them
    # costs nothing and every rank learns of a wish to stop in the same step.
    layout.finish_backward()
    sums.wait()
    meter.enter(OPTIMIZER)
    # One look at the device for all that the rest of the step is decided by.
    totals = sums.read(layout.grad_norm())

    # Gradients are of sum / expected. When every sample brought what the plan expects, this factor is exactly one.
    unscale = expected / totals.count / run.precision.scale if totals.count else math.nan
    norm = totals.norm * unscale
    if not math.isfinite(totals.loss) or not math.isfinite(norm):
        return _not_finite(run, totals, taken, start)
    clip = run.config.optimizer.clip
    # Unscaling and clipping are one pass over the gradients. The norm is that of all ranks' whole gradient, so every
    # rank comes to the same factor without asking the others.
    factor = unscale if clip is None or norm <= clip else unscale * clip / (norm + 1e-6)
    if factor != 1.0:
        layout.scale_grads(factor)
    # By samples trained on, not by steps: another batch size or a skipped range does not bend the schedule.
    multiplier = plan.lr_factor * lr_at(count_taken(progress.position, progress.skips), run.schedule)
    for optimizer in run.optimizers:
        optimizer.step(optimizer.group.lr * multiplier, progress.updates)
    # After every group has moved: the average is of whole steps.
    if run.ema is not None:
        run.ema.update()
    run.precision.went_well()
    progress.updates += 1
    run.move_on(taken, start)
    _record(run, meter, totals.loss / totals.count, multiplier, norm)
    return totals


def end_step(run: Run, totals: Totals, before: tuple[int, int]) -> None:
    """Note what the step owes, and save it where that is due."""
    course = run.course
    if run.progress.step <= before[0]:
        # Taken back to before the guard's event, the run is as good as the checkpoint it came from.
        run.guard_events_saved = run.progress.guard_events
    run.progress = policy.end_step(course, run.progress, before=before)
    wishes = {"is_stop_wanted": totals.is_stop_wanted, "is_save_wanted": totals.is_save_wanted}
    how = policy.choose_save(course, run.progress, before=before, **wishes)
    is_saved = how != "no" and run.saved_step != run.progress.step
    if run.last_step is not None:
        is_due = run.last_step.is_due(run.progress.step, is_wanted=totals.is_copy_wanted)
        # Never older than the disk, and never of a time that the guard has taken back.
        if is_due or is_saved or run.progress.step <= before[0]:
            run.meter.enter(SAVE)
            run.last_step.keep(run, is_saved=is_saved)
    if is_saved:
        run.meter.enter(STOPPING if totals.is_stop_wanted else SAVE)
        save(run, is_needed=how == "surely")


def _backward_one(run: Run, sums: StepSums, *, is_last: bool, scale: float, filler: Loaded | None = None) -> Loaded:
    """Take one micro-batch through forward and backward.

    Args:
        filler: taken in place of the next one, and counts for nothing.
    """
    meter = run.meter
    meter.enter(DATA)
    loaded = filler or next(run.batches)
    batch = to_device(loaded.batch, run.ranks.device)
    meter.enter(FORWARD)
    run.layout.begin_micro(is_last=is_last)
    with run.precision.context():
        loss = run.task.loss(run.model, batch)
    if filler is None:
        sums.add(loss)
    if is_last:
        is_copy_wanted = run.last_step is not None and run.ranks.rank == 0 and run.last_step.is_wanted()
        sums.send(is_stop_wanted=run.is_stop_wanted(), is_save_wanted=_is_save_time(run), is_copy_wanted=is_copy_wanted)
    meter.enter(BACKWARD)
    (loss.total * (scale if filler is None else 0.0)).backward()
    return loaded


def _not_finite(run: Run, totals: Totals, taken: list[Loaded], start: int) -> Totals:
    """Tell an fp16 overflow, which only wants a smaller scale, from a number that is really broken."""
    if run.precision.is_scaled and math.isfinite(totals.loss) and run.precision.scale > 1:
        run.precision.overflowed()
        run.move_on(taken, start)
    else:
        guard.answer(run, taken, start, "gradient" if math.isfinite(totals.loss) else "loss")
    return totals


def validate(run: Run) -> None:
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
    is_saved = is_best and run.config.save.keep_best and (run.saved_step != progress.step or run.is_saved_suspect)
    keep_again(run, is_saved=is_saved)
    if is_saved:
        save(run, is_needed=True)
    run.meter.pause()


def keep_again(run: Run, *, is_saved: bool = False) -> None:
    """Where this step is kept in memory, keep it with what it has done since: it need not be validated twice."""
    if run.last_step is not None and run.last_step.has(run.progress.step):
        run.last_step.keep(run, is_saved=is_saved)


def try_out(run: Run) -> None:
    """Let the task use the model as its users will. It may fail; training does not."""
    if run.layout.is_sharded:
        run.progress.owes_trial = False
        return  # a trial calls the model as often as it likes, and sharded layers must be called by all ranks at once
    run.meter.enter(EVAL)
    # It may take the process with it: first what has been saved must be safe on disk.
    run.saver.wait()
    run.ranks.wait_for_first()
    share_buffers(run.buffers, run.ranks)
    with run.ema.applied() if run.ema else nullcontext():
        found = run_trial(run.task, run.model, ranks=run.ranks, precision=run.precision)
    run.progress.owes_trial = False
    set_train_mode(run)
    run.meter.pause()
    if run.ranks.rank == 0 and isinstance(found, BaseException):
        run.reporter.event({"kind": "warning", "code": "engine/trial-failed", "facts": {"why": repr(found)}})
    elif run.ranks.rank == 0 and found is not None:
        run.reporter.event({"kind": "trial", "step": run.progress.step, "measures": found})


def _say_no_trials(run: Run) -> None:
    """Say at the start what would be missed at the end."""
    if run.layout.is_sharded and run.ranks.rank == 0 and type(run.task).trial is not Task.trial:
        facts = {"run": run.events.parent.name}
        run.reporter.event({"kind": "warning", "code": "engine/no-trial-sharded", "facts": facts})


def _record(run: Run, meter: Meter, loss: float, multiplier: float, norm: float) -> None:
    """Write the step down; the rate is that of the first group."""
    progress = run.progress
    lr = run.optimizers[0].group.lr * multiplier
    took, parts = meter.end_step(progress.step, progress.position, loss, lr)
    run.metrics.add(progress.step, progress.position, loss, lr, norm, time.time(), took, *parts, meter.memory_bytes)


def _is_save_time(run: Run) -> bool:
    asked_at, now = run.save_asked_at(), time.monotonic()
    return policy.is_save_time(run.config.save, saved_at=run.saved_at, asked_at=asked_at, now=now)
