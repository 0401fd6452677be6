"""`plan --model` asks the ranks' transformers or timm, by trace, where no formula knows a model."""

from __future__ import annotations

import json
import sys

import pytest
from click.testing import CliRunner

from headway.cli.plan import plan
from headway.errors import UsageError

TIMM = """
import torch
from torch import nn


def is_model(name):
    return name == "oddnet"


def create_model(name, pretrained=False):
    head = nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10)
    model = nn.Sequential(nn.Conv2d(3, 64, 3, padding=1), nn.ReLU(), *head)
    model.default_cfg = {"input_size": (3, 32, 32)}
    return model
"""


def ask(*words: str) -> dict:
    shown = CliRunner().invoke(plan, ["--model", *words, "--json"], catch_exceptions=False)
    return json.loads(shown.stdout)


def test_a_config_of_another_kind_is_built_by_transformers(tmp_path):
    sizes = {"dim": 256, "n_layers": 2, "n_heads": 4, "hidden_dim": 1024, "vocab_size": 30522}
    told = {"architectures": ["DistilBertForMaskedLM"], "model_type": "distilbert", **sizes}
    (tmp_path / "config.json").write_text(json.dumps(told), encoding="utf-8")
    found = ask(str(tmp_path), "batch=8", "seq=128", "precision=bf16", "--on", "2x4090")
    params = 30522 * 256 + 512 * 256 + 2 * (4 * 256 * 256 + 2 * 256 * 1024) + 256 * 256 + 30522
    assert found["params"] == pytest.approx(params, rel=0.01)
    assert found["micro_batch"] == 8
    assert found["ranks"] == 2
    assert found["parts"]["optimizer-state"] == pytest.approx(8 * found["params"], rel=0.01)
    assert found["verdict"] == "fits"
    assert found["largest_micro_batch"] > 8


def test_a_name_of_timm_is_built_by_timm(tmp_path, monkeypatch):
    (tmp_path / "timm.py").write_text(TIMM, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    found = ask("oddnet", "batch=4", "image=64", "precision=fp32", "optimizer=sgd", "--on", "1x4090")
    assert found["params"] == 3 * 64 * 9 + 64 + 64 * 10 + 10
    kept = 4 * 64 * 64 * 64 * 4  # of the convolution: its output, which relu keeps
    assert found["parts"]["activations"] >= kept


def test_a_name_that_nothing_knows_is_refused_at_once():
    with pytest.raises(UsageError) as refused:
        CliRunner().invoke(plan, ["--model", "nosuchmodel", "--on", "1x4090"], catch_exceptions=False)
    assert refused.value.code == "plan/model-unknown"
