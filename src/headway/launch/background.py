"""What a line leaves behind when it ends well: a training it has sent to the background is the run, a helper is not."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Collection
from pathlib import Path
from typing import Final, Literal

from headway.diagnosis import ExitStatus
from headway.launch.listeners import Process, Tree
from headway.process import send_signal
from headway.redact import redact_words

_LOOK_S: Final = 0.5
_IDLE_S: Final = 30.0
_IDLE_SHARE: Final = 0.03
"""Of a core, all of them together: below it nobody works."""
_IDLE_BYTES: Final = 4 << 20
"""Read and written in that time, all of them together: a slow upload takes next to no processor time."""
_END_S: Final = 5.0
_MONITORS: Final = (
    *("nvidia-smi", "npu-smi", "rocm-smi", "amd-smi", "dcgmi", "gpustat", "nvitop", "nvtop", "top", "htop", "btop"),
    *("vmstat", "iostat", "mpstat", "pidstat", "sar", "dstat", "free", "watch"),
)
"""They show the machine until somebody ends them."""
_SHOWN: Final = 6


class BackgroundWait:
    """Waits for the processes left behind.

    Nothing has trained yet, or the user says that the line does not train: whatever is still there is what the line is
    for, and is waited for. Else: what is left and neither trains nor works is asked to go after half a minute. Of a
    helper (a TensorBoard, a monitor) nothing is lost; the end of anything else is a failure of the run.
    """

    def __init__(self, *, has_trained: bool) -> None:
        self._has_trained = has_trained
        self._next_look = 0.0
        self._busy_at: float | None = None
        self._cpu_s = 0.0
        self._moved_bytes = 0
        self._asked_at: float | None = None
        self._roots: set[int] = set()
        self.status: ExitStatus | None = None
        """The first bad end among them."""
        self.cut: Tree = {}
        """Those ended by us that may have had something to do."""

    def look(self, tree: Tree, training: Collection[int], now: float) -> Literal["wait", "ask", "over"]:
        """Say what to do; `training` are those that the hook sees train, in their own numbers."""
        self._roots |= set(tree)
        if not tree or (self._asked_at is not None and now - self._asked_at > _END_S):
            return "over"
        if self._asked_at is not None or now < self._next_look:
            return "wait"
        self._next_look = now + _LOOK_S
        spent_s = sum(process.cpu_s for process in tree.values())
        moved_bytes = sum(process.moved_bytes for process in tree.values())
        is_at_work = not self._has_trained or any(process.own_pid in training for process in tree.values())
        has_worked = not 0 <= spent_s - self._cpu_s <= _IDLE_SHARE * _IDLE_S
        has_worked = has_worked or not 0 <= moved_bytes - self._moved_bytes <= _IDLE_BYTES
        if self._busy_at is None or is_at_work or has_worked:
            self._busy_at, self._cpu_s, self._moved_bytes = now, spent_s, moved_bytes
        if now - self._busy_at < _IDLE_S:
            return "wait"
        self._asked_at = now
        helpers = find_helpers(tree, read_servers(tree))
        self.cut = {pid: process for pid, process in tree.items() if pid not in helpers}
        for pid in tree:
            send_signal(pid, signal.SIGTERM)
        return "ask"

    def hear_end(self, pid: int, status: ExitStatus) -> None:
        """Take the end of a process; after we have asked it to go it is not a failure."""
        is_bad = status.signal is not None or bool(status.code)
        if pid in self._roots and is_bad and self.status is None and self._asked_at is None:
            self.status = status


def find_helpers(tree: Tree, servers: Collection[int]) -> set[int]:
    """Return those that have no work of their own: servers, monitors, and whatever only waits for such."""
    below: dict[int, list[int]] = {}
    for process in tree.values():
        below.setdefault(process.parent, []).append(process.pid)

    def is_helper(pid: int) -> bool:
        if pid in servers or tree[pid].name in _MONITORS:
            return True
        return pid in below and all(map(is_helper, below[pid]))

    return {pid for pid in tree if is_helper(pid)}


def read_servers(pids: Collection[int]) -> set[int]:
    """Return those that hold a listening socket: they wait for requests, not for an end."""
    listening = _listening_sockets()
    return {pid for pid in pids if listening & _open_files(pid)}


def _listening_sockets() -> set[str]:
    found = set()
    for name, state, column, inode in (("tcp", "0A", 3, 9), ("tcp6", "0A", 3, 9), ("unix", "00010000", 3, 6)):
        with contextlib.suppress(OSError):
            for line in Path(f"/proc/net/{name}").read_text(encoding="utf-8", errors="replace").splitlines()[1:]:
                words = line.split()
                if len(words) > inode and words[column] == state:
                    found.add(f"socket:[{words[inode]}]")
    return found


def _open_files(pid: int) -> set[str]:
    found = set()
    with contextlib.suppress(OSError):
        for file in Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                found.add(os.readlink(file))
    return found


def name_processes(tree: Tree) -> str:
    """Return `123 tensorboard, 456 python train.py`, the last children left out where there are many."""
    shown = [f"{pid} {_words(process)}" for pid, process in sorted(tree.items())]
    return ", ".join(shown[:_SHOWN]) + (", …" if len(shown) > _SHOWN else "")


def _words(process: Process) -> str:
    words = process.command.decode("utf-8", "replace").split("\0")
    shown = " ".join(redact_words([process.name, *words[1:3]])).strip()[:60]
    return "".join(letter if letter.isprintable() else "?" for letter in shown)
