"""Where an encoder's weights are on this disk. Nothing is ever fetched: that is a step of its own."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from headway.errors import CheckError
from headway.recipes.atlas.section import AtlasSection

_HUB = Path("~/.cache/huggingface/hub")


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """Where to take an encoder from."""

    key: str
    """The config key that names it."""
    path: Path | None
    """File or folder on this disk; none: the small built-in encoder."""
    stands_in_for: str | None = None
    """What was asked for and is not here."""


def find_vggt(section: AtlasSection) -> Weights:
    """Return where VGGT's weights are."""
    return _find(section, "task.vggt_checkpoint", section.vggt_checkpoint)


def find_language(section: AtlasSection) -> Weights:
    """Return where the language encoder is."""
    return _find(section, "task.lang_encoder_name", section.lang_encoder_name)


def _find(section: AtlasSection, key: str, name: str | None) -> Weights:
    if name is None and section.builtin_encoders:
        return Weights(key=key, path=None)
    path = _on_disk(name) if name else None
    if path is None and not section.builtin_encoders:
        raise CheckError("atlas/no-weights", key=key, name=name or "n/a")
    return Weights(key=key, path=path, stands_in_for=name if path is None else None)


def _on_disk(name: str) -> Path | None:
    """Return a path as it is, or the newest snapshot of a hub name in the hub's own cache."""
    path = Path(name).expanduser()
    if path.exists():
        return path.absolute()
    snapshots = (_HUB.expanduser() / f"models--{name.replace('/', '--')}" / "snapshots").glob("*")
    newest = sorted(snapshots, key=lambda folder: folder.stat().st_mtime)
    return newest[-1] if newest else None
