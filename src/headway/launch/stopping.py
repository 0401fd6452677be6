"""A foreign line that is asked to stop: the signal reaches whoever can save, and all of them get the grace."""

from __future__ import annotations

import signal
import time
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Final

from headway.launch.attempt import Attempt
from headway.launch.background import name_processes
from headway.launch.history import History
from headway.launch.listeners import Tree, choose_polite, find_listeners, is_reader, read_processes
from headway.process import descendants, send_signal, without_cleaners

_LOOK_S: Final = 0.25
_LATE_SHARE: Final = 0.5
"""Of the grace: when a program that has kept the signal to itself has had its time to pass it on."""


class PoliteStop:
    """One request to stop, until the last process is gone."""

    def __init__(self, signum: int | None, run_root: Path, at: float, grace_s: float) -> None:
        """Without a signal the processes get the one that they have a handler for."""
        self._asked, self._run_root = signum, run_root
        self.signum = signum or signal.SIGINT
        self._late_at = at + _LATE_SHARE * grace_s
        self._next_look = 0.0
        self._known: set[int] = set()
        self._told: set[int] = set()

    def begin(self, attempt: Attempt, nursery: int) -> None:
        """Ask everybody who is there."""
        tree = read_processes(descendants(nursery))
        helpers = read_helpers(self._run_root)
        if self._asked is None:
            self.signum = choose_polite(tree, helpers)
        self._known = set(tree)
        tops = [rank.pid for rank in attempt.ranks if rank.pid in tree]
        for rank in attempt.ranks:
            rank.is_stopped_by_us = rank.is_stopped_by_us or rank.pid in tree
        self._tell(tree, find_listeners(tree, tops, self.signum, helpers))
        self._tell_orphans(tree, nursery, tops, helpers)

    def look(self, attempt: Attempt, nursery: int, now: float) -> None:
        """Ask those whose parent has gone without passing it on, and in the end all others."""
        if now < self._next_look:
            return
        began = time.monotonic()
        self._look(attempt, nursery, now)
        # Of a thousand ranks a look takes its time, in which the loop hears nothing else.
        self._next_look = now + max(_LOOK_S, 10 * (time.monotonic() - began))

    def _look(self, attempt: Attempt, nursery: int, now: float) -> None:
        tree = read_processes(descendants(nursery))
        helpers = read_helpers(self._run_root)
        tops = [rank.pid for rank in attempt.ranks if rank.pid in tree]
        self._tell_orphans(tree, nursery, tops, helpers)
        # What was not asked because ranks below it had to save first.
        listening = [pid for pid in find_listeners(tree, tops, self.signum, helpers) if pid in tops]
        self._tell(tree, listening)
        if now >= self._late_at:
            groups = {rank.pid for rank in attempt.ranks}
            numbers = {(process.own_pid, _own_pid(tree, process.parent)): process.pid for process in tree.values()}
            kept_out = {pid for pair, pid in numbers.items() if pair in helpers}
            late = [pid for pid, one in tree.items() if one.group in groups and not is_reader(one)]
            self._tell(tree, [pid for pid in late if pid not in kept_out], is_late=True)

    def _tell_orphans(self, tree: Tree, nursery: int, tops: list[int], helpers: Collection[tuple[int, int]]) -> None:
        orphans = [
            pid
            for pid, process in tree.items()
            if process.parent == nursery and pid not in tops and not is_reader(process)
        ]
        self._tell(tree, find_listeners(tree, without_cleaners(orphans), self.signum, helpers))

    def _tell(self, tree: Tree, pids: Iterable[int], *, is_late: bool = False) -> None:
        """Signal each once; what was started since the request is the work of those who save."""
        # One that was asked before has passed it on, or has not, and may have changed its handlers since.
        before = frozenset() if is_late else frozenset(self._told)
        for pid in pids:
            if pid not in self._known or pid in self._told or tree[pid].parent in before:
                continue
            self._told.add(pid)
            # A shell starts what is before `&` with SIGINT ignored; Ctrl-C would never end it.
            is_deaf = self.signum == signal.SIGINT and tree[pid].is_deaf(signal.SIGINT)
            send_signal(pid, signal.SIGTERM if is_deaf else self.signum)


def pass_on(attempt: Attempt, nursery: int, signum: int, run_root: Path) -> int:
    """Hand a signal that asks for something else than the end to all who listen to it; return how many do."""
    tree = read_processes(descendants(nursery))
    orphans = [pid for pid, process in tree.items() if process.parent == nursery]
    tops = list(dict.fromkeys([*(rank.pid for rank in attempt.ranks if rank.pid in tree), *orphans]))
    found = find_listeners(tree, tops, signum, read_helpers(run_root))
    return sum(send_signal(pid, signum) for pid in found)


def name_other_users(nursery: int, history: History) -> None:
    """Say once which processes are not ours to signal, as those of sudo are."""
    if history.has_warned("launch/other-user"):
        return
    others = read_processes([pid for pid in descendants(nursery) if not send_signal(pid, 0)])
    if others:
        facts = {"processes": name_processes(others), "pids": " ".join(map(str, sorted(others)))}
        history.emit("warning", code="launch/other-user", facts=facts)


def read_helpers(run_root: Path) -> set[tuple[int, int]]:
    """Return the processes (own number, parent's number) that the hook has noted as somebody's daemons."""
    try:
        lines = (run_root / "ranks" / "helpers").read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return set()
    pairs = [line.split() for line in lines]
    return {(int(pair[0]), int(pair[1])) for pair in pairs if len(pair) == 2 and all(map(str.isdigit, pair))}


def _own_pid(tree: Tree, pid: int) -> int:
    return tree[pid].own_pid if pid in tree else 0
