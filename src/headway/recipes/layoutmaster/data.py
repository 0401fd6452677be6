"""LayoutMaster's data on disk: poster folders in, arrays that ranks map into memory out.

    <data_dir>/<poster>/{json,parse,trajectories.safetensors}     see poster.py
    <data_dir>/.prepared/<fingerprint>/                           images.bin layouts.safetensors index.json

Images are decoded and resized once, so a rank reads bytes instead of running 32 loader processes. A prepared folder is
named after what it was made from and never changes: changed posters get a new one from `prepare`, and a rank that meets
them without one refuses. Neither numpy nor pillow is imported when all is ready.
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
from headway.recipes.layoutmaster.poster import json_of, list_posters
from headway.recipes.layoutmaster.section import QWEN, LayoutMasterSection
from headway.task import hold, install, is_sealed, look_quickly
from headway.units import size

FORMAT = 1
"""Raised when the prepared files change their meaning."""
SYNTHETIC_MARK = ".synthetic.json"
_PREPARED = ".prepared"

Say = Callable[[str], None]
"""Shows one line to the person who waits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Index:
    """What a prepared folder holds; `index.json`."""

    fingerprint: str
    """Names, sizes and times of the posters' files, and the settings they were prepared with, as one hash."""
    names: list[str]
    """Posters in the order of the arrays."""
    num_train: int
    """The first so many are trained on, the rest is held out."""
    num_images: int
    image_size: int
    missing_images: int
    """Elements without a PNG; they are black, as in the original."""
    baselines: dict[str, float]
    """What answers without a model score on the held-out posters."""
    content: dict[str, str]
    """BLAKE3 of the arrays: the same data gives the same hash on any machine."""


def base_dir(section: LayoutMasterSection) -> Path:
    """Return the folder of the posters."""
    return Path(section.data_dir).expanduser().absolute()


def fingerprint(section: LayoutMasterSection, posters: list[Path]) -> str:
    """Return a hash of everything the prepared files depend on, without reading a poster."""
    settings = (section.max_elements, section.image_size, section.canvas_size, section.train_ratio)
    digest = hashlib.sha256(f"{FORMAT} {settings}".encode())
    for poster in posters:
        digest.update(f"\n{poster.name}".encode("utf-8", "surrogateescape"))
        for file in _files_of(poster):
            status = file.stat()
            digest.update(f"\n{file.name} {status.st_size} {status.st_mtime_ns}".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()[:20]


def _files_of(poster: Path) -> list[Path]:
    own = poster / "trajectories.safetensors"
    return [json_of(poster), *sorted((poster / "parse").glob("*.png")), *([own] if own.is_file() else [])]


def prepared_dir(section: LayoutMasterSection) -> Path:
    """Return where the prepared files of these posters are, or would be."""
    base = base_dir(section)
    return base / _PREPARED / fingerprint(section, list_posters(base))


def find_index(section: LayoutMasterSection) -> Index | None:
    """Return what is prepared, or None when there are no posters or they have not been prepared as they are now."""
    return _read_index(prepared_dir(section)) if list_posters(base_dir(section)) else None


def _read_index(folder: Path) -> Index | None:
    if not is_sealed(folder):
        return None
    try:
        index = Index(**json.loads((folder / "index.json").read_text(encoding="utf-8")))
    except FileNotFoundError:
        return None
    except (ValueError, TypeError) as err:
        raise CheckError("layoutmaster/bad-index", file=folder / "index.json", why=err, folder=folder) from err
    images = folder / "images.bin"
    have, want = images.stat().st_size if images.exists() else 0, index.num_images * 3 * index.image_size**2
    if have != want:
        raise CheckError("layoutmaster/damaged", file=images, have=have, want=want, folder=folder)
    look_quickly(folder)
    return index


def open_index(section: LayoutMasterSection) -> tuple[Path, Index]:
    """Return the prepared folder and what it holds; a rank calls this and never prepares anything itself."""
    folder = prepared_dir(section)
    index = _read_index(folder)
    if index is None:
        raise CheckError("layoutmaster/not-prepared", folder=base_dir(section))
    return folder, index


def count_train_samples(section: LayoutMasterSection) -> int | None:
    """Return the training posters of one epoch, or None when the data is not prepared."""
    index = find_index(section)
    return None if index is None else index.num_train


def baselines(section: LayoutMasterSection) -> dict[str, float]:
    """Return what answers without a model score, by measure name; empty when the data is not prepared."""
    index = find_index(section)
    return {} if index is None else dict(index.baselines)


def prepare(section: LayoutMasterSection, say: Say) -> dict[str, int]:
    """Make or check everything ranks read; return the counts. Safe when several processes call it at once."""
    base = base_dir(section)
    if not section.synthetic:
        if not list_posters(base):
            raise CheckError("layoutmaster/no-posters", folder=base)
        if (base / SYNTHETIC_MARK).exists():
            raise CheckError("layoutmaster/only-synthetic", folder=base)
    if section.visual_backbone == QWEN and section.backbone_path is not None:
        say(line("layoutmaster/path-unused", path=section.backbone_path))
    index = find_index(section) or _prepare_locked(section, say)
    if index.missing_images:
        say(line("layoutmaster/missing-images", num=index.missing_images, total=index.num_images, folder=base))
    return {"train_samples": index.num_train, "val_samples": len(index.names) - index.num_train}


def _prepare_locked(section: LayoutMasterSection, say: Say) -> Index:
    base = base_dir(section)
    try:
        with hold(base, say):
            # Another process may have finished while this one waited.
            return find_index(section) or _make(section, say)
    except OSError as err:
        raise CheckError("layoutmaster/cannot-write", folder=base, why=err.strerror or err) from err


def _make(section: LayoutMasterSection, say: Say) -> Index:
    # Only here: numpy and pillow take a while to import, and a second start does not need them.
    try:
        from headway.recipes.layoutmaster import build
    except ModuleNotFoundError as err:
        raise CheckError("layoutmaster/missing-library", package=err.name) from err

    base = base_dir(section)
    if section.synthetic and len(list_posters(base)) < _num_synthetic(base):
        build.install_synthetic(section, base)
        say(line("layoutmaster/made-posters", posters=len(list_posters(base)), folder=base))
    posters = list_posters(base)
    mark = fingerprint(section, posters)
    ready = base / _PREPARED / mark
    install(ready, lambda temp: build.write_arrays(section, posters, temp, mark=mark), seal=True)
    index = _read_index(ready)
    assert index is not None, "the builder writes index.json"
    taken = size(sum(file.stat().st_size for file in ready.iterdir()))
    held = len(index.names) - index.num_train
    say(line("layoutmaster/prepared", train=index.num_train, val=held, size=taken, folder=ready))
    return index


def _num_synthetic(base: Path) -> int:
    """Return how many posters the synthetic set of a folder has when complete; 1 where there is no such set yet."""
    mark = base / SYNTHETIC_MARK
    return int(json.loads(mark.read_text(encoding="utf-8"))["posters"]) if mark.exists() else 1


def index_json(index: Index) -> str:
    """Return the text of `index.json`."""
    values: dict[str, Any] = asdict(index)
    return json.dumps(values, indent=1, ensure_ascii=False) + "\n"
