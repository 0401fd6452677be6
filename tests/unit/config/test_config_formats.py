"""What each format means, and where its keys and values are."""

from __future__ import annotations

from pathlib import Path

import pytest

from headway.config.problems import Problems
from headway.config.read import read_config
from headway.config.tree import Node


def _places(node: Node, path: str = "") -> dict[str, tuple[int, int, int, int]]:
    found: dict[str, tuple[int, int, int, int]] = {}
    if isinstance(node.value, dict):
        for name, entry in node.value.items():
            key = f"{path}{name}"
            found[key] = (entry.line, entry.column, entry.node.line, entry.node.column)
            found |= _places(entry.node, f"{key}.")
    elif isinstance(node.value, list):
        for index, item in enumerate(node.value):
            found[f"{path}{index}"] = (item.line, item.column, item.line, item.column)
            found |= _places(item, f"{path}{index}.")
    return found


def _read(path: Path) -> Node:
    problems = Problems()
    node = read_config(path, problems)
    problems.raise_if_any()
    return node


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-4", 1e-4),
        ("1E5", 1e5),
        (".5", 0.5),
        ("5.", 5.0),
        ("+3", 3),
        ("010", 10),
        ("0o10", 8),
        ("0x1F", 31),
        ("1_000", "1_000"),
        ("0b1", "0b1"),
        ("12:30:45", "12:30:45"),
        ("no", "no"),
        ("yes", "yes"),
        ("on", "on"),
        ("off", "off"),
        ("y", "y"),
        ("true", True),
        ("False", False),
        ("null", None),
        ("~", None),
        ("", None),
        ("2024-01-01", "2024-01-01"),
        ("'1e-4'", "1e-4"),
        ('"no"', "no"),
        ("!!str 12", "12"),
        ("-0", 0),
        ("=", "="),
    ],
)
def test_yaml_scalars_follow_the_core_schema_of_1_2(write, text, value):
    got = _read(write("a.yaml", f"key: {text}\n")).plain()["key"]
    assert got == value
    assert type(got) is type(value)


def test_yaml_places_are_lines_and_columns_in_characters(write):
    text = "# 注释\nlr:\n  base: 1e-4   # 学习率\n  \"学\": [1, {x: 'y'}]\n? long\n: - 7\n"
    assert _places(_read(write("a.yaml", text))) == {
        "lr": (2, 1, 3, 3),
        "lr.base": (3, 3, 3, 9),
        "lr.学": (4, 3, 4, 8),
        "lr.学.0": (4, 9, 4, 9),
        "lr.学.1": (4, 12, 4, 12),
        "lr.学.1.x": (4, 13, 4, 16),
        "long": (5, 3, 6, 3),
        "long.0": (6, 5, 6, 5),
    }


def test_yaml_aliases_within_the_budget_are_read(write):
    assert _read(write("a.yaml", "a: &x [1, 2]\nb: *x\nc: &y 5\nd: *y\n")).plain() == {
        "a": [1, 2],
        "b": [1, 2],
        "c": 5,
        "d": 5,
    }


def test_json_takes_comments_and_trailing_commas(write):
    text = '// top\n{\n  "a": 1, /* in\n  between */ "b": [1, 2.5e-3, ], // end\n  "url": "http://x//y",\n}\n'
    assert _read(write("a.json", text)).plain() == {"a": 1, "b": [1, 0.0025], "url": "http://x//y"}


def test_json_places_are_exact(write):
    text = '{\n  "学": 1, /* 注 */ "b": [1,\n 2], "c": {"d": "\\u0041é"}\n}'
    node = _read(write("a.jsonc", text))
    assert node.plain()["c"] == {"d": "Aé"}
    assert _places(node) == {
        "学": (2, 3, 2, 8),
        "b": (2, 19, 2, 24),
        "b.0": (2, 25, 2, 25),
        "b.1": (3, 2, 3, 2),
        "c": (3, 6, 3, 11),
        "c.d": (3, 12, 3, 17),
    }


