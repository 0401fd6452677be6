"""The guide's commands, as far as no process is needed."""

import json
import re
import shutil
from pathlib import Path

import pytest

from headway.errors import UsageError
from headway.guide import Shape, Step, make_project
from headway.messages import set_language
from headway.recipes.rdt import evaluate as evaluation
from headway.recipes.rdt import guide as commands
from headway.recipes.rdt.export import describe_checkpoint
from headway.recipes.rdt.section import RdtSection


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.delenv("LIBERO_DATASET_DIR", raising=False)
    make_project("rdt", tmp_path / "p")
    monkeypatch.chdir(tmp_path / "p")
    return tmp_path / "p"


SCRIPT = ("train_batch_size=16", "learning_rate=1e-4", "max_train_steps=20000", "dataloader_num_workers=8")


def _choose(*own, script=(), precision=None, is_full=False):
    return commands.choose(Path(commands.CONFIG), script, own, launched=2, is_full=is_full, precision=precision)


def test_what_is_typed_or_edited_in_the_script_is_used_at_the_small_size_and_the_rest_is_listed(project):
    printed = _choose(script=SCRIPT)
    assert (printed.config.batch.all_devices, printed.config.lr.base, printed.config.train.steps) == (None, 7e-3, 1000)
    block = "\n".join(printed.notes)
    for line in ("train_batch_size: 16 → 64", "learning_rate: 0.0001 → 0.007", "max_train_steps: 20000 → 1000"):
        assert line in block
    edited = _choose("max_train_steps=30", script=("train_batch_size=12", *SCRIPT[1:]))
    assert (edited.config.batch.all_devices, edited.config.train.steps) == (12, 30)
    assert "train_batch_size" not in "\n".join(edited.notes)
    origins = edited.loaded.origins
    assert origins["batch.all_devices"] == "train_single_task_2gpu.sh" and origins["train.steps"] == "command line"
    assert origins["lr.base"] == "recipe rdt" and origins["parallel.cpus"] == "main.py"
    assert _choose(script=SCRIPT, is_full=True).config.batch.all_devices == 16


@pytest.mark.parametrize(
    ("launcher", "own", "want"),
    [("bf16", (), "bf16"), ("no", (), "fp32"), ("bf16", ("mixed_precision=fp16",), "fp16")],
)
def test_the_launchers_precision_counts_unless_the_script_names_one(project, launcher, own, want):
    assert _choose(*own, precision=launcher, is_full=True).config.train.precision == want
    assert _choose(*own, precision=launcher).config.train.precision == "auto", "CPU ranks compute in fp32"


def test_the_published_variable_names_the_demonstrations(monkeypatch):
    monkeypatch.delenv("LIBERO_DATASET_DIR", raising=False)
    assert commands._data_words() == []
    monkeypatch.setenv("LIBERO_DATASET_DIR", "/data/libero_single_task")
    assert commands._data_words() == ["task.data_dir=/data/libero_single_task", "task.synthetic=false"]


def test_the_banner_says_gpus_only_where_there_are_some(monkeypatch):
    monkeypatch.setattr(commands.guide, "has_gpu", lambda: True)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1,2")
    english = commands.banner(2, "libero_single_task")
    assert "distributed training on 2 GPUs" in english and "GPUs: 1,2" in english
    assert any(line.startswith("expected speed-up according to the guide: about 1.8-1.9x") for line in english)
    assert not any(re.search("[\u4e00-\u9fff]", line) for line in english)
    set_language("zh")
    lines = commands.banner(2, "libero_single_task")
    assert "使用2张GPU进行分布式训练" in lines and "GPU设备: 1,2" in lines
    assert any(line.startswith("预期加速: 约1.8-1.9x (2张GPU, 考虑通信开销)（指南的数值") for line in lines)
    monkeypatch.setattr(commands.guide, "has_gpu", lambda: False)
    assert not any("张GPU" in line for line in commands.banner(2, "libero_single_task"))
    assert "使用1个CPU进程进行训练" in commands.banner(1, "libero_single_task")
    assert "🔍 使用 libero_90 统计信息" in commands.banner(2, "libero_90")


