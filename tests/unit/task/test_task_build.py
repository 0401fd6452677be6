"""What nobody trains is drawn on the CPU, so that it is the same beside a GPU."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from headway.config import load_config
from headway.recipes.atlas.encoders import build_language, build_vision
from headway.recipes.layoutmaster.visual import build_visual
from headway.task import build_on_cpu, find_recipe


@pytest.fixture
def moves(monkeypatch):
    """Note where modules are moved to, and leave them where they are: there is no GPU here."""
    noted = []
    monkeypatch.setattr(nn.Module, "to", lambda self, device: noted.append(torch.device(device)) or self)
    return noted


def section(recipe: str, *words: str):
    return load_config(None, recipe=find_recipe, overrides=[f"recipe={recipe}", *words], environ={}).config.task


def drawn(build) -> list[torch.Tensor]:
    torch.manual_seed(7)
    return [param.detach() for param in build().parameters()]


def test_a_module_is_built_on_the_cpu_and_moved(moves):
    with torch.device("cuda:0"):  # whatever is made there raises: this torch has no CUDA, or no GPU
        there = drawn(lambda: build_on_cpu(lambda: nn.Linear(3, 2)))
    assert moves == [torch.device("cuda:0")]
    for one, other in zip(there, drawn(lambda: nn.Linear(3, 2)), strict=True):
        assert torch.equal(one, other)


def test_shapes_alone_stay_shapes():
    with torch.device("meta"):
        assert build_on_cpu(lambda: nn.Linear(3, 2)).weight.is_meta


@pytest.mark.parametrize("build", [build_vision, build_language])
def test_atlas_encoders_are_the_same_beside_a_gpu(build, moves, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    asked = section("atlas")
    here = drawn(lambda: build(asked))
    monkeypatch.setattr("headway.recipes.atlas.encoders.is_weightless", lambda: False)
    with torch.device("cuda:0"):
        there = drawn(lambda: build(asked))
    assert moves == [torch.device("cuda:0")]
    assert all(torch.equal(one, other) for one, other in zip(here, there, strict=True))


def test_layoutmasters_backbone_is_the_same_beside_a_gpu(moves):
    asked = section("layoutmaster", "task.visual_backbone=simple-cnn")
    here = drawn(lambda: build_visual(asked))
    with torch.device("cuda:0"):
        there = drawn(lambda: build_on_cpu(lambda: build_visual(asked)))
    assert all(torch.equal(one, other) for one, other in zip(here, there, strict=True))
