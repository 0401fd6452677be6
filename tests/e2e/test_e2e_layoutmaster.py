"""The LayoutMaster guide's commands in the project that `headway new` makes, word for word."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from command import clean_env, headway

from headway.recipes.layoutmaster.section import LayoutMasterSection
from headway.recipes.layoutmaster.synthetic import write_posters
from headway.telemetry import RunDir, read_metrics

pytestmark = pytest.mark.slow

TRAIN = "CUDA_VISIBLE_DEVICES=0,1,2,3,4,5,6,7 python train.py --config config_data_action_head.json --mode train"
RESUME = (
    "python train.py --config config_data_action_head.json --mode train --resume checkpoints/checkpoint_epoch_50.pth"
)
PREDICT = (
    "python train.py --config config_data_action_head.json --mode predict"
    " --checkpoint checkpoints/best_model.pth --num_samples 20"
)
EDITS = {
    '"batch_size": 32': '"batch_size": 8',
    '"num_epochs": 100': '"num_epochs": 52',
    '"save_every": 10': '"save_every": 50',
}


def run(project: Path, line: str, **env: str) -> subprocess.CompletedProcess[str]:
    given = clean_env(project, PATH=f"{Path(sys.executable).parent}:/usr/bin:/bin", **env)
    return subprocess.run(["bash", "-c", line], cwd=project, env=given, capture_output=True, text=True, timeout=280)


def make_project(place: Path) -> Path:
    """Make a project with ten posters in the guide's folder: eight to train on, so that an epoch is one step."""
    done = headway(place, "new", "layoutmaster", "master")
    assert done.returncode == 0, done.stderr
    project = place / "master"
    write_posters(project / "data-action_head", LayoutMasterSection(trajectory_steps=2), num=10)
    config = project / "config_data_action_head.json"
    text = config.read_text(encoding="utf-8")
    for old, new in EDITS.items():
        assert old in text
        text = text.replace(old, new)
    config.write_text(text, encoding="utf-8")
    return project


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> Path:
    """A project in which `./start_training.sh` has run to its end."""
    project = make_project(tmp_path_factory.mktemp("guide"))
    done = run(project, "./start_training.sh")
    assert done.returncode == 0, done.stdout + done.stderr
    (project / "screen").write_text(done.stdout, encoding="utf-8")
    return project


def losses(project: Path, name: str) -> dict[int, float]:
    rows = read_metrics(RunDir(project / "runs" / name).metrics(0))
    return dict(zip(map(int, rows["step"]), rows["loss"], strict=True))


def note(project: Path, name: str) -> dict:
    return json.loads((project / "checkpoints" / name).with_suffix(".json").read_text(encoding="utf-8"))


def test_the_start_script_trains_and_leaves_what_the_guide_promises(trained):
    screen = (trained / "screen").read_text(encoding="utf-8").splitlines()
    assert screen[0].startswith("no GPU on this machine: a small model")
    (log,) = (trained / "logs").glob("training_*.log")
    assert log.read_text(encoding="utf-8").splitlines() == screen
    for line in (
        "✅ training with 2 CPU processes",
        "✅ the training set has 8 samples",
        "✅ the validation set has 2 samples",
    ):
        assert line in screen
    assert sum("Train Loss:" in line for line in screen) == 52
    assert any(line.startswith("Epoch 50 - Val Loss:") for line in screen)
    assert any(line.startswith("✅ the loss falls steadily") for line in screen)
    assert {path.name for path in (trained / "checkpoints").glob("*.pth")} == {
        "best_model.pth",
        "checkpoint_epoch_50.pth",
    }


def test_a_checkpoint_opens_without_running_any_code_and_says_where_it_came_from(trained):
    held = torch.load(trained / "checkpoints" / "checkpoint_epoch_50.pth", weights_only=True)
    assert {"epoch", "global_step", "model_state_dict", "best_loss", "config", "is_multi_gpu"} <= held.keys()
    assert (held["epoch"], held["global_step"], held["config"]["data"]["batch_size"]) == (49, 50, 8)
    assert held["model_state_dict"]["output_norm.weight"].shape == (64,)
    assert not any(name.startswith("module.") for name in held["model_state_dict"])
    told = note(trained, "checkpoint_epoch_50.pth")
    assert (told["step"], told["measures"]["loss"]) == (50, held["best_loss"])


