"""`headway ckpt`: list, verify, export, import and prune checkpoints."""

from __future__ import annotations

import contextlib
import errno
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, Literal

import click

from headway.checkpoint import (
    CheckpointInfo,
    Manifest,
    best_there,
    export_ckpt,
    export_folder,
    export_pt,
    export_safetensors,
    export_upstream,
    find_leftovers,
    find_resumable,
    list_checkpoints,
    plan_export,
    plan_prune,
    prune,
    read_manifest,
    sweep,
    verify_checkpoint,
)
from headway.cli.bilingual import echo_json, group, option
from headway.cli.ckpt_fetch import fetch_command
from headway.cli.ckpt_import import import_command
from headway.config import SaveConfig
from headway.errors import CheckpointError, UsageError
from headway.launch import Lease
from headway.messages import say
from headway.task import find_recipe
from headway.telemetry import (
    RunDir,
    find_run,
    held_validations,
    is_supervised,
    number,
    read_events,
    read_record,
    refuse_links,
    run_state,
    section,
)
from headway.ui.console_safe import make_console
from headway.ui.terminal.checkpoints import render_checkpoints
from headway.units import size
from headway.weights import Upstream

_ANY_ATTEMPT: Final = sys.maxsize
_RUN = click.argument("run", required=False, metavar="[RUN]")
_RUNS = option(
    "--runs", "--out", "runs", default="runs", type=click.Path(path_type=Path), help="checkpoint/option-runs"
)
_EXPORT_RUNS = option("--runs", "runs", default="runs", type=click.Path(path_type=Path), help="checkpoint/option-runs")
"""Here --out is the older name of --to."""
_STEP = option("--step", type=click.IntRange(min=0), help="checkpoint/option-step")
_JSON = option("--json", "as_json", is_flag=True, help="checkpoint/option-json")
_DRY = option("--dry-run", is_flag=True, help="checkpoint/option-dry-run")


@group("ckpt", help="checkpoint/help")
def ckpt() -> None:
    """See the message `checkpoint/help`."""


ckpt.add_command(import_command)
ckpt.add_command(fetch_command)


@ckpt.command("list", help="checkpoint/help-list")
@_RUN
@_RUNS
@_JSON
def list_command(run: str | None, runs: Path, as_json: bool) -> None:
    """See the message `checkpoint/help-list`."""
    place = find_run(run, runs)
    rows = [_describe(info, read_manifest) for info in list_checkpoints(place.checkpoints)]
    best = _best_step(place, next((row["best_step"] for row in reversed(rows) if row["error"] is None), None))
    for row in rows:
        row["is_best"] = best is not None and row["step"] == best
    if as_json:
        _print_json("checkpoints/1", run=place.name, checkpoints=rows)
        return
    if not rows:
        raise CheckpointError("checkpoint/none", path=place.checkpoints)
    make_console().print(render_checkpoints(rows))


@ckpt.command("verify", help="checkpoint/help-verify")
@_RUN
@_RUNS
@_STEP
@_JSON
@click.pass_context
def verify_command(context: click.Context, run: str | None, runs: Path, step: int | None, as_json: bool) -> None:
    """See the message `checkpoint/help-verify`."""
    place = find_run(run, runs)
    infos = _choose(place, step)
    rows = []
    for info in infos:
        row = _describe(info, verify_checkpoint)
        rows.append(row)
        if not as_json:
            what = "checkpoint/row-whole" if row["error"] is None else "checkpoint/row-broken"
            click.echo(say(what, name=info.path.name, size=size(row["bytes"]), why=row["error"]))
    broken = sum(row["error"] is not None for row in rows)
    if as_json:
        _print_json("verify/1", run=place.name, num_broken=broken, checkpoints=rows)
        context.exit(CheckpointError.exit_code if broken else 0)
    if broken:
        raise CheckpointError("checkpoint/some-broken", num=broken, total=len(rows), path=place.checkpoints)
    click.echo(say("checkpoint/next-resume", run=place.name), err=True)


