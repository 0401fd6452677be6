"""`explain`, the JSON Schema and the commands."""

from __future__ import annotations

import json
import re

import jsonschema
import pytest
from click.testing import CliRunner
from ruamel.yaml import YAML

import headway.cli.config as commands
import headway.start.consent as consent
from headway.config import explain, load_config, schema_json
from headway.errors import ConfigError
from headway.messages import set_language
from headway.task import RECIPES, find_recipe


@pytest.fixture
def run(monkeypatch, write, recipe):
    """Run `headway config …` with the toy recipe in an empty folder."""
    for place in (commands, consent):
        monkeypatch.setattr(place, "find_recipe", lambda name: recipe)

    def run_words(*given: str):
        return CliRunner().invoke(commands.config, list(given), catch_exceptions=False)

    return run_words


def test_a_key_is_explained_with_its_default_and_other_names(recipe):
    found = explain("device_batch_size", recipe)
    assert (found.key, found.default, found.origin) == ("batch.per_device", 8, "recipe toy")
    assert found.aliases == ("device_batch_size", "data.batch_size")
    assert found.type == "a whole number >= 1 or null"
    assert found.description.startswith("Samples per rank in one forward")
    assert explain("depth", recipe).presets == {"balanced": 16}
    assert explain("lr.schedule", recipe).choices == ("constant", "cosine", "linear", "multistep")
    assert explain("seed", recipe, "zh").type == "整数（>= 0）"


def test_a_section_is_explained_by_its_keys(recipe):
    assert explain("lr", recipe).keys[:2] == ("lr.base", "lr.base_batch")
    assert explain("model", recipe).keys == ("task.model.width", "task.model.kind")


@pytest.mark.parametrize(
    ("key", "code"),
    [
        ("samples", "config/ambiguous-key"),
        ("sead", "config/unknown-key-near"),
        ("zzzzzz", "config/unknown-key"),
        ("use_wandb", "config/ignored-key"),
    ],
)
def test_a_key_that_is_none_is_told_with_what_to_type(recipe, key, code):
    with pytest.raises(ConfigError) as refused:
        explain(key, recipe)
    assert refused.value.code == code
    assert refused.value.text("zh")


def test_every_key_is_described_and_explained(recipe, words):
    for key in words().origins:
        found = explain(key, recipe)
        assert found.description, key
        assert found.type, key


def test_the_schema_describes_every_key_and_takes_the_resolved_config(recipe, words):
    schema = schema_json(recipe)
    assert schema["$schema"].startswith("https://json-schema.org/")
    assert schema["additionalProperties"] is False
    assert schema["properties"]["seed"]["description"].startswith("Seed of weights")
    assert schema["properties"]["preset"]["anyOf"][0] == {"enum": ["balanced", "broken", "conservative", "aggressive"]}
    task = schema["$defs"]["Task"]
    assert task["properties"]["depth"] == {
        "default": 4,
        "description": "Blocks.",
        "minimum": 1,
        "title": "Depth",
        "type": "integer",
    }
    assert set(words().config.model_dump(mode="json")) == set(schema["properties"])
    assert json.loads(json.dumps(schema)) == schema
    refs = {word for word in json.dumps(schema).split('"') if word.startswith("#/$defs/")}
    assert {ref.removeprefix("#/$defs/") for ref in refs} <= set(schema["$defs"])


ODD_FILES = (
    "device_batch_size: 4\n",
    "data: {batch_size: 4}\n",
    "max_depth: 3\n",
    "depth: 3\n",
    "batch.per_device: 4\n",
    "task: {model.width: 9}\n",
    "model: {width: 9}\n",
    "use_wandb: true\n",
    "preset: none\nname: none\nbatch: {total: none}\n",
    "parallel: {gpus: [0, 1]}\n",
    "batch:\ntrain: ~\n",
)


@pytest.mark.parametrize("text", ODD_FILES)
def test_the_schema_takes_what_the_loader_takes(text, recipe, load):
    load("a.yaml", text)
    jsonschema.validate(YAML(typ="safe").load(text), schema_json(recipe))


@pytest.mark.parametrize("text", ["depht: 3\n", "batch: {totl: 4}\n", "depth: many\n", "device_batch_size: 0\n"])
def test_the_schema_refuses_what_the_loader_refuses(text, recipe, refuse):
    refuse("a.yaml", text)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(YAML(typ="safe").load(text), schema_json(recipe))


@pytest.mark.parametrize("name", sorted(RECIPES))
def test_every_name_of_every_recipe_is_in_its_schema(name):
    found = find_recipe(name)
    schema = schema_json(found)
    jsonschema.Draft202012Validator.check_schema(schema)
    patterns = [re.compile(pattern) for pattern in schema["patternProperties"]]
    for alias in (*found.aliases, *found.ignored):
        assert alias in schema["properties"] or any(one.search(alias) for one in patterns), alias


def test_show_prints_a_config_that_can_be_run_again(run, write, recipe, words):
    shown = run("show", "toy", "depth=7", "--lr.base=0.5")
    assert shown.exit_code == 0
    assert load_config(write("a.yaml", shown.stdout), recipe=recipe).config == words("depth=7", "lr.base=0.5").config


def test_show_tells_origins_and_warnings_and_json(run, write):
    write("a.yaml", "use_wandb: 1\nseed: 3\n")
    shown = run("show", "a.yaml", "--origins")
    assert "seed: 3  # a.yaml:2:1" in shown.stdout
    assert "use_wandb has no effect" in shown.stderr
    record = json.loads(run("show", "a.yaml", "--json").stdout)
    assert record["schema"] == "config/1"
    assert (record["config"]["seed"], record["origins"]["seed"]) == (3, "a.yaml:2:1")
    assert record["warnings"][0]["code"] == "config/ignored"


def test_schema_and_explain_print_what_the_stage_says(run, recipe):
    assert json.loads(run("schema").stdout) == schema_json(recipe)
    assert "in the guide: device_batch_size, data.batch_size" in run("explain", "batch.per_device").stdout
    assert json.loads(run("explain", "seed", "--json").stdout)["default"] == 0
    assert "  lr.gamma" in run("explain", "lr").stdout


@pytest.mark.parametrize("given", [(), ("show",), ("schema",), ("explain",)])
def test_every_help_has_an_example_in_both_languages(run, given):
    try:
        set_language("zh")
        assert "示例" in run(*given, "--help").stdout
        set_language("en")
        assert "Example" in run(*given, "--help").stdout
    finally:
        set_language("en")
