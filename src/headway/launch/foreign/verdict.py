"""What follows the end of an attempt of a foreign line: exit codes are all it says by itself."""

from __future__ import annotations

import math
import signal
from dataclasses import dataclass, replace
from typing import Final

from headway.diagnosis import Diagnosis, ExitStatus, classify, find_last_words, settle_illegal
from headway.launch.attempt import Attempt, RankProcess
from headway.launch.background import name_processes
from headway.launch.blame import make_incident, own_failures
from headway.launch.foreign.watch import LineWatch
from headway.launch.hook import read_error
from headway.launch.job import ForeignLine, Job
from headway.launch.outcome import Incident
from headway.launch.restarts import RestartBudget
from headway.launch.verdict import Reach, Scene, Verdict, explain_hang
from headway.messages import find_text
from headway.telemetry import RunDir, read_beat

_WORDS_BYTES: Final = 4096
"""Without a traceback only the very end of the output is evidence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LineScene:
    """All that is left of an attempt of a foreign line."""

    run: RunDir
    job: Job
    line: ForeignLine
    watch: LineWatch
    scene: Scene

    @property
    def attempt(self) -> Attempt:
        """The attempt."""
        return self.scene.attempt

    @property
    def reach(self) -> Reach:
        """How far it has come."""
        return self.scene.reach


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cause:
    process: RankProcess
    rank: int | None
    """The rank to name; under the original launcher not the process we started."""
    diagnosis: Diagnosis
    traceback: str | None = None
    step: int | None = None


def judge_line(scene: LineScene) -> Verdict:
    """Decide what follows an attempt all of whose ranks have ended."""
    attempt, step = scene.attempt, scene.reach.steps
    stop, budget, found = scene.scene.stop, scene.scene.budget, scene.scene.found
    if attempt.hang is not None:
        return _judge_hang(scene, budget)
    failures = own_failures(attempt)
    if stop is not None and not any((rank.failed_at or 0.0) < stop.at for rank in failures):
        # Killed at the end of the grace, be it only what the ranks had started.
        is_clean = attempt.killed_at is None and all(
            rank.status is not None and rank.status.signal != signal.SIGKILL for rank in attempt.ranks
        )
        return Verdict(
            how="stopped" if is_clean else "killed",
            state="interrupted",
            exit_code=stop.exit_code,
            why="launch/foreign-stopped" if is_clean else "launch/foreign-killed",
            facts={"step": step},
        )
    if found is None and not failures:
        return _judge_finished(scene)
    cause = _Cause(process=attempt.ranks[0], rank=None, diagnosis=found) if found else _find_cause(scene, failures)
    steps = (
        scene.reach.steps if cause.rank is None else max(cause.step or 0, scene.reach.rank_steps[cause.process.rank])
    )
    cause = replace(cause, diagnosis=settle_illegal(cause.diagnosis, steps))
    can_restart = cause.diagnosis.is_transient and stop is None
    # What we have ended ourselves has no exit code of its own.
    exit_code = 5 if cause.diagnosis.kind == "nan" else None
    return _judge_cause(scene, cause, budget, is_worth_it=can_restart, exit_code=exit_code)


def _judge_finished(scene: LineScene) -> Verdict:
    background = scene.attempt.background
    if background is not None and background.cut:
        facts = {"processes": name_processes(background.cut)}
        cut = Diagnosis(kind="left-behind", code="diagnose/foreign-left-behind", facts=facts, is_transient=False)
        return _fail_finished(scene, cut)
    pages = [page for rank in _seen_ranks(scene) if (page := scene.watch.page(rank)) is not None]
    has_made_one = any(page.optimizers for page in pages)
    if not (scene.line.must_train and has_made_one and scene.reach.steps == 0):
        return Verdict(how="done", state="done", why="launch/done")
    no_step = Diagnosis(kind="no-step", code="diagnose/foreign-no-step", is_transient=False)
    return _fail_finished(scene, no_step)


def _fail_finished(scene: LineScene, diagnosis: Diagnosis) -> Verdict:
    """Call a run failed whose ranks all ended with exit code 0."""
    steps = scene.reach.steps
    incident = make_incident(scene.attempt, scene.attempt.ranks[0], diagnosis, step=steps, action="stop")
    return Verdict(
        how="failed",
        state="failed",
        exit_code=5,
        why="launch/failed",
        facts={"rank": 0, "step": steps},
        incident=replace(incident, rank=None),
    )


def _judge_hang(scene: LineScene, budget: RestartBudget) -> Verdict:
    hang = scene.attempt.hang
    assert hang is not None
    diagnosis = explain_hang(hang, is_transient=scene.job.on_hang == "restart")
    view = next((view for view in hang.views if view.rank == hang.rank), hang.views[0])
    process = next((rank for rank in scene.attempt.ranks if rank.rank == hang.rank), scene.attempt.ranks[0])
    cause = _Cause(
        process=process, rank=hang.rank, diagnosis=diagnosis, traceback="\n".join(view.stack), step=view.step
    )
    return _judge_cause(scene, cause, budget, is_worth_it=diagnosis.is_transient, exit_code=5)


def _judge_cause(
    scene: LineScene, cause: _Cause, budget: RestartBudget, *, is_worth_it: bool, exit_code: int | None = None
) -> Verdict:
    is_preempted = cause.diagnosis.kind == "preempted"
    can_restart = budget.spend(scene.reach.steps, scene.reach.committed, is_preempted=is_preempted) and is_worth_it
    incident = _make_incident(scene, cause, can_restart)
    if can_restart:
        return Verdict(how="failed", state=None, incident=incident)
    facts: dict[str, object] = {"rank": "n/a" if cause.rank is None else cause.rank, "step": incident.step}
    code, why = exit_code or _own_exit_code(cause.process), "launch/failed"
    if is_worth_it and budget.limit and budget.wasted:
        facts, code, why = {"restarts": budget.wasted, "step": scene.reach.steps}, 93, "launch/foreign-no-progress"
    return Verdict(how="failed", state="failed", exit_code=code, why=why, facts=facts, incident=incident)


def _make_incident(scene: LineScene, cause: _Cause, can_restart: bool) -> Incident:
    step = scene.reach.rank_steps[cause.process.rank] if cause.step is None else cause.step
    action = "restart" if can_restart else "stop"
    diagnosis = _in_foreign_words(cause.diagnosis)
    incident = make_incident(
        scene.attempt, cause.process, diagnosis, step=step, action="restart" if action == "restart" else "stop"
    )
    incident = replace(incident, rank=cause.rank)
    return incident if cause.traceback is None else replace(incident, traceback=cause.traceback)


def _in_foreign_words(diagnosis: Diagnosis) -> Diagnosis:
    """Return it with advice for a script that has no config of ours, where the usual advice names our keys."""
    code = f"diagnose/foreign-{diagnosis.code.partition('/')[2]}"
    try:
        find_text(code)
    except KeyError:
        return diagnosis
    return replace(diagnosis, code=code)


def _find_cause(scene: LineScene, failures: list[RankProcess]) -> _Cause:
    if scene.line.makes_ranks and (told := _find_told(scene)) is not None:
        return told
    found = [(rank, _classify(rank)) for rank in failures if not _has_left(scene, rank)]
    if not found:
        found = [(rank, _classify(rank)) for rank in failures]
    for rank, diagnosis in found:
        if not diagnosis.is_cascade:
            changed = _find_changed(scene) if diagnosis.kind == "collective-mismatch" else None
            return _Cause(process=rank, rank=_shown_rank(scene, changed or rank), diagnosis=diagnosis)
    first, diagnosis = found[0]
    early = [rank for rank in scene.attempt.ranks if _left_at(scene, rank) < math.inf]
    if early:
        # All that failed had lost somebody, and somebody had left: that is who. Clocks do not help here, for a
        # process closes its connections long before it is gone.
        left = min(early, key=lambda rank: _left_at(scene, rank))
        gone = Diagnosis(kind="early-exit", code="diagnose/early-exit", is_transient=False, evidence=diagnosis.evidence)
        return _Cause(process=left, rank=left.rank, diagnosis=gone, traceback="")
    return _Cause(process=first, rank=_shown_rank(scene, first), diagnosis=diagnosis)


def _has_left(scene: LineScene, rank: RankProcess) -> bool:
    """Say whether the rank's Python had ended in good order, and it crashed, or we killed it, on its way out.

    That happens to a rank that leaves while others still talk to it: it is the cause, but its crash is not.
    """
    if rank.status is None or rank.error is not None:
        return False
    if rank.status.signal != signal.SIGABRT and not (rank.is_stopped_by_us and rank.status.signal == signal.SIGKILL):
        return False
    beat = read_beat(scene.run.heartbeat(rank.rank))
    return beat is not None and beat.attempt == scene.attempt.number and beat.phase == "ended"


def _left_at(scene: LineScene, rank: RankProcess) -> float:
    """Return when a rank left without a failure of its own; infinite: it did not."""
    if rank.ended_at is not None:
        return rank.ended_at
    beat = read_beat(scene.run.heartbeat(rank.rank)) if _has_left(scene, rank) else None
    return beat.monotonic_ns / 1e9 if beat is not None else math.inf


def _find_changed(scene: LineScene) -> RankProcess | None:
    """Return the one rank whose last collective had a size it had never had before."""
    pages = [(rank, scene.watch.page(rank.rank)) for rank in scene.attempt.ranks]
    changed = [rank for rank, page in pages if page is not None and page.numel != page.numel_before]
    return changed[0] if len(changed) == 1 else None


def _find_told(scene: LineScene) -> _Cause | None:
    """Return the first exception that a hooked rank has kept: the original launcher hides which one was first."""
    told = [
        (rank, error) for rank in scene.run.ranks() if (error := read_error(scene.run.rank(rank), scene.attempt.number))
    ]
    told.sort(key=lambda item: float(item[1].get("monotonic_ns", 0)))
    found = [(rank, error, classify(error, ExitStatus())) for rank, error in told]
    best = next((item for item in found if not item[2].is_cascade), found[0] if found else None)
    if best is None:
        return None
    rank, error, diagnosis = best
    step = error.get("step")
    return _Cause(
        process=scene.attempt.ranks[0],
        rank=rank,
        diagnosis=diagnosis,
        traceback=str(error.get("traceback", "")).rstrip(),
        step=step if isinstance(step, int) else 0,
    )


def _classify(rank: RankProcess) -> Diagnosis:
    status, tail = rank.status or ExitStatus(), rank.output.tail()
    if signal.SIGTERM in (status.signal, (status.code or 0) - 128):
        # Not from us, or it would not be among the failures: a scheduler or a person has asked this rank to go.
        return Diagnosis(kind="preempted", code="diagnose/preempted", is_transient=True, evidence="SIGTERM")
    report = rank.error
    if report is None and status.signal is None and status.code:
        report = find_last_words(tail)
    return classify(report, status, tail if status.signal else tail[-_WORDS_BYTES:])


def _seen_ranks(scene: LineScene) -> list[int]:
    is_native = scene.line.mode == "native"
    return [rank.rank for rank in scene.attempt.ranks] if is_native else scene.run.ranks()


def _shown_rank(scene: LineScene, rank: RankProcess) -> int | None:
    return rank.rank if scene.line.mode == "native" else None


def _own_exit_code(rank: RankProcess) -> int:
    """Return the failing rank's own exit code, as a shell would: 128 and the signal's number for a signal."""
    status = rank.status or ExitStatus()
    if status.signal is not None:
        return 128 + status.signal
    return status.code or 5
