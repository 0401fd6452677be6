"""The ranks of a life in `run_lives.py` without a supervisor: forked from this process, struck at an exact place.

The command itself is the real one, up to the moment at which it would supervise: it reads, decides, takes the lease and
writes. The ranks run the real entry. In between is `Attempts`, which does what the supervisor does for a run in
peace: it keeps the ranks' events, starts them again after a kill, and says how the run ended. A plan for CPU ranks
refuses fp16, because it is slow there and not because it is wrong: here it passes, so that the loss scale lives too.
"""

from __future__ import annotations

import io
import json
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from headway.checkpoint import verify
from headway.cli import resume, train
from headway.cli.main import main as headway
from headway.engine import loop, precision
from headway.engine import rank as entry
from headway.engine.rank_state import Run
from headway.launch import Lease
from headway.machine import inspect_machine
from headway.planner import layout
from headway.process import die_with_parent
from headway.start import decide, nursery
from headway.telemetry import EventLog, RunDir, read_json
from lives_draw import Strike
from lives_oracle import FIRST_SCALE

_LIMIT_S = 1200.0
_SIGNALS = {"stop": signal.SIGINT, "term": signal.SIGTERM}


class Attempts:
    """Runs a command whose ranks are struck; one after the other, each attempt by the next strike."""

    def __init__(self) -> None:
        self._machine = inspect_machine(Path.cwd())
        # The threads that hash large files would not live in the ranks that are forked from here.
        hash_file = verify.hash_file
        verify.hash_file = lambda fd, *, threads, is_fresh: hash_file(fd, threads=1, is_fresh=is_fresh)
        precision._FIRST = FIRST_SCALE
        choose = layout._choose_precision
        layout._choose_precision = lambda wanted, gpus: "fp16" if wanted == "fp16" else choose(wanted, gpus)

    def run(self, words: Sequence[str], place: Path, strikes: Sequence[Strike]) -> tuple[int, list[tuple[Strike, str]]]:
        """Run a command to its end; return its exit code and what has hit it where."""
        hit: list[tuple[Strike, str]] = []
        left = list(strikes)

        def supervise(run: RunDir, *_: object, lease: Lease | None = None, **__: object) -> int:
            own = lease or Lease(run)
            try:
                return self._supervise(run, left, hit)
            finally:
                own.release()

        kept = (train.finish, resume.finish, decide.inspect_machine, nursery.nursery_for)
        streams, before = (sys.stdout, sys.stderr), Path.cwd()
        train.finish = resume.finish = supervise
        nursery.nursery_for = lambda loaded, tell: io.StringIO()  # something to close
        decide.inspect_machine = lambda *_, **__: self._machine
        os.chdir(place)
        try:
            with (place / "screen").open("a") as screen:
                sys.stdout = sys.stderr = screen
                headway(list(words))
        except SystemExit as end:
            return int(end.code or 0), hit
        finally:
            train.finish, resume.finish, decide.inspect_machine, nursery.nursery_for = kept
            sys.stdout, sys.stderr = streams
            os.chdir(before)
        return 0, hit

    def _supervise(self, run: RunDir, strikes: list[Strike], hit: list[tuple[Strike, str]]) -> int:
        log = EventLog(run.events)
        attempt = sum(event["kind"] == "attempt_started" for event in _read(run.events))
        try:
            while True:
                attempt += 1
                strike = strikes.pop(0) if strikes else None
                ends, place = _attempt(run, log, attempt, strike)
                if place is not None and strike is not None:
                    hit.append((strike, place))
                if strike is not None and place is not None and strike.kind in ("kill", "kill-all"):
                    continue
                return self._end(log, ends, strike if place is not None else None)
        finally:
            log.close()

    def _end(self, log: EventLog, ends: list[dict[str, Any]], strike: Strike | None) -> int:
        """Say how the run ended, in the words of the supervisor."""
        if strike is not None and strike.kind in ("now", "supervisor"):
            if strike.kind == "now":
                log.append("run_ended", state="interrupted", exit_code=130, why="launch/stopped-now")
                return 130
            return -9
        errors = [end for end in ends if end["kind"] == "error"]
        if errors:
            log.append("incident", code=errors[0]["code"], facts=errors[0]["facts"], text=errors[0]["text"])
            log.append("run_ended", state="failed", exit_code=5, why="launch/failed")
            sys.stderr.write(errors[0]["traceback"])
            return 5
        states = {end["state"] for end in ends}
        if states == {"done"}:
            log.append("run_ended", state="done", exit_code=0, why="launch/done", steps=ends[0]["step"])
            return 0
        assert states == {"stopped"} and strike is not None, (states, strike)
        code = 128 + _SIGNALS[strike.kind]
        log.append("run_ended", state="interrupted", exit_code=code, why="launch/interrupted")
        return code


