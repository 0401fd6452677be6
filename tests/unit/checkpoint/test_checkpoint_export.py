from __future__ import annotations

import pytest
import torch
from safetensors.torch import load_file

from fakes.disks import Keep, make_checkpoint
from headway.checkpoint import export_pt, export_safetensors, plan_export
from headway.checkpoint.torch_state import Piece, Saver, split_replicated
from headway.errors import CheckpointError


@pytest.fixture
def saved(tmp_path):
    state = {
        "model/embed.weight": torch.randn(1000, 300),
        "model/norm": torch.randn(5).bfloat16(),
        "ema/norm": torch.zeros(5),
        "optim/norm/m": torch.ones(5),
    }
    settings = {"world_size": 2, "attempt": 1, "retention": Keep(), "report": lambda event: None}
    savers = [Saver(tmp_path / "checkpoints", rank=rank, **settings) for rank in range(2)]
    for rank, saver in enumerate(savers):
        saver.save(1000, split_replicated(state, rank, 2), {"samples": 80})
    assert all(saver.wait(30) for saver in savers)
    return tmp_path / "checkpoints" / "step-00001000", state


def test_weights_come_out_whole_and_with_plain_names(saved, tmp_path):
    path, state = saved
    done = export_safetensors(path, tmp_path / "w.safetensors")
    found = load_file(tmp_path / "w.safetensors")
    assert sorted(found) == ["embed.weight", "norm"] and done.num_tensors == 2
    assert all(torch.equal(found[name], state[f"model/{name}"]) for name in found)
    assert list(load_file(export_safetensors(path, tmp_path / "e.safetensors", select="ema").files[0])) == [
        "embed.weight",
        "norm",
    ]


def test_boxes_cut_along_other_axes_are_put_together(tmp_path):
    whole = torch.randn(4, 6, 5)
    cuts = [Piece("model/w", whole[:, a:b], (4, 6, 5), (0, a, 0)) for a, b in ((0, 2), (2, 6))]
    saver = Saver(tmp_path, rank=0, world_size=1, attempt=1, retention=Keep(), report=lambda event: None)
    saver.save(1, cuts, {})
    saver.wait(30)
    export_safetensors(tmp_path / "step-00000001", tmp_path / "w.safetensors")
    assert torch.equal(load_file(tmp_path / "w.safetensors")["w"], whole)


def test_a_broken_checkpoint_is_not_exported(saved, tmp_path):
    path, _ = saved
    shard = path / "rank-00000.safetensors"
    data = bytearray(shard.read_bytes())
    data[-1] ^= 1
    shard.write_bytes(data)
    with pytest.raises(CheckpointError) as refused:
        export_safetensors(path, tmp_path / "w.safetensors")
    assert refused.value.code == "checkpoint/wrong-hash"
    assert sorted(file.name for file in tmp_path.iterdir()) == ["checkpoints"]


def test_nothing_is_overwritten_and_a_plan_writes_nothing(saved, tmp_path):
    path, _ = saved
    out = tmp_path / "w.safetensors"
    assert plan_export(path, out, form="safetensors").bytes == 1000 * 300 * 4 + 10 and not out.exists()
    out.write_text("mine")
    with pytest.raises(CheckpointError) as refused:
        export_safetensors(path, out)
    assert refused.value.code == "checkpoint/export-exists" and out.read_text() == "mine"


def test_a_checkpoint_without_such_weights_says_so(tmp_path):
    path = make_checkpoint(tmp_path, 10)
    with pytest.raises(CheckpointError) as refused:
        plan_export(path, tmp_path / "x", select="ema", form="pt")
    assert refused.value.code == "checkpoint/nothing-to-export"


def test_a_python_without_torch_is_told_as_such(saved, tmp_path):
    path, _ = saved
    with pytest.raises(CheckpointError) as refused:
        export_pt(path, tmp_path / "out", python="/bin/false")
    assert refused.value.code == "checkpoint/export-child" and list((tmp_path / "out").iterdir()) == []
