"""How a run continues: from which checkpoint, with which settings, on this machine."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from headway.checkpoint import Manifest, find_likely, find_resumable, list_checkpoints, read_manifest, refuse_lost
from headway.config import LoadedConfig
from headway.errors import UsageError
from headway.launch import Claims
from headway.planner import Plan, Standing
from headway.start.consent import Ask
from headway.start.decide import Decision, Screen, decide
from headway.start.nodes import Assembly
from headway.start.source import reload
from headway.telemetry import RunDir, last_end, read_events, require_record


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeWish:
    """What is asked for."""

    words: Sequence[str] = ()
    """`key=value` words."""
    step: int | None = None
    """Fork at this checkpoint."""
    from_scratch: bool = False
    trace: bool | None = None


def decide_resume(
    run: RunDir,
    wish: ResumeWish,
    screen: Screen,
    claims: Claims,
    *,
    is_dry: bool = False,
    begin: Callable[[LoadedConfig], None] | None = None,
    ask: Ask | None = None,
    nodes: Assembly | None = None,
) -> Decision:
    """Return how the run continues, or refuse; nothing is written.

    Args:
        claims: takes the GPUs of the plan.
        is_dry: nothing is to start, so nothing is claimed.
        begin: called with the config as soon as it is known: the framework is imported while the rest is decided.
        ask: how to ask about code that only a file names; none: nobody can answer.
        nodes: the others that take part; none: this one alone.
    """
    step = wish.step
    if wish.from_scratch and step is not None:
        raise UsageError("cli/scratch-or-step", step=step)
    saved = {info.step: info.path for info in list_checkpoints(run.checkpoints)}
    if step is not None and step not in saved:
        known = ", ".join(map(str, saved)) or "n/a"
        raise UsageError("cli/no-such-step", run=run.name, step=step, known=known)
    loaded = reload(run, wish.words, ask=ask)
    _refuse_fixed(run, loaded)
    checkpoint, done = _standing(run, saved, wish)
    if begin is not None:
        begin(loaded)
    before = require_record(run.plan, Plan.from_json)
    decide_from = partial(decide, loaded, screen, claims, is_dry=is_dry, trace=wish.trace, before=before, nodes=nodes)
    decision = decide_from(done=done)
    assert decision.plan is not None
    total = decision.plan.total_steps
    # All steps taken is not finished: a run that was ended in its last validation or trial still owes it.
    if done.step >= total and _has_ended_well(run):
        proven = done if step is not None else _proven(run)
        if proven.step >= total:
            raise UsageError("cli/resume-done", run=run.name, step=proven.step, total=total, more=2 * proven.step)
        # The final checkpoint is damaged: what is left is planned from the newest intact one.
        claims.release("gpu-")
        decision = decide_from(done=proven)
    return replace(decision, checkpoint=checkpoint)


def _standing(run: RunDir, saved: Mapping[int, Path], wish: ResumeWish) -> tuple[Path | None, Standing]:
    """Return the checkpoint to continue from and what the run had done by then.

    Without a step it is the newest one that looks intact; the ranks read every byte and have the last word.
    """
    if wish.step is not None:
        path = saved[wish.step]
        return path, _done_by(read_manifest(path))
    found = find_resumable(run.checkpoints) if wish.from_scratch else find_likely(run.checkpoints)
    if wish.from_scratch and found.manifest is not None:
        raise UsageError("cli/scratch-not-needed", run=run.name, step=found.manifest.step)
    if not wish.from_scratch:
        refuse_lost(found, run.checkpoints, read_events(run.events))
    return found.path, _done_by(found.manifest)


def _proven(run: RunDir) -> Standing:
    """Return what the newest intact checkpoint holds: a finished run is finished only if its end is."""
    found = find_resumable(run.checkpoints)
    refuse_lost(found, run.checkpoints, read_events(run.events))
    return _done_by(found.manifest)


def _done_by(manifest: Manifest | None) -> Standing:
    if manifest is None:
        return Standing()
    return Standing(step=manifest.step, samples=manifest.meta.get("trained", manifest.samples))


def _refuse_fixed(run: RunDir, loaded: LoadedConfig) -> None:
    """Refuse another value of what a run is made from: its past would not fit its future."""
    stored = require_record(run.job, lambda job: dict(job["config"]))
    for key in ("seed", "recipe", "preset"):
        before, now = stored.get(key), getattr(loaded.config, key)
        if before != now:
            recipe = loaded.config.recipe
            typed = f"headway train {shlex.quote(recipe)} {key}={now}" if key != "recipe" else f"headway train {recipe}"
            raise UsageError("cli/resume-fixed", run=run.name, key=key, before=before, now=now, typed=typed)


def _has_ended_well(run: RunDir) -> bool:
    """Tell a finished run from one that has all its steps, but was stopped or killed before its last validation."""
    end = last_end(read_events(run.events))
    return end is not None and end.get("state") == "done"
