import subprocess
import sys

import pytest

from headway.config import ConfigErrors, RunConfig, load_config
from headway.errors import ConfigError
from headway.recipes.nanochat.export import meta_json
from headway.recipes.nanochat.preset import RECIPE
from headway.recipes.nanochat.section import NanochatSection, horizon_steps

PUBLISHED = {
    4: (256, 2, 36_700_160),
    6: (384, 3, 60_948_480),
    12: (768, 6, 185_597_952),
    16: (1024, 8, 335_544_320),
    20: (1280, 10, 560_988_160),
    26: (1664, 13, 1_081_999_360),
    32: (2048, 16, 1_879_048_192),
}


@pytest.mark.parametrize(("depth", "sizes"), PUBLISHED.items())
def test_depth_gives_the_published_width_heads_and_parameters(depth, sizes):
    section = NanochatSection(depth=depth)
    assert (section.width, section.n_head, section.num_params) == sizes


def test_flops_a_token_are_those_of_the_fact_sheet():
    assert NanochatSection(depth=20, max_seq_len=2048).flops_per_token == pytest.approx(3.49e9, rel=2e-3)
    assert NanochatSection(depth=12, max_seq_len=1536).flops_per_token == pytest.approx(9.8e8, rel=1e-2)


def test_a_depth_whose_heads_do_not_divide_is_refused_with_depths_that_do():
    with pytest.raises(ConfigError) as refused:
        NanochatSection(depth=5)
    assert refused.value.code == "nanochat/heads"
    near = [int(depth) for depth in refused.value.facts["near"].split(", ")]
    assert near == [NanochatSection(depth=depth).depth for depth in near]


def test_key_heads_must_divide_query_heads():
    with pytest.raises(ConfigError) as refused:
        NanochatSection(depth=12, n_kv_head=4)
    assert "1, 2, 3, 6" in refused.value.hint()


def test_the_speedrun_horizon_is_the_published_one():
    assert horizon_steps(NanochatSection(depth=20), total_tokens=524_288) == 21_400
    assert RECIPE.presets["d20"]["train.steps"] == 21_400


@pytest.mark.parametrize(
    ("preset", "numbers"),
    [
        ("conservative", (12, 8, 24_576, 1536, 245_760)),
        ("balanced", (16, 12, 49_152, 2048, 245_760)),
        ("aggressive", (20, 14, 86_016, 3072, 172_032)),
        ("d20", (20, 32, 524_288, 2048, 10_485_760)),
    ],
)
def test_presets_load_with_the_numbers_of_the_guide(preset, numbers):
    config = load_config(recipe=RECIPE, overrides=[f"preset={preset}"]).config
    task, batch = config.task, config.batch
    assert (task.depth, batch.per_device, batch.total, task.max_seq_len, task.eval_tokens) == numbers
    assert (batch.unit, task.width, task.vocab_size) == ("tokens", 64 * task.depth, 65_536)
    assert (task.embedding_lr, task.unembedding_lr, task.matrix_lr) == (0.2, 0.004, 0.02)
    assert (config.optimizer.weight_decay, config.optimizer.clip, config.lr.decay) == (0.0, 1.0, 0.2)
    assert not task.synthetic


def test_the_guides_own_names_mean_our_keys():
    words = ["device_batch_size=12", "total_batch_size=36864", "max_seq_len=1536", "num_iterations=50", "eval_every=25"]
    words += ["depth=12", "aspect_ratio=64", "head_dim=128", "matrix_lr=0.01", "grad_clip=0.5", "run=dummy"]
    loaded = load_config(recipe=RECIPE, overrides=words)
    config = loaded.config
    assert (config.batch.per_device, config.batch.total, config.batch.unit) == (12, 36_864, "tokens")
    assert (config.train.steps, config.eval.every, config.optimizer.clip) == (50, 25, 0.5)
    assert (config.task.depth, config.task.matrix_lr, config.task.max_seq_len) == (12, 0.01, 1536)


def test_a_depth_that_does_not_divide_is_one_of_the_config_problems():
    with pytest.raises(ConfigErrors) as refused:
        load_config(recipe=RECIPE, overrides=["preset=conservative", "depth=5"])
    assert "nanochat/heads" in [problem.code for problem in refused.value.problems]


def test_meta_json_describes_the_model_as_the_original_does():
    section = NanochatSection(depth=12, max_seq_len=1536)
    config = RunConfig(task=section, batch={"per_device": 8, "total": 24_576, "unit": "tokens"})
    meta = meta_json(config, 4000, {"bpb": 1.04, "loss": 3.1})
    assert (meta["step"], meta["val_bpb"], meta["device_batch_size"], meta["max_seq_len"]) == (4000, 1.04, 8, 1536)
    assert meta["model_config"] == {
        "sequence_len": 1536,
        "vocab_size": 65_536,
        "n_layer": 12,
        "n_head": 6,
        "n_kv_head": 6,
        "n_embd": 768,
    }
    assert meta["user_config"]["total_batch_size"] == 24_576


def test_the_preset_imports_no_framework_and_no_data_library():
    heavy = "{'torch', 'numpy', 'pyarrow', 'tokenizers'}"
    code = f"import sys, headway.task as r; r.find_recipe('nanochat'); sys.exit(bool({heavy} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
