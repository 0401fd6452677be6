"""The nanochat guide's commands in the project that `headway new` makes, word for word."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from command import clean_env, headway


@pytest.fixture
def project(tmp_path):
    done = headway(tmp_path, "new", "nanochat", "chat")
    assert done.returncode == 0, done.stderr
    return tmp_path / "chat"


def run(project: Path, line: str) -> subprocess.CompletedProcess[str]:
    env = clean_env(project, PATH=f"{Path(sys.executable).parent}:/usr/bin:/bin")
    return subprocess.run(["bash", "-c", line], cwd=project, env=env, capture_output=True, text=True, timeout=280)


def test_the_guides_training_commands_train_and_leave_what_the_guide_promises(project):
    done = run(
        project,
        "./train_dual_gpu_enhanced.sh --num_iterations=6 --eval_every=3 --config=configs/dual_gpu/conservative.py",
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "no GPU here: a small model" in done.stdout.splitlines()[0]
    (log,) = (project / "logs").glob("train_dual_gpu_*.log")
    text = log.read_text()
    assert "[SUCCESS]" in text
    assert "Step 00006 | Validation bpb:" in text
    assert "step 00006/00006 (100.00%) | loss:" in text
    assert (project / "base_checkpoints" / "d4" / "model_000006.pt").is_file()
    shown = run(project, f"./monitor_training.sh --interval=3 --log=logs/{log.name} --once")
    assert shown.returncode == 0, shown.stderr
    assert "Minimum validation bpb" in shown.stdout


def test_the_guides_own_mistake_is_refused_with_what_divides(project):
    sizes = "--device_batch_size=16 --total_batch_size=49152"
    done = run(project, f"./train_dual_gpu_enhanced.sh {sizes} --config=configs/dual_gpu/balanced.py")
    assert done.returncode == 4
    assert "--device_batch_size=12 --total_batch_size=49152" in done.stderr


def test_a_missing_config_is_named_with_those_that_are_there(project):
    done = run(project, "./train_dual_gpu.sh configs/dual_gpu/reckless.py")
    assert done.returncode == 2
    assert "configs/dual_gpu/conservative.py" in done.stderr


def test_a_folder_with_files_in_it_is_left_alone(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("do not lose me")
    done = headway(tmp_path, "new", "nanochat", "mine")
    assert done.returncode == 2
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["notes.txt"]
