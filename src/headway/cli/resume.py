"""`headway resume`: go on with a run, on this machine, with these devices."""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click
from rich.console import Console

from headway.checkpoint import (
    Manifest,
    copy_checkpoint,
    find_likely,
    find_resumable,
    list_checkpoints,
    read_manifest,
    refuse_lost,
)
from headway.cli.bilingual import command, option
from headway.cli.consent import check_python, recipe_finder
from headway.cli.go import describe_command, detach_run, nursery_for, supervise
from headway.cli.main import apply_config_language
from headway.cli.train import check_and_plan, prepare_data, write_decisions
from headway.config import LoadedConfig, load_config
from headway.errors import UsageError
from headway.launch import Lease, Nursery, refuse_held
from headway.machine import MachineReport
from headway.messages import say
from headway.planner import Plan, Standing
from headway.task import find_recipe
from headway.telemetry import (
    EventLog,
    RunDir,
    find_run,
    last_end,
    make_lease,
    new_run_dir,
    read_events,
    read_record,
    require_record,
)
from headway.ui.console_safe import make_console
from headway.ui.output import unblocked

_RECORDED: Final = (
    "world_size",
    "device",
    "strategy",
    "precision",
    "micro_batch",
    "accumulation",
    "batch_samples",
    "total_samples",
    "total_steps",
    "lr_factor",
    "warmup_samples",
)
"""What a plan decides about the training itself."""


@command(
    "resume",
    help="cli/resume-help",
    context_settings={"ignore_unknown_options": True, "help_option_names": ["-h", "--help"]},
)
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="[RUN] [KEY=VALUE]…")
@option("--detach", is_flag=True, help="cli/option-detach")
@option("--dry-run", is_flag=True, help="cli/option-dry-run")
@option("--trace/--no-trace", default=None, help="cli/option-trace")
@option("--step", type=click.IntRange(min=1), help="cli/option-fork-step")
@option("--from-scratch", is_flag=True, help="cli/option-from-scratch")
@option("--runs", "--out", "out", default="runs", type=click.Path(path_type=Path), help="cli/option-out")
@unblocked
def resume(
    words: tuple[str, ...],
    detach: bool,
    dry_run: bool,
    trace: bool | None,
    step: int | None,
    from_scratch: bool,
    out: Path,
) -> int:
    """See the message `cli/resume-help`."""
    name = words[0] if words and "=" not in words[0] and not words[0].startswith("-") else None
    run = find_run(name, out)
    refuse_foreign(run)
    if from_scratch and step is not None:
        raise UsageError("cli/scratch-or-step", step=step)
    asked = _Asked(words=words[1:] if name else words, step=step, from_scratch=from_scratch, trace=trace)
    if dry_run:
        refuse_held(run)
        _decide(run, asked, make_console(stderr=True))
        return 0
    # Whatever follows reads and writes the run's directory: nobody else may, from here to the end of the run.
    lease = Lease(run)
    try:
        return _resume(run, lease, asked, is_detached=detach)
    finally:
        lease.release()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """What the user has typed."""

    words: Sequence[str]
    """`key=value` words."""
    step: int | None
    """Fork at this checkpoint."""
    from_scratch: bool
    trace: bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Decided:
    """How a run continues."""

    loaded: LoadedConfig
    machine: MachineReport
    plan: Plan
    done: Standing
    checkpoint: Path | None
    """The one it continues from; none: it has not saved one."""


def _resume(run: RunDir, lease: Lease, asked: _Asked, *, is_detached: bool) -> int:
    """Decide how the run continues, write that down, and supervise it to its end."""
    console = make_console(stderr=True)
    nursery: Nursery | None = None

    def begin(loaded: LoadedConfig) -> None:
        nonlocal nursery
        nursery = None if is_detached else nursery_for(loaded)

    fork: Lease | None = None
    try:
        decided = _decide(run, asked, console, begin=begin)
        if asked.step is not None:
            assert decided.checkpoint is not None
            run = _fork(run, decided.checkpoint)
            lease.release()
            lease = fork = Lease(run)
        lease.prove()
        _record_changes(run, decided, from_scratch=asked.from_scratch)
        write_decisions(run, decided.loaded, decided.machine, decided.plan)
        code = "console/run-resumed" if decided.done.step else "console/run-restarted"
        console.print(say(code, run=run.root, step=decided.done.step), style="dim")
        if nursery is None:
            return detach_run(run, lease)
        return supervise(run, nursery, sys.stderr, lease=lease)
    finally:
        if nursery is not None:
            nursery.close()
        if fork is not None:
            fork.release()


