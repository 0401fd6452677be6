import subprocess
import sys

import pytest

from fakes.machines import four_4090, gpu, machine
from headway.config import ConfigErrors, load_config
from headway.errors import PlanError
from headway.messages import say
from headway.planner import make_plan
from headway.recipes.rdt.advice import weigh
from headway.recipes.rdt.preset import RECIPE
from headway.recipes.rdt.section import RdtSection

GUIDE = ["preset=rdt-1b", "--sample_batch_size=16", "--dataloader_num_workers=8", "--mixed_precision=bf16"]

BASE_YAML = """
common: {img_history_size: 2, action_chunk_size: 64, num_cameras: 3, state_dim: 128}
dataset:
  buf_path: /path/to/buffer
  buf_num_chunks: 512
  buf_chunk_size: 512
  epsd_len_thresh_low: 32
  epsd_len_thresh_high: 2048
  image_aspect_ratio: pad
  tokenizer_max_length: 1024
model:
  lang_adaptor: mlp2x_gelu
  img_adaptor: mlp2x_gelu
  state_adaptor: mlp3x_gelu
  lang_token_dim: 4096
  img_token_dim: 1152
  state_token_dim: 128
  rdt: {hidden_size: 2048, depth: 28, num_heads: 32, cond_pos_embed_type: multimodal}
  noise_scheduler:
    type: ddpm
    num_train_timesteps: 1000
    num_inference_timesteps: 5
    beta_schedule: squaredcos_cap_v2
    prediction_type: sample
    clip_sample: False
  ema: {update_after_step: 0, inv_gamma: 1.0, power: 0.75, min_value: 0.0, max_value: 0.9999}
"""


def _plan(words, gpus, tmp_path):
    loaded = load_config(recipe=RECIPE, overrides=[f"task.data_dir={tmp_path}", *words])
    return make_plan(loaded, machine(tuple(gpus)), RECIPE)


def _warnings(plan):
    return {warning.code: warning.facts for warning in plan.warnings if warning.code.startswith("rdt/")}


@pytest.mark.parametrize(("preset", "params"), [("rdt-1b", 1_228_319_872), ("rdt-170m", 166_229_888)])
def test_presets_are_the_published_sizes(preset, params):
    config = load_config(recipe=RECIPE, overrides=[f"preset={preset}"]).config
    assert config.task.num_params == params and not config.task.synthetic
    assert (config.task.action_chunk_size, config.task.img_cond_len, config.ema.power) == (64, 4374, 0.75)
    assert (config.lr.base, config.optimizer.weight_decay, config.task.state_noise_snr) == (1e-4, 1e-2, 40.0)


def test_the_published_base_yaml_loads_as_it_is(tmp_path):
    (tmp_path / "base.yaml").write_text(BASE_YAML + "recipe: rdt\npreset: rdt-1b\n")
    loaded = load_config(tmp_path / "base.yaml", recipe=RECIPE)
    assert loaded.config.task.num_params == 1_228_319_872
    assert (loaded.config.ema.decay, loaded.config.ema.power, loaded.config.task.sample.steps) == (0.9999, 0.75, 5)
    assert {code for code, _ in loaded.warnings} == {"config/ignored"}


def test_the_flags_of_main_py_mean_our_keys():
    words = ["--output_dir=checkpoints/x", "--max_train_steps=20000", "--checkpointing_period=1000"]
    words += ["--checkpoints_total_limit=40", "--learning_rate=1e-4", "--lr_scheduler=constant", "--sample_period=500"]
    words += ["--num_sample_batches=2", "--cond_mask_prob=0.1", "--state_noise_snr=40", "--max_grad_norm=1"]
    words += ["--report_to=tensorboard", "--deepspeed=zero2.json", "--adam_epsilon=1e-8", "--image_aug=true"]
    loaded = load_config(recipe=RECIPE, overrides=[*GUIDE, *words])
    config = loaded.config
    assert (config.out, config.train.steps, config.save.every, config.save.keep_last) == (
        "checkpoints/x",
        20_000,
        1000,
        40,
    )
    assert (config.lr.base, config.eval.trial_every, config.task.sample.batches) == (1e-4, 500, 2)
    assert (config.parallel.workers, config.train.precision, config.task.sample.batch) == (8, "bf16", 16)
    assert (config.task.state_noise_snr, config.task.image_aug) == (40.0, True)
    assert [facts["key"] for code, facts in loaded.warnings if code == "config/ignored"] == ["report_to", "deepspeed"]


@pytest.mark.parametrize(
    ("words", "per_device", "total"),
    [
        (["--train_batch_size=16"], 8, 16),
        (["--train_batch_size=24"], 12, 24),
        (["--train_batch_size=16", "--gradient_accumulation_steps=2"], 8, 32),
        (["--train_batch_size=12", "--gradient_accumulation_steps=2"], 6, 24),
    ],
)
def test_the_guides_batch_is_over_both_gpus_and_both_numbers_are_said(tmp_path, words, per_device, total):
    plan = _plan([*GUIDE, *words], [gpu(0), gpu(1)], tmp_path)
    assert (plan.micro_batch, plan.batch_samples) == (per_device, total)
    facts = _warnings(plan)["rdt/batch-meaning"]
    assert (facts["per_device"], facts["total"], facts["other"]) == (str(per_device), str(total), str(2 * total))
    for lang in ("en", "zh"):
        text = say("rdt/batch-meaning", lang, **facts)
        assert str(per_device) in text and str(total) in text and str(2 * total) in text
    rows = {row.key: row for row in plan.rows}
    assert rows["batch-per-device"].value == str(per_device) and "/ 2" in rows["batch-per-device"].origin


