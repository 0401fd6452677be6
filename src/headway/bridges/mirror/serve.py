"""The process beside a run that copies its checkpoints while it trains; nothing in the run waits for it.

It reads the checkpoints folder, has a low priority, and prints one JSON line for each thing that happened. Its
input is closed when the run is over: it then copies the newest checkpoint, tries that for half a minute where the
place refuses, and ends. `python -m headway.bridges.mirror.serve RUN ADDRESS`
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import psutil

from headway.bridges.mirror.copy import best_of, look, owner, prune_there, push_checkpoint, push_records, take_over
from headway.bridges.mirror.open import open_store
from headway.bridges.mirror.store import Store
from headway.checkpoint import CheckpointInfo, list_checkpoints
from headway.checkpoint.names import FinalName, parse_final
from headway.config import SaveConfig, parse_mirror
from headway.errors import CheckpointError
from headway.process import name_process
from headway.telemetry import RunDir, read_record, section

_POLL_S: Final = 0.5
_FIRST_WAIT_S, _LAST_WAIT_S = 2.0, 300.0
_END_S: Final = 30.0
"""How long a place that refuses is asked again once the run is over."""
_LINKS: Final = ".mirroring"
"""Folder of the run with second names of what is being copied: retention may let the first ones go."""


class Mirror:
    """One run and its place."""

    def __init__(self, run: RunDir, save: SaveConfig) -> None:
        address = parse_mirror(save.mirror or "")
        assert address is not None, "checked with the config"
        self._run, self._save, self._address = run, save, address
        self._store: Store | None = None
        self._mark = ""
        self._done: set[str] = set()
        self._wait_s, self._not_before = _FIRST_WAIT_S, 0.0
        self._is_failing = False
        self._over_at: float | None = None

    def serve(self) -> None:
        """Copy until the run is over and its newest checkpoint is there."""
        shutil.rmtree(self._run.root / _LINKS, ignore_errors=True)
        while True:
            if self._over_at is None and _is_closed(_POLL_S):
                self._over_at, self._not_before = time.monotonic(), 0.0
            if time.monotonic() < self._not_before:
                time.sleep(_POLL_S if self._over_at is not None else 0.0)
                if self._is_late():
                    return
                continue
            try:
                is_busy = self._turn()
            except (CheckpointError, OSError, ValueError) as err:
                self._fail(err)
                if self._is_late():
                    return
                continue
            if self._over_at is not None and not is_busy:
                return

    def _is_late(self) -> bool:
        if self._over_at is None or time.monotonic() < self._over_at + _END_S:
            return False
        newest = list_checkpoints(self._run.checkpoints)[-1:]
        if newest and newest[0].path.name not in self._done:
            _tell("warning", code="mirror/incomplete", facts={"address": str(self._address), "run": self._run.name})
        return True

    def _turn(self) -> bool:
        """Copy one checkpoint if there is one to copy; say whether there was."""
        if self._store is None:
            store = open_store(self._address.below(self._run.name), top=self._address)
            self._mark = take_over(store)
            self._store = store
        todo = self._next()
        if todo is None:
            if self._over_at is not None:
                self._refuse_other()
                push_records(self._store, self._run)
            return False
        self._copy(todo)
        return True

    def _copy(self, info: CheckpointInfo) -> None:
        assert self._store is not None
        self._refuse_other()
        began, name = time.monotonic(), info.path.name
        with self._linked(info.path) as path:
            best = best_of(path)
            num_bytes = push_checkpoint(self._store, path, name, look(self._store))
        push_records(self._store, self._run)
        save = self._save
        prune_there(
            self._store,
            keep_last=save.mirror_keep_last,
            keep_every=save.keep_every,
            best_step=best if save.keep_best else None,
        )
        self._done.add(name)
        self._is_failing, self._wait_s = False, _FIRST_WAIT_S
        if num_bytes:
            seconds = round(time.monotonic() - began, 3)
            _tell("checkpoint_mirrored", step=info.step, to=self._store.address, bytes=num_bytes, seconds=seconds)

    def _next(self) -> CheckpointInfo | None:
        """Return the newest checkpoint that is not there yet, then those that are kept for other reasons."""
        infos = [info for info in reversed(list_checkpoints(self._run.checkpoints)) if info.path.name not in self._done]
        if infos and not self._done:
            return infos[0]
        newest = max(self._done, key=lambda name: parse_final(name) or FinalName(0), default="")
        last = parse_final(newest) or FinalName(-1)
        every = self._save.keep_every
        wanted = [
            one
            for one in infos
            if FinalName(one.step, one.rewrite) > last or (every and one.step and one.step % every == 0)
        ]
        if not wanted and self._save.keep_best and infos:
            with contextlib.suppress(CheckpointError, OSError):  # being pruned just now
                best = best_of(self._run.checkpoints / newest)
                wanted = [one for one in infos if one.step == best]
        return wanted[0] if wanted else None

    def _refuse_other(self) -> None:
        """End where another process copies this run to the same place: it was continued elsewhere."""
        assert self._store is not None
        found = owner(self._store)
        if found.get("mark") not in (None, self._mark):
            host = str(found.get("host"))
            _tell("warning", code="mirror/taken-over", facts={"address": self._store.address, "host": host})
            sys.exit(0)

    def _fail(self, err: CheckpointError | OSError | ValueError) -> None:
        why = err.text() if isinstance(err, CheckpointError) else str(err)
        if not self._is_failing:
            facts = {"address": str(self._address), "why": why, "run": self._run.name}
            _tell("warning", code="mirror/failing", facts=facts)
        self._is_failing = True
        self._not_before = time.monotonic() + min(
            self._wait_s, _END_S / 6 if self._over_at is not None else self._wait_s
        )
        self._wait_s = min(2 * self._wait_s, _LAST_WAIT_S)

    @contextlib.contextmanager
    def _linked(self, path: Path) -> Any:
        """Any: a folder with second names of a checkpoint's files; the folder itself where the disk has no links."""
        folder = self._run.root / _LINKS / path.name
        try:
            folder.mkdir(parents=True)
            for file in path.iterdir():
                os.link(file, folder / file.name)
        except OSError:
            shutil.rmtree(folder, ignore_errors=True)
            yield path
            return
        try:
            yield folder
        finally:
            shutil.rmtree(self._run.root / _LINKS, ignore_errors=True)


def _is_closed(timeout_s: float) -> bool:
    """Wait for the end of our input."""
    return bool(select.select([0], [], [], timeout_s)[0]) and not os.read(0, 64)


def _tell(kind: str, **facts: object) -> None:
    with contextlib.suppress(OSError):  # nobody listens any more: the copy matters, not the word about it
        os.write(1, json.dumps({"kind": kind, **facts}).encode() + b"\n")


def main(argv: Sequence[str]) -> int:
    """Serve one run."""
    (place,) = argv
    name_process("headway-mirror")
    for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(signum, signal.SIG_IGN)  # the end of the run is what ends us
    os.nice(10)
    with contextlib.suppress(psutil.Error, OSError):  # a kernel without it
        psutil.Process().ionice(psutil.IOPRIO_CLASS_BE, 7)
    run = RunDir(Path(place))
    save = SaveConfig.model_validate(section(section(read_record(run.job).get("config")).get("save")))
    Mirror(run, save).serve()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