@ckpt.command("export", help="checkpoint/help-export")
@_RUN
@_EXPORT_RUNS
@_STEP
@option(
    "--format",
    "form",
    type=click.Choice(["safetensors", "pt", "folder", "ckpt", "upstream"]),
    default="safetensors",
    help="checkpoint/option-format",
)
@option("--select", type=click.Choice(["model", "ema"]), default="model", help="checkpoint/option-select")
@option("--to", "--out", "out", type=click.Path(path_type=Path), help="checkpoint/option-out")
@_DRY
@_JSON
def export_command(
    run: str | None,
    runs: Path,
    step: int | None,
    form: Literal["safetensors", "pt", "folder", "ckpt", "upstream"],
    select: Literal["model", "ema"],
    out: Path | None,
    dry_run: bool,
    as_json: bool,
) -> None:
    """See the message `checkpoint/help-export`."""
    place = find_run(run, runs)
    path = _choose(place, step)[-1].path if step is not None else _newest_whole(place)
    out = out or _default_out(place, path, form, select)
    refuse_links(place.root, out)
    if form == "upstream":
        upstream, measures = _upstream_of(place), _measured(place, path)
        done = export_upstream(path, out, upstream=upstream, select=select, measures=measures, dry_run=dry_run)
    elif dry_run:
        done = plan_export(path, out, select=select, form=form)
    elif form == "pt":
        done = export_pt(path, out, select=select, measures=_measured(place, path))
    elif form == "folder":
        done = export_folder(path, out, measures=_measured(place, path))
    elif form == "ckpt":
        done = export_ckpt(path, out, select=select)
    else:
        done = export_safetensors(path, out, select=select)
    files = [str(file) for file in done.files]
    if as_json:
        facts = {"step": done.step, "files": files, "num_tensors": done.num_tensors, "bytes": done.bytes}
        _print_json("export/1", dry_run=dry_run, source=str(done.source), **facts)
        return
    what = "checkpoint/would-export" if dry_run else "checkpoint/exported"
    click.echo(say(what, files=", ".join(files), num=done.num_tensors, step=done.step, size=size(done.bytes)))


