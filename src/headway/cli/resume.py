"""`headway resume`: go on with a run, on this machine, with these devices."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import click
from rich.console import Console

from headway.checkpoint import list_checkpoints
from headway.cli.go import describe_command, detach_run, nursery_for, supervise
from headway.cli.main import apply_config_language
from headway.cli.shape import command, option
from headway.cli.train import check_and_plan, prepare_data, write_decisions
from headway.config import LoadedConfig, load_config
from headway.errors import UsageError
from headway.messages import say
from headway.plan import Plan
from headway.recipes import find_recipe
from headway.telemetry import EventLog, RunDir, find_run, read_json


@command(
    "resume",
    help="cli/resume-help",
    context_settings={"ignore_unknown_options": True, "help_option_names": ["-h", "--help"]},
)
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="[RUN] [KEY=VALUE]…")
@option("--detach", is_flag=True, help="cli/option-detach")
@option("--dry-run", is_flag=True, help="cli/option-dry-run")
@option("--out", default="runs", type=click.Path(path_type=Path), help="cli/option-out")
def resume(words: tuple[str, ...], detach: bool, dry_run: bool, out: Path) -> int:
    """See the message `cli/resume-help`."""
    name = words[0] if words and "=" not in words[0] and not words[0].startswith("-") else None
    run = find_run(name, out)
    loaded = reload(run, words[1:] if name else words)
    console = Console(stderr=True, highlight=False)
    nursery = None if dry_run or detach else nursery_for(loaded)
    try:
        prepare_data(loaded, console)
        machine, plan = check_and_plan(loaded, console, Plan.from_json(read_json(run.plan)))
        saved = [info.step for info in list_checkpoints(run.checkpoints)]
        done = max(saved, default=0)
        if done >= plan.total_steps:
            raise UsageError("cli/resume-done", run=run.name, step=done, total=plan.total_steps, more=2 * done)
        if dry_run:
            return 0
        _record_changes(run, loaded)
        write_decisions(run, loaded, machine, plan)
        console.print(say("console/run-resumed", run=run.root, step=done), style="dim")
        if nursery is None:
            return detach_run(run)
        return supervise(run, nursery, sys.stderr)
    finally:
        if nursery is not None:
            nursery.close()


def reload(run: RunDir, overrides: Sequence[str]) -> LoadedConfig:
    """Return the run's own config with the values changed."""
    loaded = load_config(run.config, recipe=find_recipe, overrides=list(overrides), environ=None)
    apply_config_language(loaded.config.lang)
    return loaded


def _record_changes(run: RunDir, loaded: LoadedConfig) -> None:
    """Write down what is different from before: no value changes without a record."""
    before, now = read_json(run.job)["config"], loaded.config.model_dump(mode="json")
    changes = {key: [old, new] for key, (old, new) in _differences(before, now).items()}
    log = EventLog(run.events)
    log.append("run_resumed", command=describe_command()["argv"], changes=changes)
    log.close()


def _differences(before: object, now: object, key: str = "") -> dict[str, tuple[object, object]]:
    if not isinstance(before, dict) or not isinstance(now, dict):
        return {} if before == now else {key: (before, now)}
    found: dict[str, tuple[object, object]] = {}
    for name in sorted({*before, *now}):
        found.update(_differences(before.get(name), now.get(name), f"{key}.{name}".lstrip(".")))
    return found
