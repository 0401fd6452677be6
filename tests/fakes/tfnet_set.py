"""A TFNet data set small enough for a test, in CE-CSL's layout."""

from __future__ import annotations

from pathlib import Path

from headway.recipes.tfnet import synthetic

SMALL = (
    "task.frame_size=20", "task.crop_size=16", "task.channels=[4,4,6,8]", "task.hidden_size=8",
    "task.attention=[2,2,2,2]", "batch.per_device=2", "lr.warmup_samples=0",
)  # fmt: skip


def write_small(folder: Path, clips: int = 6) -> Path:
    """Write a few synthetic clips; return the folder."""
    before = dict(synthetic.CLIPS)
    folder.mkdir(parents=True, exist_ok=True)
    try:
        synthetic.CLIPS.update(train=clips, dev=2, test=2)
        synthetic.write_synthetic(folder)
    finally:
        synthetic.CLIPS.update(before)
    return folder
