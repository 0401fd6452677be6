"""TFNet trains with PyTorch where MindSpore cannot use the GPUs, unless MindSpore was asked for."""

from __future__ import annotations

import pytest

from fakes.machines import four_4090
from headway.config import load_config
from headway.errors import CheckError
from headway.machine import Finding, MindSpore
from headway.start import framework
from headway.task import find_recipe


@pytest.fixture
def tried(monkeypatch):
    """Four GPUs and a MindSpore whose plugin is missing."""
    found = Finding(code="mindspore/device", level="stop", facts={"target": "GPU", "mindspore": "2.10", "why": "no"})
    asked = []
    monkeypatch.setattr(framework, "read_gpus", four_4090)
    monkeypatch.setattr(framework, "read_mindspore", lambda python: MindSpore("python", "2.10", "1.26"))
    monkeypatch.setattr(framework, "try_mindspore", lambda *args: asked.append(args) or found)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    return asked


def load(*words: str):
    return load_config(None, recipe=find_recipe, overrides=["recipe=tfnet", *words], environ={})


def test_what_mindspore_cannot_use_is_left_to_torch_with_the_reason(tried):
    told: list[str] = []
    settled = framework.settle_framework(load(), told.append)
    assert settled.framework == "torch" and settled.config.task.framework == "torch"
    assert "PyTorch" in told[0] and "4090" in told[0] and len(tried) == 1


def test_a_wish_for_mindspore_is_refused_before_the_plan(tried):
    with pytest.raises(CheckError) as refused:
        framework.settle_framework(load("task.framework=mindspore"), print)
    assert refused.value.code == "mindspore/device"


@pytest.mark.parametrize("words", [("parallel.gpus=0",), ("task.device_target=CPU",), ("task.framework=torch",)])
def test_who_wants_no_gpu_of_mindspore_is_not_asked(tried, words):
    loaded = load(*words)
    assert framework.settle_framework(loaded, print) is loaded and not tried
