"""Inject faults into real two-rank jobs; compare who `headway run` and torchrun blame.

    python bench/fault_blame.py [--rounds 1] [--only NAME] [--no-torchrun]

Each fault strikes rank 1 of a gloo job (all-reduce every step). Right means: the rank, and one of the classes that
describe the fault. torchrun says no class, so for it only the rank counts. Three faults have nobody to blame: a port of
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
from fault_jobs import FAULTS, JOB, ODD, Fault
from marked_runs import end_all, environment, new_mark, wait_for_none

_CAGES = {"memory": 1200 << 20, "pids": 150}
_START_S = 120.0
_HEADWAY_LIMIT_S = 90.0
_TORCHRUN_LIMIT_S = 25.0
"""After the fault; a job that still hangs after twice our own limit was not noticed."""
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


def run_headway(name: str, folder: Path) -> Result:
    """Run one faulty job under `headway run`."""
    words = [sys.executable, "-m", "headway", "run", "--out", str(folder / "runs"), "--on-hang", "stop"]
    launch = Launch(FAULTS[name], folder, _HEADWAY_LIMIT_S)
    code, seconds, leftovers, _ = launch.go([*words, "torchrun", *launch.line(), "job.py", name])
    place = next(iter(sorted((folder / "runs").glob("*/events.jsonl"))), None)
    events = [json.loads(line) for line in place.read_text().splitlines()] if place else []
    last: dict[str, Any] = next((event for event in reversed(events) if event["kind"] == "incident"), {})
    is_done = any(event["kind"] == "run_ended" and event["state"] == "done" for event in events)
    detect_s = _detect_s(folder, events)
    return Result(last.get("rank"), str(last.get("class", "none")), code, seconds, leftovers, is_done, detect_s)


def run_torchrun(name: str, folder: Path) -> Result:
    """Run the same job under torchrun."""
    launch = Launch(FAULTS[name], folder, _TORCHRUN_LIMIT_S)
    program = str(Path(sys.executable).parent / "torchrun")
    code, seconds, leftovers, text = launch.go([program, *launch.line(), "job.py", name])
    found = re.search(r"Root Cause.*?rank\s*:\s*(\d+)", text, re.DOTALL)
    return Result(int(found[1]) if found else None, "n/a", code, seconds, leftovers, code == 0)


class Launch:
    """One launch of a faulty job, in its cage, with what is done to it from outside."""

    def __init__(self, fault: Fault, folder: Path, limit_s: float) -> None:
        self._fault, self._folder, self._limit_s = fault, folder, limit_s
        self._taken = socket.create_server(("127.0.0.1", 0))
        self._port = self._taken.getsockname()[1]
        (folder / "struck").unlink(missing_ok=True)

    def line(self) -> list[str]:
        """Return the launcher's own words."""
        if self._fault.act == "take the port of the line":
            return ["--nproc_per_node=2", f"--master_port={self._port}"]
        return ["--nproc_per_node=2"] if self._limit_s == _HEADWAY_LIMIT_S else ["--standalone", "--nproc_per_node=2"]

    def go(self, words: list[str]) -> tuple[int | None, float, int, str]:
        """Run to the end or the limit; then count and end what is left."""
        mark = new_mark()
        env = {**environment(mark, self._folder), "TAKEN_PORT": str(self._port)}
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
                return process.wait(self._limit_s)
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


def _drain(terminal: int) -> None:
    os.set_blocking(terminal, False)
    with contextlib.suppress(OSError):
        os.read(terminal, 1 << 16)


def _detect_s(folder: Path, events: list[dict[str, Any]]) -> float | None:
    """Return the seconds from the fault until the supervisor knew."""
    struck = folder / "struck"
    if not struck.exists():
        return None
    hang = next((event["t"] for event in events if event["kind"] == "hang"), None)
    dead = next(
        (event.get("seen") for event in events if event["kind"] == "rank_exited" and event["rank"] == ODD), None
    )
    seen = hang if hang is not None else dead
    return None if seen is None else float(seen) - float(struck.read_text())


def is_right(fault: Fault, result: Result, *, has_class: bool) -> bool:
    """Say whether a launcher did what there was to do."""
    if fault.act == "kill the launcher":
        return result.leftovers == 0
    if fault.act is not None:
        return result.is_done
    return result.rank == ODD and (not has_class or result.kind in fault.kinds)


def _describe(result: Result, *, has_class: bool) -> str:
    kind = f" {result.kind}" if has_class else ""
    left = f", {result.leftovers} left" if result.leftovers else ""
    return f"rank {result.rank}{kind}, exit {result.exit_code}, {result.seconds:.0f} s{left}"


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--only", action="append", choices=FAULTS)
    parser.add_argument("--no-torchrun", action="store_true")
    args = parser.parse_args()
    ours: list[tuple[str, Result]] = []
    theirs: list[tuple[str, Result]] = []
    skipped: list[str] = []
    print(f"{'fault':17}{'headway':56}{'torchrun'}")
    for name in args.only or FAULTS:
        for _ in range(args.rounds):
            with tempfile.TemporaryDirectory() as place:
                folder = Path(place)
                (folder / "job.py").write_text(JOB)
                try:
                    ours.append((name, run_headway(name, folder)))
                    if not args.no_torchrun:
                        theirs.append((name, run_torchrun(name, folder)))
                except NoCageError as err:
                    skipped.append(name)
                    print(f"{name:17}SKIPPED, no control group can be made here: {err}", flush=True)
                    continue
            print(_row(name, ours[-1][1], theirs[-1][1] if theirs else None), flush=True)
    print(json.dumps(_record(ours, theirs, skipped)))


def _row(name: str, own: Result, other: Result | None) -> str:
    fault = FAULTS[name]
    cells = [f"{name:17}{_describe(own, has_class=True):46}{_word(is_right(fault, own, has_class=True)):10}"]
    if other is not None:
        cells.append(f"{_describe(other, has_class=False):40}{_word(is_right(fault, other, has_class=False))}")
    return "".join(cells)


def _word(right: bool) -> str:
    return "right" if right else "WRONG"


def _record(ours: list[tuple[str, Result]], theirs: list[tuple[str, Result]], skipped: list[str]) -> dict[str, Any]:
    def share(results: list[tuple[str, Result]], *, has_class: bool) -> float | None:
        right = [is_right(FAULTS[name], result, has_class=has_class) for name, result in results]
        return sum(right) / len(right) if right else None

    dead = [result.detect_s for name, result in ours if FAULTS[name].dead and result.detect_s is not None]
    stopped = [result.detect_s for name, result in ours if name == "SIGSTOP" and result.detect_s is not None]
    return {
        "runs": len(ours),
        "accuracy": share(ours, has_class=True),
        "torchrun_accuracy": share(theirs, has_class=False),
        "wrong": sorted({name for name, result in ours if not is_right(FAULTS[name], result, has_class=True)}),
        "skipped": sorted(set(skipped)),
        "detect_dead_s_median": round(statistics.median(dead), 3) if dead else None,
        "detect_dead_s_worst": round(max(dead), 3) if dead else None,
        "detect_stopped_s_worst": round(max(stopped), 2) if stopped else None,
        "leftover_processes": sum(result.leftovers for _, result in ours),
        "torchrun_leftover_processes": sum(result.leftovers for _, result in theirs),
    }


if __name__ == "__main__":
    main()
