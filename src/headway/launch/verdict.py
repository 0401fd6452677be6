"""What follows the end of an attempt: the run is over, in one of the ways a run can be over, or it starts again."""

from __future__ import annotations

import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal

from headway.diagnosis import Diagnosis, ExitStatus, Hang, classify, settle_illegal
from headway.launch.attempt import Attempt, RankProcess
from headway.launch.blame import find_first, make_incident, own_failures
from headway.launch.outcome import Incident, State
from headway.launch.restarts import RestartBudget
from headway.telemetry import Beat

_SAME_PRESS_S: Final = 0.2
"""Two Ctrl-C closer than this are one: wrappers like npm and timeout pass on what the terminal has sent already."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """Somebody asked the run to stop."""

    signum: int
    """The first signal; it decides the exit code."""
    at: float
    is_now: bool = False
    """Do not wait for a save."""
    is_command: bool = False
    """Asked by `headway stop`: any signal is enough that the program answers."""

    @property
    def exit_code(self) -> int:
        """130 after Ctrl-C, 143 after SIGTERM."""
        return 143 if self.signum == signal.SIGTERM else 130


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """How an attempt ended and what that means for the run."""

    how: Literal["done", "stopped", "killed", "failed"]
    """The attempt's end, as in `attempt_ended`."""
    state: State | None
    """The run's end; none: start again."""
    exit_code: int = 0
    why: str = ""
    facts: Mapping[str, object] = field(default_factory=dict)
    incident: Incident | None = None
    change: str = ""
    """Message code, with `facts`, of what the next attempt does otherwise."""
    num_ranks: int | None = None
    """Of the next attempt; none: as many as before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """How far a run has come."""

    steps: int
    """Optimizer steps finished, by any rank of the attempt."""
    rank_steps: tuple[int, ...]
    """By each rank."""
    committed: int | None
    """Step of the newest committed checkpoint."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """All that is known when every rank of an attempt has ended."""

    attempt: Attempt
    reach: Reach
    stop: Stop | None
    budget: RestartBudget
    found: Diagnosis | None = None
    """A cause that is not a rank's own."""


def read_reach(attempt: Attempt, beats: Sequence[Beat | None], committed: int | None) -> Reach:
    """Return how far the ranks have come: by their last word, or by their heartbeat where that is further."""
    told = [int((rank.finished or {}).get("step") or 0) for rank in attempt.ranks]
    steps = [max(done, beat.step if beat else 0) for done, beat in zip(told, beats, strict=True)]
    return Reach(steps=max([*steps, committed or 0]), rank_steps=tuple(steps), committed=committed)


def add_signal(before: Stop | None, signum: int, now: float) -> Stop | None:
    """Return the stop a signal makes of what was asked before; None when it changes nothing.

    A second SIGTERM changes nothing: schedulers repeat it at the end of their grace, when the save may be half done.
    """
    if before is None:
        return Stop(signum=signum, at=now, is_now=signum == signal.SIGQUIT)
    is_again = signum == signal.SIGINT and now - before.at > _SAME_PRESS_S
    if before.is_now or not (is_again or signum == signal.SIGQUIT):
        return None
    return replace(before, is_now=True)


def judge(scene: Scene, *, is_hang_transient: bool = False) -> Verdict:
    """Decide what follows an attempt all of whose ranks have ended."""
    attempt, reach, stop, budget, found = scene.attempt, scene.reach, scene.stop, scene.budget, scene.found
    if attempt.hang is not None and found is None:
        found = explain_hang(attempt.hang, is_transient=is_hang_transient)
    failures = own_failures(attempt)
    if stop is not None and (not failures or find_first(failures)[1].is_transient):
        return _judge_stop(attempt, reach, stop)
    if found is None and reach.steps > 0 and all(rank.has_finished() for rank in attempt.ranks):
        return _judge_finished(attempt, reach)
    return _judge_failure(attempt, reach, stop=stop, budget=budget, found=found)


def explain_hang(hang: Hang, *, is_transient: bool) -> Diagnosis:
    """Return why an attempt was ended that hung."""
    return Diagnosis(
        kind=hang.kind,
        code=hang.code,
        facts=hang.facts(),
        is_transient=is_transient,
        evidence=f"{hang.seconds:.0f} s",
        is_hang=hang.kind != "early-exit",
    )


def explain_nursery(ended: ExitStatus, output: str) -> Diagnosis | None:
    """Return why a nursery died while it imported; None: it ended by itself, and its output says why."""
    if ended.signal is None:
        return None
    found = classify(None, ended, output.encode())
    if found.kind not in ("killed", "crashed"):
        return found
    return Diagnosis(kind="nursery-died", code="diagnose/nursery-died", facts=found.facts, is_transient=True)


