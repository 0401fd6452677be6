"""Disks that fail, die or remember, and small states to save on them. No torch."""

from __future__ import annotations

import errno
import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headway.checkpoint.commit import SaveFields
from headway.checkpoint.disk import RealDisk, Space
from headway.checkpoint.shard import Box, Shard, box_key
from headway.checkpoint.writer import Save, Writer
from headway.weights.layout import lay_out


@dataclass(frozen=True)
class Keep:
    """A retention rule."""

    keep_last: int = 2
    keep_every: int | None = None
    keep_best: bool = True


class Crash(BaseException):
    """The process is dead: nothing runs after this, no clean-up either."""


def make_shard(boxes: dict[str, tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]], seed: int) -> Shard:
    """Return a shard of random F32 bytes; a box is (whole shape, offset, local shape)."""
    named = {
        box_key(name, offset, is_whole=local == shape): (Box(name, shape, offset), local)
        for name, (shape, offset, local) in boxes.items()
    }
    spans = lay_out({key: ("F32", local) for key, (_, local) in named.items()})
    total = max((span.end for span in spans.values()), default=0)
    data = memoryview(random.Random(seed).randbytes(total))
    return Shard(boxes={key: box for key, (box, _) in named.items()}, spans=spans, data=data)


def rows_shard(rank: int, world_size: int, *, seed: int, rows: int = 64) -> Shard:
    """Return a rank's share of a two-tensor state, cut by rows."""
    low, high = rows * rank // world_size, rows * (rank + 1) // world_size
    boxes = {
        name: ((rows, width), (low, 0), (high - low, width)) for name, width in (("model/w", 16), ("optim/w/m", 16))
    }
    return make_shard(boxes, seed * 1000 + rank)


def make_writer(root: Path, events: list[dict[str, Any]], **settings: Any) -> Writer:
    """Return a writer of one rank that retries at once."""
    given: dict[str, Any] = {
        "rank": 0, "world_size": 1, "attempt": 1, "retention": Keep(), "report": events.append,
        "backoff_s": (), "parts_timeout_s": 20.0, **settings,
    }  # fmt: skip
    return Writer(root, **given)


def save_step(writers: list[Writer], step: int, **fields: Any) -> None:
    """Save one step on all ranks and wait for its end."""
    start_step(writers, step, **fields)
    for writer in writers:
        assert writer.wait(30)


def start_step(writers: list[Writer], step: int, **fields: Any) -> None:
    """Begin to save one step on all ranks."""
    for writer in writers:
        shard = rows_shard(writer.rank, writer.world_size, seed=step)
        facts = SaveFields(samples=step * 8, ledger="00", **fields)
        writer.begin(Save(step=step, shard=shard, fields=facts, stall_s=0.0, began=time.monotonic()))


def make_checkpoint(root: Path, step: int, *, world_size: int = 2, **fields: Any) -> Path:
    """Write one good checkpoint and return its folder."""
    events: list[dict[str, Any]] = []
    keep = Keep(keep_last=1000)
    writers = [
        make_writer(root, events, rank=rank, world_size=world_size, retention=keep) for rank in range(world_size)
    ]
    save_step(writers, step, **fields)
    return Path(next(event["path"] for event in events if event["kind"] == "checkpoint_committed"))


class CountingDisk:
    """The real disk; `before` sees every changing call with its number, name and paths, and may stop it."""

    def __init__(self, before: Callable[[int, str, tuple[Any, ...]], None], *, free_bytes: int | None = None) -> None:
        self.calls = 0
        self._real, self._before, self._free_bytes = RealDisk(), before, free_bytes
        self._lock = threading.Lock()

    def _call(self, name: str, *args: Any) -> Any:
        with self._lock:
            self.calls += 1
            number = self.calls
        self._before(number, name, args)
        return getattr(self._real, name)(*args)

    def make_dir(self, path: Path) -> None:
        self._call("make_dir", path)

    def create(self, path: Path) -> int:
        return int(self._call("create", path))

    def write(self, fd: int, data: memoryview) -> int:
        return int(self._call("write", fd, data))

    def sync(self, fd: int) -> None:
        self._call("sync", fd)

    def close(self, fd: int) -> None:
        self._real.close(fd)

    def sync_dir(self, path: Path) -> None:
        self._call("sync_dir", path)

    def rename(self, old: Path, new: Path) -> None:
        self._call("rename", old, new)

    def unlink(self, path: Path) -> None:
        self._call("unlink", path)

    def remove_dir(self, path: Path) -> None:
        self._call("remove_dir", path)

    def space(self, path: Path) -> Space:
        return self._real.space(path) if self._free_bytes is None else Space(self._free_bytes, None)


def disk_failing_at(number: int, code: int, *, for_good: bool) -> CountingDisk:
    """Return a disk whose n-th call fails, once or from then on."""

    def before(call: int, name: str, args: tuple[Any, ...]) -> None:
        if call == number or (for_good and call > number):
            raise OSError(code, os.strerror(code), str(args[0]) if isinstance(args[0], Path) else None)

    return CountingDisk(before)