def test_resume_goes_on_bit_for_bit_where_the_checkpoint_was_taken(trained, tmp_path):
    # In a copy: a project may be moved, and other tests look at the original.
    project = shutil.copytree(trained, tmp_path / "moved")
    first = Path(note(project, "checkpoint_epoch_50.pth")["run"]).name
    done = run(project, RESUME)
    assert done.returncode == 0, done.stdout + done.stderr
    (second,) = (path.name for path in (project / "runs").iterdir() if path.name != first and path.is_dir())
    expected = losses(project, first)
    assert losses(project, second) == {step: expected[step] for step in (51, 52)}


def test_on_the_second_day_an_edited_batch_continues_and_old_names_are_found(trained, tmp_path):
    """Issue 25, 1 and 2."""
    project = shutil.copytree(trained, tmp_path / "second")
    first = Path(note(project, "checkpoint_epoch_50.pth")["run"]).name
    config = project / "config_data_action_head.json"
    config.write_text(config.read_text(encoding="utf-8").replace('"batch_size": 8', '"batch_size": 4'))
    done = run(project, RESUME)
    assert done.returncode == 0, done.stdout + done.stderr
    epochs = [line.split()[1] for line in done.stdout.splitlines() if "Train Loss:" in line]
    assert epochs == ["51", "52"], "epochs are counted in samples"
    second = max(path.parent.name for path in (project / "runs").glob("*/job.json"))
    assert json.loads((project / "runs" / second / "plan.json").read_text())["total_steps"] == 54

    done = run(project, "./start_training.sh training.num_epochs=1")
    assert done.returncode == 0, done.stdout + done.stderr
    moved = project / "checkpoints" / first / "checkpoint_epoch_50.pth"
    assert moved.is_file() and f"checkpoints/{first}/" in done.stdout
    done = run(project, f"{RESUME} training.num_epochs=51")
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"checkpoint_epoch_50.pth of run {first}" in done.stdout


def test_predict_writes_a_json_and_three_pictures_a_poster(trained):
    done = run(trained, PREDICT)
    assert done.returncode == 0, done.stdout + done.stderr
    folders = sorted((trained / "predictions").iterdir())
    assert [folder.name for folder in folders] == ["Poster 0008", "Poster 0009"]
    for folder in folders:
        assert {file.name for file in folder.iterdir()} == {"prediction.json", "before.png", "after.png", "target.png"}


@pytest.mark.parametrize("line", ["python train_multi_gpu.py", TRAIN])
def test_the_other_two_ways_to_start_train_too(tmp_path, line):
    project = make_project(tmp_path)
    done = run(project, line, LANG="zh_CN.UTF-8")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("本机没有 GPU：在 CPU 上训练小模型")
    for line in ("✅ 使用 2 个CPU进程进行训练", "✅ 训练数据集包含 8 个样本", "✅ 验证数据集包含 2 个样本"):
        assert line in done.stdout.splitlines()
    assert (project / "checkpoints" / "best_model.pth").is_file()


def test_the_data_check_counts_the_posters_and_reads_them(tmp_path):
    done = run(make_project(tmp_path), "python test_data_loading.py")
    assert done.returncode == 0, done.stderr
    assert "✅ the training set has 8 samples" in done.stdout
    assert "10 posters with" in done.stdout


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("python train.py --config config_data_action_head.json", "layoutmaster/guide-no-mode"),
        ("python train.py --config nope.json --mode train", "guide/no-config"),
        (RESUME, "guide/no-checkpoint"),
        ("python train.py --mode train --epochs 3", "guide/odd-flag"),
        ("./start_training.sh data.batch_size=9", "plan/batch-does-not-divide"),
    ],
)
def test_what_cannot_work_is_refused_with_what_can(tmp_path, line, code):
    done = run(make_project(tmp_path), line)
    assert done.returncode in (2, 4)
    assert code in done.stdout + done.stderr


def test_settings_without_effect_are_said_before_the_plan(tmp_path):
    project = make_project(tmp_path)
    done = headway(project, "train", "config_data_action_head.json", "recipe=layoutmaster", "preset=base", "--dry-run")
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("[config/ignored]") == 5
    assert "every 50 epochs" in done.stderr


def test_the_full_size_asks_for_real_posters_first(tmp_path):
    project = make_project(tmp_path)
    (project / "data-action_head").rename(project / "elsewhere")
    done = run(project, "./start_training.sh --full-size")
    assert done.returncode == 3
    assert done.stdout.startswith("training the guide's full size")
    assert "layoutmaster/no-posters" in done.stderr
