"""The winning values in the user's own file."""

from __future__ import annotations

from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fakes.machines import machine
from headway.config import ConfigErrors, dump_yaml, layer_of, load_config
from headway.errors import ConfigError, UsageError
from headway.planner import make_plan
from headway.planner.calibrate import fingerprint
from headway.task import find_recipe
from headway.tune import (
    compose,
    edit_file,
    find_differences,
    list_changes,
    read_budget,
    refuse_unwritable,
    settings_of,
    write_checked,
)

TEXT = """\
# my run
recipe: nanochat   # the small one

batch:
    total: 8192    # tokens
    per_device: 8
train: {steps: 200}
"""


def edit(path, text, changes, recipe="nanochat"):
    path.write_bytes(text.encode())
    return edit_file(path, changes, find_recipe(recipe)).decode()


def test_comments_order_and_indent_stay(tmp_path):
    changes = {"batch.per_device": 16, "train.compile": True, "parallel.workers": 2}
    assert (
        edit(tmp_path / "run.yaml", TEXT, changes)
        == TEXT.replace("per_device: 8", "per_device: 16").replace("{steps: 200}", "{steps: 200, compile: true}")
        + "parallel:\n    workers: 2\n"
    )


def test_the_mark_at_the_start_and_the_line_ends_stay(tmp_path):
    text = '\ufeff{\r\n  "recipe": "nanochat", // small\r\n  "device_batch_size": 8\r\n}\r\n'
    changed = edit(tmp_path / "run.jsonc", text, {"batch.per_device": 16})
    assert changed == text.replace("8", "16")


@pytest.mark.parametrize(
    ("recipe", "name", "old", "changes"),
    [
        ("nanochat", "configs/dual_gpu/balanced.py", "device_batch_size = ", {"batch.per_device": 6}),
        ("tfnet", "configs/gpu_config.json", '"batch_size": ', {"batch.per_device": 6}),
        ("atlas", "atlas/configs/train_config.yaml", "batch_size: ", {"batch.per_device": 6}),
    ],
)
def test_the_guides_own_files_change_in_one_place(tmp_path, recipe, name, old, changes):
    place = Path(str(files("headway.recipes"))) / recipe / "project" / name
    text = place.read_text(encoding="utf-8")
    changed = edit(tmp_path / place.name, text, changes, recipe)
    pairs = [(was, now) for was, now in zip(text.splitlines(), changed.splitlines(), strict=True) if was != now]
    assert len(pairs) == 1 and f"{old}6" in pairs[0][1] and old in pairs[0][0]


def test_layoutmasters_total_stays_and_the_micro_batch_is_added(tmp_path):
    path = tmp_path / "config.json"
    path.write_text('{\n  "recipe": "layoutmaster",\n  "data": {"batch_size": 32},\n  "parallel": {"cpus": 2}\n}\n')
    loaded = load_config(path, recipe=find_recipe)
    plan = make_plan(loaded, machine(), loaded.recipe)
    start = settings_of(plan, loaded.config)
    changes = list_changes(replace(start, micro_batch=4), start, plan, loaded.config)
    path.write_bytes(edit_file(path, changes, loaded.recipe))
    assert '"data": {"batch_size": 32}' in path.read_text()
    again = load_config(path, recipe=find_recipe)
    now = make_plan(again, machine(), again.recipe)
    assert (now.batch_samples, now.micro_batch) == (32, 4)


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
        write_checked(path, b"recipe: other\n", lambda _: "batch.per_device=8 ≠ 16")
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


def test_a_new_file_is_yaml_or_refused_before_the_search():
    with pytest.raises(UsageError, match="tune/target-not-yaml"):
        refuse_unwritable("run.toml", Path("new.json"))
    refuse_unwritable("run.toml", Path("new.yaml"))
    refuse_unwritable("run.toml", None)
    refuse_unwritable(None, None)


@pytest.mark.parametrize(("text", "seconds"), [("90", 90), ("90s", 90), ("10m", 600), ("1.5h", 5400)])
def test_a_budget_is_read(text, seconds):
    assert read_budget(text) == seconds


@pytest.mark.parametrize("text", ["", "m", "ten", "-5m", "0", "1s", "nan", "inf"])
def test_a_budget_that_is_none_is_refused(text):
    with pytest.raises(UsageError, match="tune/budget-unreadable"):
        read_budget(text)


