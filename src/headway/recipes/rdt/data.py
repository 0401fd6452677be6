"""RDT's data on disk: LIBERO's demonstrations as they are published, and what is worked out from them once.

    <data_dir>/<TASK>_demo.hdf5          one file a task: data/demo_0 … with actions and obs/*
    <data_dir>/dataset_stat.json         statistics by name, when somebody brought them (the published format)
    <data_dir>/prepared/<fingerprint>/   index.json: demonstrations, lengths, split, statistics, what constants score

The demonstrations are read where they are; only the index is made. It is named after the files it was made from, so
changed files get another one, and a rank that meets them without one refuses. Neither h5py nor numpy is imported here.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from headway.errors import CheckError
from headway.messages import say as line
from headway.recipes.rdt.section import RdtSection
from headway.task import hold, sync
from headway.units import count, size

FORMAT = 1
"""Raised when the index changes its meaning."""
SYNTHETIC_MARK = "synthetic.json"
_SYNTHETIC_BYTES = 64e6

Say = Callable[[str], None]
"""Shows one line to the person who waits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Demo:
    """One demonstration of one file."""

    file: str
    name: str
    """Its group in the file: `data/demo_3`."""
    length: int
    is_held_out: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Index:
    """What is known of the demonstrations; `index.json`."""

    fingerprint: str
    instructions: dict[str, str]
    """File name to the sentence of its task."""
    demos: tuple[Demo, ...]
    statistics: dict[str, dict[str, Any]]
    """By name, in the published form: state_mean, state_std, state_min, state_max, action_*; 128 numbers each."""
    baselines: dict[str, float]
    """What always answering with the mean of the training actions scores on the held-out demonstrations, by measure."""
    content: str
    """BLAKE3 of actions and pictures: the same data gives the same hash on any machine."""


def data_dir(section: RdtSection) -> Path:
    """Return the folder of the demonstrations."""
    return Path(section.data_dir).expanduser().absolute()


def list_files(folder: Path) -> list[Path]:
    """Return the demonstration files, one a task, in order."""
    files = sorted(folder.glob("*_demo.hdf5"))
    if not files:
        raise CheckError("rdt/no-demos", folder=folder)
    return files


def fingerprint(section: RdtSection, files: list[Path]) -> str:
    """Return a hash of everything the index depends on, without reading the files."""
    asked = (
        section.holdout,
        section.rotation,
        section.tail,
        section.action_chunk_size,
        section.position_scale,
        section.rotation_scale,
        section.dataset,
    )
    digest = hashlib.sha256(f"{FORMAT} {asked!r}".encode())
    for file in files:
        status = file.stat()
        digest.update(f"\n{file.name} {status.st_size} {status.st_mtime_ns}".encode())
    return digest.hexdigest()[:20]


def prepared_dir(section: RdtSection) -> Path:
    """Return where the index of these demonstrations is, or would be."""
    return data_dir(section) / "prepared" / fingerprint(section, list_files(data_dir(section)))


def find_index(section: RdtSection) -> Index | None:
    """Return what is prepared, or None when there are no demonstrations or no index of them as they are now."""
    if not any(data_dir(section).glob("*_demo.hdf5")):
        return None
    return _read_index(prepared_dir(section) / "index.json")


def _read_index(file: Path) -> Index | None:
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
        return Index(**{**data, "demos": tuple(Demo(**demo) for demo in data["demos"])})
    except FileNotFoundError:
        return None
    except (ValueError, TypeError, KeyError) as err:
        raise CheckError("rdt/bad-index", file=file, why=err, folder=file.parent) from err


def open_index(section: RdtSection) -> Index:
    """Return the index; a rank calls this and never prepares anything itself."""
    index = find_index(section)
    if index is None:
        raise CheckError("rdt/not-prepared", folder=data_dir(section))
    return index


def choose_statistics(section: RdtSection, index: Index) -> Mapping[str, Any]:
    """Return the statistics of the asked name: from data_dir's own file first, else of this data. Never guessed."""
    name = section.statistics or section.dataset
    file = data_dir(section) / "dataset_stat.json"
    brought: dict[str, Any] = {}
    if file.is_file():
        try:
            brought = json.loads(file.read_text(encoding="utf-8"))
        except ValueError as err:
            raise CheckError("rdt/bad-statistics", file=file, why=err) from err
    known = {**index.statistics, **brought}
    if name not in known:
        raise CheckError("rdt/no-statistics", name=name, known=", ".join(sorted(known)), folder=data_dir(section))
    found: Mapping[str, Any] = known[name]
    short = [key for key in ("state_mean", "state_std") if len(found.get(key, ())) != 128]
    if short:
        raise CheckError("rdt/bad-statistics", file=file, why=line("rdt/why-length", name=name, keys=short))
    return found


