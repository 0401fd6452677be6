"""The TFNet guide's commands in the project that `headway new` makes, word for word."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from command import clean_env, headway

from fakes.tfnet_mindspore import python_of_mindspore
from fakes.tfnet_set import SMALL, write_small

pytestmark = pytest.mark.timeout(1200)
needs_mindspore = pytest.mark.skipif(python_of_mindspore() is None, reason="MindSpore is not installed")


@pytest.fixture
def project(tmp_path):
    done = headway(tmp_path, "new", "tfnet", "training")
    assert done.returncode == 0, done.stderr
    return tmp_path / "training"


def run(project: Path, line: str, **more: str) -> subprocess.CompletedProcess[str]:
    env = clean_env(project, PATH=f"{Path(sys.executable).parent}:/usr/bin:/bin", GLOG_v="3", **more)
    return subprocess.run(["bash", "-c", line], cwd=project, env=env, capture_output=True, text=True, timeout=1000)


def few_steps(project: Path, *words: str) -> dict[str, str]:
    """Return the environment that makes a run short, so that the commands stay as the guide has them."""
    root = write_small(project / "small")
    short = (*SMALL, "train.steps=3", "save.every=1", f"task.data_dir={root}", "task.synthetic=true", *words)
    pairs = (word.split("=", 1) for word in short)
    return {f"HEADWAY_SET_{key.upper().replace('.', '__')}": value for key, value in pairs}


def set_debug_mode(project: Path) -> None:
    """Edit the config as the guide's debug section says; a profile of a test would say nothing."""
    file = project / "configs" / "gpu_config.json"
    config = json.loads(file.read_text())
    config["gpu_optimization"].update(enable_graph_mode=False, enable_dump=True)
    file.write_text(json.dumps(config))


@needs_mindspore
def test_the_quick_start_checks_trains_and_leaves_what_the_guide_promises(project):
    set_debug_mode(project)
    done = run(project, "python quick_start_gpu.py", **few_steps(project))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "MindSpore works on CPU" in done.stdout and "any name works" in done.stdout
    (log,) = (project / "logs_gpu").glob("gpu_training_*.log")
    text = log.read_text()
    assert "no GPU on this machine: a small model" in text.splitlines()[0]
    assert "Epoch 1 - Batch 3/3, Loss: " in text and "Validation WER: " in text
    assert "was not written" not in text
    assert "Best model saved: checkpoints_gpu/best_model.ckpt" in text
    assert {path.name for path in (project / "checkpoints_gpu").iterdir()} == {"best_model.ckpt", "current_model.ckpt"}
    assert "word2idx" in json.loads((project / "output_gpu" / "vocabulary.json").read_text())
    (config,) = (project / "output_gpu").glob("*/config.yaml")
    assert "graph_mode: false" in config.read_text() and "dump: true" in config.read_text()


_BY_CONFIG = "python train_tfnet_gpu.py --config configs/gpu_config.json"


@pytest.mark.parametrize("line", ["./start_training_gpu.sh", "python start_training_gpu.py", _BY_CONFIG])
def test_every_other_way_to_start_trains_too(project, line):
    done = run(project, line, **few_steps(project, "task.framework=torch"))
    assert done.returncode == 0, done.stdout + done.stderr
    (log,) = (project / "logs_gpu").glob("gpu_training_*.log")
    assert "Epoch 1 completed - Training loss: " in log.read_text()
    assert (project / "checkpoints_gpu" / "best_model.ckpt").is_file()


@needs_mindspore
def test_the_set_up_is_tested_by_what_it_can_do(project):
    done = run(project, "python test_gpu_setup.py", **few_steps(project))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "configs/gpu_config.json" in done.stdout and "MindSpore works on CPU" in done.stdout
    assert not (project / "logs_gpu").exists()


def test_a_config_that_cannot_be_read_is_an_error_and_not_a_silent_default(project):
    (project / "configs" / "gpu_config.json").write_text('{"training": {"batch_size": 8,')
    for line in ("./start_training_gpu.sh", "python test_gpu_setup.py"):
        done = run(project, line)
        assert done.returncode == 2
        assert "gpu_config.json" in done.stderr
    missing = run(project, "python train_tfnet_gpu.py --config configs/other.json")
    assert missing.returncode == 2 and "configs/gpu_config.json" in missing.stderr
    assert not (project / "output_gpu").exists()


def test_the_guides_own_size_asks_for_the_guides_own_data(project):
    done = run(project, "python train_tfnet_gpu.py --full-size --config configs/gpu_config.json task.framework=torch")
    assert done.returncode == 3
    assert "data/CE-CSL" in done.stdout + done.stderr
