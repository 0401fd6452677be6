"""TFNet in MindSpore beside PyTorch, and MindSpore's half of the engine; skipped where MindSpore is not installed."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

from fakes.engine_run import read_tensors
from fakes.tfnet_set import SMALL, write_small
from headway.telemetry import RunDir

pytestmark = pytest.mark.skipif(importlib.util.find_spec("mindspore") is None, reason="MindSpore is not installed")

_CHILD = Path(__file__).parents[1] / "fakes" / "tfnet_mindspore.py"


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return write_small(tmp_path_factory.mktemp("tfnet") / "data")


def _child(do, place, root, *words):
    """Run in a process of its own: MindSpore's mode is set once a process, and its import warns."""
    place.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, str(_CHILD), do, str(place), str(root), *SMALL, *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.strip().splitlines()[-1])


@pytest.mark.parametrize("graph", ["true", "false"])
def test_the_same_weights_give_the_same_logits_in_both_frameworks(tmp_path, root, graph):
    found = _child("compare", tmp_path, root, f"task.graph_mode={graph}")
    assert found["names"] and found["params"][0] == found["params"][1]
    assert found["difference"] < 1e-4 < found["size"]
    assert found["loss"][0] == pytest.approx(found["loss"][1], rel=1e-3)


def test_a_resumed_mindspore_run_is_bit_equal_to_one_that_was_never_stopped(tmp_path, root):
    words = ("save.every=2", "eval.every=4", "lr.schedule=constant")
    assert _child("train", tmp_path / "whole", root, *words, "train.steps=4") == {"code": 0}
    assert _child("train", tmp_path / "parts", root, *words, "train.steps=2") == {"code": 0}
    assert _child("train", tmp_path / "parts", root, *words, "train.steps=4") == {"code": 0}
    assert read_tensors(RunDir(tmp_path / "parts")) == read_tensors(RunDir(tmp_path / "whole"))


def test_a_device_that_is_not_there_is_explained(tmp_path, root):
    assert _child("train", tmp_path, root, "train.steps=1", "task.device_target=Ascend") == {"code": 1}
    (line,) = [line for line in (tmp_path / "reports").read_text().splitlines() if '"kind": "error"' in line]
    assert json.loads(line)["code"] == "mindspore/device"
