"""Layers, origins, names of keys, suggestions."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from headway.config import ConfigErrors, RunConfig, dump_yaml, layer_of, load_config
from headway.errors import ConfigError, UsageError
from headway.task import find_recipe


def _only(error: ConfigErrors) -> tuple[str, str]:
    assert len(error.problems) == 1, error.text()
    return str(error.problems[0].place), error.problems[0].code


def test_each_layer_wins_over_the_one_before(load):
    text = "preset: balanced\nbatch:\n  total: 32\n"
    loaded = load("run.yaml", text, "lr.gamma=0.5", HEADWAY_SET_LR__GAMMA="0.4", HEADWAY_SET_SEED="7")
    config, origins = loaded.config, loaded.origins
    assert (config.save.keep_last, origins["save.keep_last"]) == (2, "default")
    assert (config.batch.per_device, origins["batch.per_device"]) == (8, "recipe toy")
    assert (config.task.depth, origins["task.depth"]) == (16, "preset balanced")
    assert (config.batch.total, origins["batch.total"]) == (32, "run.yaml:3:3")
    assert (config.seed, origins["seed"]) == (7, "environment HEADWAY_SET_SEED")
    assert (config.lr.gamma, origins["lr.gamma"]) == (0.5, "command line")
    assert config.lr.milestones == (0.5, 0.9)


def test_every_key_has_an_origin(words):
    loaded = words("depth=5")
    keys = {"recipe", "batch.total", "task.depth", "task.model.width", "parallel.gpus"}
    assert keys <= set(loaded.origins)
    assert all(loaded.origins.values())


def test_the_preset_of_the_highest_layer_counts(load, words):
    assert words("preset=balanced").config.task.depth == 16
    assert words(HEADWAY_SET_PRESET="balanced").config.preset == "balanced"
    assert load("a.yaml", "preset: broken", "preset=balanced").config.batch.total == 64
    assert words("preset=null", HEADWAY_SET_PRESET="balanced").config.task.depth == 4


def test_words_of_a_script_are_called_so_and_a_key_can_be_taken_from_the_recipe(load, refuse):
    words = ("--from-recipe=batch.per_device", "--from-recipe=seed", "--words-of=go.sh", "lr.gamma=0.5", "--words-of=")
    loaded = load("a.yaml", "batch: {per_device: 3}\nseed: 4\ndepth: 5\n", *words, "train.steps=9")
    config, origins = loaded.config, loaded.origins
    assert (config.batch.per_device, origins["batch.per_device"]) == (8, "recipe toy")
    assert (config.seed, origins["seed"]) == (RunConfig().seed, "default")
    assert (config.lr.gamma, origins["lr.gamma"], origins["train.steps"]) == (0.5, "go.sh", "command line")
    assert layer_of(origins["lr.gamma"]) == "command line" and origins["task.depth"] == "a.yaml:3:1"
    assert _only(refuse("a.yaml", "", "--from-recipe=seeed")) == ("command line", "config/unknown-key-near")


def test_a_wrong_value_is_named_as_it_was_written(refuse):
    error = refuse("a.yaml", "", "total_batch_size=many")
    assert 'total_batch_size is "many"' in error.text(
        "en"
    ) and "headway config explain total_batch_size --recipe toy" in error.text("en")


def test_a_table_on_the_command_line_is_of_the_command_line(load, words):
    loaded = load("a.yaml", "train: {steps: 9}\n", "train={samples: 64}")
    assert loaded.origins["train.samples"] == "command line"
    assert words(HEADWAY_SET_TRAIN="{samples: 64}").origins["train.samples"] == "environment HEADWAY_SET_TRAIN"


@pytest.mark.parametrize(("name", "text"), [("a.toml", 'preset = "none"\n'), ("a.yaml", "preset: none\n")])
def test_the_word_none_in_a_file_is_no_preset(load, name, text):
    assert load(name, text).config.preset is None


def test_a_preset_that_is_not_there_is_refused_with_those_that_are(refuse):
    error = refuse("a.yaml", "preset: balancd")
    assert _only(error) == ("a.yaml:1:9", "config/no-preset")
    assert "balanced, broken" in error.text()


def test_a_wrong_value_in_a_preset_names_the_preset(refuse):
    assert _only(refuse("a.yaml", "preset: broken")) == ("preset broken", "config/wrong-value")


@pytest.mark.parametrize(
    "given",
    [
        ["batch.total=64"],
        ["--batch.total=64"],
        ["--set", "batch.total=64"],
        ["--set=batch.total=64"],
        ["total_batch_size=64"],
        ["--total-batch-size=64"],
        ["total=64"],
        ["batch={total: 64}"],
        ["batch.total=1", "batch.total=64"],
    ],
)
def test_overrides_come_in_many_spellings(words, given):
    assert words(*given).config.batch.total == 64


def test_a_guides_key_brings_what_it_implies_unless_said_otherwise(load, words):
    loaded = words("total_batch_size=64")
    assert (loaded.config.batch.unit, loaded.origins["batch.unit"]) == ("tokens", "command line")
    assert words("batch.unit=samples", "total_batch_size=64").config.batch.unit == "samples"
    assert words("total_batch_size=64", "batch.unit=samples").config.batch.unit == "samples"
    assert load("a.yaml", "total_batch_size: 64", "batch.unit=samples").config.batch.unit == "samples"
    assert load("a.yaml", "total_batch_size: 64").origins["batch.unit"] == "a.yaml:1:1"


def test_nested_guide_keys_are_translated(load):
    assert load("a.yaml", "data:\n  batch_size: 3\n").config.batch.per_device == 3


def test_bare_names_mean_the_recipes_field_or_the_one_key_that_ends_so(load, words):
    loaded = load("a.yaml", "depth: 12\ngpus: 2\nsteps: 50\nmodel: {width: 3}\nlr.base: 0.5\n")
    config = loaded.config
    assert (config.task.depth, config.parallel.gpus, config.train.steps, config.task.model.width) == (12, 2, 50, 3)
    assert (config.lr.base, loaded.origins["lr.base"]) == (0.5, "a.yaml:5:1")
    assert words("model.kind=large", "width=9").config.task.model.model_dump() == {"width": 9, "kind": "large"}


def test_a_sections_own_default_is_kept_when_one_key_of_it_is_set(words):
    assert words("model.kind=large").config.task.model.width == 16
    assert words().config.task.model.width == 16


def test_an_ambiguous_name_lists_its_candidates(refuse):
    error = refuse("a.yaml", "seed: 1\nsamples: 5\n", "every=3")
    assert [(str(p.place), p.code) for p in error.problems] == [
        ("a.yaml:2:1", "config/ambiguous-key"),
        ("command line", "config/ambiguous-key"),
    ]
    assert "train.samples, eval.samples" in error.text()
    assert "train.samples: 5" in error.text()
    assert "eval.every=3" in error.text()


@pytest.mark.parametrize(
    ("name", "text", "place", "typed"),
    [
        ("a.yaml", "batch:\n  per_devise: 4\n", "a.yaml:2:3", "per_device: 4"),
        ("a.yaml", "learning: {rate: 1}\nbacth: 4\n", "a.yaml:2:1", "batch: 4"),
        ("a.yaml", "depht: 12\n", "a.yaml:1:1", "task.depth: 12"),
        ("a.yaml", "devise_batch_size: 4\n", "a.yaml:1:1", "device_batch_size: 4"),
        ("a.json", '{"lr": {"bse": 1}}', "a.json:1:9", '"base": 1'),
        ("a.json", '{"stepps": 5}', "a.json:1:2", '"train.steps": 5'),
        ("a.toml", "[lr]\nwarmup_sample = 5\n", "a.toml:2:1", "warmup_samples = 5"),
        ("a.py", "stepps = 5\n", "a.py:1:1", "train = {'steps': 5}"),
    ],
)
def test_a_misspelt_key_gets_the_nearest_one_in_the_files_own_syntax(refuse, name, text, place, typed):
    error = refuse(name, text)
    found = next(p for p in error.problems if str(p.place) == place)
    assert found.code == "config/unknown-key-near"
    assert typed in found.hint("en")
    assert typed in found.hint("zh")


def test_misspelt_words_and_variables_are_corrected_as_such(words):
    with pytest.raises(ConfigErrors) as refused:
        words("lr.bas=1e-4", HEADWAY_SET_LR__GAMA="0.2")
    text = refused.value.text()
    assert "type: lr.base=1e-4" in text
    assert "type: HEADWAY_SET_LR__GAMMA=0.2" in text


def test_ignored_keys_warn_and_do_not_fail(load):
    loaded = load("a.yaml", "use_wandb: true\n")
    code, facts = loaded.warnings[0]
    assert code == "config/ignored"
    assert (facts["key"], facts["place"], facts["reason"]) == ("use_wandb", "a.yaml:1:1", "command line")


def test_all_problems_are_told_at_once_in_the_order_of_their_places(refuse):
    text = "lr:\n  base: '1e-4'\n  shedule: x\nbatch: 7\ntrain: {steps: 1.5}\n"
    error = refuse("run.yaml", text, "nope", "seed=x", HEADWAY_SET_GPUS="many")
    assert [(str(p.place), p.code) for p in error.problems] == [
        ("run.yaml:2:9", "config/quoted"),
        ("run.yaml:3:3", "config/unknown-key-near"),
        ("run.yaml:4:8", "config/not-a-section"),
        ("run.yaml:5:16", "config/wrong-value"),
        ("environment HEADWAY_SET_GPUS", "config/wrong-value"),
        ("command line", "config/not-a-setting"),
        ("command line", "config/wrong-value"),
    ]
    assert error.code == "config/problems"
    assert error.text("en").endswith("the config has 7 problems")
    assert error.text("zh").endswith("配置有 7 处问题")


@pytest.mark.parametrize(
    ("name", "text", "code", "hint"),
    [
        ("a.json", '{"lr": {"base": "1e-4"}}', "config/quoted", 'remove the quotes: "base": 0.0001'),
        ("a.json", '{"seed": "3"}', "config/quoted", '"seed": 3'),
        ("a.json", '{"train": {"compile": "true"}}', "config/quoted", '"compile": true'),
        ("a.yaml", "train: {compile: yes}", "config/yes-no", "compile: true"),
        ("a.yaml", "train: {steps: 1e3}", "config/not-whole", "steps: 1000"),
        ("a.yaml", "name: 123", "config/needs-quotes", 'name: "123"'),
        ("a.yaml", "out: true", "config/needs-quotes", 'out: "true"'),
        ("a.yaml", "train: {precision: FP16}", "config/not-a-choice", "precision: fp16"),
        ("a.toml", 'lr.schedule = "cosin"', "config/not-a-choice", 'schedule = "cosine"'),
        ("a.yaml", "seed: -1", "config/wrong-value", "headway config explain seed"),
        ("a.yaml", "seed: true", "config/wrong-value", "headway config explain seed"),
        ("a.yaml", "seed: [1]", "config/wrong-value", "headway config explain seed"),
        ("a.yaml", "lr: {base: 0}", "config/wrong-value", "headway config explain lr.base"),
        ("a.yaml", "parallel: {gpus: all}", "config/wrong-value", "headway config explain parallel.gpus"),
    ],
)
def test_a_wrong_value_says_what_was_got_what_is_wanted_and_what_to_type(refuse, name, text, code, hint):
    error = refuse(name, text)
    assert _only(error)[1] == code
    assert hint in error.problems[0].hint("en")


def test_a_recipes_own_name_is_explained_with_the_recipe_that_has_it():
    """The hint was `headway config explain task.hidden_size`, which knows nanochat's keys only."""
    for name in ("training.batch_size", "model.hidden_size", "task.hidden_size"):
        with pytest.raises(ConfigErrors) as refused:
            load_config(None, recipe=find_recipe, overrides=["recipe=tfnet", f"{name}=many"])
        (problem,) = refused.value.problems
        assert problem.facts["key"] == name and f"  headway config explain {name} --recipe tfnet" in problem.hint("en")


