from __future__ import annotations

import json

import torch

from fakes.disks import Keep
from headway.checkpoint import export_pt
from headway.checkpoint.torch_state import Saver, split_replicated


def test_the_guides_files_load_with_weights_only(tmp_path):
    state = {"model/embed.weight": torch.randn(70, 30), "model/norm": torch.randn(5).bfloat16()}
    fields = {
        "samples": 80,
        "measures": {"val_bpb": 1.5},
        "meta": {"export": {"model_config": {"n_layer": 4}}, "own": 1},
    }
    saver = Saver(tmp_path, rank=0, world_size=1, attempt=1, retention=Keep(), report=lambda event: None)
    saver.save(1000, split_replicated(state, 0, 1), fields)
    assert saver.wait(30)
    export_pt(tmp_path / "step-00001000", tmp_path / "out")
    assert sorted(file.name for file in (tmp_path / "out").iterdir()) == ["meta_001000.json", "model_001000.pt"]
    found = torch.load(tmp_path / "out" / "model_001000.pt", weights_only=True)
    assert {f"model/{name}" for name in found} == set(state)
    assert all(torch.equal(found[name], state[f"model/{name}"]) for name in found)
    meta = json.loads((tmp_path / "out" / "meta_001000.json").read_text())
    assert meta == {"step": 1000, "val_bpb": 1.5, "model_config": {"n_layer": 4}, "samples": 80, "suspect": False}
