"""`headway train`: the way of a run, end to end."""

from __future__ import annotations

import os
from pathlib import Path

import click

from headway.bridges import refuse_unset
from headway.bridges.mirror import refuse_mirror
from headway.cli.bilingual import command
from headway.cli.consent import ask_trust
from headway.cli.finish import finish, finish_behind
from headway.cli.nodes_options import nodes_options
from headway.cli.options import DETACH, DRY_RUN, RUN_FILE, TRACE, WORDS
from headway.launch import Claims
from headway.messages import say
from headway.start.decide import decide
from headway.start.detach import Orders
from headway.start.follow import FollowWish, follow
from headway.start.nodes import NodesWish, assembled, refuse_behind
from headway.start.nursery import EarlyNursery
from headway.start.slurm import place_in_step
from headway.start.source import load_words
from headway.start.write import note_run, write_run
from headway.ui.console_safe import make_console
from headway.ui.output import unblocked
from headway.ui.terminal.deciding import DecisionScreen


@command(
    "train",
    help="cli/train-help",
    context_settings=WORDS,
)
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="[WHAT] [KEY=VALUE]…")
@DETACH
@DRY_RUN
@TRACE
@RUN_FILE
@nodes_options
@unblocked
def train(
    words: tuple[str, ...],
    detach: bool,
    dry_run: bool,
    trace: bool | None,
    run_file: Path | None,
    nodes: NodesWish | None,
) -> int:
    """See the message `cli/train-help`."""
    screen = DecisionScreen(make_console(stderr=True))
    loaded = load_words(words, is_order=True, ask=ask_trust)
    refuse_unset(loaded.config.alert.to, os.environ)
    refuse_mirror(loaded.config.save.mirror)
    found = place_in_step(nodes, Path(loaded.config.out))
    if isinstance(found, FollowWish):
        return follow(found, screen.tell)
    nodes = found
    refuse_behind(nodes, detach)
    claims = Claims(loaded.config.name or loaded.recipe.name)
    try:
        with (
            assembled(None if dry_run else nodes, screen.tell) as assembly,
            EarlyNursery(screen.tell, is_wanted=not (dry_run or detach), nodes=assembly) as early,
        ):
            decision = decide(loaded, screen, claims, is_dry=dry_run, begin=early.begin, trace=trace, nodes=assembly)
            if dry_run:
                return 0
            run, job = write_run(decision)
            note_run(run_file, run)
            screen.tell(say("console/run-made", run=run.root))
            if early.nursery is None:
                return finish_behind(run, claims, Orders.of(job, claims))
            crew = assembly.lead(run, job, local_ranks=job.world_size - decision.elsewhere) if assembly else None
            return finish(run, early.nursery, claims, crew=crew)
    finally:
        claims.release()
