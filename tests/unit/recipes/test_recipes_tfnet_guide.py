"""The TFNet guide's numbers at the size trained here."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from headway.config import ConfigErrors
from headway.errors import CheckError, UsageError
from headway.guide import Asked, make_project
from headway.recipes.tfnet import guide as commands
from headway.recipes.tfnet.guide import choose
from headway.start.consent import require_python


@pytest.fixture
def project(tmp_path, monkeypatch):
    make_project("tfnet", tmp_path / "p")
    monkeypatch.chdir(tmp_path / "p")
    return tmp_path / "p"


def edit(project, section, **values):
    file = project / "configs" / "gpu_config.json"
    config = json.loads(file.read_text())
    config[section].update(values)
    file.write_text(json.dumps(config))


def test_the_guides_own_numbers_are_replaced_and_listed(project):
    made = choose(Asked())
    assert (made.config.batch.per_device, made.config.train.steps, made.config.train.epochs) == (8, 160, None)
    block = "\n".join(made.notes)
    no_data = (
        "dataset.train_label_path: data/CE-CSL/label/train.csv → not set  (no data there: the built-in set is used)"
    )
    for wanted in ("model.hidden_size: 1024 → 64", "training.learning_rate: 0.0001 → 0.003", no_data):
        assert wanted in block
    assert "training.num_epochs: 55 → 160 steps" in block and "training.eval_interval: 1 → 20 steps" in block


def test_the_guides_own_paths_hold_where_its_data_is(project):
    label = Path("data/CE-CSL/label/train.csv")
    label.parent.mkdir(parents=True)
    label.write_text("Number,Translator,Chinese Sentences,Gloss,Note\n")
    made = choose(Asked())
    assert (made.config.task.train_label_path, made.config.task.synthetic) == (str(label), False)
    assert "data_path" not in "\n".join(made.notes)


def test_edited_batch_epochs_rate_and_size_are_used(project):
    edit(project, "training", batch_size=4, num_epochs=3, learning_rate=0.002)
    edit(project, "model", hidden_size=32)
    made = choose(Asked())
    assert (made.config.batch.per_device, made.config.train.epochs, made.config.train.steps) == (4, 3, None)
    assert (made.config.lr.base, made.config.task.hidden_size) == (0.002, 32)
    block = "\n".join(made.notes)
    assert "batch_size" not in block and "hidden_size" not in block


def test_what_is_typed_is_used(project):
    made = choose(Asked(words=("training.batch_size=2", "train.steps=5")))
    assert (made.config.batch.per_device, made.config.train.steps) == (2, 5)


def test_the_plan_says_where_each_value_of_the_small_size_comes_from(project):
    edit(project, "training", learning_rate=0.002)
    origins = choose(Asked(words=("training.batch_size=2",))).loaded.origins
    assert origins["batch.per_device"] == "command line"
    assert origins["lr.base"].startswith("configs/gpu_config.json:")
    assert origins["task.hidden_size"] == "recipe tfnet" and origins["recipe"] == "train_tfnet_gpu.py"
    assert [key for key, origin in origins.items() if origin == "command line"] == ["batch.per_device"]


def test_the_way_into_mindspores_environment_is_the_folder_of_its_interpreter(project, monkeypatch, capsys):
    monkeypatch.setattr("headway.guide.other_python", lambda: "/opt/ms/bin/python")
    monkeypatch.setattr("headway.guide.read_mindspore", lambda _: SimpleNamespace(mindspore="2.10.0"))
    assert commands.main("where_mindspore", []) == 0
    assert capsys.readouterr().out == "/opt/ms/bin\n"
    monkeypatch.setattr("headway.guide.read_mindspore", lambda _: SimpleNamespace(mindspore=None))
    with pytest.raises(CheckError) as refused:
        commands.main("where_mindspore", [])
    assert refused.value.code == "tfnet/guide-no-mindspore"
    assert "where_mindspore" in (project / "enter_mindspore.sh").read_text()


def test_the_interpreter_that_was_set_up_for_mindspore_needs_no_word_of_trust(tmp_path, monkeypatch):
    own, other = str(tmp_path / "own" / "python"), str(tmp_path / "other" / "python")
    monkeypatch.setattr("headway.start.consent.other_python", lambda: own)
    require_python(own)
    with pytest.raises(UsageError) as refused:
        require_python(other)
    assert refused.value.code == "cli/untrusted"


def test_a_config_that_cannot_be_read_is_explained_in_the_log_too(project, capsys):
    (project / "configs" / "gpu_config.json").write_text('{"training": {"batch_size": 8,')
    for entry in ("train_tfnet_gpu", "quick_start_gpu"):
        with pytest.raises(ConfigErrors):
            commands.main(entry, [])
        log = sorted((project / "logs_gpu").glob("gpu_training_*.log"))[-1].read_text()
        assert "error analysis: " in log and "gpu_config.json" in log
    with pytest.raises(UsageError):
        commands.main("train_tfnet_gpu", ["--config", "configs/other.json"])
    assert "configs/gpu_config.json" in sorted((project / "logs_gpu").glob("*.log"))[-1].read_text()


def test_the_quick_starts_check_stands_in_the_log(project, monkeypatch, capsys):
    monkeypatch.setattr(commands.guide, "headway", lambda *_: ["sh", "-c", "echo 'error: no framework'; exit 3"])
    assert commands.main("quick_start_gpu", []) == 3
    (log,) = (project / "logs_gpu").glob("gpu_training_*.log")
    text = log.read_text()
    assert "configs/gpu_config.json" in text and "error: no framework" in text
    assert text == capsys.readouterr().out
