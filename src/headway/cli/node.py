"""`headway node`: take part in a run that another node leads."""

from __future__ import annotations

from pathlib import Path

import click

from headway.cli.bilingual import command, option
from headway.launch.nodes.rendezvous import meeting_file
from headway.start.follow import FollowWish, follow
from headway.telemetry import RunDir


@command("node", help="nodes/help")
@option("--leader", metavar="HOST:PORT", help="nodes/option-leader")
@option("--meet", type=click.Path(path_type=Path), help="nodes/option-meet")
@option("--run", "run", type=click.Path(path_type=Path), help="nodes/option-run")
@option("--index", type=click.IntRange(1, 100_000), help="nodes/option-index")
@option("--cpus", type=click.IntRange(1, 1024), help="nodes/option-cpus")
@option("--secret-fd", type=click.IntRange(0), help="nodes/option-secret-fd")
@option("--wait", "wait_s", type=click.FloatRange(0), default=300.0, help="nodes/option-wait")
def node(
    leader: str | None,
    meet: Path | None,
    run: Path | None,
    index: int | None,
    cpus: int | None,
    secret_fd: int | None,
    wait_s: float,
) -> int:
    """See the message `nodes/help`."""
    meet = meeting_file(RunDir(run)) if run is not None and meet is None else meet
    wish = FollowWish(leader=leader, meet=meet, secret_fd=secret_fd, index=index, cpus=cpus, wait_s=wait_s)
    return follow(wish, lambda text: click.echo(text, err=True))