def _decide(
    run: RunDir,
    asked: _Asked,
    console: Console,
    *,
    begin: Callable[[LoadedConfig], None] | None = None,
) -> _Decided:
    """Return how the run continues, or refuse; nothing is written.

    Args:
        begin: called with the config as soon as it is known: the framework is imported while the rest is decided.
    """
    step = asked.step
    saved = {info.step: info.path for info in list_checkpoints(run.checkpoints)}
    if step is not None and step not in saved:
        known = ", ".join(map(str, saved)) or "n/a"
        raise UsageError("cli/no-such-step", run=run.name, step=step, known=known)
    loaded = reload(run, asked.words)
    _refuse_fixed(run, loaded)
    checkpoint, done = _standing(run, saved, asked)
    if begin is not None:
        begin(loaded)
    prepare_data(loaded, console)
    before = require_record(run.plan, Plan.from_json)
    _, machine, plan = check_and_plan(loaded, console, before, done, trace=asked.trace)
    if done.step >= plan.total_steps and (step is not None or _has_ended_well(run)):
        proven = done if step is not None else _proven(run)
        if proven.step >= plan.total_steps:
            more = 2 * proven.step
            raise UsageError("cli/resume-done", run=run.name, step=proven.step, total=plan.total_steps, more=more)
        # The final checkpoint is damaged: what is left is planned from the newest intact one.
        done = proven
        _, machine, plan = check_and_plan(loaded, console, before, done, trace=asked.trace)
    return _Decided(loaded=loaded, machine=machine, plan=plan, done=done, checkpoint=checkpoint)


def _standing(run: RunDir, saved: Mapping[int, Path], asked: _Asked) -> tuple[Path | None, Standing]:
    """Return the checkpoint to continue from and what the run had done by then.

    Without a step it is the newest one that looks intact; the ranks read every byte and have the last word.
    """
    if asked.step is not None:
        path = saved[asked.step]
        return path, _done_by(read_manifest(path))
    found = find_resumable(run.checkpoints) if asked.from_scratch else find_likely(run.checkpoints)
    if asked.from_scratch and found.manifest is not None:
        raise UsageError("cli/scratch-not-needed", run=run.name, step=found.manifest.step)
    if not asked.from_scratch:
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


def _fork(run: RunDir, checkpoint: Path) -> RunDir:
    """Begin a new run at an older checkpoint; what the old run did after it stays as it is."""
    _, _, name = run.name.partition("_")
    fork = new_run_dir(run.root.parent, name.rpartition("_")[0] or name)
    copy_checkpoint(checkpoint, fork.checkpoints)
    for path in (run.config, run.job, run.plan):
        shutil.copyfile(path, fork.root / path.name)
    log = EventLog(fork.events)
    log.append("run_started", command=describe_command()["argv"], parent=run.name, checkpoint=checkpoint.name)
    log.close()
    return fork


def refuse_foreign(run: RunDir) -> None:
    """Refuse a line that is not ours: nothing of it is saved."""
    if read_record(run.job).get("kind") == "foreign":
        raise UsageError("run/no-resume", run=run.name)


def reload(run: RunDir, overrides: Sequence[str], *, is_started: bool = False) -> LoadedConfig:
    """Return the run's own config, in the layers it was made of, with the values changed.

    Args:
        is_started: another command of this user has begun the run and was allowed to.
    """
    refuse_foreign(run)
    # Runs of earlier versions and damaged ones have no origins: all their values then count as written in one file.
    stored = {key: origin for key, origin in read_record(run.origins).items() if isinstance(origin, str)} or None
    finder = find_recipe if is_started else recipe_finder(overrides)
    loaded = load_config(run.config, recipe=finder, overrides=list(overrides), environ=None, stored=stored)
    apply_config_language(loaded.config.lang)
    if not is_started:
        check_python(loaded, overrides)
    return loaded


def _record_changes(run: RunDir, decided: _Decided, *, from_scratch: bool) -> None:
    """Write down what is different from before: no value changes without a record."""
    before = require_record(run.job, lambda job: dict(job["config"]))
    now = decided.loaded.config.model_dump(mode="json")
    changes = {key: [old, new] for key, (old, new) in _differences(before, now).items()}
    planned, plan = require_record(run.plan, dict), decided.plan.to_json()
    changes |= {f"plan.{key}": [planned.get(key), plan[key]] for key in _RECORDED if planned.get(key) != plan[key]}
    log = EventLog(run.events)
    told = {"from_scratch": True} if from_scratch else {}
    log.append("run_resumed", command=describe_command()["argv"], changes=changes, starter=make_lease(), **told)
    log.close()


def _differences(before: object, now: object, key: str = "") -> dict[str, tuple[object, object]]:
    if not isinstance(before, dict) or not isinstance(now, dict):
        return {} if before == now else {key: (before, now)}
    found: dict[str, tuple[object, object]] = {}
    for name in sorted({*before, *now}):
        found.update(_differences(before.get(name), now.get(name), f"{key}.{name}".lstrip(".")))
    return found
