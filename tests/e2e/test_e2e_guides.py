"""The nanochat guide's commands in the project that `headway new` makes, word for word."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from command import clean_env, headway

pytestmark = pytest.mark.slow


@pytest.fixture
def project(tmp_path):
    done = headway(tmp_path, "new", "nanochat", "chat")
    assert done.returncode == 0, done.stderr
    return tmp_path / "chat"


def run(project: Path, line: str, **more: str) -> subprocess.CompletedProcess[str]:
    env = clean_env(project, PATH=f"{Path(sys.executable).parent}:/usr/bin:/bin", **more)
    return subprocess.run(["bash", "-c", line], cwd=project, env=env, capture_output=True, text=True, timeout=280)


def test_the_guides_training_commands_train_and_leave_what_the_guide_promises(project):
    done = run(
        project,
        "./train_dual_gpu_enhanced.sh --num_iterations=6 --eval_every=3 --config=configs/dual_gpu/conservative.py",
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "no GPU on this machine: a small model" in done.stdout.splitlines()[0]
    (log,) = (project / "logs").glob("train_dual_gpu_*.log")
    text = log.read_text()
    assert "[SUCCESS]" in text
    assert "Step 00006 | Validation bpb:" in text and "PyTorch 2." in text
    assert "step 00006/00006 (100.00%) | loss:" in text
    assert (project / "base_checkpoints" / "d4" / "model_000006.pt").is_file()
    shown = run(project, f"./monitor_training.sh --interval=3 --log=logs/{log.name} --once")
    assert shown.returncode == 0, shown.stderr
    assert "Minimum validation bpb" in shown.stdout


FIRST = "./train_dual_gpu.sh configs/dual_gpu/conservative.py"
TRAINS = (
    "./train_dual_gpu.sh configs/dual_gpu/balanced.py",
    "./train_dual_gpu.sh configs/dual_gpu/aggressive.py",
    "./train_dual_gpu_enhanced.sh --config=configs/dual_gpu/conservative.py",
    "./train_dual_gpu_enhanced.sh --device_batch_size=12 --total_batch_size=36864"
    " --config=configs/dual_gpu/conservative.py",
    "./train_dual_gpu_enhanced.sh --device_batch_size=16 --total_batch_size=49152"
    " --config=configs/dual_gpu/conservative.py",
    "./train_dual_gpu_enhanced.sh --num_iterations=50 --eval_every=25 --config=configs/dual_gpu/conservative.py",
)
MONITORS = (
    "./monitor_training.sh --log=logs/train_dual_gpu_20241021_160000.log",
    "./monitor_training.sh --interval=3 --log=logs/train_dual_gpu_20241021_160000.log",
)
REFUSED = (
    "./train_dual_gpu_enhanced.sh --device_batch_size=16 --total_batch_size=49152",
    "./train_dual_gpu_enhanced.sh --device_batch_size=16 --total_batch_size=49152"
    " --config=configs/dual_gpu/balanced.py",
)


@pytest.fixture(scope="module")
def shared_project(tmp_path_factory):
    place = tmp_path_factory.mktemp("nanochat")
    assert headway(place, "new", "nanochat", "chat").returncode == 0
    check_trains(place / "chat", FIRST)
    return place / "chat"


def check_trains(project: Path, line: str) -> None:
    # Fewer steps by a variable, so that the command itself stays as it is; what it says itself goes first.
    done = run(project, line, HEADWAY_SET_TRAIN__STEPS="2")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "no GPU on this machine: a small model" in done.stdout.splitlines()[0]
    newest = max((project / "logs").glob("train_dual_gpu_*.log"))
    assert newest.read_text() == done.stdout


def run_until(project: Path, line: str, wanted: str) -> str:
    """Return what a command that continues by itself has printed when it says what is waited for; then end it."""
    env = clean_env(project, PATH=f"{Path(sys.executable).parent}:/usr/bin:/bin")
    child = subprocess.Popen(
        ["bash", "-c", line],
        cwd=project,
        env=env,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    ender = threading.Timer(200, os.killpg, (child.pid, signal.SIGKILL))
    ender.start()
    said = ""
    try:
        assert child.stdout is not None
        for text in child.stdout:
            said += text
            if wanted in text:
                return said
        raise AssertionError(f"{wanted!r} was not said: {said}")
    finally:
        ender.cancel()
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)
        child.communicate()


@pytest.mark.parametrize("line", TRAINS)
def test_a_training_command_trains_word_for_word(shared_project, line):
    check_trains(shared_project, line)


@pytest.mark.parametrize("line", MONITORS)
def test_a_monitor_command_shows_the_run_word_for_word(shared_project, line):
    # The newest log may be that of a refused command; the run above it has ended well in any case.
    shown = run_until(shared_project, line, "✓ done")
    assert "showing the newest one" in shown


@pytest.mark.parametrize("line", REFUSED)
def test_a_command_whose_batch_does_not_divide_is_refused_word_for_word(shared_project, line):
    done = run(shared_project, line)
    assert done.returncode == 4
    assert "--device_batch_size=12 --total_batch_size=49152" in done.stdout


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
