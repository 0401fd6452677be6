"""The winning values in the user's own file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from fakes.machines import machine
from headway.config import load_config
from headway.errors import ConfigError, UsageError
from headway.plan import make_plan
from headway.recipes import find_recipe
from headway.tune import compose, edit_yaml, list_changes, read_budget, refuse_unwritable, settings_of, write_checked

TEXT = """\
# my run
recipe: nanochat   # the small one

batch:
    total: 8192    # tokens
    per_device: 8
train: {steps: 200}
"""


def test_comments_order_and_indent_stay():
    text = edit_yaml(TEXT, {"batch.per_device": 16, "train.compile": True, "parallel.workers": 2}, {})
    assert (
        text
        == TEXT.replace("per_device: 8", "per_device: 16").replace("{steps: 200}", "{steps: 200, compile: true}")
        + "parallel:\n    workers: 2\n"
    )


def test_the_guides_own_name_is_kept():
    text = edit_yaml(
        "device_batch_size: 8  # a GPU\n", {"batch.per_device": 4}, {"batch.per_device": "device_batch_size"}
    )
    assert text == "device_batch_size: 4  # a GPU\n"


def test_dotted_keys_at_the_top_are_found():
    assert edit_yaml("batch.per_device: 8\n", {"batch.per_device": 4}, {}) == "batch.per_device: 4\n"


def test_the_batch_is_written_in_the_numbers_the_config_speaks_in():
    loaded = load_config(
        None,
        recipe=find_recipe,
        overrides=[
            "recipe=nanochat",
            "batch.unit=samples",
            "batch.total=64",
            "batch.accumulation=4",
            "parallel.cpus=2",
        ],
        environ={},
    )
    plan = make_plan(loaded, machine(), loaded.recipe)
    start = settings_of(plan, loaded.config)
    assert list_changes(replace(start, micro_batch=32), start, plan, loaded.config) == {
        "batch.per_device": 32,
        "batch.accumulation": 1,
    }


def test_a_file_that_reads_back_as_something_else_is_left_alone(tmp_path):
    path = tmp_path / "run.yaml"
    path.write_text(TEXT)
    with pytest.raises(ConfigError) as refused:
        write_checked(path, "recipe: other\n", lambda _: "batch.per_device=8 ≠ 16")
    assert path.read_text() == TEXT and "≠ 16" in refused.value.text()
    assert list(tmp_path.iterdir()) == [path]


def test_a_new_file_has_what_was_set_and_nothing_else(tmp_path):
    loaded = load_config(None, recipe=find_recipe, overrides=["recipe=nanochat", "task.depth=3"], environ={})
    text = compose(loaded, {"batch.per_device": 4})
    path = tmp_path / "new.yaml"
    path.write_text(text)
    again = load_config(path, recipe=find_recipe).config
    assert again.batch.per_device == 4 and again.task.depth == 3
    assert "ema" not in text


def test_formats_that_cannot_be_written_are_refused_before_the_search():
    with pytest.raises(UsageError, match="tune/source-not-yaml"):
        refuse_unwritable("run.toml", None)
    with pytest.raises(UsageError, match="tune/target-not-yaml"):
        refuse_unwritable("run.toml", Path("new.json"))
    refuse_unwritable("run.toml", Path("new.yaml"))
    refuse_unwritable(None, None)


@pytest.mark.parametrize(("text", "seconds"), [("90", 90), ("90s", 90), ("10m", 600), ("1.5h", 5400)])
def test_a_budget_is_read(text, seconds):
    assert read_budget(text) == seconds


@pytest.mark.parametrize("text", ["", "m", "ten", "-5m", "0", "1s", "nan", "inf"])
def test_a_budget_that_is_none_is_refused(text):
    with pytest.raises(UsageError, match="tune/budget-unreadable"):
        read_budget(text)
