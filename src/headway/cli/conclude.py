"""The hidden command behind the end of a run: learn from it and write its report, in a process of its own."""

from __future__ import annotations

import contextlib
import math
from pathlib import Path

import click

from headway.cli.bilingual import argument, command, echo_json
from headway.diagnosis import CAPSULE_NAME, write_capsule
from headway.errors import UsageError
from headway.launch import read_job
from headway.start.learn import learn_from
from headway.telemetry import RunDir, collect_left, read_record, run_state, section
from headway.ui.report import find_gains, gather, write_facts


@command("conclude", help="report/help", hidden=True)
@argument("root", type=click.Path(exists=True, path_type=Path))
def conclude(root: Path) -> None:
    """Print how the best measure compares with each baseline."""
    run = RunDir(root)
    _collect_written(run)
    facts = gather(run)
    write_facts(facts, run.report)
    gains = [one for one in find_gains(facts) if math.isfinite(one.share)]
    if facts.state.state == "failed":
        _keep_black_box(run)
    told = [{"baseline": one.name, "value": one.baseline.value, "share": one.share} for one in gains]
    echo_json({"schema": "conclude/1", "gains": told})
    try:
        if read_job(run).foreign is None:
            learn_from(run)
    except UsageError as err:  # a record that is damaged: the report is written, and the next plan knows no more
        click.echo(err.text(), err=True)


def _collect_written(run: RunDir) -> None:
    """Take what a script has written into event files; one that cannot be read takes nothing from the report."""
    job = read_record(run.job)
    cwd = section(job.get("foreign")).get("cwd")
    if job.get("kind") != "foreign" or not isinstance(cwd, str):
        return
    with contextlib.suppress(OSError):
        collect_left(run, Path(cwd), run_state(run).started or math.inf)


def _keep_black_box(run: RunDir) -> None:
    """Write it beside the report; a disk that is full has cost enough already."""
    try:
        write_capsule(run, run.root / CAPSULE_NAME)
    except OSError as err:
        click.echo(f"{run.root / CAPSULE_NAME}: {err.strerror or err}", err=True)
