"""The guide's commands: their flags, its numbers at the size trained here, its lines and its files."""

from __future__ import annotations

import json
import os
import shutil
from importlib.resources import files
from pathlib import Path

import pytest
from PIL import Image

from headway import guide
from headway.config import RunConfig
from headway.guide import Made, NamedCheckpoints, Story
from headway.messages import set_language
from headway.recipes.layoutmaster.guide import choose, count_lines, loss_lines, voice
from headway.recipes.layoutmaster.preset import RECIPE
from headway.recipes.layoutmaster.section import QWEN
from headway.recipes.layoutmaster.sheet import write_sheet
from headway.telemetry import RunDir

TEMPLATE = Path(str(files("headway.recipes") / "layoutmaster" / "project" / "config_data_action_head.json"))


@pytest.fixture
def config(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copy(TEMPLATE, tmp_path)
    return Path(TEMPLATE.name)


def test_the_small_size_keeps_every_number_of_the_guide_that_is_not_about_size(config):
    made = choose(config, [], is_full=False).config
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
    made = choose(config, [], is_full=True).config
    assert (made.task.hidden_dim, made.task.num_layers, made.task.visual_backbone) == (2048, 32, QWEN)
    assert (made.task.synthetic, made.parallel.all_workers, made.task.data_dir) == (False, 32, "./data-action_head")


@pytest.mark.parametrize("is_full", [True, False])
def test_a_word_of_the_command_line_beats_the_file(config, is_full):
    made = choose(config, ["data.batch_size=16", "training.num_epochs=7"], is_full=is_full).config
    assert (made.batch.total, made.train.epochs) == (16, 7)


@pytest.mark.parametrize("steps", [3, RECIPE.defaults["train.steps"]])
def test_steps_somebody_asks_for_beat_the_files_epochs(config, monkeypatch, steps):
    monkeypatch.setenv("HEADWAY_SET_TRAIN__STEPS", str(steps))
    made = choose(config, [], is_full=False).config
    assert (made.train.steps, made.train.epochs) == (steps, None)


def test_resuming_hands_on_only_what_the_file_says_now_and_did_not_before(config):
    before = choose(config, [], is_full=False).config
    now = choose(config, ["training.num_epochs=200", "optimizer.betas=[0.9,0.95]"], is_full=False).config
    assert guide.changed_words(before, now) == ["task.betas=[0.9, 0.95]", "train.epochs=200.0"]
    assert guide.changed_words(before, before) == []


def make_story(tmp_path, *, every_epochs=None, batch=32):
    run = RunDir(tmp_path / "runs" / "one")
    run.root.mkdir(parents=True)
    plan = {"batch_samples": batch, "epoch_samples": 190, "total_steps": 100, "total_samples": 19000, "world_size": 2}
    run.plan.write_text(json.dumps(plan))
    said: list[str] = []
    config = RunConfig.model_validate({"save": {"every_epochs": every_epochs}, "task": {}})
    own = voice(config, 190, 48)
    files = NamedCheckpoints(tmp_path / "checkpoints", writer=guide.CkptWriter(), write=said.append)
    listener = Story(own, files, said.append).listener()
    listener.run(run)
    listener.event({"kind": "attempt_started", "attempt": 1, "world_size": 2})
    return own, files, listener, said


def step(number, *, batch=32, before=0):
    samples = before + number * batch
    return guide.Step(step=number, samples=samples, loss=float(number), lr=1e-4, seconds=0.1)


def test_the_start_shows_what_the_guide_calls_signs_of_a_healthy_run(tmp_path):
    set_language("zh")
    _, files, _, said = make_story(tmp_path)
    files.close()
    assert said[:3] == ["✅ 使用 2 个CPU进程进行训练", "✅ 训练数据集包含 190 个样本", "✅ 验证数据集包含 48 个样本"]
    assert count_lines(190, 48) == said[1:3]


def test_an_epochs_loss_is_the_mean_of_the_steps_that_began_in_it(tmp_path):
    _, files, listener, _ = make_story(tmp_path)
    told = [listener.step(step(number)) for number in range(1, 13)]
    files.close()
    # 190 samples at 32 a step: the epochs end inside steps 6 and 12.
    assert [line for line in told if line] == [
        "Epoch 1 - Train Loss: 3.5000, LR: 0.0001",
        "Epoch 2 - Train Loss: 9.5000, LR: 0.0001",
    ]
    assert loss_lines({0: 3.5, 1: 9.5})[-1] == "❌ the loss did not fall: 3.5000 → 9.5000"


def test_epochs_are_counted_in_samples_after_the_batch_was_edited(tmp_path):
    """Issue 25, 2: 50 epochs of 32 a step, then 16 a step."""
    own, files, listener, _ = make_story(tmp_path, every_epochs=10, batch=16)
    before = 50 * 190 - 300 * 16
    told = [listener.step(step(number, batch=16, before=before)) for number in range(301, 425)]
    files.close()
    epochs = [line.split()[1] for line in told if line]
    assert epochs[0] == "51" and epochs[-1] == "60"
    shape = guide.Shape(batch=16, in_epoch=190, steps=888, samples=19000)
    named = [own.name(shape, 0, 9500 + 16 * number) for number in range(1, 125)]
    assert [name for name in named if name] == ["checkpoint_epoch_60.pth"]


def test_a_copy_that_cannot_be_written_is_said_and_does_not_end_the_run(tmp_path):
    _, files, listener, said = make_story(tmp_path, every_epochs=1)
    place = tmp_path / "runs/one/checkpoints/step-6"
    place.mkdir(parents=True)
    listener.event({"kind": "checkpoint_committed", "step": 6, "path": str(place)})
    files.add(place, "checkpoint_epoch_1.pth", Made(run=RunDir(tmp_path / "runs" / "one"), step=6, epoch=1))
    files.close()
    assert "[checkpoint/" in said[-1]


def test_a_loss_that_rose_again_is_not_called_steadily_falling():
    assert loss_lines(dict(enumerate([9, 5, 4, 4.1])))[0].startswith("✅ the loss falls steadily")
    assert loss_lines(dict(enumerate([9, 3, 6, 8])))[0].startswith("❌ the loss fell and then rose again")


def test_workers_that_were_edited_are_used_as_far_as_there_are_cores_and_the_rest_is_listed(config):
    config.write_text(config.read_text().replace('"num_workers": 32', '"num_workers": 64'))
    made = choose(config, [], is_full=False)
    assert made.config.parallel.all_workers == os.cpu_count()
    block = "\n".join(made.notes)
    assert f"data.num_workers: 64 → {os.cpu_count()}" in block and "model.hidden_dim: 2048 → 64" in block


def test_workers_that_are_not_set_are_listed_with_the_number_of_the_plan(config):
    assert "data.num_workers: 32 → 0 per rank" in "\n".join(choose(config, [], is_full=False).notes)


def test_an_edited_size_is_used_where_the_small_model_can_have_it(config):
    text = config.read_text()
    config.write_text(text.replace('"hidden_dim": 2048', '"hidden_dim": 128'))
    assert choose(config, [], is_full=False).config.task.hidden_dim == 128
    config.write_text(text.replace('"hidden_dim": 2048', '"hidden_dim": 3072'))
    made = choose(config, [], is_full=False)
    assert made.config.task.hidden_dim == 64 and "model.hidden_dim: 3072 → 64" in "\n".join(made.notes)


def test_the_pictures_of_all_posters_are_on_one_sheet(tmp_path):
    for poster in ("a", "b"):
        (tmp_path / "predictions" / poster).mkdir(parents=True)
        for name in ("before", "after", "target"):
            Image.new("RGB", (480, 600)).save(tmp_path / "predictions" / poster / f"{name}.png")
    sheet = write_sheet(tmp_path / "predictions")
    assert sheet == tmp_path / "predictions.png"
    with Image.open(sheet) as image:
        assert image.size == (3 * 240 + 2 * 8, 2 * 300 + 8)
