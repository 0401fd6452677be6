"""Every key of every built-in recipe is explained in Chinese too."""

from __future__ import annotations

import re
from importlib import import_module

import pytest
from message_rules import check_chinese

from headway.config import RunConfig, explain
from headway.messages import Text, find_module
from headway.messages.keys import CHINESE, describe_key
from headway.task import RECIPES, find_recipe


def own_keys():
    """Return the described keys of each recipe."""
    return {name: vars(import_module(find_module(name))).get("KEYS", {}) for name in RECIPES}


def keys_below(key, recipe):
    """Return a key and all keys of its section."""
    return {key, *explain(key, recipe).keys}


@pytest.mark.parametrize("name", sorted(RECIPES))
def test_every_key_of_a_recipe_has_a_chinese_description(name):
    recipe = find_recipe(name)
    keys = set().union(*(keys_below(key, recipe) for key in RunConfig.model_fields))
    assert len(keys) > 60
    lacking = {key for key in keys if not re.search("[\u4e00-\u9fff]", explain(key, recipe, "zh").description)}
    assert lacking == set()
    assert all(explain(key, recipe, "en").description.isascii() for key in keys if key != "task.data_dir")


def test_no_description_is_of_a_key_that_is_gone():
    recipe = find_recipe("nanochat")
    assert set(CHINESE) - set().union(*(keys_below(key, recipe) for key in RunConfig.model_fields)) == set()
    for name, keys in own_keys().items():
        assert set(keys) - keys_below("task", find_recipe(name)) == set()


def test_descriptions_follow_the_rules_of_chinese_texts():
    texts = [*CHINESE.items(), *(item for keys in own_keys().values() for item in keys.items())]
    assert len(texts) > 70 and all(text.endswith("。") for _, text in texts)
    catalogue = {"keys": {key: Text(en="-", zh=text.removesuffix("。")) for key, text in texts}}
    assert "\n".join(check_chinese(catalogue)) == ""


def test_a_recipe_in_a_folder_of_its_own_keeps_its_own_words():
    assert describe_key("task.depth", "somebody_elses") is None
    assert describe_key("seed", "somebody_elses") == CHINESE["seed"]