def judge_import(traceback: str, python: str, *, number: int, steps: int) -> Verdict:
    """The ranks' interpreter cannot be used: nothing was started, and nothing is tried again."""
    code = "launch/no-headway" if "No module named 'headway'" in traceback else "launch/import-failed"
    facts = {"python": python, "text": traceback.rstrip().rpartition("\n")[2]}
    incident = Incident(
        attempt=number,
        rank=None,
        step=steps,
        diagnosis=Diagnosis(kind="import-error", code=code, facts=facts, is_transient=False),
        status=ExitStatus(),
        traceback=traceback.rstrip(),
        action="stop",
    )
    return Verdict(how="failed", state="failed", exit_code=5, why=code, facts=facts, incident=incident)


def judge_nursery(
    ended: ExitStatus, output: str, *, number: int, reach: tuple[int, int | None], budget: RestartBudget
) -> Verdict | None:
    """Decide what follows a nursery that died while it imported; None: what it imports is at fault.

    Args:
        ended: how it died.
        output: what it had printed.
        number: of the attempt that was to begin.
        reach: steps of the run, and the step of its newest checkpoint.
        budget: of restarts.
    """
    diagnosis = explain_nursery(ended, output)
    if diagnosis is None:
        return None
    can_restart = budget.spend(*reach) and diagnosis.is_transient
    incident = Incident(
        attempt=number,
        rank=None,
        step=reach[0],
        diagnosis=diagnosis,
        status=ended,
        traceback=output.rstrip(),
        action="restart" if can_restart else "stop",
    )
    if can_restart:
        return Verdict(how="failed", state=None, incident=incident)
    is_spent = diagnosis.is_transient and budget.limit
    is_for_good = is_spent or diagnosis.kind == "illegal-instruction"
    return Verdict(
        how="failed",
        state="failed",
        exit_code=93 if is_for_good else 5,
        why="launch/no-progress" if is_spent else "launch/failed",
        facts={"restarts": budget.wasted, "rank": "n/a", "step": reach[0]},
        incident=incident,
    )


def _judge_finished(attempt: Attempt, reach: Reach) -> Verdict:
    if _is_done(attempt):
        return Verdict(how="done", state="done", why="launch/done")
    return Verdict(how="stopped", state="stopped", exit_code=6, why="launch/stopped", facts={"step": reach.steps})


def _judge_stop(attempt: Attempt, reach: Reach, stop: Stop) -> Verdict:
    is_clean = all(rank.has_finished() for rank in attempt.ranks)
    if is_clean and _is_done(attempt) and reach.steps > 0:
        return Verdict(how="done", state="done", why="launch/done")
    why = "launch/interrupted" if is_clean else "launch/stopped-now" if stop.is_now else "launch/unsaved"
    return Verdict(
        how="stopped" if is_clean else "killed",
        state="interrupted",
        exit_code=stop.exit_code,
        why=why,
        facts={"step": reach.steps},
    )


def _judge_failure(
    attempt: Attempt, reach: Reach, *, stop: Stop | None, budget: RestartBudget, found: Diagnosis | None
) -> Verdict:
    rank, diagnosis = (attempt.ranks[0], found) if found is not None else _find_cause(attempt)
    diagnosis = settle_illegal(diagnosis, reach.rank_steps[rank.rank])
    is_worth_it = diagnosis.is_transient and stop is None
    can_restart = budget.spend(reach.steps, reach.committed) and is_worth_it
    step = max(reach.rank_steps[rank.rank], _told_step(rank))
    incident = make_incident(attempt, rank, diagnosis, step=step, action="restart" if can_restart else "stop")
    if found is not None:
        incident = replace(incident, rank=None, status=ExitStatus(), traceback="")
    if can_restart:
        return Verdict(how="failed", state=None, incident=incident)
    if is_worth_it and budget.limit:
        facts: dict[str, object] = {"restarts": budget.wasted, "step": reach.steps}
        code, why = 93, "launch/no-progress"
    else:
        facts = {"rank": rank.rank, "step": step}
        is_for_good = diagnosis.kind == "illegal-instruction"  # on this machine, however often it is queued
        code, why = 93 if is_for_good else _told_exit_code(rank), "launch/failed"
    return Verdict(how="failed", state="failed", exit_code=code, why=why, facts=facts, incident=incident)


def _find_cause(attempt: Attempt) -> tuple[RankProcess, Diagnosis]:
    failures = own_failures(attempt)
    if not failures:
        return attempt.ranks[0], Diagnosis(kind="no-step", code="diagnose/no-step", is_transient=False)
    return find_first(failures)


def _is_done(attempt: Attempt) -> bool:
    return all((rank.finished or {}).get("state") == "done" for rank in attempt.ranks)


def _told_step(rank: RankProcess) -> int:
    step = (rank.error or {}).get("step")
    return step if isinstance(step, int) else 0


def _told_exit_code(rank: RankProcess) -> int:
    """Return the exit code a headway error of the rank carries, or that of failed training."""
    code = (rank.error or {}).get("exit_code")
    return code if isinstance(code, int) and 1 < code < 128 else 5