def _read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def _attempt(
    run: RunDir, log: EventLog, attempt: int, strike: Strike | None
) -> tuple[list[dict[str, Any]], str | None]:
    """Fork the ranks and wait for their end; return their last words, and where they were struck."""
    world = int(read_json(run.plan)["world_size"])
    log.append("attempt_started", attempt=attempt, world_size=world)
    reports = [run.root / f".reports-{rank}" for rank in range(world)]
    with socket.create_server(("127.0.0.1", 0)) as listener:
        pids = [_fork(run, rank, attempt, listener, reports[rank], strike) for rank in range(world)]
    left, deadline, is_late = set(pids), time.monotonic() + _LIMIT_S, False
    while left:
        pid, status = os.waitpid(-1, os.WNOHANG)
        left.discard(pid)
        is_late = time.monotonic() > deadline
        for one in left if status or is_late else ():  # they would wait for the one that is gone
            os.kill(one, signal.SIGKILL)
        time.sleep(0 if pid else 0.002)
    assert not is_late, f"no end of the ranks in {_LIMIT_S:g} s"
    where = None
    ends = []
    for path in reports:
        for one in _read(path):
            if one["kind"] != "event":
                ends.append(one)
            elif one["event"]["kind"] == "struck":
                where = one["event"]["where"]
            else:
                event = dict(one["event"])
                log.append(event.pop("kind"), **event)
        path.unlink()
    return ends, where


def _fork(run: RunDir, rank: int, attempt: int, listener: socket.socket, reports: Path, strike: Strike | None) -> int:
    """Fork one rank; return its pid."""
    world, port = int(read_json(run.plan)["world_size"]), listener.getsockname()[1]
    fd = os.open(reports, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    parent = os.getpid()
    pid = os.fork()
    if pid:
        os.close(fd)
        return pid
    code = 1
    try:
        die_with_parent(parent)
        if strike is not None:
            _arm(strike, rank, world)
        order = {"run_dir": str(run.root.absolute()), "rank": rank, "local_rank": rank, "world_size": world}
        order |= {"attempt": attempt, "master_port": port, "lang": "en", "report_fd": fd}
        code = entry.main({**order, "listen_fd": listener.detach()})
    finally:
        os._exit(code)


def _arm(strike: Strike, rank: int, world: int) -> None:
    """Set the strike into the loop of this rank: each place in it is a function of the loop's module."""
    if rank != strike.at % world:
        return
    runs: list[Run] = []

    def hit(where: str) -> None:
        run = runs[0]
        if where == strike.phase and run.progress.step >= strike.at:
            run.reporter.event({"kind": "struck", "where": where})
            os.kill(os.getpid(), signal.SIGKILL)

    def around(name: str, *, before: str | None, after: str | None) -> None:
        plain = getattr(loop, name)

        def struck(*args: Any, **named: Any) -> Any:
            if before is not None:
                hit(before)
            answer = plain(*args, **named)
            if after is not None:
                hit(after)
            return answer

        setattr(loop, name, struck)

    def is_stop_wanted() -> bool:
        is_due = runs[0].progress.step + 1 >= strike.at
        if is_due:
            runs[0].reporter.event({"kind": "struck", "where": "step"})
        return is_due

    def prepare(order: dict[str, Any], reporter: Any, plain: Callable[..., Run] = entry.prepare) -> Run:
        runs.append(plain(order, reporter))
        if strike.kind in ("stop", "term"):
            runs[0].is_stop_wanted = is_stop_wanted
        return runs[0]

    entry.prepare = prepare
    if strike.kind in ("stop", "term"):
        return
    around("take_step", before="data", after="optimizer")
    around("_backward_one", before="backward", after=None)
    around("end_step", before=None, after="ended")
    around("evaluate", before="eval", after="validated")
    around("run_trial", before="trial", after="tried")
    plain = loop.save

    def save(run: Run, *, is_needed: bool) -> None:
        hit("save")
        plain(run, is_needed=is_needed)
        hit("saving")
        if strike.phase == "saved":
            run.saver.wait()
            hit("saved")

    loop.save = save
