"""Inject faults into real jobs; compare who `headway run` and torchrun blame.

    python bench/fault_blame.py [--rounds 1] [--only NAME] [--odd 0/2 --odd 3/4 …] [--no-torchrun]

Each fault strikes one rank of a gloo job (all-reduce every step): rank 0 and 1 of two, rank 0, 2 and 3 of four. Right
means: the rank, and one of the classes that describe the fault; where two ranks only disagree, that neither is blamed.
torchrun has the same time; it says no class, so for it only the rank counts, and rows in which it names no root cause
at all are counted apart. Three faults have nobody to blame: a port of
the line that is taken and a closed terminal must not end the run; after `kill -9` of the launcher itself nothing may be
left. The last line is JSON: `accuracy`, `torchrun_accuracy`, and how long a dead and a stopped rank went unnoticed.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import json
import os
import pty
import re
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cages import NoCageError, cage
from fault_jobs import FAULTS, JOB, Fault
from marked_runs import end_all, environment, new_mark, wait_for_none

_CAGES = {"memory": 1200 << 20, "pids": 150}
_START_S = 120.0
_LIMIT_S = 90.0
"""After the fault, for either launcher."""
_SEATS = ("0/2", "1/2", "0/4", "2/4", "3/4")
"""The odd rank and how many there are."""
_GONE_S = 10.0


@dataclass(frozen=True, slots=True)
class Result:
    """Who was blamed, for what, and what was left behind."""

    rank: int | None
    kind: str
    exit_code: int | None
    seconds: float
    leftovers: int
    is_done: bool = False
    detect_s: float | None = None


def run_headway(name: str, folder: Path, odd: int, ranks: int) -> Result:
    """Run one faulty job under `headway run`."""
    words = [sys.executable, "-m", "headway", "run", "--out", str(folder / "runs"), "--on-hang", "stop"]
    launch = Launch(FAULTS[name], folder, ranks)
    code, seconds, leftovers, _ = launch.go([*words, "torchrun", *launch.line(), "job.py", name, str(odd)])
    place = next(iter(sorted((folder / "runs").glob("*/events.jsonl"))), None)
    events = [json.loads(line) for line in place.read_text().splitlines()] if place else []
    last: dict[str, Any] = next((event for event in reversed(events) if event["kind"] == "incident"), {})
    is_done = any(event["kind"] == "run_ended" and event["state"] == "done" for event in events)
    detect_s = _detect_s(folder, events, odd)
    return Result(last.get("rank"), str(last.get("class", "none")), code, seconds, leftovers, is_done, detect_s)


def run_torchrun(name: str, folder: Path, odd: int, ranks: int) -> Result:
    """Run the same job under torchrun."""
    launch = Launch(FAULTS[name], folder, ranks)
    program = str(Path(sys.executable).parent / "torchrun")
    code, seconds, leftovers, text = launch.go([program, "--standalone", *launch.line(), "job.py", name, str(odd)])
    found = re.search(r"Root Cause.*?rank\s*:\s*(\d+)", text, re.DOTALL)
    return Result(int(found[1]) if found else None, "n/a", code, seconds, leftovers, code == 0)


class Launch:
    """One launch of a faulty job, in its cage, with what is done to it from outside."""

    def __init__(self, fault: Fault, folder: Path, ranks: int) -> None:
        self._fault, self._folder, self._ranks = fault, folder, ranks
        self._taken = socket.create_server(("127.0.0.1", 0))
        self._port = self._taken.getsockname()[1]
        (folder / "struck").unlink(missing_ok=True)

    def line(self) -> list[str]:
        """Return the launcher's own words."""
        if self._fault.act == "take the port of the line":
            return [f"--nproc_per_node={self._ranks}", f"--master_port={self._port}"]
        return [f"--nproc_per_node={self._ranks}"]

    def go(self, words: list[str]) -> tuple[int | None, float, int, str]:
        """Run to the end or the limit; then count and end what is left."""
        mark = new_mark()
        ports = {"TAKEN_PORT": str(self._port), "CLOSED_PORT": str(_closed_port())}
        env = {**environment(mark, self._folder), **ports}
        began = time.monotonic()
        kind = self._fault.cage
        with contextlib.ExitStack() as stack:
            stack.callback(self._taken.close)
            enter = stack.enter_context(cage(kind, _CAGES[kind])) if kind else None
            code = self._execute(words, env, enter)
            seconds = time.monotonic() - began
            patience_s = _GONE_S if self._fault.act or kind else 1.0
            left = wait_for_none(mark, patience_s)
            end_all(left)
            wait_for_none(mark, _GONE_S)
        return code, seconds, len(left), (self._folder / "output").read_text(errors="replace")

    def _execute(self, words: list[str], env: dict[str, str], enter: Callable[[], None] | None) -> int | None:
        terminal, inner = pty.openpty() if self._fault.act == "close the terminal" else (None, None)

        def prepare() -> None:
            if enter is not None:
                enter()
            if inner is not None:
                fcntl.ioctl(0, termios.TIOCSCTTY, 0)

        with (self._folder / "output").open("wb") as output:
            target: Any = output if inner is None else inner
            process = subprocess.Popen(
                words,
                cwd=self._folder,
                env=env,
                stdin=subprocess.DEVNULL if inner is None else inner,
                stdout=target,
                stderr=target,
                start_new_session=True,
                preexec_fn=prepare,
            )
            if inner is not None:
                os.close(inner)
            self._wait_for_fault(process, terminal)
            self._strike(process, terminal)
            try:
                return process.wait(_LIMIT_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                return None

    def _wait_for_fault(self, process: subprocess.Popen[bytes], terminal: int | None) -> None:
        """Wait until the odd rank has come to its sixth step."""
        deadline = time.monotonic() + _START_S
        while not (self._folder / "struck").exists() and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.02)
            if terminal is not None:
                _drain(terminal)

    def _strike(self, process: subprocess.Popen[bytes], terminal: int | None) -> None:
        """Do what comes from outside."""
        if terminal is not None:
            os.close(terminal)
        elif self._fault.act == "kill the launcher":
            os.kill(process.pid, signal.SIGKILL)


