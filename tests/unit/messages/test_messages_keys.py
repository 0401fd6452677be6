"""Every key of every built-in recipe is explained in Chinese too."""

from __future__ import annotations

import re

import pytest
from message_rules import check_chinese

from headway.config import RunConfig, explain
from headway.messages import Text
from headway.messages.keys import CHINESE
from headway.recipes import RECIPES, find_recipe


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
    known = set()
    for name in RECIPES:
        recipe = find_recipe(name)
        own = keys_below("task", recipe) - {"task"}
        known |= {f"{name}:{key}" for key in own}
        known |= set().union(*(keys_below(key, recipe) for key in RunConfig.model_fields)) - own
    assert set(CHINESE) - known == set()


def test_descriptions_follow_the_rules_of_chinese_texts():
    texts = {"keys": {key: Text(en="-", zh=text.removesuffix("。")) for key, text in CHINESE.items()}}
    assert "\n".join(check_chinese(texts)) == ""
    assert all(text.endswith("。") for text in CHINESE.values())
