"""The Atlas guide's commands in the project that `headway new` makes, word for word but for a free port."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from command import clean_env, events, headway, processes_of, wait_until

from headway.guide import read_note
from headway.recipes.atlas.build import write_synthetic
from headway.telemetry import RunDir, list_runs, read_metrics

CONFIG = "atlas/configs/train_config.yaml"
pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]  # eight ranks and three torches on two busy cores


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A home whose cache all projects share, and a few episodes that look like somebody's own."""
    home = tmp_path_factory.mktemp("home")
    (home / "dataset").mkdir()
    write_synthetic(home / "dataset", episodes=50, frames=3)
    (home / "dataset" / "synthetic.json").unlink()
    return home


@pytest.fixture
def project(tmp_path, home):
    done = headway(tmp_path, "new", "atlas", "arm")
    assert done.returncode == 0, done.stderr
    (tmp_path / "arm" / "dataset").symlink_to(home / "dataset")
    with (tmp_path / "arm" / CONFIG).open("a") as config:
        # Two threads of one rank on busy cores wait for each other most of the time.
        config.write("parallel:\n  threads: 1\n")
    return tmp_path / "arm"


def configure(project: Path, *, num_epochs: int) -> None:
    """Shorten the run with the guide's own keys."""
    file = project / CONFIG
    lines = {"num_epochs:": f"  num_epochs: {num_epochs}", "warmup_steps:": "  warmup_steps: 2"}
    text = [next((new for key, new in lines.items() if key in line), line) for line in file.read_text().splitlines()]
    file.write_text("\n".join(text) + "\n")


def environment(home: Path) -> dict[str, str]:
    return clean_env(home, PATH=f"{Path(sys.executable).parent}:/usr/bin:/bin")


def run(project: Path, home: Path, line: str) -> subprocess.CompletedProcess[str]:
    command = ["bash", "-c", line]
    return subprocess.run(command, cwd=project, env=environment(home), capture_output=True, text=True, timeout=600)


def runs_of(project: Path) -> list[RunDir]:
    """Return the project's runs, the oldest first."""
    return sorted(list_runs(project / "runs"), key=lambda one: one.name)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_the_guides_line_trains_on_eight_ranks_and_goes_on_from_epoch_ten(project, home):
    configure(project, num_epochs=11)
    done = run(project, home, f"torchrun --nproc_per_node=8 atlas/train.py --config {CONFIG}")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "no GPU on this machine: a small model" in done.stdout.splitlines()[0]
    (log,) = (project / "logs").glob("train_????????_??????.log")
    setup = ["Training setup:", "  Distributed: True", "  World size: 8", "  Rank: 0, Local rank: 0"]
    assert "\n".join(setup) in log.read_text() and "\n".join(setup) in done.stdout
    assert "8 × 8 × 1 = 64" in done.stdout and "effective learning rate: 0.0008" in done.stdout
    assert "trainable parameters: 256,519" in done.stdout and "val/pose_l1_error" in done.stdout
    saved = torch.load(project / "checkpoints" / "checkpoint_epoch_10.pt", weights_only=True)
    assert saved["epoch"] == 10 and not any(name.startswith("vision.") for name in saved["model_state_dict"])

    configure(project, num_epochs=12)
    resume = "--resume checkpoints/checkpoint_epoch_10.pt"
    done = run(project, home, f"torchrun --nproc_per_node=8 atlas/train.py \\\n  --config {CONFIG} \\\n  {resume}")
    assert done.returncode == 0, done.stdout + done.stderr
    first, second = runs_of(project)
    (ended,) = events(first, "run_ended")
    assert read_metrics(second.metrics(0))["step"][0] == ended["steps"] + 1
    assert (project / "checkpoints" / "checkpoint_epoch_11.pt").is_file()

    measured = run(project, home, f"python atlas/eval.py --config {CONFIG} --checkpoint checkpoints/best_model.pt")
    assert measured.returncode == 0, measured.stderr
    assert "pose_l1" in measured.stdout and "wrong_instruction_l1" in measured.stdout


