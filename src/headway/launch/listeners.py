"""Who of the processes below a rank is to hear a signal: everybody who needs it, and each of them once.

One signal to one process is lost in a shell script; a signal to all of them breaks a run as well: a data loader's
process that dies of it takes the save of its parent with it, `tee` takes the output, and a launcher passes it on a
second time. So the tree is walked from the top, and a process that passes signals on is left to do so.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_SHELLS: Final = ("sh", "bash", "dash", "zsh", "ksh", "ash", "busybox")
_READERS: Final = ("tee", "cat", "grep", "egrep", "sed", "awk", "gawk", "mawk", "ts", "head", "tail", "less", "more")
"""They end when what they read ends; ended before it, they take the output of a save with them."""
_LAUNCHERS: Final = re.compile(rb"(?:^|/)torchrun\0|torch[./]distributed[./](?:run|launch)|(?:^|/)accelerate\0launch\0")
_LOUD: Final = ("timeout",)
"""It sends a signal twice, to its command and to its group; its command is asked itself, and it ends with that."""
_TRAP, _KILL = re.compile(rb"\btrap\b"), re.compile(rb"\bkill\b")
_SCRIPT_BYTES: Final = 1 << 18
SOFT: Final = (signal.SIGUSR1, signal.SIGUSR2, signal.SIGHUP)
"""Words to those who listen; whoever does not would die of them, and is left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """One process as the kernel shows it."""

    pid: int
    parent: int
    group: int
    session: int
    state: str
    uid: int
    own_pid: int
    """Its number in its own PID namespace."""
    command: bytes
    """Words, each with a zero byte behind it."""
    catches: int = 0
    """Signals it has a handler for, as a mask."""
    ignores: int = 0
    blocks: int = 0
    cpu_s: float = 0.0
    """Processor time it has used."""
    moved_bytes: int = 0
    """Read and written, by itself and by children that have ended."""
    script: bytes = b""
    """Of a shell that catches everything, as it does for a trap on EXIT: what it runs."""

    @property
    def name(self) -> str:
        """Return the name of its program."""
        return Path(os.fsdecode(self.command.partition(b"\0")[0])).name.lstrip("-")

    def has_handler(self, signum: int) -> bool:
        """Say whether code of its own answers the signal."""
        is_caught = bool(self.catches >> (signum - 1) & 1)
        if is_caught and signum in SOFT and self.name in _SHELLS and self.catches >> (signal.SIGVTALRM - 1) & 1:
            # A shell with a trap on EXIT catches whatever would end it, to end after that trap.
            name = signal.Signals(signum).name.removeprefix("SIG").encode()
            return re.search(rb"\btrap\s[^\n]*" + name, self.script) is not None
        return is_caught

    def passes_on(self) -> bool:
        """Say whether it is a shell whose trap sends signals to what it has started."""
        return self.name in _SHELLS and _TRAP.search(self.script) is not None and _KILL.search(self.script) is not None

    def is_deaf(self, signum: int) -> bool:
        """Say whether the signal does nothing to it."""
        return bool(self.ignores >> (signum - 1) & 1)

    def is_waiting_for(self, signum: int) -> bool:
        """Say whether it takes the signal in its own time, as `sigwait` does."""
        return bool(self.blocks >> (signum - 1) & 1)


Tree = Mapping[int, Process]


def read_processes(pids: Sequence[int]) -> dict[int, Process]:
    """Return what the kernel says about processes; those that are gone or dead are left out."""
    found = {pid: process for pid in pids if (process := _read(pid)) is not None}
    return {pid: process for pid, process in found.items() if process.state not in "ZX"}


def find_listeners(
    tree: Tree, tops: Collection[int], signum: int, helpers: Collection[tuple[int, int]] = ()
) -> list[int]:
    """Return whom to send a signal, parents first.

    `tops` are the processes that stand for ranks, `helpers` the numbers (own, parent's) of processes that only work
    for the one that has started them. SIGINT goes where a terminal would send it: to the whole group. A program that
    would die of SIGTERM while ranks it has made save on it is left out: torch lets those ranks end with it.
    """
    children: dict[int, list[Process]] = {}
    for process in tree.values():
        children.setdefault(process.parent, []).append(process)

    def visit(process: Process, parent: Process | None) -> Iterator[int]:
        if parent is not None and _is_left_to(parent, process, signum, helpers, tops):
            return
        if is_reader(process) and parent is not None:
            return
        below = [child for child in children.get(process.pid, ()) if child.pid not in tops]
        if _is_asked(process, below, signum, helpers):
            yield process.pid
        for child in below:
            yield from visit(child, process)

    return [pid for top in tops if top in tree for pid in visit(tree[top], None)]


