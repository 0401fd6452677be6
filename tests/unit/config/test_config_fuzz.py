"""Whatever a file holds, loading gives a config or ConfigErrors with places inside the file, and nothing else."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest
from config_toy import RECIPE
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from headway.config import ConfigErrors, dump_yaml, load_config
from headway.config.problems import Place, Problems
from headway.config.read_json import read_json
from headway.config.read_toml import read_toml
from headway.config.read_yaml import read_yaml
from headway.config.tree import Node, TreeBuilder
from headway.secret import find_secret

QUICK = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
SIGNS = ["[[", "]]", "**", "//", "/*", "*/", "<<", "...", *"[]{}(),:=.-+*/%#'\"&|>@?\\"]
WORDS = ["depth", "lr", "base", "batch", "total", "1", "1e-4", "0x1F", "null", "true", "no", ".nan", "1e999", "inf"]
ODD_WORDS = ["学", "None", "*a", "!!str ", "f'{x}'", "\\ud800", "\\x", "2024-01-01", "\U0001f600"]
GAPS = [": ", " = ", "\n", "\n  ", "\t", "- ", "&a ", "\r\n", "\ufeff", "? ", "---\n", '"""', "import os", "lambda: 0"]
PIECES = st.sampled_from([*SIGNS, *WORDS, *ODD_WORDS, *GAPS])
TEXTS = st.one_of(st.lists(PIECES, max_size=40).map("".join), st.text(max_size=80))
NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=12,
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("fuzz")


def _load(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    try:
        loaded = load_config(path, recipe=RECIPE)
    except ConfigErrors as error:
        num_lines = content.count(b"\n") + content.count(b"\r") + content.count("\u2028".encode()) + 2
        assert error.problems
        assert error.text("en") and error.text("zh")
        assert all(problem.place.line <= num_lines for problem in error.problems if problem.place.layer == 0)
    else:
        assert set(loaded.origins) >= {"seed", "task.depth"}


@pytest.mark.parametrize("suffix", ["yaml", "json", "toml", "py"])
def test_any_text_gives_a_config_or_its_problems(folder, suffix):
    @QUICK
    @given(TEXTS)
    def check(text: str) -> None:
        _load(folder / f"a.{suffix}", text.encode("utf-8", "surrogatepass"))

    check()


@pytest.mark.parametrize("suffix", ["yaml", "json", "toml", "py"])
def test_any_bytes_give_a_config_or_its_problems(folder, suffix):
    @QUICK
    @given(st.binary(max_size=60))
    def check(content: bytes) -> None:
        _load(folder / f"b.{suffix}", content)

    check()


@pytest.mark.parametrize("suffix", ["yaml", "json", "toml", "py"])
def test_a_good_file_with_a_few_letters_changed_gives_a_config_or_its_problems(folder, suffix):
    good = {
        "yaml": "recipe: toy\nlr:\n  base: 1e-4\n  milestones: [0.5, 0.9]\nname: 'x'\nextra: {a: \"b\\n\"}\n",
        "json": '{"recipe": "toy", /* c */ "lr": {"base": 1e-4, "milestones": [0.5, 0.9,]}, "name": "x"} // end\n',
        "toml": "recipe = \"toy\"\n[lr]\nbase = 1e-4\nmilestones = [0.5,\n 0.9]\n[[x.y]]\na.b = {c = 'd'}\n",
        "py": "recipe = 'toy'\nlr = {'base': 3 * 1e-4, 'milestones': (0.5, 1 - .1)}\nname: str = 'x'\n",
    }[suffix]
    place = st.integers(0, len(good) - 1)

    @QUICK
    @given(st.lists(st.tuples(place, PIECES), max_size=4), place)
    def check(changes: list[tuple[int, str]], end: int) -> None:
        text = good if len(changes) % 2 else good[: end + 1]
        for at, piece in changes:
            text = text[:at] + piece + text[at + 1 :]
        _load(folder / f"c.{suffix}", text.encode())

    check()


@QUICK
@given(st.lists(st.text(max_size=30), max_size=4))
@example(["--set", "=", "a==", "depth=[", "lr.base={a: }", "--", "="])
def test_any_words_give_a_config_or_their_problems(given_words):
    try:
        load_config(None, recipe=RECIPE, overrides=given_words)
    except ConfigErrors as error:
        assert error.text("zh")


def _has_secret(key: str, value: object) -> bool:
    if isinstance(value, dict):
        return any(_has_secret(f"{key}.{name}", item) for name, item in value.items())
    if isinstance(value, list):
        return any(_has_secret(key, item) for item in value)
    return find_secret(key, value) is not None


def _read(reader, form: str, text: str) -> Node | None:
    problems = Problems()
    node = reader(text, TreeBuilder(Place(0, "a", form=form), problems))
    problems.raise_if_any()
    return node


@QUICK
@given(st.dictionaries(NAMES, VALUES, max_size=5), st.booleans())
def test_json_means_what_the_standard_library_says(data, is_ascii):
    text = json.dumps(data, ensure_ascii=is_ascii, indent=1)
    node = _read(read_json, "json", text)
    assert node is not None
    assert json.dumps(node.plain()) == json.dumps(json.loads(text))


@QUICK
@given(st.lists(PIECES, max_size=30).map("".join))
@example("a = 1\n[b]\nc.d = [1, {e = 2}]\n[[f]]\ng = '''x'''''\n[[f]]\n[f.h]\n'i j'.\"k\" = 1\n")
def test_toml_means_what_tomllib_says_and_every_value_has_a_place(text):
    try:
        wanted = tomllib.loads(text)
    except ValueError:
        return
    try:
        node = _read(read_toml, "toml", text)
    except ConfigErrors:  # dates and endless numbers are ours to refuse
        return
    assert node is not None
    assert repr(node.plain()) == repr(wanted)


@QUICK
@given(VALUES)
@example({"<<": False})
@example("\x85\u2028\ufeff")
def test_written_yaml_reads_back(value):
    from headway.config.spelling import write_yaml_value

    node = _read(read_yaml, "yaml", f"key: {write_yaml_value(value)}\n")
    assert node is not None
    assert json.dumps(node.plain()) == json.dumps({"key": value})


@QUICK
@given(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=30),
    st.floats(1e-300, 1e300),
    st.dictionaries(NAMES, VALUES, max_size=3),
)
def test_every_config_survives_the_dump(folder, text, number, extra):
    assume(not _has_secret("extra", {"data": text, **extra}))  # no config that loads holds one
    task = RECIPE.section(data=text, extra=extra)
    config = load_config(None, recipe=RECIPE).config.model_copy(update={"task": task})
    config = config.model_copy(update={"lr": config.lr.model_copy(update={"base": number})})
    path = folder / "d.yaml"
    path.write_text(dump_yaml(config), encoding="utf-8", newline="")
    assert load_config(path, recipe=RECIPE).config == config
