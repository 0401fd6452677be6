"""`headway resume`: continue with a run, on this machine, with these devices."""

from __future__ import annotations

import os
import time
from pathlib import Path

import click

from headway.bridges import refuse_unset
from headway.bridges.mirror import refuse_mirror
from headway.cli.bilingual import command, option
from headway.cli.consent import ask_trust
from headway.cli.finish import finish, finish_behind
from headway.cli.nodes_options import nodes_options
from headway.cli.options import DETACH, DRY_RUN, RUN_FILE, RUNS, TRACE, WORDS
from headway.errors import UsageError
from headway.launch import FOREIGN_EXPIRES_S, Claims, Lease, ask_back, find_holder, refuse_held
from headway.messages import say
from headway.start.decide_resume import ResumeWish, decide_resume
from headway.start.detach import Orders
from headway.start.follow import FollowWish, follow
from headway.start.nodes import NodesWish, assembled, refuse_behind
from headway.start.nursery import EarlyNursery
from headway.start.slurm import place_in_step
from headway.start.source import refuse_foreign
from headway.start.write import note_run, write_continued
from headway.telemetry import RunDir, find_run
from headway.ui.console_safe import make_console
from headway.ui.output import unblocked
from headway.ui.terminal.deciding import DecisionScreen

_SPARE_S = 15.0
_POLL_S = 1.0


@command(
    "resume",
    help="cli/resume-help",
    context_settings=WORDS,
)
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="[RUN] [KEY=VALUE]…")
@DETACH
@DRY_RUN
@TRACE
@option("--step", type=click.IntRange(min=1), help="cli/option-fork-step")
@option("--from-scratch", is_flag=True, help="cli/option-from-scratch")
@option("--add", is_flag=True, help="cli/option-add")
@RUNS
@RUN_FILE
@nodes_options
@unblocked
def resume(
    words: tuple[str, ...],
    detach: bool,
    dry_run: bool,
    trace: bool | None,
    step: int | None,
    from_scratch: bool,
    add: bool,
    out: Path,
    run_file: Path | None,
    nodes: NodesWish | None,
) -> int:
    """See the message `cli/resume-help`."""
    name = words[0] if words and "=" not in words[0] and not words[0].startswith("-") else None
    run = find_run(name, out)
    refuse_foreign(run)
    if add and find_holder(run) is not None:
        click.echo(say("launch/asked-back", run=run.name, lost=ask_back(run)), err=True)
        return 0
    found = place_in_step(nodes, run.root.absolute().parent)
    if isinstance(found, FollowWish):
        return follow(found, lambda text: click.echo(text, err=True))
    nodes = found
    wish = ResumeWish(words=words[1:] if name else words, step=step, from_scratch=from_scratch, trace=trace)
    refuse_behind(nodes, detach)
    screen = DecisionScreen(make_console(stderr=True))
    claims = Claims(run.name)
    if dry_run:
        refuse_held(run)
        decide_resume(run, wish, screen, claims, is_dry=True, ask=ask_trust)
        return 0
    # Whatever follows reads and writes the run's directory: nobody else may, from here to the end of the run.
    lease = _take(run, screen, waits=run_file is not None)
    try:
        with (
            assembled(nodes, screen.tell) as assembly,
            EarlyNursery(screen.tell, is_wanted=not detach, nodes=assembly) as early,
        ):
            decision = decide_resume(run, wish, screen, claims, begin=early.begin, ask=ask_trust, nodes=assembly)
            assert decision.loaded is not None
            refuse_unset(decision.loaded.config.alert.to, os.environ)
            refuse_mirror(decision.loaded.config.save.mirror)
            run, lease = write_continued(run, lease, decision, wish)
            note_run(run_file, run)
            code = "console/run-resumed" if decision.done.step else "console/run-restarted"
            screen.tell(say(code, run=run.root, step=decision.done.step))
            if early.nursery is None:
                return finish_behind(run, claims, Orders.of(decision.job, claims), lease=lease)
            local_ranks = decision.job.world_size - decision.elsewhere
            crew = assembly.lead(run, decision.job, local_ranks=local_ranks) if assembly else None
            return finish(run, early.nursery, claims, lease=lease, crew=crew)
    finally:
        claims.release()
        lease.release()


def _take(run: RunDir, screen: DecisionScreen, *, waits: bool) -> Lease:
    """Take the lease. A scheduler starts a job again elsewhere while the lease of a dead node is fresh: wait it out.

    A holder that lives renews its lease, and is refused as ever.
    """
    until, is_told = time.monotonic() + FOREIGN_EXPIRES_S + _SPARE_S, False
    while True:
        try:
            return Lease(run)
        except UsageError as err:
            if not waits or err.code != "launch/lease-elsewhere" or time.monotonic() > until:
                raise
            if not is_told:
                screen.tell(say("launch/lease-waiting", host=str(err.facts["host"]), seconds=f"{FOREIGN_EXPIRES_S:g}"))
                is_told = True
        time.sleep(_POLL_S)