@ckpt.command("prune", help="checkpoint/help-prune")
@_RUN
@_RUNS
@option("--keep-last", type=click.IntRange(min=1), help="checkpoint/option-keep-last")
@option("--keep-every", type=click.IntRange(min=1), help="checkpoint/option-keep-every")
@option("--yes", is_flag=True, help="checkpoint/option-yes")
@_DRY
@_JSON
def prune_command(
    run: str | None,
    runs: Path,
    keep_last: int | None,
    keep_every: int | None,
    yes: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """See the message `checkpoint/help-prune`."""
    place = find_run(run, runs)
    if not dry_run and is_supervised(place):
        raise UsageError("checkpoint/run-is-live", run=place.name)
    with contextlib.nullcontext() if dry_run else _alone(place):
        infos = list_checkpoints(place.checkpoints)
        gone = _plan(place, infos, keep_last=keep_last, keep_every=keep_every)
        leftovers = find_leftovers(place.checkpoints, _ANY_ATTEMPT)
        rows = [{"path": str(path), "bytes": _bytes_of(path)} for path in (*gone, *leftovers)]
        if not dry_run:
            if gone and not yes and not as_json and sys.stdin.isatty():
                click.confirm(say("checkpoint/ask-prune", num=len(gone)), abort=True, err=True)
            prune(place.checkpoints, gone)
            sweep(place.checkpoints, _ANY_ATTEMPT)
    if as_json:
        _print_json("prune/1", run=place.name, dry_run=dry_run, removed=rows, num_kept=len(infos) - len(gone))
        return
    for row in rows:
        what = "checkpoint/would-prune" if dry_run else "checkpoint/pruned"
        click.echo(say(what, name=Path(str(row["path"])).name, size=size(_whole(row["bytes"]))))
    if not rows:
        click.echo(say("checkpoint/nothing-to-prune", num=len(infos)))


@contextlib.contextmanager
def _alone(place: RunDir) -> Iterator[None]:
    """Hold the run: one that is resumed meanwhile would lose what it is just saving."""
    try:
        lease = Lease(place)
    except OSError as err:
        if err.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        # No room for the lock: then nobody else can take it either, and room is what pruning makes.
        yield
        return
    try:
        yield
    finally:
        lease.release()


def _choose(place: RunDir, step: int | None) -> list[CheckpointInfo]:
    """Return the checkpoints a command is about; none at all is an error."""
    infos = list_checkpoints(place.checkpoints)
    if not infos:
        raise CheckpointError("checkpoint/none", path=place.checkpoints)
    if step is None:
        return infos
    chosen = [info for info in infos if info.step == step]
    if not chosen:
        steps = ", ".join(str(info.step) for info in infos[-10:])
        raise UsageError("checkpoint/no-such-step", step=step, path=place.checkpoints, steps=steps)
    return chosen


def _newest_whole(place: RunDir) -> Path:
    found = find_resumable(place.checkpoints)
    for path, why in found.skipped:
        click.echo(say("checkpoint/row-broken", name=path.name, why=why.text()), err=True)
    if found.path is not None:
        return found.path
    code = "checkpoint/none-whole" if found.skipped else "checkpoint/none"
    raise CheckpointError(code, path=place.checkpoints, num=len(found.skipped))


def _plan(place: RunDir, infos: list[CheckpointInfo], *, keep_last: int | None, keep_every: int | None) -> list[Path]:
    """Return what may go: the newest whole checkpoint is found by reading it, never by its name."""
    found = find_resumable(place.checkpoints)
    broken = {path for path, _ in found.skipped}
    if found.manifest is None:
        return []
    known = [
        replace(info, is_verified=True if info.path == found.path else False if info.path in broken else None)
        for info in infos
    ]
    config = read_record(place.job).get("config")
    asked = config.get("save") if isinstance(config, dict) else None
    save = SaveConfig.model_validate(asked) if isinstance(asked, dict) else SaveConfig()
    return plan_prune(
        known,
        keep_last=keep_last or save.keep_last,
        keep_every=keep_every or save.keep_every,
        best_step=best_there(known, _best_steps(place, found.manifest)) if save.keep_best else None,
    )


def _measured(place: RunDir, path: Path) -> dict[str, float]:
    """Return what the validation of a checkpoint's step found."""
    step = next(info.step for info in list_checkpoints(place.checkpoints) if info.path == path)
    found = [event for event in held_validations(read_events(place.events)) if event["step"] == step]
    return {str(name): number(value) for name, value in section(found[-1].get("measures")).items()} if found else {}


def _best_step(place: RunDir, saved: int | None) -> int | None:
    """Return the step with the best validation: from the run's history, which knows more than the last manifest did."""
    best = run_state(place).best
    return saved if best is None else best.step


def _best_steps(place: RunDir, newest: Manifest) -> list[int | None]:
    """Return the steps that are or were the best, best first: the best one itself may not have been saved."""
    progress = newest.meta.get("progress")
    older = progress.get("older_bests") if isinstance(progress, dict) else None
    steps = [step for step in older if isinstance(step, int)] if isinstance(older, list) else []
    return [_best_step(place, newest.best_step), newest.best_step, *steps]


def _default_out(place: RunDir, path: Path, form: str, select: str) -> Path:
    folder = place.root / "export"
    return folder if form in ("pt", "folder", "upstream") else folder / f"{select}-{path.name}.{form}"


def _upstream_of(place: RunDir) -> Upstream:
    """Return how the system that a run's recipe comes from keeps weights."""
    name = str(read_record(place.job).get("recipe"))
    upstream = find_recipe(name).upstream
    if upstream is None:
        raise UsageError("checkpoint/no-upstream", recipe=name)
    return upstream


def _describe(info: CheckpointInfo, read: Any) -> dict[str, Any]:  # Any: read_manifest or verify_checkpoint
    """Return one checkpoint as JSON facts; what is wrong with it is under `error`."""
    row: dict[str, Any] = {"step": info.step, "path": str(info.path)}
    try:
        manifest: Manifest = read(info.path)
    except CheckpointError as err:
        absent = dict.fromkeys(("bytes", "world_size", "time", "samples", "measures", "suspect", "best_step"))
        return {**row, **absent, "error": err.text(), "code": err.code}
    return {
        **row,
        "bytes": manifest.total_bytes,
        "world_size": manifest.world_size,
        "time": manifest.time,
        "samples": manifest.samples,
        "measures": dict(manifest.measures),
        "suspect": manifest.suspect,
        "best_step": manifest.best_step,
        "error": None,
        "code": None,
    }


def _bytes_of(path: Path) -> int | None:
    if path.is_symlink() or not path.is_dir():
        return None
    return sum(file.lstat().st_size for file in path.iterdir())


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) else None


def _print_json(schema: str, **facts: object) -> None:
    echo_json({"schema": schema, **facts}, indent=2)
