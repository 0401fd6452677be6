"""What is exported from a run loads into its model, every name of it."""

from __future__ import annotations

import pytest
import torch
from safetensors.torch import load_file, load_model

from fakes.engine_run import make_run
from headway.checkpoint import export_folder, export_pt, export_safetensors, find_resumable
from headway.engine.loop import train


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Return a run with batch norm, an average and two layers that share their weights, and its checkpoint."""
    place = tmp_path_factory.mktemp("run")
    run = make_run(place, "task.norm=true", "task.tied=true", "task.depth=3", "ema.decay=0.5", "train.steps=4")
    train(run)
    return run, find_resumable(run.checkpoints).path


def test_an_exported_average_comes_with_its_statistics(trained, tmp_path):
    run, path = trained
    export_safetensors(path, tmp_path / "ema.safetensors", select="ema")
    export_folder(path, tmp_path)
    average, buffers = run.ema.state(), dict(run.model.named_buffers())
    for file in (tmp_path / "ema.safetensors", tmp_path / "checkpoint-4" / "ema" / "model.safetensors"):
        found = load_file(file)
        assert set(found) == set(average) | set(buffers) and "0.1.running_var" in buffers
        assert all(torch.equal(found[name], value) for name, value in (average | buffers).items())


@pytest.mark.parametrize("select", ["model", "ema"])
def test_tied_weights_have_all_their_names_in_an_exported_pt(trained, tmp_path, select):
    run, path = trained
    export_pt(path, tmp_path, select=select)
    found = torch.load(tmp_path / "model_000004.pt", weights_only=True)
    assert found["1.0.weight"].data_ptr() == found["2.0.weight"].data_ptr()
    fresh = run.task.build_model()
    fresh.load_state_dict(found, strict=True)


def test_safetensors_own_loader_finds_tied_weights(trained, tmp_path):
    run, path = trained
    export_safetensors(path, tmp_path / "model.safetensors")
    fresh = run.task.build_model()
    assert load_model(fresh, tmp_path / "model.safetensors", strict=True) == (set(), [])
    assert all(torch.equal(a, b) for a, b in zip(fresh.parameters(), run.model.parameters(), strict=True))
