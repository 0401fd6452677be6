from __future__ import annotations

import pytest
import torch

from headway.errors import CheckpointError
from headway.weights import Theirs, Upstream, adopt_names, open_weights, read_weights

WANTED = {"a.weight": (2, 3), "b.scale": (2,), "seen.weight": (4,)}


def rename(name, shape):
    if name.startswith("seen."):
        return None
    return Theirs(name=f"net.{name}", shape=(*shape, 1) if name == "a.weight" else None, copies=("net.twin",))


UPSTREAM = Upstream(rename=rename, unused=r".*\.count")


def read(tmp_path, tensors):
    torch.save({"model_state_dict": tensors, "epoch": 1}, tmp_path / "model.pth")
    return adopt_names(read_weights(tmp_path / "model.pth"), WANTED, UPSTREAM)


def make(**changed):
    numbers = torch.arange(6.0).view(2, 3, 1)
    given = {"net.a.weight": numbers, "net.b.scale": torch.ones(2), "net.x.count": torch.tensor(3), "net.twin": numbers}
    return {**given, **changed}


def test_their_names_and_shapes_become_ours(tmp_path):
    found = read(tmp_path, make())
    assert {name: span.shape for name, span in found.weights.spans.items()} == {"a.weight": (2, 3), "b.scale": (2,)}
    assert found.kept == ("seen.weight",) and found.ignored == ("net.x.count",)
    with open_weights(found.weights) as fill:
        fill("a.weight", memoryview(data := bytearray(24)))
    assert torch.frombuffer(data, dtype=torch.float32).tolist() == [0, 1, 2, 3, 4, 5]


def test_what_is_missing_is_refused_under_their_name_and_what_is_left_over_stays_to_be_refused(tmp_path):
    tensors = make()
    del tensors["net.b.scale"]
    with pytest.raises(CheckpointError) as refused:
        read(tmp_path, tensors)
    assert refused.value.code == "checkpoint/import-missing" and refused.value.facts["name"] == "net.b.scale"
    assert "net.odd" in read(tmp_path, make(**{"net.odd": torch.zeros(1)})).weights.spans


def test_a_shape_that_is_not_theirs_stays_to_be_refused(tmp_path):
    found = read(tmp_path, make(**{"net.a.weight": torch.zeros(3, 2, 1)}))
    assert found.weights.spans["a.weight"].shape == (3, 2, 1)


def test_a_file_with_our_own_names_is_left_as_it_is(tmp_path):
    torch.save({name: torch.zeros(shape) for name, shape in WANTED.items()}, tmp_path / "model.pt")
    weights = read_weights(tmp_path / "model.pt")
    assert adopt_names(weights, WANTED, UPSTREAM).weights is weights
