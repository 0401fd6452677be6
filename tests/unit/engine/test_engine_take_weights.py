from __future__ import annotations

import pytest
import torch
from safetensors.torch import save_file

from fakes.engine_run import make_run
from headway.checkpoint import export_folder, list_checkpoints
from headway.engine.snapshot import save, wait_for_save
from headway.engine.take_weights import fill
from headway.errors import CheckpointError
from headway.weights import read_weights

WORDS = ("task.norm=true", "task.tied=true", "task.depth=3")


def weights_of(run):
    return {name: value.clone() for name, value in run.model.state_dict().items()}


def is_same(one, other):
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def test_a_folder_of_export_fills_weights_statistics_and_average(tmp_path):
    first = make_run(tmp_path / "a", *WORDS, "ema.decay=0.9")
    for value in (*first.model.parameters(), *first.model.buffers(), *first.ema.state().values()):
        value.detach().copy_(torch.randint(9, value.shape))
    save(first, is_needed=True)
    wait_for_save(first)
    export_folder(list_checkpoints(first.checkpoints)[-1].path, tmp_path / "out")
    other = make_run(tmp_path / "b", *WORDS, "ema.decay=0.9", "seed=5")
    assert not is_same(weights_of(other), weights_of(first))
    fill(other, read_weights(tmp_path / "out"))
    assert is_same(weights_of(other), weights_of(first)) and is_same(other.ema.state(), first.ema.state())


def test_without_an_average_in_the_file_it_begins_at_the_weights(tmp_path):
    run = make_run(tmp_path / "a", *WORDS, "ema.decay=0.9")
    new = {name: value + 1 for name, value in run.model.state_dict().items()}
    torch.save(new, tmp_path / "model.pt")  # tied weights are under both names
    fill(run, read_weights(tmp_path / "model.pt"))
    assert is_same(weights_of(run), new)
    assert all(torch.equal(value, new[name]) for name, value in run.ema.state().items())


def test_other_float_types_are_converted(tmp_path):
    run = make_run(tmp_path / "a")
    new = {name: torch.ones_like(value, dtype=torch.bfloat16) for name, value in run.model.state_dict().items()}
    save_file(new, tmp_path / "w.safetensors")
    fill(run, read_weights(tmp_path / "w.safetensors"))
    assert all(bool((value == 1).all()) and value.dtype == torch.float32 for value in run.model.parameters())


@pytest.mark.parametrize(("what", "code"), [("missing", "missing"), ("extra", "extra"), ("shape", "shape")])
def test_what_does_not_fit_is_named_before_anything_is_changed(tmp_path, what, code):
    run = make_run(tmp_path / "a")
    before = weights_of(run)
    given = {name: torch.zeros_like(value) for name, value in before.items()}
    if what == "missing":
        del given["2.weight"]
    elif what == "extra":
        given["2.weights"] = torch.zeros(2)
    else:
        given["2.weight"] = torch.zeros(3, 16)
    save_file(given, tmp_path / "w.safetensors")
    with pytest.raises(CheckpointError) as refused:
        fill(run, read_weights(tmp_path / "w.safetensors"))
    assert refused.value.code == f"checkpoint/import-{code}" and "2.weight" in refused.value.text()
    assert is_same(weights_of(run), before)
