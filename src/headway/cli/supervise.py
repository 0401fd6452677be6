"""The hidden command behind `--detach`: supervise a prepared run in this session."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from headway.cli.go import nursery_for
from headway.cli.go import supervise as supervise_run
from headway.cli.resume import reload
from headway.cli.shape import argument, command
from headway.telemetry import RunDir
from headway.ui.output import unblocked


@command("supervise", help="cli/line-train", hidden=True)
@argument("root", type=click.Path(exists=True, path_type=Path))
@unblocked
def supervise(root: Path) -> int:
    """Supervise a prepared run."""
    run = RunDir(root)
    return supervise_run(run, nursery_for(reload(run, (), is_started=True)), sys.stderr, is_watched=False)