def test_wants_are_told_in_words_and_numbers(refuse):
    text = refuse("a.yaml", "seed: -1\nlr: {base: 0, decay: 2}\nbatch: {total: 0}\nparallel: {gpus: x}\n").text("en")
    assert "seed is -1, but must be a whole number >= 0" in text
    assert "lr.base is 0, but must be a number > 0" in text
    assert "lr.decay is 2, but must be a number >= 0, <= 1" in text
    assert "batch.total is 0, but must be a whole number >= 1 or null" in text
    assert 'parallel.gpus is "x", but must be auto or a whole number >= 0 or a list' in text


def test_words_for_text_need_no_quotes_and_lists_may_be_bare(words):
    config = words("name=123", "out=no", "gpus=0,1", "lr.milestones=[0.5,0.75]", "env.python=null").config
    assert (config.name, config.out, config.parallel.gpus) == ("123", "no", (0, 1))
    assert (config.lr.milestones, config.env.python) == ((0.5, 0.75), None)


def test_two_names_for_one_key_in_one_file_are_refused(refuse):
    error = refuse("a.yaml", "device_batch_size: 4\nbatch: {per_device: 8}\n")
    assert _only(error) == ("a.yaml:2:9", "config/set-twice")
    assert "a.yaml:1:1" in error.text()