def test_toml_places_are_exact(write):
    text = (
        'depth = 3 # x\n"学 a".b = """\nlong"""\n[lr]\n  base = 1e-4\n[a.b]\nx = [1,\n  2]\n'
        "[[t]]\nq = 1\n[[t]]\nq = {r.s = 2, u = 'v'}\n[t.w]\nz = true\n"
    )
    assert _places(_read(write("a.toml", text))) == {
        "depth": (1, 1, 1, 9),
        "学 a": (2, 1, 2, 1),
        "学 a.b": (2, 7, 2, 11),
        "lr": (4, 2, 4, 2),
        "lr.base": (5, 3, 5, 10),
        "a": (6, 2, 6, 2),
        "a.b": (6, 4, 6, 4),
        "a.b.x": (7, 1, 7, 5),
        "a.b.x.0": (7, 6, 7, 6),
        "a.b.x.1": (8, 3, 8, 3),
        "t": (9, 3, 9, 3),
        "t.0": (9, 3, 9, 3),
        "t.0.q": (10, 1, 10, 5),
        "t.1": (11, 3, 11, 3),
        "t.1.q": (12, 1, 12, 5),
        "t.1.q.r": (12, 6, 12, 6),
        "t.1.q.r.s": (12, 8, 12, 12),
        "t.1.q.u": (12, 15, 12, 19),
        "t.1.w": (13, 4, 13, 4),
        "t.1.w.z": (14, 1, 14, 5),
    }


def test_py_reads_assignments_and_arithmetic(write):
    text = (
        '"""A docstring."""\n_seq = 2 ** 10\ndepth = 12  # 注\n'
        'name: str = "a" "b"\ntotal = 4 * _seq + depth // 5 - -1\n'
        "lr = {'base': 3 * 1e-4, 'milestones': (0.5, 1 / 4)}\nflag = not_set = None\nrest = 7 % 4\n"
    )
    assert _read(write("a.py", text)).plain() == {
        "depth": 12,
        "name": "ab",
        "total": 4099,
        "lr": {"base": 3 * 1e-4, "milestones": [0.5, 0.25]},
        "flag": None,
        "not_set": None,
        "rest": 3,
    }


def test_py_columns_count_characters_not_bytes(write):
    assert _places(_read(write("a.py", "a = {'学习': 1, 'b': [2]}\n"))) == {
        "a": (1, 1, 1, 5),
        "a.学习": (1, 6, 1, 12),
        "a.b": (1, 15, 1, 20),
        "a.b.0": (1, 21, 1, 21),
    }


def test_py_lines_may_end_as_on_any_system(write):
    assert _places(_read(write("a.py", "a = 1\rb = 2\r\nc = '学'\n"))) == {
        "a": (1, 1, 1, 5),
        "b": (2, 1, 2, 5),
        "c": (3, 1, 3, 5),
    }


def test_a_quoted_merge_sign_is_a_key_like_any_other(write):
    assert _read(write("a.yaml", "'<<': {a: 1}\n")).plain() == {"<<": {"a": 1}}


def test_py_is_never_executed(write, refuse):
    error = refuse("a.py", "import os\nopen('made', 'w')\ndepth = __import__('os').getpid()\nclass A: pass\n")
    assert not Path("made").exists()
    assert [(str(p.place), p.code) for p in error.problems] == [
        ("a.py:1:1", "config/py-not-plain"),
        ("a.py:2:1", "config/py-not-plain"),
        ("a.py:3:9", "config/py-not-plain"),
        ("a.py:4:1", "config/py-not-plain"),
    ]