def test_the_meaning_of_main_py_is_one_key_away(tmp_path):
    plan = _plan([*GUIDE, "batch.per_device=16"], [gpu(0), gpu(1)], tmp_path)
    assert (plan.micro_batch, plan.batch_samples) == (16, 32) and "rdt/batch-meaning" not in _warnings(plan)


def test_a_batch_that_does_not_divide_over_the_gpus_is_refused_with_those_that_do(tmp_path):
    with pytest.raises(PlanError) as refused:
        _plan([*GUIDE, "--train_batch_size=15"], [gpu(0), gpu(1)], tmp_path)
    assert refused.value.code == "plan/all-devices-does-not-divide"
    assert refused.value.text().startswith("train_batch_size=15")
    assert "  --train_batch_size=14\n  --train_batch_size=16" in refused.value.hint()


def test_two_batches_that_disagree_in_one_layer_are_refused(tmp_path):
    with pytest.raises(PlanError):
        _plan([*GUIDE, "--train_batch_size=16", "batch.per_device=16"], [gpu(0), gpu(1)], tmp_path)
    same = _plan([*GUIDE, "--train_batch_size=16", "batch.per_device=8"], [gpu(0), gpu(1)], tmp_path)
    assert same.batch_samples == 16


def test_thirty_five_gigabytes_on_a_24_gigabyte_card_are_noticed(tmp_path):
    plan = _plan(["preset=guide-2gpu"], four_4090()[:2], tmp_path)
    facts = _warnings(plan)["rdt/does-not-fit"]
    assert facts["have"] == "24.0 GiB" and 28 < float(facts["need"].split()[0]) < 38
    # Eight on each would leave nothing to spare: the planner's trace calls it tight and offers four as well.
    assert facts["fits"] == "4"
    assert all("24.0 GiB" in say("rdt/does-not-fit", lang, **facts) for lang in ("en", "zh"))
    sharded = _plan(["preset=guide-2gpu", "parallel.strategy=fsdp"], four_4090()[:2], tmp_path)
    assert "rdt/does-not-fit" not in _warnings(sharded)
    assert "rdt/does-not-fit" not in _warnings(_plan(["preset=guide-2gpu"], [gpu(0), gpu(1)], tmp_path))


def test_the_way_out_of_a_small_card_really_fits_it(tmp_path):
    facts = _warnings(_plan(["preset=rdt-1b", "train_batch_size=48"], four_4090()[:2], tmp_path))["rdt/does-not-fit"]
    assert 1 <= int(facts["fits"]) < 24 and float(facts["less"].split()[0]) <= 24
    words = ["preset=rdt-1b", f"batch.per_device={facts['fits']}", "parallel.strategy=fsdp"]
    assert "rdt/does-not-fit" not in _warnings(_plan(words, four_4090()[:2], tmp_path))


def test_the_guides_own_figure_is_near_the_estimate():
    need = sum(weigh(RdtSection(), per_device=8, has_ema=True).values())
    assert need / 35e9 == pytest.approx(1.0, abs=0.15)


def test_rounds_past_the_simulators_end_are_noticed(tmp_path):
    words = ["task.rollout.max_steps=200", "task.rollout.unit=rounds", "exec_horizon=16"]
    facts = _warnings(_plan(["preset=rdt-1b", *words], [gpu(0)], tmp_path))["rdt/past-horizon"]
    assert (facts["asked"], facts["horizon"]) == ("3200", "1000")
    for lang in ("en", "zh"):
        assert "3200" in say("rdt/past-horizon", lang, **facts) and "1000" in say("rdt/past-horizon", lang, **facts)
    steps = _plan(["preset=rdt-1b", "task.rollout.max_steps=200", "exec_horizon=16"], [gpu(0)], tmp_path)
    assert "rdt/past-horizon" not in _warnings(steps)


def test_more_executed_actions_than_a_chunk_has_are_a_config_problem():
    with pytest.raises(ConfigErrors) as refused:
        load_config(recipe=RECIPE, overrides=["exec_horizon=17"])
    assert "rdt/exec-horizon" in [problem.code for problem in refused.value.problems]


def test_more_solver_steps_than_the_noise_has_levels_to_go_down_are_a_config_problem():
    for steps, levels in ((10, 10), (1200, 1000)):
        with pytest.raises(ConfigErrors) as refused:
            load_config(recipe=RECIPE, overrides=[f"task.sample.steps={steps}", f"task.num_train_timesteps={levels}"])
        assert "rdt/too-many-steps" in [problem.code for problem in refused.value.problems]
    load_config(recipe=RECIPE, overrides=["task.sample.steps=9", "task.num_train_timesteps=10"])


def test_the_default_run_divides_on_any_number_of_devices(tmp_path):
    assert [_plan([], [gpu(i) for i in range(num)], tmp_path).batch_samples for num in (1, 3)] == [32, 96]


def test_the_preset_imports_no_framework_and_no_data_library():
    heavy = "{'torch', 'numpy', 'h5py', 'PIL'}"
    code = f"import sys, headway.task as r; r.find_recipe('rdt'); sys.exit(bool({heavy} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
