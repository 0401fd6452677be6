"""`headway resume`: go on with a run, on this machine, with these devices."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from headway.checkpoint import copy_checkpoint, list_checkpoints
from headway.cli.consent import check_python, recipe_finder
from headway.cli.go import describe_command, detach_run, nursery_for, supervise
from headway.cli.main import apply_config_language
from headway.cli.shape import command, option
from headway.cli.train import check_and_plan, prepare_data, write_decisions
from headway.config import LoadedConfig, load_config
from headway.errors import UsageError
from headway.launch import refuse_held
from headway.messages import say
from headway.plan import Plan
from headway.recipes import find_recipe
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
@option("--runs", "--out", "out", default="runs", type=click.Path(path_type=Path), help="cli/option-out")
@unblocked
def resume(words: tuple[str, ...], detach: bool, dry_run: bool, trace: bool | None, step: int | None, out: Path) -> int:
    """See the message `cli/resume-help`."""
    name = words[0] if words and "=" not in words[0] and not words[0].startswith("-") else None
    run = find_run(name, out)
    refuse_held(run)
    saved = {info.step: info.path for info in list_checkpoints(run.checkpoints)}
    if step is not None and step not in saved:
        known = ", ".join(map(str, saved)) or "n/a"
        raise UsageError("cli/no-such-step", run=run.name, step=step, known=known)
    loaded = reload(run, words[1:] if name else words)
    console = make_console(stderr=True)
    nursery = None if dry_run or detach else nursery_for(loaded)
    try:
        prepare_data(loaded, console)
        _, machine, plan = check_and_plan(loaded, console, require_record(run.plan, Plan.from_json), trace=trace)
        done = step or max(saved, default=0)
        if done >= plan.total_steps and (step is not None or _has_ended_well(run)):
            raise UsageError("cli/resume-done", run=run.name, step=done, total=plan.total_steps, more=2 * done)
        if dry_run:
            return 0
        if step is not None:
            run = _fork(run, saved[step])
        _record_changes(run, loaded)
        write_decisions(run, loaded, machine, plan)
        console.print(say("console/run-resumed", run=run.root, step=done), style="dim")
        if nursery is None:
            return detach_run(run)
        return supervise(run, nursery, sys.stderr)
    finally:
        if nursery is not None:
            nursery.close()


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


def reload(run: RunDir, overrides: Sequence[str], *, is_started: bool = False) -> LoadedConfig:
    """Return the run's own config with the values changed.

    Args:
        is_started: another command of this user has begun the run and was allowed to.
    """
    if read_record(run.job).get("kind") == "foreign":
        raise UsageError("run/no-resume", run=run.name)
    finder = find_recipe if is_started else recipe_finder(overrides)
    loaded = load_config(run.config, recipe=finder, overrides=list(overrides), environ=None)
    apply_config_language(loaded.config.lang)
    if not is_started:
        check_python(loaded, overrides)
    return loaded


def _record_changes(run: RunDir, loaded: LoadedConfig) -> None:
    """Write down what is different from before: no value changes without a record."""
    before, now = require_record(run.job, lambda job: dict(job["config"])), loaded.config.model_dump(mode="json")
    changes = {key: [old, new] for key, (old, new) in _differences(before, now).items()}
    log = EventLog(run.events)
    log.append("run_resumed", command=describe_command()["argv"], changes=changes, starter=make_lease())
    log.close()


def _differences(before: object, now: object, key: str = "") -> dict[str, tuple[object, object]]:
    if not isinstance(before, dict) or not isinstance(now, dict):
        return {} if before == now else {key: (before, now)}
    found: dict[str, tuple[object, object]] = {}
    for name in sorted({*before, *now}):
        found.update(_differences(before.get(name), now.get(name), f"{key}.{name}".lstrip(".")))
    return found