def disk_full_after(num_bytes: int) -> CountingDisk:
    """Return a disk that takes so many bytes and no more."""
    written = 0

    def before(call: int, name: str, args: tuple[Any, ...]) -> None:
        nonlocal written
        if name == "write":
            written += len(args[1])
            if written > num_bytes:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    return CountingDisk(before)


def disk_dying_at(number: int, *, is_real: bool = False) -> CountingDisk:
    """Return a disk under which the process dies at the n-th call; a write is torn in the middle."""
    dead = threading.Event()

    def before(call: int, name: str, args: tuple[Any, ...]) -> None:
        if call == number or dead.is_set():
            if name == "write" and not dead.is_set():
                os.write(args[0], args[1][: len(args[1]) // 2])
            dead.set()
            if is_real:
                os.kill(os.getpid(), signal.SIGKILL)
            raise Crash

    return CountingDisk(before)


@dataclass
class Node:
    """A file or folder as a disk knows it: what is durable, and what is only in the cache."""

    is_dir: bool
    durable: bytes = b""
    pending: list[bytes] = field(default_factory=list)
    names: dict[str, Node] = field(default_factory=dict)
    """As programs see them now."""
    kept: dict[str, Node] = field(default_factory=dict)
    """As of the last sync of the folder."""
    steps: list[tuple[str, str, Node | None]] = field(default_factory=list)
    """Changes of names since the last sync: (what, name, node); kept in order, any number may be lost."""


class PowerCut:
    """Replays what a recorded disk did up to a moment, and builds the folders a power cut may leave then."""

    def __init__(self) -> None:
        self.log: list[tuple[Any, ...]] = []
        self._fds: dict[int, Path] = {}
        self._lock = threading.Lock()

    def disk(self, *, without: tuple[str, ...] = ()) -> CountingDisk:
        """Return a disk that writes down all it does; calls named in `without` are not written down as done."""
        recorded = CountingDisk(lambda call, name, args: None)
        inner = recorded._call

        def call(name: str, *args: Any) -> Any:
            with self._lock:
                value = inner(name, *args)
                if name == "create":
                    self._fds[value] = args[0]
                if name in ("write", "sync"):
                    args = (self._fds[args[0]], *((bytes(args[1][:value]),) if name == "write" else ()))
                if name not in without:
                    self.log.append((name, *args))
                return value

        recorded._call = call  # type: ignore[method-assign]
        return recorded

    def mark(self, event: dict[str, Any]) -> None:
        """Write down an event among the calls."""
        self.log.append(("event", event))

    def states(self, root: Path, moment: int, chance: random.Random, num: int) -> Iterator[Node]:
        """Yield folders a power cut after `moment` calls may leave: nothing unsynced, all of it, and some of it."""
        top = self._replay(root, moment)
        for choose in (lambda most: 0, lambda most: most, *(lambda most: chance.randint(0, most),) * num):
            yield self._cut(top, choose)

    def _replay(self, root: Path, moment: int) -> Node:
        top = Node(is_dir=True)

        def find(path: Path) -> Node:
            node = top
            for name in path.relative_to(root).parts:
                node = node.names[name]
            return node

        def change(folder: Node, what: str, name: str, node: Node | None) -> None:
            if node is None:
                del folder.names[name]
            else:
                folder.names[name] = node
            folder.steps.append((what, name, node))

        for name, *args in self.log[:moment]:
            if name in ("make_dir", "create"):
                change(find(args[0].parent), "add", args[0].name, Node(is_dir=name == "make_dir"))
            elif name == "write":
                find(args[0]).pending.append(args[1])
            elif name == "sync":
                node = find(args[0])
                node.durable, node.pending = node.durable + b"".join(node.pending), []
            elif name == "sync_dir":
                node = find(args[0])
                node.kept = dict(node.names)
                node.steps.clear()
            elif name == "rename":
                folder, node = find(args[0].parent), find(args[0])
                # One step, as on a journalled disk: both names change or none does.
                folder.names.pop(args[0].name)
                folder.names[args[1].name] = node
                folder.steps.append((f"rename {args[0].name}", args[1].name, node))
            elif name in ("unlink", "remove_dir"):
                change(find(args[0].parent), "drop", args[0].name, None)
        return top

    def _cut(self, node: Node, choose: Callable[[int], int]) -> Node:
        if not node.is_dir:
            whole = b"".join(node.pending)
            return Node(is_dir=False, durable=node.durable + whole[: choose(len(whole))])
        names = dict(node.kept)
        for what, name, inner in node.steps[: choose(len(node.steps))]:
            if what.startswith("rename "):
                names.pop(what.removeprefix("rename "), None)
            if inner is None:
                names.pop(name, None)
            else:
                names[name] = inner
        return Node(is_dir=True, names={name: self._cut(inner, choose) for name, inner in names.items()})


def build(node: Node, place: Path) -> None:
    """Make a cut state real."""
    place.mkdir()
    for name, inner in node.names.items():
        if inner.is_dir:
            build(inner, place / name)
        else:
            (place / name).write_bytes(inner.durable)
