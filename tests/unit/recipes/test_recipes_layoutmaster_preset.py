import json
import subprocess
import sys

import pytest

from headway.config import ConfigErrors, load_config
from headway.errors import ConfigError
from headway.messages import say
from headway.recipes.layoutmaster.preset import RECIPE
from headway.recipes.layoutmaster.section import QWEN, LayoutMasterSection

GUIDE = """{
  "project_name": "layout-diffusion", "run_name": "data-action-head-8gpu-training", "device": "cuda", "seed": 42,
  "use_multi_gpu": true,
  "data": {
    "use_trajectory_dataset": true, "data_root": "DATA", "train_ratio": 0.8, "image_size": 224,
    "batch_size": 32,        // 总批次大小 (每GPU 4个样本)
    "num_workers": 32        // 数据加载进程数
  },
  "model": {"visual_backbone": "Qwen-VL-2.5-3B-Instruct", "visual_dim": 1280, "hidden_dim": 2048, "num_layers": 32,
            "max_elements": 25},
  "diffusion": {"num_timesteps": 1000, "beta_start": 0.0001, "beta_end": 0.02, "schedule_type": "cosine",
                "trajectory_steps": 50},
  "loss": {"noise_weight": 1.0, "position_weight": 1.0, "layer_weight": 0.5, "confidence_weight": 0.3,
           "aesthetic_weight": 0.2, "overlap_weight": 0.7, "alignment_weight": 0.4},
  "optimizer": {
    "lr": 4e-4,              // 4x基础学习率 (适应多GPU)
    "weight_decay": 0.01, "betas": [0.9, 0.95], "min_lr": 1e-6, "freeze_visual": true,
  },
  "training": {"num_epochs": 100, "save_every": 10, "max_grad_norm": 0.5, "save_dir": "./checkpoints"},
  "inference": {"num_steps": 40},
  "canvas_size": [1024, 1024], "max_elements": 25, "use_swanlab": false, "backbone_path": "/models/qwen"
}
"""


@pytest.fixture
def guide_file(tmp_path):
    file = tmp_path / "config_data_action_head.json"
    file.write_text(GUIDE, encoding="utf-8")
    return file


def test_the_guides_file_loads_with_its_comments_and_keeps_every_number(guide_file):
    config = load_config(guide_file, recipe=RECIPE).config
    task = config.task
    assert (config.batch.total, config.batch.per_device, config.batch.unit) == (32, None, "samples")
    assert (config.lr.base, config.lr.scaling, config.train.epochs, config.optimizer.clip) == (4e-4, "none", 100, 0.5)
    assert (task.hidden_dim, task.num_layers, task.visual_dim, task.visual_backbone) == (2048, 32, 1280, QWEN)
    assert (task.betas, task.freeze_visual, task.num_steps, task.schedule_type) == ((0.9, 0.95), True, 40, "cosine")
    assert (task.max_elements, task.layers, task.loss.overlap, task.loss.layer) == (25, 25, 0.7, 0.5)
    assert (task.data_dir, task.backbone_path, config.seed) == ("DATA", "/models/qwen", 42)
    assert (config.save.every_epochs, config.save.every, config.lr.min) == (10, 0, 1e-6)
    assert task.synthetic is False
    assert (config.parallel.all_workers, config.parallel.workers) == (32, 0)


def test_what_has_no_effect_is_said_in_both_languages(guide_file):
    (first, place), *ignored = load_config(guide_file, recipe=RECIPE).warnings
    assert (first, place) == ("config/json-comment", {"place": f"{guide_file}:6:30"})
    warnings = {facts["key"]: facts["reason_code"] for _, facts in ignored}
    assert set(warnings) == {
        "project_name",
        "device",
        "use_multi_gpu",
        "training.save_dir",
        "use_swanlab",
    }
    assert "batch_size" in say(warnings["use_multi_gpu"], "en") and "总和" in say(warnings["use_multi_gpu"], "zh")


def test_the_batch_is_the_total_of_all_devices():
    loaded = load_config(recipe=RECIPE, overrides=["batch_size=16"])
    assert (loaded.config.batch.total, loaded.config.batch.per_device) == (16, None)
    assert loaded.guide_names["batch.total"] == "batch_size"


@pytest.mark.parametrize(
    ("preset", "numbers"),
    [("base", (512, 12, 768, "simple-cnn")), ("large", (2048, 32, 1280, QWEN))],
)
def test_presets_are_the_published_sizes(preset, numbers):
    config = load_config(recipe=RECIPE, overrides=[f"preset={preset}"]).config
    task = config.task
    assert (task.hidden_dim, task.num_layers, task.visual_dim, task.visual_backbone) == numbers
    assert (config.batch.total, config.lr.base, config.train.epochs, config.train.steps) == (32, 4e-4, 100, None)
    assert config.lr.base * config.lr.final == pytest.approx(1e-6)
    assert (task.image_size, task.freeze_visual, task.synthetic, task.trajectory_steps) == (224, True, False, 50)


TRAPS = {
    "layoutmaster/backbone-not-set": {"visual_backbone": "clip"},
    "layoutmaster/layer-scale": {"max_elements": 30, "layer_scale": 25},
    "layoutmaster/jsonl": {"use_trajectory_dataset": False},
    "layoutmaster/noise-weight": {"head_mode": "original", "loss": {"noise": 2.0}},
    "layoutmaster/original-predicts-noise": {"head_mode": "original", "prediction_type": "sample"},
    "layoutmaster/heads": {"hidden_dim": 100},
    "layoutmaster/betas": {"beta_start": 0.1, "beta_end": 0.02},
    "layoutmaster/too-many-steps": {"num_timesteps": 20},
}


@pytest.mark.parametrize(("code", "values"), TRAPS.items())
def test_traps_a_config_can_show_are_refused_in_both_languages(code, values):
    with pytest.raises(ConfigError) as refused:
        LayoutMasterSection(**values)
    error = refused.value
    assert error.code == code
    assert error.text("en") != error.text("zh") and error.hint("en") and error.hint("zh")


def test_a_trap_in_a_file_is_one_of_the_config_problems(guide_file):
    text = guide_file.read_text(encoding="utf-8").replace('"Qwen-VL-2.5-3B-Instruct"', '"clip"')
    guide_file.write_text(text.replace('"/models/qwen"', "null"), encoding="utf-8")
    with pytest.raises(ConfigErrors) as refused:
        load_config(guide_file, recipe=RECIPE)
    assert "layoutmaster/backbone-not-set" in [problem.code for problem in refused.value.problems]


def test_the_suggested_width_divides():
    with pytest.raises(ConfigError) as refused:
        LayoutMasterSection(hidden_dim=100)
    assert LayoutMasterSection(hidden_dim=refused.value.facts["near"]).hidden_dim in (96, 104)


def test_the_resolved_section_survives_json():
    section = load_config(recipe=RECIPE, overrides=["preset=base"]).config.task
    assert LayoutMasterSection.model_validate(json.loads(section.model_dump_json())) == section


def test_the_preset_imports_no_framework_and_no_data_library():
    heavy = "{'torch', 'numpy', 'PIL', 'safetensors'}"
    code = f"import sys, headway.task as r; r.find_recipe('layoutmaster'); sys.exit(bool({heavy} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