def test_the_bar_is_the_guides_own(tmp_path):
    voice = commands.voice(tmp_path)
    shape = Shape(batch=16, in_epoch=100, steps=20_000, samples=320_000, ranks=2)
    assert voice.training(shape, 0) == "Steps:   0%|          | 0/20000 [00:00<?, ?it/s]"
    bar = voice.step(shape, Step(step=10_000, samples=160_000, loss=0.25, lr=1e-4, seconds=2.5))
    assert bar.startswith("Steps:  50%|█████     | 10000/20000 [00:00<00:00, 0.40it/s, loss=0.2500")
    assert voice.start(shape)[1] == "Distributed training: world_size=2, rank=1"
    assert voice.name(shape, 19_000, 0) == "checkpoint-19000"


def _export(folder, step):
    (folder / f"checkpoint-{step}" / "ema").mkdir(parents=True)
    path = folder / f"checkpoint-{step}" / "ema" / "model.safetensors"
    path.write_bytes(b"")
    return path


def test_a_step_the_small_run_never_reached_gives_the_newest_and_the_guides_size_refuses(tmp_path):
    _export(tmp_path, 9)
    newest = _export(tmp_path, 10)
    asked = tmp_path / "checkpoint-19000" / "ema" / "model.safetensors"
    assert evaluation.find_weights(asked, is_full=False) == newest
    with pytest.raises(UsageError) as refused:
        evaluation.find_weights(asked, is_full=True)
    assert refused.value.code == "rdt/guide-no-weights" and str(newest) in str(refused.value.facts["known"])
    assert evaluation.find_weights(tmp_path / "checkpoint-9", is_full=True).parents[1].name == "checkpoint-9"


def test_an_export_remembers_everything_its_model_was_trained_as(tmp_path):
    from headway.config import RunConfig

    section = RdtSection(hidden_size=16, depth=2, num_heads=2, rotation="original", position_scale=5.0)
    weights = _export(tmp_path, 3)
    about = describe_checkpoint(RunConfig(task=section), 3)
    (tmp_path / "checkpoint-3" / "config.json").write_text(json.dumps(about))
    found = evaluation.section_of(weights, {})
    assert found == section.model_copy(update={"pretrained": str(weights), "norm": "rms"})


def test_the_published_script_counts_rounds_and_bad_options_are_named():
    options = evaluation.check_options({**evaluation._DEFAULTS, "max_steps": "200", "exec_horizon": "16"})
    assert (options["unit"], options["max_steps"], options["exec_horizon"]) == ("rounds", 200, 16)
    with pytest.raises(Exception, match="config") as refused:
        evaluation.check_options({"max_step": "200"})
    assert "max_steps" in str(refused.value.problems)


def test_a_stopped_run_is_continued_by_its_name_too(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = [f"2026010{day}-000000_single_task_scene10_000{day}" for day in (1, 2)]
    for name in names:
        (tmp_path / "runs" / name / "ranks").mkdir(parents=True)
        (tmp_path / "runs" / name / "config.yaml").write_text("")
    found = {asked: commands._resumed(asked, Path("checkpoints/single_task_scene10")) for asked in (*names, "latest")}
    assert [found[asked]["continued"].name for asked in (*names, "latest")] == [*names, names[1]]


def test_weights_that_a_run_removes_while_they_are_evaluated_are_read_all_the_same(tmp_path):
    weights = tmp_path / "single" / "checkpoint-15" / "ema" / "model.safetensors"
    weights.parent.mkdir(parents=True)
    weights.write_bytes(b"weights")
    with evaluation._held(weights) as held:
        shutil.rmtree(tmp_path / "single" / "checkpoint-15")
        assert held.read_bytes() == b"weights"
    assert list((tmp_path / "single").iterdir()) == []
    with pytest.raises(UsageError) as refused, evaluation._held(weights):
        pass
    assert refused.value.code == "rdt/guide-no-weights"


@pytest.mark.parametrize("text", ["two", "0", "-1", "1.5"])
def test_a_number_of_processes_that_is_none_is_refused_in_words(tmp_path, monkeypatch, text):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError) as refused:
        commands.main("train", [f"--num_processes={text}"])
    assert refused.value.code == "guide/odd-count" and text in refused.value.text("zh")
