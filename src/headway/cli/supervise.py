"""The hidden command behind `--detach`: supervise a written run in this session."""

from __future__ import annotations

import os
from pathlib import Path

import click

from headway.cli.bilingual import argument, command
from headway.cli.finish import finish, finish_line
from headway.launch import Claims, Lease, read_job, write_job
from headway.start.decide_line import wait_for_job
from headway.start.detach import Orders
from headway.start.nursery import nursery_for
from headway.start.source import reload
from headway.telemetry import RunDir
from headway.ui.output import unblocked


@command("supervise", help="cli/line-train", hidden=True)
@argument("root", type=click.Path(exists=True, path_type=Path))
@click.option("--orders", "orders_fd", type=int, hidden=True)
@argument("lock", required=False, type=int)
@unblocked
def supervise(root: Path, orders_fd: int | None, lock: int | None) -> int:
    """Supervise a written run; `lock` is the open lock of its lease, where the run was resumed."""
    run = RunDir(root)
    orders = Orders() if orders_fd is None else Orders.read(orders_fd)
    claims = Claims(run.name)
    claims.receive(orders.claims)
    lease = None
    if lock is not None:
        os.set_inheritable(lock, False)  # a rank that outlives us must not hold it
        lease = Lease(run, lock=lock)
    try:
        return _supervise(run, orders, claims, lease)
    finally:
        claims.release()
        if lease is not None:
            lease.release()


def _supervise(run: RunDir, orders: Orders, claims: Claims, lease: Lease | None) -> int:
    job = orders.apply(read_job(run))
    if job.foreign is None:
        nursery = nursery_for(reload(run, (), is_started=True), _tell)
        return finish(run, nursery, claims, is_watched=False, lease=lease)
    if orders.when_free is not None:
        job = wait_for_job(job, orders.when_free, claims, _tell)
        write_job(run, job)
    return finish_line(run, job, claims, is_watched=False)


def _tell(text: str) -> None:
    click.echo(text, err=True)
