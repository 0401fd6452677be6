"""The guide's commands: their flags, its numbers at the size trained here, its lines and its files."""

from __future__ import annotations

import json
import shutil
from importlib.resources import files
from pathlib import Path

import pytest

from headway.config import SaveConfig, load_config
from headway.errors import UsageError
from headway.recipes import guided
from headway.recipes.layoutmaster.guide_files import find_source
from headway.recipes.layoutmaster.guide_lines import GuideLines, Setup
from headway.recipes.layoutmaster.guide_options import choose_words, read_flags
from headway.recipes.layoutmaster.preset import RECIPE
from headway.recipes.layoutmaster.section import QWEN
from headway.task import find_recipe
from headway.telemetry import RunDir

TEMPLATE = Path(str(files("headway.recipes") / "layoutmaster" / "guide" / "config_data_action_head.json"))


@pytest.fixture
def config(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copy(TEMPLATE, tmp_path)
    return Path(TEMPLATE.name)


def load(words):
    return load_config(words[0], recipe=find_recipe, overrides=words[1:]).config


def test_flags_are_read_in_both_spellings():
    asked = read_flags(["--config", "a.json", "--mode=predict", "--num_samples", "20", "training.num_epochs=3"])
    assert asked.flags == {"config": "a.json", "mode": "predict", "num_samples": "20"}
    assert asked.words == ("training.num_epochs=3",)


@pytest.mark.parametrize(
    ("argv", "code"),
    [
        (["--epochs", "3"], "layoutmaster/guide-odd-flag"),
        (["--mode"], "layoutmaster/guide-no-value"),
        (["train"], "layoutmaster/guide-odd-word"),
    ],
)
def test_what_the_original_does_not_have_is_refused(argv, code):
    with pytest.raises(UsageError) as refused:
        read_flags(argv)
    assert refused.value.code == code


def test_the_small_size_keeps_every_number_of_the_guide_that_is_not_about_size(config):
    made = load(choose_words(config, [], is_full=False))
    assert (made.batch.total, made.lr.base, made.lr.min, made.train.epochs, made.train.steps) == (
        32,
        4e-4,
        1e-6,
        100,
        None,
    )
    assert (made.save.every_epochs, made.save.every, made.eval.every_epochs, made.seed) == (10, 0, 10, 42)
    assert (made.task.hidden_dim, made.task.visual_backbone, made.task.image_size) == (64, "small", 32)
    assert (made.task.synthetic, made.task.num_steps, made.parallel.all_workers) == (True, 50, None)


def test_the_full_size_is_the_guides_file_as_it_is(config):
    made = load(choose_words(config, [], is_full=True))
    assert (made.task.hidden_dim, made.task.num_layers, made.task.visual_backbone) == (2048, 32, QWEN)
    assert (made.task.synthetic, made.parallel.all_workers, made.task.data_dir) == (False, 32, "./data-action_head")


@pytest.mark.parametrize("is_full", [True, False])
def test_a_word_of_the_command_line_beats_the_file(config, is_full):
    made = load(choose_words(config, ["data.batch_size=16", "training.num_epochs=7"], is_full=is_full))
    assert (made.batch.total, made.train.epochs) == (16, 7)


@pytest.mark.parametrize("steps", [3, RECIPE.defaults["train.steps"]])
def test_steps_somebody_asks_for_beat_the_files_epochs(config, monkeypatch, steps):
    monkeypatch.setenv("HEADWAY_SET_TRAIN__STEPS", str(steps))
    words = choose_words(config, [], is_full=False)
    made = guided.load(words[0], words[1:]).config
    assert (made.train.steps, made.train.epochs) == (steps, None)


def test_resuming_hands_on_only_what_the_file_says_now_and_did_not_before(config):
    before = load(choose_words(config, [], is_full=False))
    now = load(choose_words(config, ["training.num_epochs=200", "optimizer.betas=[0.9,0.95]"], is_full=False))
    assert guided.changed_words(before, now) == ["task.betas=[0.9, 0.95]", "train.epochs=200.0"]
    assert guided.changed_words(before, before) == []


def make_lines(tmp_path, *, every_epochs=None):
    run = RunDir(tmp_path / "runs" / "one")
    run.root.mkdir(parents=True)
    run.plan.write_text(json.dumps({"batch_samples": 32}))
    said: list[str] = []
    setup = Setup(train=190, held=48, save=SaveConfig(every_epochs=every_epochs))
    lines = GuideLines(setup, tmp_path / "checkpoints", said.append)
    lines.on_run(run)
    lines.on_event({"kind": "attempt_started", "attempt": 1, "world_size": 2})
    return lines, said


def test_the_start_shows_what_the_guide_calls_signs_of_a_healthy_run(tmp_path):
    lines, said = make_lines(tmp_path)
    lines.close()
    assert said[:3] == ["✅ 使用 2 个CPU进程进行训练", "✅ 训练数据集包含 190 个样本", "✅ 验证数据集包含 48 个样本"]


def test_an_epochs_loss_is_the_mean_of_the_steps_that_began_in_it(tmp_path):
    lines, said = make_lines(tmp_path)
    told = [lines.on_step(step, float(step), 1e-4, 0.1) for step in range(1, 13)]
    lines.close()
    # 190 samples at 32 a step: the epochs end inside steps 6 and 12.
    assert [line for line in told if line] == [
        "Epoch 1 - Train Loss: 3.5000, LR: 0.0001",
        "Epoch 2 - Train Loss: 9.5000, LR: 0.0001",
    ]
    lines.finish()
    assert said[-1] == "❌ 损失函数没有下降: 3.5000 → 9.5000"


def test_a_copy_that_cannot_be_written_is_said_and_does_not_end_the_run(tmp_path):
    lines, said = make_lines(tmp_path, every_epochs=1)
    lines.on_event({"kind": "checkpoint_committed", "step": 6, "path": str(tmp_path / "runs/one/checkpoints/step-6")})
    lines.close()
    assert "[checkpoint/" in said[-1]


def test_a_checkpoint_without_its_note_is_refused_with_the_reason(tmp_path):
    (tmp_path / "best_model.pth").write_bytes(b"not ours")
    with pytest.raises(UsageError) as refused:
        find_source(tmp_path / "best_model.pth")
    assert refused.value.code == "layoutmaster/guide-no-note"
    with pytest.raises(UsageError) as missing:
        find_source(tmp_path / "checkpoint_epoch_50.pth")
    assert "best_model.pth" in missing.value.text()


def test_a_note_leads_back_to_the_run_also_when_the_project_has_moved(tmp_path):
    (tmp_path / "checkpoints").mkdir()
    (tmp_path / "checkpoints" / "best_model.pth").write_bytes(b"x")
    (tmp_path / "checkpoints" / "best_model.json").write_text(json.dumps({"run": "../runs/one", "step": 7}))
    source = find_source(tmp_path / "checkpoints" / "best_model.pth")
    assert (source.run, source.step) == (str(tmp_path / "runs" / "one"), 7)