def test_the_older_launcher_trains_too(project, home):
    configure(project, num_epochs=1)
    words = ("--nproc_per_node=8", f"--master_port={free_port()}", f"atlas/train.py --config {CONFIG}")
    done = run(project, home, " \\\n  ".join(("python -m torch.distributed.launch", *words)))
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("World size: 8") == 1, "one process speaks"
    assert (project / "checkpoints" / "checkpoint_epoch_0.pt").is_file()


def test_a_launcher_that_is_killed_takes_everything_with_it_and_nothing_is_lost(project, home):
    configure(project, num_epochs=5000)
    line = ["torchrun", "--nproc_per_node=4", "atlas/train.py", "--config", CONFIG]
    with (project / "screen").open("wb") as screen:
        env = {**environment(home), "CUDA_VISIBLE_DEVICES": "0,1,2,3"}
        launcher = subprocess.Popen(line, cwd=project, env=env, stdout=screen, stderr=screen)
    try:
        wait_until(lambda: (project / "checkpoints" / "checkpoint_epoch_0.pt").exists(), 200)
    finally:
        launcher.send_signal(signal.SIGKILL)
        launcher.wait()
    wait_until(lambda: processes_of(project) == [], 90)
    assert "World size: 4" in (project / "screen").read_text()
    (only,) = runs_of(project)
    (ended,) = events(only, "run_ended")
    assert ended["exit_code"] == 143
    steps = [read_note(file)["step"] for file in (project / "checkpoints").glob("checkpoint_*.pt")]
    assert max(steps) == ended["steps"], "the last step has a file to go on from"


def test_ranks_started_by_hand_train_when_each_has_its_own_rank(project, home):
    configure(project, num_epochs=1)
    start = f"CUDA_VISIBLE_DEVICES=$r RANK=$r LOCAL_RANK=$r python atlas/train.py --config {CONFIG} & pids+=($!)"
    loop = f"pids=(); for r in 0 1; do {start}; done; for pid in ${{pids[@]}}; do wait $pid || exit 9; done"
    shared = f"export MASTER_ADDR=localhost MASTER_PORT={free_port()} WORLD_SIZE=2"
    done = run(project, home, f"{shared}; {loop}")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("World size: 2") == 1
    assert (project / "checkpoints" / "checkpoint_epoch_0.pt").is_file()


GUIDES_WAY = f"""
export MASTER_ADDR=localhost
export MASTER_PORT={{port}}
export WORLD_SIZE=8
export RANK=0  # 每个进程设置不同的RANK (0-7)
export LOCAL_RANK=0  # 每个进程设置不同的LOCAL_RANK (0-7)
CUDA_VISIBLE_DEVICES=0 python atlas/train.py --config {CONFIG} &
first=$!
CUDA_VISIBLE_DEVICES=1 python atlas/train.py --config {CONFIG} &
second=$!
wait $first; a=$?; wait $second; exit $((10 * a + $?))
"""


@pytest.mark.parametrize(
    ("language", "words"), [("C", "a RANK that is exported once is the same"), ("zh_CN", "RANK 就都相同")]
)
def test_the_guides_one_rank_for_all_is_caught_and_explained(project, home, language, words):
    done = run(project, home, f"export LANG={language}.UTF-8\n" + GUIDES_WAY.format(port=free_port()))
    assert done.returncode == 22, done.stdout + done.stderr
    assert words in done.stderr and "torchrun --nproc_per_node=8" in done.stderr
    assert not (project / "runs").exists()


def test_one_process_trains_without_a_launcher(project, home):
    configure(project, num_epochs=1)
    done = run(project, home, f"python atlas/train.py --config {CONFIG}")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Distributed: False" in done.stdout and "effective learning rate: 0.0001" in done.stdout


def test_a_mistake_in_the_file_is_said_once_under_a_launcher(project, home):
    file = project / CONFIG
    file.write_text(file.read_text().replace("learning_rate: 1e-4 ", 'learning_rate: "1e-4" '))
    done = run(project, home, f"torchrun --nproc_per_node=2 atlas/train.py --config {CONFIG}")
    assert done.returncode != 0
    assert done.stderr.count("remove the quotes") == 1
