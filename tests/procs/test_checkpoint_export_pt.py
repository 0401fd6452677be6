from __future__ import annotations

import json

import torch
from safetensors.torch import load_file

from fakes.disks import Keep
from headway.checkpoint import export_pt, export_safetensors
from headway.checkpoint.state import Saver, split_replicated
from headway.engine.snapshot import find_aliases


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


def test_tied_weights_are_exported_under_all_their_names(tmp_path):
    """Issue 19.17: a strict load of the exported file failed for the name that is not saved."""
    model = torch.nn.ModuleDict({"embed": torch.nn.Embedding(300, 50), "head": torch.nn.Linear(50, 300, bias=False)})
    model["head"].weight = model["embed"].weight
    state = {f"model/{name}": value.detach() for name, value in model.named_parameters()}
    assert list(state) == ["model/embed.weight"]
    saver = Saver(tmp_path, rank=0, world_size=1, attempt=1, retention=Keep(), report=lambda event: None)
    saver.save(7, split_replicated(state, 0, 1), {"meta": {"aliases": find_aliases(model)}})
    assert saver.wait(30)
    export_pt(tmp_path / "step-00000007", tmp_path / "out")
    export_safetensors(tmp_path / "step-00000007", tmp_path / "out" / "model.safetensors")
    found = torch.load(tmp_path / "out" / "model_000007.pt", weights_only=True)
    assert found["head.weight"].data_ptr() == found["embed.weight"].data_ptr()
    for weights in (found, load_file(tmp_path / "out" / "model.safetensors")):
        model.load_state_dict(weights, strict=True)
        assert torch.equal(weights["head.weight"], state["model/embed.weight"])
