"""The nursery process: imports the framework once, then forks ranks from that warm state whenever it is asked.

`python -m headway.launch.nursery_process LINK_FD AFTER_FD PARENT_PID ENTRY MODULE…`. It never touches a device and
starts no thread, so a fork of it is a clean rank. It adopts every orphan its ranks leave, so that the whole run hangs
on one tree; when the supervisor ends, for whatever reason, the nursery ends that tree before itself.
"""

from __future__ import annotations

import contextlib
import faulthandler
import gc
import importlib
import json
import os
import select
import signal
import socket
import sys
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NoReturn, TextIO

from headway.errors import HeadwayError
from headway.launch import wire
from headway.launch.claims import drop_claims
from headway.launch.hook import remove_temps
from headway.process import (
    CLEANERS_S,
    adopt_orphans,
    descendants,
    die_with_parent,
    kill_all,
    name_process,
    without_cleaners,
)

_NOT_FOR_US: Final = (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)
_TEXT_CHARS: Final = 8_000
_TRACEBACK_CHARS: Final = 20_000


def main(argv: Sequence[str]) -> int:
    """Import, say so, then serve until the supervisor is gone."""
    link_fd, after_fd, parent, entry, *modules = argv
    # Held open to the end and handed to nobody: the sweeper waits until this end and the supervisor's are closed.
    os.set_inheritable(int(after_fd), False)
    die_with_parent(int(parent))
    name_process("headway-nursery")
    # A batch system signals every process of a job; what this one ends of is the end of its supervisor.
    for signum in _NOT_FOR_US:
        signal.signal(signum, signal.SIG_IGN)
    link = socket.socket(fileno=int(link_fd))
    began = time.monotonic()
    try:
        preload([*modules, entry.partition(":")[0]])
    except (Exception, SystemExit):  # border: supervisor; whatever an import raises is reported, not swallowed
        wire.send(link, {"kind": "failed", "traceback": traceback.format_exc()[-_TRACEBACK_CHARS:]})
        return 1
    with contextlib.suppress(OSError):  # a supervisor that is gone is noticed by the loop
        wire.send(link, {"kind": "ready", "import_s": time.monotonic() - began})
    _serve(link, int(after_fd), int(parent), entry)
    return 0


def preload(modules: Sequence[str]) -> None:
    """Import modules (`name`) and run warm-ups (`name:function`), then hide all of it from the garbage collector."""
    # Collections during an import only walk objects that will stay; after the freeze, ranks always share these pages.
    gc.disable()
    for spec in modules:
        name, _, function = spec.partition(":")
        module = importlib.import_module(name)
        if function:
            getattr(module, function)()
    gc.freeze()
    gc.enable()


def _serve(link: socket.socket, after: int, parent: int, entry: str) -> None:
    wake_read, wake_write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, _note)
    signal.signal(signal.SIGTERM, _note)
    adopt_orphans()
    # From here on the supervisor's death must leave time to end the ranks' whole trees, so it arrives as SIGTERM.
    die_with_parent(parent, signal.SIGTERM)
    own_files = [link.fileno(), wake_read, wake_write, after]
    claims: list[str] = []
    runs: set[str] = set()
    while os.getppid() == parent:
        ready, _, _ = select.select([link.fileno(), wake_read], [], [], 5.0)
        if wake_read in ready:
            os.read(wake_read, 4096)
            _report_ended(link)
        if link.fileno() in ready:
            order = wire.receive(link)
            if order is None:
                break
            if "claims" in order[0]:
                claims = order[0]["claims"]
            else:
                runs.add(order[0]["job"]["run_dir"])
                _fork_rank(link, order, entry, own_files)
    _end_tree()
    for run in runs:
        remove_temps(Path(run))
    # Only now is what the run has held free again, whoever of us two was the first to go.
    drop_claims(claims, parent)


def _note(signum: int, frame: object) -> None:
    """Only wake the loop."""


def _report_ended(link: socket.socket) -> None:
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        with contextlib.suppress(OSError):
            wire.send(link, {"kind": "exited", "pid": pid, "status": status})


