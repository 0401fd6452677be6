import subprocess
import sys

import pytest

from fakes.machines import eight_h100, machine
from headway.config import ConfigErrors, load_config
from headway.errors import ConfigError
from headway.planner import make_plan
from headway.recipes.atlas.preset import RECIPE
from headway.recipes.atlas.section import AtlasSection

GUIDE = """
data:
  batch_size: 8  # 每个GPU的batch size
training:
  learning_rate: 1e-4
  warmup_steps: 1000
  gradient_accumulation_steps: {accumulation}
  val_interval: 1000
  max_steps: 5000
"""


def _load(tmp_path, text, *words):
    file = tmp_path / "train_config.yaml"
    file.write_text(text, encoding="utf-8")
    return load_config(file, recipe=RECIPE, overrides=list(words))


def _plan(loaded):
    return make_plan(loaded, machine(eight_h100()), RECIPE)


def test_the_guides_example_means_what_the_guide_says(tmp_path):
    loaded = _load(tmp_path, GUIDE.format(accumulation=1))
    config, plan = loaded.config, _plan(loaded)
    assert (plan.micro_batch, plan.world_size, plan.batch_samples) == (8, 8, 64), "8 on each of 8 GPUs"
    assert config.lr.base == 1e-4 and config.lr.base * plan.lr_factor == pytest.approx(8e-4)
    assert plan.warmup_samples == 1000 * 64, "warm-up counts optimizer steps, over all GPUs"
    assert config.eval.every == 1000 and not loaded.warnings


def _said(plan, code):
    (found,) = [warning.facts for warning in plan.warnings if warning.code == code]
    return found


def test_accumulation_counts_for_batch_and_rate_and_is_explained(tmp_path):
    plan = _plan(_load(tmp_path, GUIDE.format(accumulation=2)))
    assert (plan.batch_samples, plan.lr_factor) == (128, 16.0)
    assert (_said(plan, "atlas/batch-meaning")["total"], _said(plan, "atlas/batch-meaning")["usual"]) == ("128", "64")
    rates = _said(plan, "atlas/rate-meaning")
    assert [float(rates[name]) for name in ("rate", "by_gpus", "by_samples")] == pytest.approx([1.6e-3, 8e-4, 1.6e-3])


def test_four_times_eight_times_four_is_not_sixty_four(tmp_path):
    text = GUIDE.format(accumulation=4).replace("batch_size: 8", "batch_size: 4")
    plan = _plan(_load(tmp_path, text))
    said = _said(plan, "atlas/batch-meaning")
    assert (plan.batch_samples, said["total"], said["usual"]) == (128, "128", "64")
    assert (said["same"], said["turns"]) == ("4", "2"), "4 × 8 × 2 = 64"


def test_half_the_batch_without_accumulation_has_its_rate_explained(tmp_path):
    plan = _plan(_load(tmp_path, GUIDE.format(accumulation=1).replace("batch_size: 8", "batch_size: 4")))
    assert not [one for one in plan.warnings if one.code == "atlas/batch-meaning"]
    assert float(_said(plan, "atlas/rate-meaning")["rate"]) == pytest.approx(4e-4)


@pytest.mark.parametrize(("rule", "rate"), [("linear", 8e-4), ("sqrt", 8**0.5 * 1e-4), ("none", 1e-4)])
def test_the_guides_three_rules_are_a_setting(tmp_path, rule, rate):
    loaded = _load(tmp_path, GUIDE.format(accumulation=1), f"lr.scaling={rule}")
    assert loaded.config.lr.base * _plan(loaded).lr_factor == pytest.approx(rate)


def test_the_originals_rate_can_be_had_back(tmp_path):
    loaded = _load(tmp_path, GUIDE.format(accumulation=2), "lr.base_batch=16")
    assert loaded.config.lr.base * _plan(loaded).lr_factor == pytest.approx(8e-4)


def test_a_rate_that_is_text_is_refused_with_the_number_to_type(tmp_path):
    with pytest.raises(ConfigErrors) as refused:
        _load(tmp_path, 'training:\n  learning_rate: "1e-4"\n')
    assert "1e-4" in str(refused.value) or "0.0001" in str(refused.value)
    assert _load(tmp_path, "training:\n  learning_rate: 1e-4\n").config.lr.base == 1e-4


