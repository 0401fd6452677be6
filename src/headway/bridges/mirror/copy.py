"""A run in a place for copies: its records and its checkpoints, there and back.

A checkpoint is there when its `manifest.b3` is, which is sent last and deleted first. On the way back everything is
verified as at home, and an older checkpoint is taken where the newest is damaged.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import socket
import tempfile
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from headway.bridges.mirror.store import Store
from headway.checkpoint import CheckpointInfo, list_checkpoints, plan_prune, read_manifest, verify_checkpoint
from headway.checkpoint.names import MANIFEST, MANIFEST_HASH, TempName, parse_final
from headway.errors import CheckpointError, UsageError
from headway.telemetry import RunDir, is_supervised

OWNER: Final = "mirror.json"
_RECORDS: Final = (
    *("job.json", "config.yaml", "origins.json", "plan.json", "machine.json", "command.json", "events.jsonl"),
    "ranks/0/metrics.jsonl",
)
"""What a run is continued from and looked at with, beside its checkpoints."""
_FOLDER: Final = "checkpoints"


@dataclass(frozen=True, slots=True)
class Mirrored:
    """What is there of a run."""

    records: Mapping[str, int]
    """Name to bytes."""
    checkpoints: Mapping[str, Mapping[str, int]]
    """Complete ones, oldest first: name to the bytes of its files."""
    partial: tuple[str, ...]
    """Files of those that are not complete."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """A run that was brought back."""

    run: Path
    step: int
    bytes: int
    damaged: list[tuple[str, str]] = field(default_factory=list)
    """Newer checkpoints that did not pass verification there, and why."""


def look(store: Store) -> Mirrored:
    """Return what is there of a run."""
    records: dict[str, int] = {}
    folders: dict[str, dict[str, int]] = {}
    for name, size in store.sizes().items():
        top, _, rest = name.partition("/")
        step, _, file = rest.partition("/")
        if top != _FOLDER:
            records[name] = size
        elif file and parse_final(step) is not None:
            folders.setdefault(step, {})[file] = size
    complete = {step: files for step, files in folders.items() if MANIFEST_HASH in files}
    partial = tuple(
        f"{_FOLDER}/{step}/{file}" for step, files in folders.items() if step not in complete for file in files
    )
    return Mirrored(records, dict(sorted(complete.items(), key=lambda one: _age(one[0]))), partial)


def take_over(store: Store) -> str:
    """Write down that this process copies to the place from now on; return the mark by which it knows itself."""
    mark = secrets.token_hex(8)
    _put_text(store, OWNER, json.dumps({"mark": mark, "host": socket.gethostname(), "t": time.time()}))
    return mark


def owner(store: Store) -> dict[str, Any]:
    """Return who copies to the place. Any: what the file holds."""
    if OWNER not in store.sizes():
        return {}
    found = json.loads(_get_text(store, OWNER))
    return found if isinstance(found, dict) else {}


def push_records(store: Store, run: RunDir) -> None:
    """Copy the records as they are now; those that grow, up to their last whole line."""
    with tempfile.TemporaryDirectory(prefix="headway-mirror-") as folder:
        for name in _RECORDS:
            source, part = run.root / name, Path(folder, "record")
            try:
                data = source.read_bytes()
            except FileNotFoundError:
                continue
            part.write_bytes(data[: data.rfind(b"\n") + 1] if name.endswith(".jsonl") else data)
            store.put(part, name)


def push_checkpoint(store: Store, path: Path, name: str, there: Mirrored) -> int:
    """Copy a committed checkpoint unless it is there; return the bytes sent.

    Args:
        path: where its files are, perhaps under another name.
        name: its own.
    """
    place = f"{_FOLDER}/{name}"
    if name in there.checkpoints:
        if _get_text(store, f"{place}/{MANIFEST_HASH}").encode() == (path / MANIFEST_HASH).read_bytes():
            return 0
        # The same step of another life of this run, which was continued elsewhere from an older checkpoint.
        remove_checkpoint(store, name, there.checkpoints[name])
    shards = sorted(one.name for one in path.iterdir() if one.name not in (MANIFEST, MANIFEST_HASH))
    for file in (*shards, MANIFEST, MANIFEST_HASH):
        store.put(path / file, f"{place}/{file}")
    return sum((path / file).stat().st_size for file in shards)


def remove_checkpoint(store: Store, name: str, files: Iterable[str]) -> None:
    """Delete a checkpoint; from the first call on it does not count as one."""
    rest = sorted(file for file in files if file != MANIFEST_HASH)
    store.remove([f"{_FOLDER}/{name}/{file}" for file in (MANIFEST_HASH, *rest)])


def prune_there(store: Store, *, keep_last: int, keep_every: int | None, best_step: int | None) -> list[str]:
    """Delete what retention lets go, and what was left half sent; return the checkpoints that are gone."""
    there = look(store)
    infos = [CheckpointInfo(path=Path(name), step=_age(name)[0], rewrite=_age(name)[1], is_verified=True)
             for name in there.checkpoints]  # fmt: skip
    gone = plan_prune(infos, keep_last=keep_last, keep_every=keep_every, best_step=best_step)
    for path in gone:
        remove_checkpoint(store, path.name, there.checkpoints[path.name])
    if there.partial:
        store.remove(there.partial)
    return [path.name for path in gone]


def list_runs(store: Store) -> list[str]:
    """Return the runs in a place: folders with a job."""
    names = (name.split("/") for name in store.sizes())
    return sorted(parts[0] for parts in names if len(parts) == 2 and parts[1] == "job.json")


def plan_fetch(store: Store, step: int | None) -> list[str]:
    """Return the checkpoints to try, newest first.

    Raises:
        UsageError: there is no run, or no such checkpoint.
    """
    there = look(store)
    if "job.json" not in there.records:
        runs = list_runs(store)
        code = "mirror/name-a-run" if runs else "mirror/no-run"
        raise UsageError(code, address=store.address, runs=", ".join(runs[-8:]), newest=runs[-1] if runs else "n/a")
    names = [name for name in reversed(list(there.checkpoints)) if step is None or _age(name)[0] == step]
    if not names:
        steps = ", ".join(str(_age(name)[0]) for name in there.checkpoints) or "n/a"
        raise UsageError("mirror/no-checkpoint", address=store.address, step=step or 0, steps=steps)
    return names


def fetch_run(store: Store, run: RunDir, *, step: int | None = None) -> Fetched:
    """Bring a run back: its newest checkpoint that passes verification, and its records where they are missing.

    Raises:
        CheckpointError: none of the checkpoints there is intact.
        UsageError: the run is supervised here, or has that checkpoint.
    """
    names = plan_fetch(store, step)
    there = look(store)
    if run.root.exists() and is_supervised(run):
        raise UsageError("mirror/run-lives", run=run.root)
    have = {info.path.name for info in list_checkpoints(run.checkpoints)}
    damaged: list[tuple[str, str]] = []
    for name in names:
        if name in have:
            raise UsageError("mirror/have-it", run=run.name, step=_age(name)[0], path=run.checkpoints / name)
        try:
            num_bytes = _fetch_checkpoint(store, run, name, there.checkpoints[name])
        except CheckpointError as err:
            if err.code in ("mirror/failed", "mirror/no-folder"):
                raise
            damaged.append((name, err.text()))
            continue
        _fetch_records(store, run, there)
        return Fetched(run.root, _age(name)[0], num_bytes, damaged)
    raise CheckpointError("mirror/all-damaged", address=store.address, num=len(damaged), why=damaged[0][1])


def _fetch_checkpoint(store: Store, run: RunDir, name: str, files: Mapping[str, int]) -> int:
    """Bring a checkpoint under a name that is none, verify it, then give it its own."""
    run.checkpoints.mkdir(parents=True, exist_ok=True)
    temp = run.checkpoints / str(TempName(_age(name)[0], 0))
    shutil.rmtree(temp, ignore_errors=True)
    temp.mkdir()
    try:
        for file in files:
            if "/" in file or file.startswith("."):
                raise CheckpointError("checkpoint/extra-file", path=temp / file, num=1)
            store.get(f"{_FOLDER}/{name}/{file}", temp / file)
        manifest = verify_checkpoint(temp)
        if manifest.step != _age(name)[0]:
            raise CheckpointError("checkpoint/wrong-step", path=temp, have=manifest.step, want=_age(name)[0])
        for file in files:
            _sync(temp / file)
        _sync(temp)
        temp.rename(run.checkpoints / name)
        _sync(run.checkpoints)
    finally:
        shutil.rmtree(temp, ignore_errors=True)
    return manifest.total_bytes


def _fetch_records(store: Store, run: RunDir, there: Mirrored) -> None:
    for name in _RECORDS:
        target = run.root / name
        if name not in there.records or target.exists():
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        part = target.with_name(f".{target.name}.new")
        part.unlink(missing_ok=True)
        store.get(name, part)
        part.rename(target)


def best_of(path: Path) -> int | None:
    """Return the best step as a checkpoint knows it."""
    return read_manifest(path).best_step


def _put_text(store: Store, name: str, text: str) -> None:
    with tempfile.TemporaryDirectory(prefix="headway-mirror-") as folder:
        part = Path(folder, "text")
        part.write_text(text, encoding="utf-8")
        store.put(part, name)


def _get_text(store: Store, name: str) -> str:
    with tempfile.TemporaryDirectory(prefix="headway-mirror-") as folder:
        part = Path(folder, "text")
        store.get(name, part)
        return part.read_text(encoding="utf-8")


def _age(name: str) -> tuple[int, int]:
    found = parse_final(name)
    assert found is not None, "only names of checkpoints are listed"
    return found.step, found.rewrite


def _sync(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