def _closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def _drain(terminal: int) -> None:
    os.set_blocking(terminal, False)
    with contextlib.suppress(OSError):
        os.read(terminal, 1 << 16)


def _detect_s(folder: Path, events: list[dict[str, Any]], odd: int) -> float | None:
    """Return the seconds from the fault until the supervisor knew."""
    struck = folder / "struck"
    if not struck.exists():
        return None
    hang = next((event["t"] for event in events if event["kind"] == "hang"), None)
    dead = next(
        (event.get("seen") for event in events if event["kind"] == "rank_exited" and event["rank"] == odd), None
    )
    seen = hang if hang is not None else dead
    return None if seen is None else float(seen) - float(struck.read_text())


def is_right(fault: Fault, result: Result, seat: str, *, has_class: bool) -> bool:
    """Say whether a launcher did what there was to do."""
    if fault.act == "kill the launcher":
        return result.leftovers == 0
    if fault.act is not None:
        return result.is_done
    odd, ranks = map(int, seat.split("/"))
    expected = None if fault.is_tie and ranks == 2 and has_class else odd
    return result.rank == expected and (not has_class or result.kind in fault.kinds)


def _describe(result: Result, *, has_class: bool) -> str:
    kind = f" {result.kind}" if has_class else ""
    left = f", {result.leftovers} left" if result.leftovers else ""
    return f"rank {result.rank}{kind}, exit {result.exit_code}, {result.seconds:.0f} s{left}"


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--only", action="append", choices=FAULTS)
    parser.add_argument("--odd", action="append", metavar="RANK/RANKS", choices=_SEATS)
    parser.add_argument("--no-torchrun", action="store_true")
    args = parser.parse_args()
    ours: list[tuple[str, str, Result]] = []
    theirs: list[tuple[str, str, Result]] = []
    skipped: list[str] = []
    print(f"{'fault':17}{'odd':6}{'headway':56}{'torchrun'}")
    for name in args.only or FAULTS:
        for seat in [*(args.odd or _SEATS)] * args.rounds:
            odd, ranks = map(int, seat.split("/"))
            with tempfile.TemporaryDirectory() as place:
                folder = Path(place)
                (folder / "job.py").write_text(JOB)
                try:
                    ours.append((name, seat, run_headway(name, folder, odd, ranks)))
                    if not args.no_torchrun:
                        theirs.append((name, seat, run_torchrun(name, folder, odd, ranks)))
                except NoCageError as err:
                    skipped.append(name)
                    print(f"{name:17}SKIPPED, no control group can be made here: {err}", flush=True)
                    continue
            print(_row(name, seat, ours[-1][2], theirs[-1][2] if theirs else None), flush=True)
    print(json.dumps(_record(ours, theirs, skipped)))


def _row(name: str, seat: str, own: Result, other: Result | None) -> str:
    fault = FAULTS[name]
    right = _word(is_right(fault, own, seat, has_class=True))
    cells = [f"{name:17}{seat:6}{_describe(own, has_class=True):46}{right:10}"]
    if other is not None:
        right = _word(is_right(fault, other, seat, has_class=False))
        cells.append(f"{_describe(other, has_class=False):40}{right}")
    return "".join(cells)


def _word(right: bool) -> str:
    return "right" if right else "WRONG"


def _record(
    ours: list[tuple[str, str, Result]], theirs: list[tuple[str, str, Result]], skipped: list[str]
) -> dict[str, Any]:
    def share(results: list[tuple[str, str, Result]], *, has_class: bool) -> float | None:
        right = [is_right(FAULTS[name], result, seat, has_class=has_class) for name, seat, result in results]
        return sum(right) / len(right) if right else None

    dead = [result.detect_s for name, _, result in ours if FAULTS[name].dead and result.detect_s is not None]
    stopped = [result.detect_s for name, _, result in ours if name == "SIGSTOP" and result.detect_s is not None]
    # Of faults that somebody is to blame for: a launcher that names nobody is not wrong about who it was.
    silent = [one for one in theirs if one[2].rank is None and FAULTS[one[0]].act is None]
    named = [one for one in theirs if one not in silent]
    wrong = {f"{name} {seat}" for name, seat, own in ours if not is_right(FAULTS[name], own, seat, has_class=True)}
    return {
        "runs": len(ours),
        "accuracy": share(ours, has_class=True),
        "torchrun_accuracy": share(theirs, has_class=False),
        "torchrun_accuracy_where_it_names_one": share(named, has_class=False),
        "torchrun_without_root_cause": len(silent),
        "wrong": sorted(wrong),
        "skipped": sorted(set(skipped)),
        "detect_dead_s_median": round(statistics.median(dead), 3) if dead else None,
        "detect_dead_s_worst": round(max(dead), 3) if dead else None,
        "detect_stopped_s_worst": round(max(stopped), 2) if stopped else None,
        "leftover_processes": sum(result.leftovers for _, _, result in ours),
        "torchrun_leftover_processes": sum(result.leftovers for _, _, result in theirs),
    }


if __name__ == "__main__":
    main()
