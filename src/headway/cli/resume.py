"""`headway resume`: continue with a run, on this machine, with these devices."""

from __future__ import annotations

import os
from pathlib import Path

import click

from headway.bridges import refuse_unset
from headway.cli.bilingual import command, option
from headway.cli.consent import ask_trust
from headway.cli.finish import finish, finish_behind
from headway.cli.nodes_options import nodes_options
from headway.cli.options import DETACH, DRY_RUN, RUN_FILE, RUNS, TRACE, WORDS
from headway.launch import Claims, Lease, refuse_held
from headway.messages import say
from headway.start.decide_resume import ResumeWish, decide_resume
from headway.start.detach import Orders
from headway.start.nodes import NodesWish, assembled, refuse_behind
from headway.start.nursery import EarlyNursery
from headway.start.source import refuse_foreign
from headway.start.write import note_run, write_continued
from headway.telemetry import find_run
from headway.ui.console_safe import make_console
from headway.ui.output import unblocked
from headway.ui.terminal.deciding import DecisionScreen


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
    out: Path,
    run_file: Path | None,
    nodes: NodesWish | None,
) -> int:
    """See the message `cli/resume-help`."""
    name = words[0] if words and "=" not in words[0] and not words[0].startswith("-") else None
    run = find_run(name, out)
    refuse_foreign(run)
    wish = ResumeWish(words=words[1:] if name else words, step=step, from_scratch=from_scratch, trace=trace)
    refuse_behind(nodes, detach)
    screen = DecisionScreen(make_console(stderr=True))
    claims = Claims(run.name)
    if dry_run:
        refuse_held(run)
        decide_resume(run, wish, screen, claims, is_dry=True, ask=ask_trust)
        return 0
    # Whatever follows reads and writes the run's directory: nobody else may, from here to the end of the run.
    lease = Lease(run)
    try:
        with (
            assembled(nodes, screen.tell) as assembly,
            EarlyNursery(screen.tell, is_wanted=not detach, nodes=assembly) as early,
        ):
            decision = decide_resume(run, wish, screen, claims, begin=early.begin, ask=ask_trust, nodes=assembly)
            assert decision.loaded is not None
            refuse_unset(decision.loaded.config.alert.to, os.environ)
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
