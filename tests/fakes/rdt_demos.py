"""A handful of scripted demonstrations and a small RDT config on them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from headway.config import RunConfig
from headway.recipes.rdt import build
from headway.recipes.rdt.data import prepare
from headway.recipes.rdt.section import RdtSection
from headway.recipes.rdt.task import RdtTask, make_task

SMALL: dict[str, Any] = {
    "hidden_size": 16,
    "depth": 2,
    "num_heads": 2,
    "action_chunk_size": 8,
    "img_history_size": 2,
    "num_cameras": 3,
    "img_patches": 16,
    "img_token_dim": 32,
    "tokenizer_max_length": 16,
    "lang_token_dim": 16,
    "cond_mask_prob": 0.0,
    "synthetic": True,
    "sample": {"batch": 4, "batches": 2},
    "rollout": {"episodes": 2, "max_steps": 4, "exec_horizon": 4},
}


def write_demos(folder: Path, demos: int = 4) -> Path:
    """Write a few demonstrations of both tasks."""
    folder.mkdir(parents=True, exist_ok=True)
    build.write_synthetic(folder, demos=demos)
    return folder


def make_section(folder: Path, **changes: Any) -> RdtSection:
    """Return a small section on these demonstrations, prepared."""
    section = RdtSection(**{**SMALL, "data_dir": str(folder), **changes})
    prepare(section, lambda line: None)
    return section


def make_small_task(folder: Path, **changes: Any) -> RdtTask:
    """Return a small task on these demonstrations."""
    return make_task(RunConfig(task=make_section(folder, **changes)))