@pytest.mark.parametrize(
    ("line", "code", "column"),
    [
        ("depth = 9**9**9", "config/number-too-large", 9),
        ("depth = (9**30)**999999", "config/number-too-large", 10),
        ("depth = 10.0**400", "config/number-too-large", 9),
        ("depth = 1 << 5", "config/py-not-plain", 9),
        ("depth = 1 / 0", "config/py-zero-division", 9),
        ("depth = (-8) ** 0.5", "config/py-not-a-number", 9),
        ("depth = 'x' * 1000000000", "config/py-not-a-number", 9),
        ("depth = True + 1", "config/py-not-a-number", 9),
        ("depth = width", "config/py-no-name", 9),
        ("depth = [1]\nvocab = depth", "config/py-name-not-simple", 9),
        ("depth = 1j", "config/py-not-plain", 9),
        ("depth = f'{1}'", "config/py-not-plain", 9),
        ("depth = b'x'", "config/py-not-plain", 9),
        ("depth.x = 1", "config/py-not-plain", 1),
        ("depth += 1", "config/py-not-plain", 1),
        ("lr = {1: 2}", "config/key-not-text", 7),
        ("lr = {**{}}", "config/key-not-text", 9),
        ("depth = = 1", "config/py-syntax", 9),
        ("depth = 1\ndepth = 2", "config/duplicate-key", 1),
        ("_a = 1\n_a = 2", "config/duplicate-key", 1),
    ],
)
def test_py_refuses_what_is_not_plain(refuse, line, code, column):
    problems = refuse("a.py", line).problems
    assert [p.code for p in problems if p.code == code] == [code]
    found = next(p for p in problems if p.code == code)
    assert (found.place.line, found.place.column) == (line.count("\n") + 1, column)


def test_all_formats_say_the_same(load):
    same = [
        load("a.yaml", "depth: 12\nlr:\n  base: 1e-4\n  milestones: [0.5]\nname: x\n"),
        load("a.json", '{"depth": 12, "lr": {"base": 1e-4, "milestones": [0.5]}, "name": "x"}'),
        load("a.toml", 'depth = 12\nname = "x"\nlr.base = 1e-4\nlr.milestones = [0.5]\n'),
        load("a.py", "depth = 3 * 4\nlr = {'base': 1e-4, 'milestones': (1 / 2,)}\nname = 'x'\n"),
    ]
    assert len({loaded.config.model_dump_json() for loaded in same}) == 1
    assert same[0].config.task.depth == 12


@pytest.mark.parametrize("name", ["a.yaml", "a.json", "a.toml", "a.py"])
@pytest.mark.parametrize("content", [b"", b"\n\n", b"\xef\xbb\xbf"])
def test_a_file_that_says_nothing_is_the_default_config(load, words, name, content):
    assert load(name, content).config == words().config


@pytest.mark.parametrize(
    ("name", "text"),
    [("a.yaml", "depth: 5"), ("a.json", '{"depth": 5}'), ("a.toml", "depth = 5"), ("a.py", "depth = 5")],
)
def test_a_byte_order_mark_is_accepted_and_not_counted(load, name, text):
    loaded = load(name, b"\xef\xbb\xbf" + text.encode())
    assert loaded.config.task.depth == 5
    assert loaded.origins["task.depth"] == f"{name}:1:{2 if name == 'a.json' else 1}"


@pytest.mark.parametrize("name", ["a.yaml", "a.toml", "a.py"])
def test_windows_line_ends_count_as_one(load, name):
    sign = ":" if name == "a.yaml" else " ="
    loaded = load(name, f"seed{sign} 3\r\ndepth{sign} 5\r\n")
    assert (loaded.config.seed, loaded.config.task.depth) == (3, 5)
    assert loaded.origins["task.depth"] == f"{name}:2:1"