@pytest.mark.parametrize(
    ("name", "text", "place"),
    [
        ("a.yaml", "seed: 1\nseed: 2\n", "a.yaml:2:1"),
        ("a.json", '{"seed": 1, "seed": 2}', "a.json:1:13"),
        ("a.toml", "seed = 1\nseed = 2\n", "a.toml:2:1"),
        ("a.py", "seed = 1\nseed = 2\n", "a.py:2:1"),
        ("a.yaml", "lr: {base: 1, base: 2}\n", "a.yaml:1:15"),
    ],
)
def test_a_key_twice_is_refused_in_every_format(refuse, name, text, place):
    assert _only(refuse(name, text)) == (place, "config/duplicate-key")


def test_an_empty_section_is_an_empty_section(load):
    assert load("a.yaml", "batch:\nlr:\n  # base: 1\n").config == load("b.yaml", "").config


def test_a_recipes_own_check_becomes_a_problem_beside_the_others(refuse):
    error = refuse("a.yaml", "depth: 500\nseed: x\n")
    assert [p.code for p in error.problems] == ["config/wrong-value", "config/refused"]
    assert "more depth than vocab" in error.text()


def test_the_recipe_is_found_by_the_name_in_the_highest_layer(write, recipe):
    asked: list[str] = []

    def find(name: str):
        asked.append(name)
        return replace(recipe, name=name)

    path = write("a.yaml", "recipe: fromfile\n")
    assert load_config(path, recipe=find).config.recipe == "fromfile"
    assert load_config(path, recipe=find, overrides=["recipe=typed"]).recipe.name == "typed"
    assert load_config("byname", recipe=find).origins["recipe"] == "command line"
    assert load_config(None, recipe=find).config.recipe == RunConfig.model_fields["recipe"].default
    assert asked == ["fromfile", "typed", "byname", "nanochat"]