def choose_polite(tree: Tree, helpers: Collection[tuple[int, int]] = ()) -> signal.Signals:
    """Return what asks these processes to save: SIGTERM where a program has a handler for it, else Ctrl-C.

    Every Python program has a handler for SIGINT, so that one says nothing about what it does; shells and launchers
    only pass on.
    """
    for process in tree.values():
        parent = tree.get(process.parent)
        is_helper = (process.own_pid, parent.own_pid if parent else 0) in helpers
        is_program = process.name.startswith("python") and not is_launcher(process)
        if is_program and not is_helper and process.has_handler(signal.SIGTERM):
            return signal.SIGTERM
    return signal.SIGINT


def is_launcher(process: Process) -> bool:
    """Say whether it only starts ranks: torchrun and its like."""
    return _LAUNCHERS.search(process.command) is not None


def _is_asked(process: Process, below: Sequence[Process], signum: int, helpers: Collection[tuple[int, int]]) -> bool:
    if process.name in _LOUD and below:
        return False
    return _can_hear(process, signum) if signum in SOFT else not _waits_for_ranks(process, below, signum, helpers)


def _can_hear(process: Process, signum: int) -> bool:
    if signum == signal.SIGHUP and is_launcher(process):
        return False  # it ends its ranks, and a closed terminal is to end nothing
    return process.has_handler(signum) or process.is_waiting_for(signum)


def _is_left_to(
    parent: Process, child: Process, signum: int, helpers: Collection[tuple[int, int]], tops: Collection[int]
) -> bool:
    """Say whether the child hears of the signal from its parent, or is not to hear of it at all."""
    if (child.own_pid, parent.own_pid) in helpers:
        return True
    if signum == signal.SIGINT and child.group in tops:
        # A terminal asks nobody. One behind `&` that the shell's trap asks too would save twice at once.
        return parent.passes_on() and child.is_deaf(signal.SIGQUIT)
    if signum == signal.SIGHUP and is_launcher(parent):
        return False
    if parent.name in _LOUD or not parent.has_handler(signum):
        return False
    if parent.name in _SHELLS:
        # A shell answers a signal once its command in front has ended, but while it waits for those behind `&`, which
        # it has started with SIGQUIT ignored, at once.
        return child.is_deaf(signal.SIGQUIT)
    # What the handler of a rank's parent does it does for itself. Another program is its parent's to ask.
    return not _is_same_program(parent, child)


def _waits_for_ranks(
    process: Process, below: Sequence[Process], signum: int, helpers: Collection[tuple[int, int]]
) -> bool:
    """Say whether a process would die of a signal that ranks which it has made answer."""
    if signum != signal.SIGTERM or process.has_handler(signum) or process.name in _SHELLS:
        return False
    return any(
        child.has_handler(signum) and _is_same_program(process, child)
        for child in below
        if (child.own_pid, process.own_pid) not in helpers
    )


def _is_same_program(parent: Process, child: Process) -> bool:
    """Say whether a program has forked the child, or has spawned it by multiprocessing."""
    return child.command == parent.command or b"--multiprocessing-fork" in child.command


def is_reader(process: Process) -> bool:
    """Say whether it ends by itself once the program that it reads from has ended."""
    return process.name in _READERS


def _read(pid: int) -> Process | None:
    place = Path("/proc") / str(pid)
    try:
        stat = (place / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        lines = (place / "status").read_text(encoding="utf-8", errors="replace").splitlines()
        command = (place / "cmdline").read_bytes()
    except OSError:
        return None
    facts = {name: value.split() for name, _, value in (line.partition(":") for line in lines)}
    is_shell = Path(os.fsdecode(command.partition(b"\0")[0])).name.lstrip("-") in _SHELLS
    return Process(
        script=_read_script(place, command) if is_shell else b"",
        pid=pid,
        parent=int(stat[1]),
        group=int(stat[2]),
        session=int(stat[3]),
        state=stat[0],
        uid=int(facts["Uid"][0]),
        own_pid=int(facts.get("NSpid", [str(pid)])[-1]),
        command=command,
        catches=int(facts["SigCgt"][0], 16),
        ignores=int(facts["SigIgn"][0], 16),
        blocks=int(facts["SigBlk"][0], 16),
        cpu_s=(int(stat[11]) + int(stat[12])) / os.sysconf("SC_CLK_TCK"),
        moved_bytes=_read_moved(place),
    )


def _read_moved(place: Path) -> int:
    """Return what it has read and written, 0 where that may not be seen."""
    try:
        lines = (place / "io").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) for line in lines if line.startswith(("rchar", "wchar")))


def _read_script(place: Path, command: bytes) -> bytes:
    """Return what a shell runs: the words of its command line and the first file among them."""
    for word in command.split(b"\0")[1:]:
        if word and not word.startswith(b"-"):
            with contextlib.suppress(OSError, ValueError), (place / "cwd" / os.fsdecode(word)).open("rb") as file:
                return command + file.read(_SCRIPT_BYTES)
    return command