ODD_NAMES = (
    "recipes/mine.yaml",
    "recipe mine.yaml",
    "preset-small.yaml",
    "preset balanced.yaml",
    "environment.yaml",
    "environment HOME.yaml",
    "command line.yaml",
    "default.yaml",
)


@pytest.mark.parametrize("name", ODD_NAMES)
def test_a_new_file_holds_all_that_somebody_set_whatever_the_old_one_is_called(tmp_path, name, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path(name).parent.mkdir(exist_ok=True)
    Path(name).write_text("recipe: nanochat\ntask: {depth: 3}\nlr: {base: 0.5}\ntrain: {steps: 11}\n")
    loaded = load_config(Path(name), recipe=find_recipe, overrides=["seed=7"])
    Path("new.yaml").write_text(compose(loaded, {"batch.per_device": 4}))
    again = load_config(Path("new.yaml"), recipe=find_recipe)
    assert find_differences(loaded.config, again.config, {"batch.per_device": 4}) == []
    assert (again.config.task.depth, again.config.lr.base, again.config.train.steps, again.config.seed) == (
        3,
        0.5,
        11,
        7,
    )
    layers = {key: layer_of(loaded.origins[key]) for key in ("lr.base", "seed", "save.keep_last", "batch.per_device")}
    assert layers == {
        "lr.base": "file",
        "seed": "command line",
        "save.keep_last": "default",
        "batch.per_device": "recipe",
    }


def test_the_read_back_compares_every_key(tmp_path):
    loaded = load_config(None, recipe=find_recipe, overrides=["recipe=nanochat", "lr.base=0.5", "task.depth=3"])
    other = load_config(None, recipe=find_recipe, overrides=["recipe=nanochat", "lr.base=0.5", "batch.per_device=2"])
    wrong = find_differences(loaded.config, other.config, {"batch.per_device": 2})
    assert wrong == ["task.depth=4 ≠ 3"]
    assert find_differences(loaded.config, loaded.config, {"train.compile": True}) == ["train.compile=false ≠ true"]


@settings(deadline=None, max_examples=30)
@given(
    st.fixed_dictionaries(
        {},
        optional={
            "task.depth": st.integers(1, 12),
            "lr.base": st.floats(1e-6, 1.0),
            "train.steps": st.integers(1, 10**6),
            "seed": st.integers(0, 2**31),
            "optimizer.clip": st.floats(0.0, 10.0),
            "name": st.text("abc 1:#'\"{}[]", min_size=1, max_size=12).filter(lambda text: text.strip() == text),
            "save.keep_last": st.integers(1, 9),
            "train.compile": st.booleans(),
        },
    ),
    st.fixed_dictionaries({}, optional={"batch.per_device": st.integers(1, 64), "parallel.workers": st.integers(0, 8)}),
    st.sampled_from(ODD_NAMES),
)
def test_a_written_file_changes_only_what_it_says(tmp_path_factory, values, changes, name):
    place = tmp_path_factory.mktemp("written") / Path(name).name
    first = load_config(None, recipe=find_recipe, overrides=["recipe=nanochat"])
    place.write_text(compose(first, values), encoding="utf-8")
    try:
        loaded = load_config(place, recipe=find_recipe)
    except ConfigErrors:
        return  # a name that no run may have
    tuned = place.with_name("tuned.yaml")
    tuned.write_text(compose(loaded, changes), encoding="utf-8")
    assert find_differences(loaded.config, load_config(tuned, recipe=find_recipe).config, changes) == []
    shown = place.with_name("shown.yaml")
    shown.write_text(dump_yaml(loaded.config, loaded.origins), encoding="utf-8")
    again = load_config(shown, recipe=find_recipe)
    home = {"task.data_dir": str(Path(loaded.config.task.data_dir).expanduser())}  # a default says `~`
    assert find_differences(loaded.config, again.config, home) == []
    before, after = (make_plan(one, machine(), one.recipe) for one in (loaded, again))
    assert replace(before, rows=(), warnings=()) == replace(after, rows=(), warnings=())
    assert fingerprint(before, loaded.config, machine()) == fingerprint(after, again.config, machine())
