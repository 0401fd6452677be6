"""The guide's commands, as far as no process is needed."""

import json

import pytest

from headway.errors import UsageError
from headway.recipes.guided import GuideLog
from headway.recipes.rdt import guided, guided_eval
from headway.recipes.rdt.export import describe_checkpoint
from headway.recipes.rdt.guided_flags import read_flags
from headway.recipes.rdt.section import RdtSection


def test_settings_are_read_in_every_form_the_guide_writes_them():
    words = ["--train_batch_size=16", "--max_steps", "200", "--record_video", "--image_aug", "task.loss=original"]
    assert read_flags(words) == {
        "train_batch_size": "16",
        "max_steps": "200",
        "record_video": "true",
        "image_aug": "true",
        "task.loss": "original",
    }


@pytest.mark.parametrize(
    ("launcher", "own", "want"),
    [("bf16", {}, "bf16"), ("no", {}, "fp32"), ("bf16", {"mixed_precision": "fp16"}, "fp16")],
)
def test_the_launchers_precision_counts_unless_the_script_names_one(tmp_path, launcher, own, want):
    words = guided._full_words(own, tmp_path / "base.yaml", launcher)
    assert [word for word in words if word.startswith("mixed_precision")] == [f"mixed_precision={want}"]


def test_the_published_variable_names_the_demonstrations(monkeypatch):
    monkeypatch.delenv("LIBERO_DATASET_DIR", raising=False)
    assert guided._data_words() == []
    monkeypatch.setenv("LIBERO_DATASET_DIR", "/data/libero_single_task")
    assert guided._data_words() == ["task.data_dir=/data/libero_single_task", "task.synthetic=false"]


def test_the_banner_says_gpus_only_where_there_are_some(monkeypatch):
    monkeypatch.setattr(guided.guided, "has_gpu", lambda: True)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1,2")
    lines = guided._banner(2, "libero_single_task")
    assert "使用2张GPU进行分布式训练" in lines and "GPU设备: 1,2" in lines
    assert "预期加速: 约1.8-1.9x (2张GPU, 考虑通信开销)" in lines
    monkeypatch.setattr(guided.guided, "has_gpu", lambda: False)
    assert not any("张GPU" in line for line in guided._banner(2, "libero_single_task"))
    assert "🔍 使用 libero_90 统计信息" in guided._banner(2, "libero_90")


def test_the_bar_is_the_guides_own(tmp_path):
    log = GuideLog(tmp_path / "training.log")
    teller = guided._Teller(log, tmp_path)
    assert teller.tell({"kind": "planned", "steps": 20_000}) is None
    first = teller.tell({"kind": "training_started", "step": 0})
    assert first == "Steps:   0%|          | 0/20000 [00:00<?, ?it/s]"
    bar = teller.step_line().write(10_000, 0.25, 1e-4, 2.5)
    assert bar.startswith("Steps:  50%|█████     | 10000/20000 [00:00<00:00, 0.40it/s, loss=0.2500")
    both = teller.tell({"kind": "attempt_started", "world_size": 2})
    assert both.splitlines()[1] == "Distributed training: world_size=2, rank=1"
    log.close()


def test_a_pruned_checkpoint_takes_its_export_with_it(tmp_path):
    log = GuideLog(tmp_path / "training.log")
    (tmp_path / "checkpoint-5" / "ema").mkdir(parents=True)
    (tmp_path / "checkpoint-50").mkdir()
    guided._Teller(log, tmp_path).tell({"kind": "checkpoint_pruned", "step": 5})
    assert not (tmp_path / "checkpoint-5").exists() and (tmp_path / "checkpoint-50").exists()
    log.close()


def _export(folder, step):
    (folder / f"checkpoint-{step}" / "ema").mkdir(parents=True)
    path = folder / f"checkpoint-{step}" / "ema" / "model.safetensors"
    path.write_bytes(b"")
    return path


def test_a_step_the_small_run_never_reached_gives_the_newest_and_the_guides_size_refuses(tmp_path):
    _export(tmp_path, 9)
    newest = _export(tmp_path, 10)
    asked = tmp_path / "checkpoint-19000" / "ema" / "model.safetensors"
    assert guided_eval._find(asked, is_full=False) == newest
    with pytest.raises(UsageError) as refused:
        guided_eval._find(asked, is_full=True)
    assert refused.value.code == "rdt/guide-no-weights" and str(newest) in str(refused.value.facts["known"])
    assert guided_eval._find(tmp_path / "checkpoint-9", is_full=True).parents[1].name == "checkpoint-9"


def test_an_export_remembers_everything_its_model_was_trained_as(tmp_path):
    from headway.config import RunConfig

    section = RdtSection(hidden_size=16, depth=2, num_heads=2, rotation="original", position_scale=5.0)
    weights = _export(tmp_path, 3)
    about = describe_checkpoint(RunConfig(task=section), 3)
    (tmp_path / "checkpoint-3" / "config.json").write_text(json.dumps(about))
    found = guided_eval._section_of(weights, {})
    assert found == section.model_copy(update={"pretrained": str(weights)})


def test_the_published_script_counts_rounds_and_bad_options_are_named():
    options = guided_eval._check_options({**guided_eval._DEFAULTS, "max_steps": "200", "exec_horizon": "16"})
    assert (options["unit"], options["max_steps"], options["exec_horizon"]) == ("rounds", 200, 16)
    with pytest.raises(Exception, match="config") as refused:
        guided_eval._check_options({"max_step": "200"})
    assert "max_steps" in str(refused.value.problems)
