"""TFNet in MindSpore beside PyTorch, and MindSpore's half of the engine; skipped where it is not installed."""

import json
import os
import shutil
import signal
import subprocess
from pathlib import Path

import numpy as np
import pytest
import torch
from command import clean_env, events, headway, processes_of, start, wait_for_step, wait_until

from fakes.engine_run import read_tensors
from fakes.tfnet_mindspore import python_of_mindspore
from fakes.tfnet_set import SMALL, write_small
from headway.checkpoint import list_checkpoints
from headway.config import load_config
from headway.recipes.tfnet.preset import RECIPE
from headway.recipes.tfnet.task import make_task
from headway.telemetry import RunDir, read_beat, read_metrics

PYTHON = python_of_mindspore()
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(PYTHON is None, reason="MindSpore is not installed"),
    # Its threads wait for each other, so on a busy machine it is slower by far more than its share of the cores.
    pytest.mark.timeout(1200),
]

_CHILD = Path(__file__).parents[1] / "fakes" / "tfnet_mindspore.py"
# Line by line: a few steps take less time than compiling them.
_WORDS = ("save.every=1", "save.keep_last=9", "eval.every=0", "lr.schedule=constant", "task.graph_mode=false")


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return write_small(tmp_path_factory.mktemp("tfnet") / "data")


def _child(do, place, root, *words):
    """Run in a process of its own: MindSpore's mode is set once a process, and its import warns."""
    place.mkdir(parents=True, exist_ok=True)
    command = [PYTHON, str(_CHILD), do, str(place), str(root), *SMALL, *words]
    env = clean_env(place, GLOG_v="3")
    done = subprocess.run(command, capture_output=True, text=True, timeout=1000, env=env)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.strip().splitlines()[-1])


@pytest.fixture(scope="module")
def trained(tmp_path_factory, root):
    """Two steps, both saved."""
    place = tmp_path_factory.mktemp("trained") / "run"
    assert _child("train", place, root, *_WORDS, "train.steps=2") == {"code": 0}
    return place


def test_a_resumed_mindspore_run_is_bit_equal_to_one_that_was_never_stopped(tmp_path, trained, root):
    (first, _) = list_checkpoints(RunDir(trained).checkpoints)
    shutil.copytree(first.path, tmp_path / "run" / "checkpoints" / first.path.name)
    assert _child("train", tmp_path / "run", root, *_WORDS, "train.steps=2") == {"code": 0}
    assert list(read_metrics(RunDir(tmp_path / "run").metrics(0))["step"]) == [2]
    assert read_tensors(RunDir(tmp_path / "run")) == read_tensors(RunDir(trained))


def test_the_compiled_step_is_the_same_as_the_one_run_line_by_line(tmp_path, trained, root):
    words = [word for word in _WORDS if not word.startswith("task.graph_mode")]
    assert _child("train", tmp_path, root, *words, "train.steps=2", "task.graph_mode=true") == {"code": 0}
    compiled, lines = (read_metrics(RunDir(place).metrics(0)) for place in (tmp_path, trained))
    assert list(compiled["loss"]) == pytest.approx(list(lines["loss"]), rel=1e-4)
    assert list(compiled["grad_norm"]) == pytest.approx(list(lines["grad_norm"]), rel=1e-3)


def test_weights_trained_in_mindspore_give_the_same_logits_in_torch_and_after_export(tmp_path, trained, root):
    out = tmp_path / "best_model.ckpt"
    for words in (["list", "--json"], ["verify"], ["export", "--format", "ckpt", "--out", str(out)]):
        done = headway(tmp_path, "ckpt", words[0], str(trained), *words[1:])
        assert done.returncode == 0, done.stderr
    found = _child("logits", tmp_path, root, "task.graph_mode=false")
    assert found["absent"] == found["unread"] == []
    config = load_config(
        recipe=RECIPE, overrides=[f"task.data_dir={root}", "task.synthetic=true", "task.framework=torch", *SMALL]
    ).config
    task = make_task(config)
    model = task.build_model().eval()
    state = model.state_dict()
    for name, data in read_tensors(RunDir(trained)).items():
        if name.startswith("model/"):
            own = state[name.removeprefix("model/")]
            own.copy_(torch.frombuffer(bytearray(data), dtype=own.dtype).view_as(own))
    batch = task.eval_data().batch(np.arange(2), np.zeros(2, np.int64))
    with torch.no_grad():
        want = model(batch["frames"], batch["lengths"])["fused"].numpy()
        loss = task.loss(model, batch).total.item()
    have = np.load(tmp_path / "logits.npy")
    assert np.abs(have - want).max() < 1e-4 < np.abs(want).max()
    assert found["loss"] == pytest.approx(loss, rel=1e-3)
    assert found["params"] == sum(param.numel() for param in model.parameters())


