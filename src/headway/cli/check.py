"""`headway check`: what this machine offers, and what would stop a run."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import click

from headway.cli.bilingual import command, echo_json, option
from headway.cli.consent import ask_trust
from headway.cli.options import WORDS
from headway.config import LoadedConfig, Recipe, RunConfig
from headway.errors import CheckError
from headway.machine import (
    Finding,
    Level,
    MachineReport,
    find_machine,
    has_devices,
    judge_data,
    mindspore_target,
    read_mindspore,
    try_batch,
    try_mindspore,
    try_ranks,
    with_cpu,
    with_findings,
    with_mindspore,
)
from headway.messages import say
from headway.start.nursery import cpu_of, look_at_cpu
from headway.start.source import load_words
from headway.ui.console_safe import make_console
from headway.ui.terminal.machine import show_machine, show_notes

_MOST_FOLDERS = 200


@command(
    "check",
    help="machine/help",
    context_settings=WORDS,
)
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="[SOURCE] [KEY=VALUE]…")
@option("--out", default=None, type=click.Path(path_type=Path), help="machine/help-out")
@option("--machine", "record", default=None, type=click.Path(path_type=Path), help="machine/help-machine")
@option("--on", "wanted", default=None, help="machine/help-on")
@option("--smoke", is_flag=True, help="machine/help-smoke")
@option("--json", "as_json", is_flag=True, help="machine/help-json")
@click.pass_context
def check(
    context: click.Context,
    words: tuple[str, ...],
    out: Path | None,
    record: Path | None,
    wanted: str | None,
    smoke: bool,
    as_json: bool,
) -> None:
    """See the message `machine/help`."""
    loaded = load_words(words, ask=ask_trust) if words else None
    config = loaded.config if loaded else None
    place = out or Path(config.out if config else "runs")
    size_known = checkpoint_size(place)
    report = find_machine(place, config, record=record, wanted=wanted, deep=True, checkpoint_bytes=size_known)
    more: list[Finding] = []
    is_torch = loaded is None or loaded.framework == "torch"
    if loaded is not None and not is_torch and report.stands_in is None:
        found = read_mindspore(loaded.config.env.python)
        report = with_mindspore(report, found)
        more += (
            [try_mindspore(found, mindspore_target(report, loaded.config.task.device_target))]
            if smoke and report.can_run
            else []
        )
    if loaded is not None and report.stands_in is None:
        more += judge_data(loaded.recipe, loaded.config.task)
    if smoke and is_torch and report.stands_in is None:
        more += try_ranks(report, config.parallel.gpus if config else "auto")
    if smoke and is_torch and loaded is not None and report.stands_in is None and _has_data(loaded.recipe, more):
        more += try_batch(report.framework.python, _stored(loaded.config))
    report = with_findings(report, more)
    if report.stands_in is None:
        report = _with_cpu(report, loaded, smoke)
    if as_json:
        echo_json(report.to_json(), indent=2)
        context.exit(0 if report.can_run else 3)
    if loaded is not None:
        notes: list[tuple[Level, str, Mapping[str, Any]]] = [("warn", code, facts) for code, facts in loaded.warnings]
        show_notes(notes, make_console(stderr=True))
    show_machine(report, make_console())
    stops = sum(finding.level == "stop" for finding in report.findings)
    if stops:
        raise CheckError("machine/stopped", num=stops)
    if report.stands_in is None:
        click.echo(say("machine/ready"))
    else:
        where = f"--on {wanted}" if wanted else f"--machine {shlex.quote(str(record))}"
        click.echo(say("machine/ready-other", source=report.stands_in, place=where))


def _with_cpu(report: MachineReport, loaded: LoadedConfig | None, smoke: bool) -> MachineReport:
    """Return the report with what the CPU computes, where a run would compute on it."""
    if loaded is not None:
        return with_cpu(report, cpu_of(loaded, _tell, is_asked=smoke), loaded.config.train.precision, is_asked=smoke)
    if has_devices() or report.framework.torch is None:
        return report
    return with_cpu(report, look_at_cpu(None, "torch", _tell, is_asked=smoke), is_asked=smoke)


def _tell(text: str) -> None:
    click.echo(text, err=True)


def _has_data(recipe: Recipe, found: Iterable[Finding]) -> bool:
    """Whether there is data to take a batch from: data that the start will prepare is not there yet."""
    codes = {finding.code for finding in found if finding.level == "stop" or finding.code == "machine/data-ready"}
    return codes == {"machine/data-ready"} or (not codes and recipe.train_samples is None)


def _stored(config: RunConfig) -> dict[str, Any]:
    """Return the config as a run keeps it; the precision is the plan's, and no data depends on it."""
    precision = "fp32" if config.train.precision == "auto" else config.train.precision
    return {"recipe": config.recipe, "config": config.model_dump(mode="json"), "plan": {"precision": precision}}


def checkpoint_size(out: Path) -> int | None:
    """Return the size of the newest checkpoint below a folder of runs: the class of what will be written next."""
    folders = sorted(out.glob("*/checkpoints/step-*"), key=lambda folder: folder.name[-12:])[-_MOST_FOLDERS:]
    newest = max(folders, key=lambda folder: folder.stat().st_mtime, default=None)
    if newest is None:
        return None
    return sum(file.stat().st_size for file in newest.rglob("*") if file.is_file()) or None