def test_a_recipe_that_is_not_there_is_told_at_its_place(write):
    def find(name: str):
        raise UsageError("config/no-preset", name=name, recipe="x", known="toy")

    with pytest.raises(ConfigErrors) as refused:
        load_config(write("a.yaml", "seed: 1\nrecipe: tooy\n"), recipe=find)
    assert _only(refused.value) == ("a.yaml:2:9", "config/no-preset")


def test_a_file_for_another_recipe_is_refused(refuse):
    assert _only(refuse("a.yaml", "recipe: other\n")) == ("a.yaml:1:9", "config/other-recipe")


def test_a_given_recipe_names_itself_in_the_config(words):
    assert words().config.recipe == "toy"


def test_the_dump_reads_back_to_the_same_config(load, write, recipe):
    text = (
        "name: 'no'\nout: \"a: b # c\\u0085 学\\U0001F600\\t'\"\nlr: {base: 1e-05, milestones: [0.5, 1]}\n"
        "gpus: [0, 1]\nextra: {a: {b: [1, null, 'x y']}, '1': true, 'k: v': '~'}\ndata: ''\n"
    )
    loaded = load("a.yaml", text)
    for origins in (None, loaded.origins):
        again = load_config(write("b.yaml", dump_yaml(loaded.config, origins)), recipe=recipe)
        assert again.config == loaded.config
    assert "# a.yaml:3:6" in dump_yaml(loaded.config, loaded.origins)


def test_a_line_break_in_a_files_name_cannot_add_a_key_to_the_dump(load, write, recipe):
    loaded = load("a\nseed: 9 #.yaml", "depth: 3\n")
    again = load_config(write("b.yaml", dump_yaml(loaded.config, loaded.origins)), recipe=recipe)
    assert again.config == loaded.config


def test_configs_never_change_after_loading(words):
    config = words().config
    with pytest.raises(ValueError, match="frozen"):
        config.seed = 3
    with pytest.raises(ValueError, match="frozen"):
        config.task.depth = 3


def test_the_callers_environment_is_not_read_unless_given(words, monkeypatch):
    monkeypatch.setenv("HEADWAY_SET_SEED", "9")
    assert words().config.seed == 0


def test_set_without_a_word_and_words_without_a_sign_are_told(words):
    with pytest.raises(ConfigErrors) as refused:
        words("depth", "12", "--set")
    assert [p.code for p in refused.value.problems] == ["config/not-a-setting", "config/set-without-word"]
    assert "depth=12" in refused.value.text()


def test_errors_are_config_errors(refuse):
    assert isinstance(refuse("a.yaml", "x: 1"), ConfigError)
    assert Path("a.yaml").exists()
