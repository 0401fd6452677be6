"""Atlas at toy size on a few scripted episodes."""

from __future__ import annotations

from pathlib import Path

from headway.config import RunConfig
from headway.recipes.atlas import build
from headway.recipes.atlas.data import prepare
from headway.recipes.atlas.section import AtlasSection
from headway.recipes.atlas.task import AtlasTask, make_task

TOY = {
    "builtin_encoders": True,
    "synthetic": True,
    "val_share": 0.34,
    "image_size": 32,
    "vggt_patch": 8,
    "vggt_width": 16,
    "vggt_heads": 2,
    "vggt_vit_depth": 1,
    "vggt_depth": 2,
    "vggt_dense_width": 8,
    "point_stride": 8,
    "lang_dim": 16,
    "lang_max_length": 8,
    "vision_features": 16,
    "point_features": (4, 8, 8),
    "pose_features": 4,
    "geom_output_dim": 16,
    "fusion_hidden_dim": 16,
    "fusion_layers": 1,
    "fusion_heads": 2,
    "head_dims": (16, 16),
    "dropout": 0.0,
    "trial_episodes": 2,
    "trial_steps": 2,
}


def write_toy(folder: Path, *, episodes: int = 18, frames: int = 3) -> Path:
    """Write scripted episodes; return the folder of the data."""
    data = folder / "data"
    data.mkdir()
    build.write_synthetic(data, episodes=episodes, frames=frames)
    return data


def toy_section(folder: Path, **changes: object) -> AtlasSection:
    """Return the section of the toy over a folder."""
    places = {"data_dir": str(folder / "data"), "cache_dir": str(folder / "cache")}
    return AtlasSection(**{**TOY, **places, **changes})


def toy_task(folder: Path, config: dict | None = None, **changes: object) -> AtlasTask:
    """Return a prepared task."""
    section = toy_section(folder, **changes)
    prepare(section, lambda line: None)
    return make_task(RunConfig(task=section, **(config or {})))
