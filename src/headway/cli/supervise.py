"""The hidden command behind `--detach`: supervise a prepared run in this session."""

from __future__ import annotations

import os
from pathlib import Path

import click

from headway.cli.bilingual import argument, command
from headway.cli.finish import finish
from headway.launch import Lease
from headway.start.nursery import nursery_for
from headway.start.source import reload
from headway.telemetry import RunDir
from headway.ui.output import unblocked


@command("supervise", help="cli/line-train", hidden=True)
@argument("root", type=click.Path(exists=True, path_type=Path))
@argument("lock", required=False, type=int)
@unblocked
def supervise(root: Path, lock: int | None) -> int:
    """Supervise a prepared run; `lock` is the open lock of its lease, where the run was resumed."""
    run = RunDir(root)
    if lock is None:
        return _supervise(run)
    os.set_inheritable(lock, False)  # a rank that outlives us must not hold it
    lease = Lease(run, lock=lock)
    try:
        return _supervise(run, lease)
    finally:
        lease.release()


def _supervise(run: RunDir, lease: Lease | None = None) -> int:
    nursery = nursery_for(reload(run, (), is_started=True), lambda text: click.echo(text, err=True))
    return finish(run, nursery, is_watched=False, lease=lease)