def starts_of(demo: Demo, section: RdtSection) -> int:
    """Return at how many of its steps a chunk may start."""
    if section.tail == "original":
        return max(0, demo.length - section.action_chunk_size + 1)
    return demo.length


def count_train_samples(section: RdtSection) -> int | None:
    """Return the training samples of one epoch, or None when nothing is prepared."""
    index = find_index(section)
    if index is None:
        return None
    return sum(starts_of(demo, section) for demo in index.demos if not demo.is_held_out)


def baseline(section: RdtSection) -> dict[str, float]:
    """Return what the mean action scores, by measure name; empty when nothing is prepared."""
    index = find_index(section)
    if index is None:
        return {}
    # Only here: numpy is not wanted where a plan is made.
    from headway.recipes.rdt.rollout import try_constant

    rate = try_constant(section, index.statistics[section.dataset]["action_mean"], index.instructions.values())
    return dict(index.baselines) if rate is None else {**index.baselines, "mean_success_rate": rate}


def prepare(section: RdtSection, say: Say) -> dict[str, int]:
    """Make or check everything ranks read; return the counts. Safe when several processes call it at once."""
    folder = data_dir(section)
    if not section.synthetic:
        list_files(folder)
        if (folder / SYNTHETIC_MARK).exists():
            raise CheckError("rdt/only-synthetic", folder=folder)
    index = find_index(section) or _prepare_locked(section, say)
    choose_statistics(section, index)
    train = count_train_samples(section) or 0
    if train == 0:
        longest = max(demo.length for demo in index.demos)
        raise CheckError("rdt/too-short", longest=longest, chunk=section.action_chunk_size)
    kept = [demo for demo in index.demos if demo.is_held_out]
    held = sum(starts_of(demo, section) for demo in kept)
    if held == 0:
        facts = {"chunk": section.action_chunk_size, "holdout": section.holdout}
        raise CheckError("rdt/held-out-too-short", longest=max(demo.length for demo in kept), **facts)
    return {"train_samples": train, "val_samples": held}


def _prepare_locked(section: RdtSection, say: Say) -> Index:
    folder = data_dir(section)
    try:
        with hold(folder, say):
            # Another process may have finished while this one waited.
            return find_index(section) or _make(section, say)
    except OSError as err:
        why = err.strerror or str(err)
        raise CheckError("rdt/cannot-write", folder=folder, why=why, need=size(_SYNTHETIC_BYTES)) from err


def _make(section: RdtSection, say: Say) -> Index:
    # Only here: h5py and numpy take longer to import than a second start takes altogether.
    try:
        from headway.recipes.rdt import build
    except ModuleNotFoundError as err:
        raise CheckError("rdt/missing-library", package=err.name) from err

    folder = data_dir(section)
    if section.synthetic and _lacks_demos(folder):
        say(line("rdt/making-demos", folder=folder))
        _install(folder, build.write_synthetic)
    files = list_files(folder)
    say(line("rdt/reading-demos", files=len(files), size=size(sum(file.stat().st_size for file in files))))
    mark = fingerprint(section, files)
    index = build.read_demos(section, files, mark=mark)

    def write(temp: Path) -> None:
        (temp / "index.json").write_text(json.dumps(asdict(index), indent=1) + "\n", encoding="utf-8")

    ready = folder / "prepared" / mark
    ready.mkdir(parents=True, exist_ok=True)
    _install(ready, write)
    kept = sum(demo.is_held_out for demo in index.demos)
    say(line("rdt/prepared", train=count(len(index.demos) - kept), held=count(kept), folder=ready))
    return index


def _lacks_demos(folder: Path) -> bool:
    """Whether there are none, or only a part of the synthetic ones, because their maker was killed."""
    num = sum(1 for _ in folder.glob("*_demo.hdf5"))
    return num == 0 or ((folder / SYNTHETIC_MARK).exists() and num < 2)


def _install(folder: Path, fill: Callable[[Path], object]) -> None:
    """Fill a temporary folder, make its files durable, then give each its name; a mark comes first."""
    for left in folder.glob(".tmp-*"):
        # The lock is held, so what a killed process left behind is nobody's.
        shutil.rmtree(left)
    temp = folder / f".tmp-{os.getpid()}"
    temp.mkdir()
    try:
        fill(temp)
        for file in sorted(temp.iterdir(), key=lambda file: file.name != SYNTHETIC_MARK):
            sync(file)
            file.rename(folder / file.name)
    finally:
        shutil.rmtree(temp, ignore_errors=True)
    sync(folder)
