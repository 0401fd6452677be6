"""`headway run`: any launch line, supervised."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from headway.adopt import ReadLine, read_line
from headway.cli.beside import read_beside
from headway.cli.bilingual import command, echo_json, option
from headway.cli.finish import finish_behind, finish_line
from headway.cli.nodes_options import nodes_options
from headway.cli.options import RUN_FILE
from headway.config import redact_words
from headway.errors import UsageError
from headway.launch import COERCED, Claims, has_given
from headway.messages import say
from headway.start.decide_line import LineWish, decide_line, list_notes
from headway.start.detach import Orders
from headway.start.follow import FollowWish, follow
from headway.start.nodes import Assembly, NodesWish, assembled, refuse_behind
from headway.start.nursery import nursery_for_line
from headway.start.slurm import place_in_step
from headway.start.write import note_run, write_run
from headway.ui.console_safe import make_console
from headway.ui.output import unblocked
from headway.ui.terminal.machine import show_notes

_DETACH_S = 2.0
"""How long a start in the background is watched for an early end."""


@command(
    "run",
    help="run/help",
    context_settings={
        "ignore_unknown_options": False,
        "allow_interspersed_args": False,
        "help_option_names": ["-h", "--help"],
    },
)
@click.argument("line", nargs=-1, required=True, type=click.UNPROCESSED, metavar="LINE…")
@option("--gpus", help="run/option-gpus")
@option("--cpus", type=click.IntRange(1, 1024), help="run/option-cpus")
@option("--launcher", type=click.Choice(("native", "original")), help="run/option-launcher")
@option("--restarts", type=click.IntRange(0, 1000), help="run/option-restarts")
@option("--on-hang", type=click.Choice(("wait", "restart", "stop")), default="wait", help="run/option-on-hang")
@option("--hang-after", type=click.FloatRange(1), default=10.0, help="run/option-hang-after")
@option("--oom-knob", default="", help="run/option-oom-knob")
@option("--resume-with", default="", help="run/option-resume-with")
@option("--on-nan", type=click.Choice(("warn", "stop")), default="warn", help="run/option-on-nan")
@option("--name", help="run/option-name")
@option("--alert", multiple=True, help="alert/option-to")
@option("--alert-when", "when", multiple=True, help="alert/option-when")
@option("--track", multiple=True, help="alert/option-track")
@option("--when-free", type=click.IntRange(1, 1024), help="run/option-when-free")
@option("--grace", type=click.FloatRange(0), default=30.0, help="run/option-grace")
@option("--no-hook", "has_hook", is_flag=True, flag_value=False, default=True, help="run/option-no-hook")
@option("--no-training", "must_train", is_flag=True, flag_value=False, default=True, help="run/option-no-training")
@option("--runs", "--out", "out", type=click.Path(path_type=Path), default=Path("runs"), help="run/option-out")
@option("--detach", "is_detached", is_flag=True, help="cli/option-detach")
@option("--dry-run", is_flag=True, help="run/option-dry-run")
@option("--json", "as_json", is_flag=True, help="run/option-json")
@RUN_FILE
@nodes_options
@unblocked
def run(
    line: tuple[str, ...],
    launcher: str | None,
    alert: tuple[str, ...],
    when: tuple[str, ...],
    track: tuple[str, ...],
    is_detached: bool,
    dry_run: bool,
    as_json: bool,
    run_file: Path | None,
    nodes: NodesWish | None,
    **options: Any,  # the fields of a LineWish
) -> int:
    """See the message `run/help`."""
    if as_json and not dry_run:
        raise UsageError("run/json-without-dry-run", line=shlex.join(line))
    beside = read_beside(alert, when, track)
    environ = _given_environ(click.get_current_context())
    wish = LineWish(**options, beside=beside)
    found = place_in_step(nodes, wish.out)
    if isinstance(found, FollowWish):
        return follow(found, _tell)
    nodes = found
    refuse_behind(nodes, is_detached)
    num_nodes = nodes.most if nodes is not None else 1
    if dry_run:
        return _show(read_line(line, launcher, environ, num_nodes=num_nodes), wish, as_json=as_json)
    # The door comes first: where the line is refused, nodes that wait for this one hear of it.
    with assembled(nodes, _tell) as assembly:
        read = read_line(line, launcher, environ, num_nodes=num_nodes)
        for note in list_notes(read, wish):
            _tell(say("run/note", text=note))
        claims = Claims(read.name)
        try:
            return _start(
                read, wish, claims, environ=environ, assembly=assembly, is_detached=is_detached, run_file=run_file
            )
        finally:
            claims.release()


def _start(
    read: ReadLine,
    wish: LineWish,
    claims: Claims,
    *,
    environ: Mapping[str, str],
    assembly: Assembly | None,
    is_detached: bool,
    run_file: Path | None,
) -> int:
    decision = decide_line(read, wish, claims, _tell, base=environ, waits=not is_detached, nodes=assembly)
    if decision.machine is not None:
        found = (one for one in decision.machine.findings if one.level == "warn")
        show_notes(((one.level, one.code, one.facts) for one in found), make_console(stderr=True))
    place, job = write_run(decision)
    note_run(run_file, place)
    if is_detached:
        orders = Orders.of(job, claims, when_free=wish.when_free)
        return finish_behind(place, claims, orders, wait_s=_DETACH_S)
    if assembly is None:
        return finish_line(place, job, claims)
    nursery = nursery_for_line(job)
    assembly.prepare(nursery)
    crew = assembly.lead(place, job, local_ranks=job.world_size)
    return finish_line(place, job, claims, nursery=nursery, crew=crew)


def _tell(text: str) -> None:
    click.echo(text, err=True)


def _given_environ(context: click.Context) -> dict[str, str]:
    """Return our environment without what our entry has set for colours, and Python for its locale."""
    before = dict(context.find_root().obj or {})
    if COERCED in os.environ and not has_given(COERCED):
        before[COERCED] = None
    return {name: value for name, value in {**os.environ, **before}.items() if value is not None}


def _show(read: ReadLine, wish: LineWish, *, as_json: bool) -> int:
    """Print what would be started."""
    words = read.num_ranks if read.num_ranks is not None else 1
    ranks = wish.cpus or wish.gpus or wish.when_free or words
    mode = "native" if read.is_native else "original"
    if as_json:
        record = {
            "schema": "run-line/1",
            "mode": mode,
            "launcher": read.launcher,
            "ranks": ranks if read.is_native else None,
            "argv": redact_words(read.argv),
            "cwd": os.getcwd(),
            "env_names": read.set_names,
            "why_original": read.why_original or None,
            "notes": list(read.notes),
        }
        echo_json(record, indent=2)
        return 0
    for note in read.notes:
        _tell(say("run/note", text=note))
    click.echo(say("run/dry", mode=mode, ranks=ranks if read.is_native else say("run/dry-own"), launcher=read.launcher))
    if read.why_original:
        click.echo(say("run/dry-original", why=read.why_original))
    for name in read.set_names:
        click.echo(f"  {name}=…")
    click.echo("  " + shlex.join(read.argv))
    return 0