def test_batches_through_the_devices_queue_are_the_batches_of_the_run(tmp_path, trained, root):
    words = (*_WORDS, "train.steps=2", "task.data_sink=true", "task.prefetch=3")
    found = _child("sink", tmp_path, root, *words)
    assert (found["code"], found["size"], found["num"], found["prefetch"]) == (0, 1, 2, 3)
    assert found["columns"] == ["frames", "lengths", "labels", "label_lengths"]
    sunk, plain = (list(read_metrics(RunDir(place).metrics(0))["loss"]) for place in (tmp_path, trained))
    assert sunk == pytest.approx(plain, rel=1e-4)


def test_half_precision_trains_with_its_weights_in_fp32(tmp_path, trained, root):
    assert _child("train", tmp_path, root, *_WORDS, "train.steps=1", "task.amp_level=O2", "task.profiling=true") == {
        "code": 0
    }
    assert any((tmp_path / "profile" / "rank-0").rglob("*")), "task.profiling leaves MindSpore's own profile"
    half, full = (read_metrics(RunDir(place).metrics(0))["loss"][0] for place in (tmp_path, trained))
    assert half != full and half == pytest.approx(full, rel=2e-2)
    assert {name: len(data) for name, data in read_tensors(RunDir(tmp_path)).items()} == {
        name: len(data) for name, data in read_tensors(RunDir(trained)).items()
    }


_SAID = {
    "mindspore/out-of-memory": "Memory not enough: current free memory size[12] is smaller than required size[40].",
    "mindspore/device": "For 'context.set_context', device_target GPU is not available, supported: ['CPU']",
    "mindspore/package": "ImportError: libcudnn.so.8: cannot open shared object file",
    "mindspore/scheduler": "Topology build timed out after 300 seconds",
    "mindspore/compile": "infer failed for op Conv2D\n----\nThe Traceback of Net Construct Code:\nmodel.py:3",
}


def test_devices_that_are_not_here_are_set_up_by_mindspores_own_calls_and_errors_are_explained(tmp_path, root):
    found = _child("settings", tmp_path, root, json.dumps([*_SAID.values(), "something new"]))
    assert found["target"] == "GPU" and found["dump"] == "2"
    assert found["calls"] == [
        {"mode": found["graph"]},
        {"device": "GPU", "number": 3},
        {"max_device_memory": "8GB"},
        {"mempool_block_size": "1GB"},
        {"memory_offload": "ON"},
        {"enable_graph_kernel": True},
    ]
    assert found["ascend"] == [{"mode": 1 - found["graph"]}, {"device": "Ascend", "number": 1}]
    assert found["sink"] == "mindspore/sink"
    assert found["limits"] == ["AVX2", None], "oneDNN is limited, unless the user has set a limit"
    assert found["codes"] == [*_SAID, None]


def test_two_workers_are_supervised_blamed_restarted_and_stopped_with_nothing_left(tmp_path, root):
    place = tmp_path / "here"
    place.mkdir()
    words = [*SMALL, *_WORDS, f"task.data_dir={root}", "task.synthetic=true", f"env.python={PYTHON}", "train.steps=900"]
    process = start(place, "train", "tfnet", *words, "parallel.cpus=2", "parallel.threads=1", GLOG_v="3")
    try:
        run = wait_for_step(place, 2, 500)
        wait_until(lambda: events(run, "checkpoint_committed"), 500)
        os.kill(read_beat(run.heartbeat(1)).pid, signal.SIGKILL)
        wait_until(lambda: len(events(run, "training_started")) == 2, 500)
        (incident,) = events(run, "incident")
        assert incident["rank"] == 1 and "SIGKILL" in incident["text"]
        resumed = events(run, "training_started")[1]["step"]
        assert resumed >= 1
        wait_until(lambda: max([0, *read_metrics(run.metrics(0))["step"]]) > resumed, 500)
        process.send_signal(signal.SIGTERM)
        assert process.wait(500) == 143
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGQUIT)
            process.wait(30)
    assert (run.root / "ranks" / "1" / "stdout.log").exists()
    assert events(run, "run_ended")[-1]["state"] == "interrupted"
    wait_until(lambda: not processes_of(place), 60)


def test_a_device_that_is_not_there_is_explained(tmp_path, root):
    assert _child("train", tmp_path, root, "train.steps=1", "task.device_target=Ascend") == {"code": 1}
    (line,) = [line for line in (tmp_path / "reports").read_text().splitlines() if '"kind": "error"' in line]
    assert json.loads(line)["code"] == "mindspore/device"