def test_a_token_in_the_config_is_refused(tmp_path):
    with pytest.raises(ConfigErrors) as refused:
        _load(tmp_path, "huggingface:\n  token: hf_abcdefghijklmnopqrstuvwxyz\n")
    assert "HF_TOKEN" in str(refused.value) and "abcdefgh" not in str(refused.value)


def test_a_later_layer_decides_how_long_the_rate_rises(tmp_path):
    loaded = _load(tmp_path, GUIDE.format(accumulation=1), "lr.warmup_samples=640")
    assert _plan(loaded).warmup_samples == 640
    assert _plan(_load(tmp_path, "training:\n  max_steps: 500\n")).warmup_samples == 1920, "the recipe's own"


def test_the_whole_published_config_is_understood(tmp_path):
    text = """
model: {vggt_checkpoint: facebook/VGGT-1B, lang_encoder_name: meta-llama/Meta-Llama-3-8B, freeze_vggt: true,
  freeze_lang_encoder: true, geom_output_dim: 512, fusion_hidden_dim: 1024, action_dim: 7, use_pointnet: true,
  use_pose: true}
data: {use_huggingface: false, data_dir: ./dataset, train_split: train, val_split: null, image_size: 518,
  use_wrist_camera: true, batch_size: 8, num_workers: 4}
training: {num_epochs: 50, learning_rate: 1e-4, weight_decay: 0.01, warmup_steps: 1000, log_interval: 100,
  val_interval: 1000, save_interval: 5000, gradient_accumulation_steps: 1,
  loss: {pose_weight: 1.0, gripper_weight: 0.5, pose_loss_type: smooth_l1, gripper_loss_type: l1}}
checkpoint: {save_dir: ./checkpoints, resume_from: null}
logging: {save_to_file: true, log_dir: ./logs}
wandb: {enabled: false}
"""
    loaded = _load(tmp_path, text, "preset=published")
    config = loaded.config
    defaults = AtlasSection()
    changed = {
        name
        for name, value in config.task.model_dump().items()
        if value != getattr(defaults, name) and name not in ("data_dir", "vggt_checkpoint", "lang_encoder_name")
    }
    assert changed == set(), "the section's defaults are the published model"
    assert (config.batch.per_device, config.train.epochs, config.train.steps, config.out) == (
        8,
        50,
        None,
        "./checkpoints",
    )
    assert (config.lr.base_batch, config.lr.warmup_steps, config.save.every) == (8, 1000, 5000)
    ignored = {warning[1]["key"] for warning in loaded.warnings}
    assert ignored == {
        *("model.action_dim", "data.use_huggingface", "training.log_interval", "checkpoint.resume_from"),
        *("logging.save_to_file", "logging.log_dir", "wandb.enabled"),
    }


def test_encoders_that_train_are_weighed_against_the_card():
    loaded = load_config(
        recipe=RECIPE, overrides=["preset=published", "task.freeze_lang_encoder=false", "train.steps=9"]
    )
    (said,) = [one for one in _plan(loaded).warnings if one.code == "atlas/encoders-too-large"]
    assert said.facts["have"] == "80.0 GiB" and float(said.facts["need"].split()[0]) > 120


@pytest.mark.parametrize(
    ("values", "code"),
    [
        ({"image_size": 512}, "atlas/patches"),
        ({"vggt_heads": 7}, "atlas/heads"),
        ({"fusion_heads": 3}, "atlas/heads"),
        ({"vggt_dense_width": 12}, "atlas/dense-width"),
    ],
)
def test_widths_that_do_not_divide_are_refused_with_ones_that_do(values, code):
    with pytest.raises(ConfigError) as refused:
        AtlasSection(**values)
    assert refused.value.code == code
    near = refused.value.facts.get("near")
    if near is not None:
        AtlasSection(**{next(iter(values)): near})


def test_the_preset_imports_no_framework_and_no_data_library():
    heavy = "{'torch', 'numpy', 'pyarrow', 'PIL', 'h5py', 'transformers'}"
    code = f"import sys, headway.task as r; r.find_recipe('atlas'); sys.exit(bool({heavy} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_without_guide_names_nothing_is_said_about_them():
    loaded = load_config(recipe=RECIPE, overrides=["batch.per_device=4", "batch.accumulation=4"])
    assert not [one for one in _plan(loaded).warnings if one.code.startswith("atlas/")]
    assert isinstance(loaded.config.task, AtlasSection)