def _end_tree(timeout_s: float = 5.0) -> None:
    """Kill all descendants until none is left; orphans come to us, so the list is complete."""
    began = time.monotonic()
    while (spent_s := time.monotonic() - began) < timeout_s:
        left = descendants(os.getpid())
        kill_all(without_cleaners(left) if spent_s < CLEANERS_S else left)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        if not left:  # who is still there leads a run of its own, in the background
            return
        time.sleep(0.002)


def _fork_rank(link: socket.socket, order: tuple[dict[str, Any], list[int]], entry: str, own_files: list[int]) -> None:
    request, files = order
    nursery = os.getpid()
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        pid = os.fork()
    except OSError as err:
        wire.send(link, {"kind": "fork_failed", "rank": request["job"]["rank"], "why": str(err)})
        pid = -1
    if pid == 0:
        _live_as_rank(request, files, entry, nursery, own_files)
    if pid > 0:
        # Nothing is reaped between fork and here, so the pid cannot mean another process.
        pidfd = os.pidfd_open(pid)
        with contextlib.suppress(OSError):
            wire.send(link, {"kind": "forked", "rank": request["job"]["rank"], "pid": pid}, [pidfd])
        os.close(pidfd)
    for file in files:
        os.close(file)


def _live_as_rank(
    request: dict[str, Any], files: list[int], entry: str, nursery: int, own_files: list[int]
) -> NoReturn:
    code = 1
    report_fd = files[1]
    try:
        _become_rank(request, files, nursery, own_files)
        module, _, function = entry.partition(":")
        answer = getattr(importlib.import_module(module), function or "main")(request["job"])
        code = answer if isinstance(answer, int) else 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException as err:  # border: supervisor; the rank's end is reported in full, then the process ends
        told = _own_traceback(err)
        _report_error(report_fd, err, told)
        sys.stderr.write(told)
    finally:
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code & 0xFF)


def _become_rank(request: dict[str, Any], files: list[int], nursery: int, own_files: list[int]) -> None:
    """Turn a fresh fork into a process of its own: session, signals, files, environment."""
    os.setsid()
    signal.set_wakeup_fd(-1)
    for signum in (signal.SIGTERM, signal.SIGCHLD, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(signum, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # SIGUSR1 and SIGUSR2 stay ignored until the entry listens: a wish to save must not end a rank that still starts.
    die_with_parent(nursery)
    job = request["job"]
    name_process(f"headway-rank{job['rank']}")
    for file in own_files:
        os.close(file)
    os.dup2(files[0], 1)
    os.dup2(files[0], 2)
    os.close(files[0])
    # The entry owns (and may close) the number it is told; the wrapper keeps its own for the last word.
    job["report_fd"] = os.dup(files[1])
    job["listen_fd"] = None
    job.update(zip(request["files"], files[2:], strict=True))
    # New streams: the old ones believe in a file that can be sought, and a pipe cannot.
    sys.stdout, sys.stderr = _line_stream(1), _line_stream(2)
    faulthandler.enable()
    os.environ.update(request["env"])


def _own_traceback(err: BaseException) -> str:
    """Return the traceback from the entry on; how we called it helps nobody."""
    trace = err.__traceback__
    return "".join(traceback.format_exception(type(err), err, trace.tb_next if trace and trace.tb_next else trace))


def _line_stream(fd: int) -> TextIO:
    return open(fd, "w", buffering=1, encoding="utf-8", errors="backslashreplace", closefd=False)


def _report_error(report_fd: int, err: BaseException, told: str) -> None:
    report = {
        "kind": "error",
        "type": type(err).__name__,
        "text": str(err)[:_TEXT_CHARS],
        "traceback": told[-_TRACEBACK_CHARS:],
        "code": err.code if isinstance(err, HeadwayError) else None,
        "facts": {name: str(value) for name, value in err.facts.items()} if isinstance(err, HeadwayError) else {},
        "exit_code": err.exit_code if isinstance(err, HeadwayError) else None,
    }
    line = json.dumps(report).encode() + b"\n"
    with contextlib.suppress(OSError):
        while line:
            line = line[os.write(report_fd, line) :]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
