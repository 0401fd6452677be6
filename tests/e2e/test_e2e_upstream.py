"""A file of the system a recipe comes from becomes a run, and a run becomes such a file, through the commands."""

from __future__ import annotations

import json

import numpy as np
import torch
from command import headway

from headway.recipes.layoutmaster.model import LayoutDiffusionTransformer, LayoutSize


def test_a_trainers_file_becomes_a_run_and_leaves_it_as_it_came(tmp_path):
    size = LayoutSize(visual_dim=24, hidden_dim=32, num_layers=3, max_elements=25, is_fixed=False)
    layout = LayoutDiffusionTransformer(size)
    optimizer = torch.optim.AdamW(layout.parameters(), lr=4e-4)
    file = {
        "epoch": 7,
        "model_state_dict": {f"module.{name}": value for name, value in layout.state_dict().items()},
        "optimizer_state_dict": optimizer.state_dict(),
        "best_loss": np.float64(1.5),
        "config": {"optimizer": {"lr": 4e-4}},
        "is_multi_gpu": True,
    }
    torch.save(file, tmp_path / "best_model.pth")
    made = headway(tmp_path, "ckpt", "import", "layoutmaster", "best_model.pth", "--to", "runs/first", "--json")
    assert made.returncode == 0, made.stderr
    told = json.loads(made.stdout)
    assert "task.hidden_dim=32" in told["settings"] and 'task.head_mode="original"' in told["settings"]
    assert all(name.startswith("visual.") for name in told["kept"])
    gone = headway(tmp_path, "ckpt", "export", "first", "--format", "upstream", "--to", "out", "--json")
    assert gone.returncode == 0 and json.loads(gone.stdout)["files"] == ["out/best_model.pth"], gone.stderr
    back = torch.load(tmp_path / "out" / "best_model.pth", weights_only=True)
    assert {"optimizer_state_dict", "scheduler_state_dict", "global_step", "best_loss", "epoch"} <= back.keys()
    again = LayoutDiffusionTransformer(size)
    again.load_state_dict(back["model_state_dict"])
    assert all(torch.equal(value, layout.state_dict()[name]) for name, value in again.state_dict().items())
    torch.optim.AdamW(again.parameters()).load_state_dict(back["optimizer_state_dict"])
    twice = headway(tmp_path, "ckpt", "export", "first", "--format", "upstream", "--to", "out")
    assert twice.returncode != 0 and "already exists" in twice.stderr