@pytest.mark.parametrize(
    ("text", "code", "place"),
    [
        ("a:\n\tb: 1\n", "config/yaml-tab", (2, 1)),
        ("name: a: b\n", "config/yaml-colon", (1, 8)),
        ("seed: 1\nname\n", "config/yaml-no-colon", (3, 1)),
        ('name: "abc\n', "config/yaml-open-quote", (1, 7)),
        ("name: *x\n", "config/yaml-no-anchor", (1, 7)),
        ("name: &x [*x]\n", "config/yaml-endless-alias", (1, 11)),
        ("seed: 1\n---\nseed: 2\n", "config/yaml-two-documents", (2, 1)),
        ("%YAML 1.1\n---\nseed: 1\n", "config/yaml-version", (2, 1)),
        ("seed: !!python/object:os.system x\n", "config/yaml-tag", (1, 7)),
        ("extra: !!python/object/apply:os.system [ls]\n", "config/yaml-tag", (1, 8)),
        ("seed: !!int '3'\n", "config/yaml-tag", (1, 7)),
        ("<<: {seed: 1}\n", "config/yaml-merge", (1, 1)),
        ("? [a]\n: 1\n", "config/key-not-text", (1, 3)),
        ('name: "\\U99999999"\n', "config/yaml-escape", (1, 8)),
        ('name: "\\ud800"\n', "config/half-character", (1, 7)),
        ("[1, 2]\n", "config/not-a-table", (1, 1)),
        ("text\n", "config/not-a-table", (1, 1)),
        ("seed: [1\n", "config/yaml-syntax", (2, 1)),
    ],
)
def test_yaml_slips_are_named_with_their_place(refuse, text, code, place):
    problems = refuse("a.yaml", text).problems
    assert code in [p.code for p in problems]
    found = next(p for p in problems if p.code == code)
    assert (found.place.line, found.place.column) == place


@pytest.mark.parametrize(
    ("text", "code", "place"),
    [
        ('{"a": 1} x', "config/json-after-end", (1, 10)),
        ('{"a": 1 "b": 2}', "config/json-no-comma", (1, 9)),
        ('{"a" 1}', "config/json-no-colon", (1, 6)),
        ("{a: 1}", "config/json-bare-key", (1, 2)),
        ("{'a': 1}", "config/json-single-quote", (1, 2)),
        ('{"a": True}', "config/json-bare-word", (1, 7)),
        ('{"a": 01}', "config/json-bare-word", (1, 7)),
        ('{"a": .5}', "config/json-bare-word", (1, 7)),
        ('{"a": }', "config/json-no-value", (1, 7)),
        ('{"a": "x\ny"}', "config/json-open-quote", (1, 7)),
        ('{"a": "\\x"}', "config/json-escape", (1, 7)),
        ("/* open", "config/json-open-comment", (1, 1)),
        ('{"a": 1,, }', "config/json-no-key", (1, 9)),
        ('{"a": [1', "config/json-no-comma", (1, 9)),
        ('{"name": "\\ud800"}', "config/half-character", (1, 10)),
    ],
)
def test_json_slips_are_named_with_their_place(refuse, text, code, place):
    problems = refuse("a.json", text).problems
    assert (problems[-1].code, problems[-1].place.line, problems[-1].place.column) == (code, *place)


@pytest.mark.parametrize(
    ("text", "code", "line"),
    [
        ("name = abc\n", "config/toml-syntax", 1),
        ("seed = 1\n[lr\n", "config/toml-syntax", 2),
        ("[lr]\nbase = 1.0\n[lr]\n", "config/duplicate-key", 3),
        ("[a.b]\nx = 1\n[a]\ny = 1\ny = 2\n", "config/duplicate-key", 5),
        ("lr = {base = 1.0, base = 2.0}\n", "config/duplicate-key", 1),
        ("name = 2024-01-01\n", "config/toml-date", 1),
    ],
)
def test_toml_slips_are_named_with_their_line(refuse, text, code, line):
    found = next(p for p in refuse("a.toml", text).problems if p.code == code)
    assert found.place.line == line


def test_none_in_words_is_null_where_null_is_meant(load):
    assert load("a.toml", 'optimizer.clip = "none"\n').config.optimizer.clip is None
    assert load("a.yaml", "optimizer: {clip: none}\nlr: {scaling: none}\n").config.optimizer.clip is None
    assert load("b.yaml", "lr: {scaling: none}\n").config.lr.scaling == "none"
