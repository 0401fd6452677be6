"""Atlas' data on disk: episodes in, an index out.

    <cache_dir>/index/<fingerprint>/{index.json, actions.npy}        what there is, which episodes are held out
    <cache_dir>/features/<key>/                                      what frozen encoders say of it (see features.py)

The fingerprint is of names, sizes and times of the files; changed files get a new index, and a rank that meets them
without one refuses. Nothing heavy is imported when all is ready.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from headway.errors import CheckError
from headway.messages import say as line
from headway.recipes.atlas.find import find_language, find_vggt
from headway.recipes.atlas.section import AtlasSection
from headway.task import hold, install
from headway.units import count

FORMAT = 1
"""Raised when the index changes its meaning."""
SYNTHETIC_MARK = "synthetic.json"

Say = Callable[[str], None]
"""Shows one line to the person who waits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Index:
    """What an index folder says; `index.json`."""

    train: list[dict[str, Any]]
    """Episodes to train on, as `Episode` fields; their frames are the samples, in this order."""
    val: list[dict[str, Any]]
    """Held-out episodes; no frame of them is trained on."""
    content: str
    """BLAKE3 of every byte of the episodes: the same data gives the same hash on any machine."""
    baselines: dict[str, float]
    """What answering with the training set's mean scores on the held-out episodes."""
    is_synthetic: bool

    @property
    def train_frames(self) -> int:
        """Training samples."""
        return sum(episode["frames"] for episode in self.train)

    @property
    def val_frames(self) -> int:
        """Held-out samples."""
        return sum(episode["frames"] for episode in self.val)


def data_dir(section: AtlasSection) -> Path:
    """Return the folder of the episodes."""
    return Path(section.data_dir).expanduser().absolute()


def cache_dir(section: AtlasSection) -> Path:
    """Return the folder for what is made from them."""
    return Path(section.cache_dir).expanduser().absolute()


def splits_of(section: AtlasSection) -> list[str]:
    """Return the folders that are read."""
    return [section.train_split, *([section.val_split] if section.val_split else [])]


def fingerprint(section: AtlasSection, files: list[Path]) -> str:
    """Return a hash of everything the index depends on, without reading the episodes."""
    base = data_dir(section)
    held = [section.train_split, section.val_split, section.val_share, section.use_wrist_camera]
    digest = hashlib.sha256(json.dumps([FORMAT, *held]).encode())
    for file in files:
        status = file.stat()
        digest.update(f"\n{file.relative_to(base)} {status.st_size} {status.st_mtime_ns}".encode())
    return digest.hexdigest()[:20]


def find_index(section: AtlasSection) -> tuple[Path, Index] | None:
    """Return the index of the episodes as they are now, or None when there is none."""
    from headway.recipes.atlas.episodes import list_files

    files = list_files(data_dir(section), splits_of(section))
    folder = cache_dir(section) / "index" / fingerprint(section, files)
    try:
        values = json.loads((folder / "index.json").read_text(encoding="utf-8"))
        return folder, Index(**values)
    except FileNotFoundError:
        return None
    except (ValueError, TypeError) as err:
        raise CheckError("atlas/bad-index", file=folder / "index.json", why=err, folder=folder) from err


def open_index(section: AtlasSection) -> tuple[Path, Index]:
    """Return the index; a rank calls this and never makes one itself."""
    found = find_index(section)
    if found is None:
        raise CheckError("atlas/not-prepared", folder=data_dir(section))
    return found


def count_train_samples(section: AtlasSection) -> int | None:
    """Return the training frames, or None when there is no index yet."""
    found = find_index(section)
    return None if found is None else found[1].train_frames


def baseline(section: AtlasSection) -> dict[str, float]:
    """Return what constant answers score, by measure name; empty when there is no index yet."""
    found = find_index(section)
    return {} if found is None else dict(found[1].baselines)


def prepare(section: AtlasSection, say: Say) -> dict[str, int]:
    """Make or check everything ranks read; return the counts. Safe when several processes call it at once."""
    for where in (find_vggt(section), find_language(section)):
        if where.stands_in_for is not None:
            say(line("atlas/stands-in", key=where.key, name=where.stands_in_for))
    index = _index(section, say)
    return {"train_samples": index.train_frames, "val_samples": index.val_frames}


def _index(section: AtlasSection, say: Say) -> Index:
    # Only here: episodes.py wants numpy, and a start that shows an error does not.
    from headway.recipes.atlas.episodes import list_files

    base, cache = data_dir(section), cache_dir(section)
    is_synthetic = (base / SYNTHETIC_MARK).exists()
    files = list_files(base, splits_of(section))
    if not section.synthetic and not files:
        raise CheckError("atlas/no-episodes", folder=base, split=section.train_split)
    if not section.synthetic and is_synthetic:
        raise CheckError("atlas/only-synthetic", folder=base)
    found = find_index(section) if files else None
    if found is not None:
        return found[1]
    try:
        with hold(cache, say):
            return _make(section, say)
    except OSError as err:
        raise CheckError("atlas/cannot-write", folder=cache, why=err.strerror or err) from err


def _make(section: AtlasSection, say: Say) -> Index:
    try:
        from headway.recipes.atlas import build
        from headway.recipes.atlas.episodes import list_files
    except ModuleNotFoundError as err:
        raise CheckError("atlas/missing-library", package=err.name) from err
    base = data_dir(section)
    if not list_files(base, splits_of(section)):
        say(line("atlas/making-episodes", folder=base))
        install(base, build.write_synthetic)
    files = list_files(base, splits_of(section))
    # Another process may have finished while this one waited for the lock.
    found = find_index(section)
    if found is None:
        say(line("atlas/reading-episodes", files=count(len(files)), folder=base))
        folder = cache_dir(section) / "index" / fingerprint(section, files)
        install(folder, lambda temp: build.write_index(section, files, temp))
        found = open_index(section)
    index = found[1]
    say(line("atlas/prepared", train=len(index.train), frames=count(index.train_frames), val=len(index.val)))
    return index


def index_json(index: Index) -> str:
    """Return the text of `index.json`."""
    return json.dumps(asdict(index), ensure_ascii=False) + "\n"
