"""Values changed in a file of any format: nothing but the named values differs, to the letter."""

from __future__ import annotations

import json

import pytest
from config_toy import RECIPE
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headway.config import edit_config, load_config
from headway.errors import ConfigError

QUICK = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
NEW = {
    "batch.per_device": 48,
    "batch.accumulation": 3,
    "train.precision": "bf16",
    "train.compile": True,
    "parallel.workers": 5,
    "parallel.prefetch": 7,
}
OLD = {
    "batch.per_device": 6,
    "batch.accumulation": 1,
    "train.precision": "fp32",
    "train.compile": False,
    "parallel.workers": 2,
    "parallel.prefetch": 4,
}
OTHERS = {"batch.total": 288, "train.steps": 10, "parallel.cpus": 1}
"""Keys beside them in the same tables."""
TOP = {"seed": 3, "out": "a // b # c {,}", "task": {"vocab": 77, "pad_token": "<é,>", "extra": {"a": [1, 2]}}}


@st.composite
def layouts(draw):
    """How a file is laid out: which keys are there, in which tables and order, with which blanks."""
    keys = draw(st.permutations([*OLD, *OTHERS]))
    there = draw(st.lists(st.sampled_from(keys), unique=True, max_size=len(keys)))
    tops = draw(st.lists(st.sampled_from(list(TOP)), unique=True, max_size=3))
    style = {table: draw(st.sampled_from(["table", "inline", "dotted"])) for table in ("batch", "train", "parallel")}
    notes = draw(st.lists(st.sampled_from(["", "  ", " note, {x: 1}", " 学习"]), min_size=4, max_size=4))
    newline = draw(st.sampled_from(["\n", "\r\n"]))
    return there, tops, style, notes, newline, draw(st.booleans())


def group(there):
    tables = {}
    for key in there:
        section, _, leaf = key.partition(".")
        tables.setdefault(section, []).append(leaf)
    return tables


def fill(values, key, form):
    value = {**OLD, **OTHERS, **values}[key]
    return repr(value) if form == "py" else json.dumps(value)


def make_json(layout, values):
    there, tops, style, notes, newline, has_commas = layout
    members = [f"{json.dumps(name)}:{json.dumps(TOP[name], ensure_ascii=False)}" for name in tops]
    for table, leaves in group(there).items():
        pairs = [f'"{leaf}" : {fill(values, f"{table}.{leaf}", "json")}' for leaf in leaves]
        if style[table] == "dotted":
            members += [f'"{table}.{pair[1:]}' for pair in pairs]
        elif style[table] == "inline":
            members.append(f'"{table}": {{ {", ".join(pairs)} /*{notes[1]}*/ }}')
        else:
            inner = f",{newline}    ".join(f"{pair} /*{notes[0]}*/" for pair in pairs)
            tail = f"{',' if has_commas else ''} //{notes[2]}{newline}"
            members.append(f'"{table}": {{{newline}    {inner}{tail}  }}')
    body = f",{newline}  ".join(members)
    end = "," if has_commas and members else ""
    return f"// first{newline}{{{newline}  {body}{end} #{notes[3]}{newline}}}{newline}"


def make_toml(layout, values):
    there, tops, style, notes, newline, has_indent = layout
    lines, tables = [f"#{notes[0]}"], []
    lines += [f"{name} = {json.dumps(TOP[name], ensure_ascii=False)}" for name in tops if name != "task"]
    if "task" in tops:
        tables += ["[task]", "vocab = 77  # many", 'pad_token = "<é,>"', "extra.a = [", "  1, # one", "  2,", "]", ""]
    for table, leaves in group(there).items():
        pairs = [f"{leaf} = {fill(values, f'{table}.{leaf}', 'toml')}" for leaf in leaves]
        if style[table] == "dotted":
            lines += [f"{table}.{pair}  #{notes[1]}" for pair in pairs]
        elif style[table] == "inline":
            lines.append(f"{table} = {{{', '.join(pairs)} }} #{notes[2]}")
        else:
            blank = "  " if has_indent else ""
            tables += [f"[{table}]  #{notes[3]}", *(f"{blank}{pair}\t#{notes[1]}" for pair in pairs), "", "# last"]
    return newline.join([*lines, *tables]) + (newline if has_indent else "")


def make_py(layout, values):
    there, tops, style, notes, newline, has_commas = layout
    lines = ['"""Words."""', f"#{notes[0]}", *(f"{name} = {TOP[name]!r}" for name in tops)]
    for table, leaves in group(there).items():
        pairs = [f"'{leaf}': {fill(values, f'{table}.{leaf}', 'py')}" for leaf in leaves]
        if style[table] == "table":
            inner = f", #{notes[1]}{newline}    ".join(pairs)
            lines.append(f"{table} = {{{newline}    {inner}{',' if has_commas else ''} #{notes[2]}{newline}}}")
        else:
            lines.append(f"{table} = {{{', '.join(pairs)}}}  #{notes[3]}")
    return newline.join(lines) + (newline if has_commas else "")


def make_yaml(layout, values):
    there, tops, style, notes, newline, is_wide = layout
    lines = [f"#{notes[0]}", "---"] if is_wide else []
    lines += [f"{name}:   {json.dumps(TOP[name], ensure_ascii=False)}" for name in tops if name != "task"]
    if "task" in tops:
        lines += ["task:", "   vocab: 0x4d", "   pad_token: '<é,>'", "   extra:", "     a:", "     - 1", "     - null"]
    for table, leaves in group(there).items():
        pairs = [f"{leaf}: {fill(values, f'{table}.{leaf}', 'yaml')}" for leaf in leaves]
        if style[table] == "dotted":
            lines += [f"{table}.{pair}  #{notes[1]}" for pair in pairs]
        elif style[table] == "inline":
            lines.append(f"{table}: {{{',  '.join(pairs)}}} #{notes[2]}")
        else:
            lines += [f"{table}:  #{notes[3]}", *(f"    {pair}   #{notes[1]}" for pair in pairs)]
    return newline.join(lines) + (newline if is_wide else "")


MAKERS = {"yaml": make_yaml, "json": make_json, "toml": make_toml, "py": make_py}


@pytest.mark.parametrize("form", MAKERS)
def test_only_the_named_values_differ(form):
    @QUICK
    @given(layouts(), st.lists(st.sampled_from(list(NEW)), unique=True, min_size=1))
    def check(layout, changed):
        there = [key for key in changed if key in layout[0]]
        text = MAKERS[form](layout, {})
        new = {key: NEW[key] for key in there}
        assert edit_config(text, form, new, RECIPE) == MAKERS[form](layout, new)

    check()


def is_within(text, longer):
    letters = iter(longer)
    return all(letter in letters for letter in text)


@pytest.mark.parametrize("form", MAKERS)
def test_what_is_missing_is_added_and_nothing_is_taken_away(form, tmp_path):
    path = tmp_path / f"run.{form}"

    @QUICK
    @given(layouts())
    def check(layout):
        text = MAKERS[form](layout, {})
        added = {key: value for key, value in NEW.items() if key not in layout[0]}
        edited = edit_config(text, form, added, RECIPE)
        assert is_within(text, edited)
        assert ("\r\n" in edited) == ("\r\n" in text) and edited.count("\r") == edited.count("\r\n")
        path.write_bytes(edited.encode())
        config = load_config(path, recipe=RECIPE).config.model_dump()
        for key, value in {**{key: OLD.get(key, OTHERS.get(key)) for key in layout[0]}, **added}.items():
            section, leaf = key.split(".")
            assert config[section][leaf] == value

    check()


def test_json_is_laid_out_as_its_surroundings():
    text = '{\n    "seed": 1, // one\n    "batch": {"per_device": 8}\n    /* end */\n}\n'
    edited = edit_config(text, "json", {"batch.accumulation": 2, "train.compile": True}, RECIPE)
    assert edited == (
        '{\n    "seed": 1, // one\n    "batch": {"per_device": 8, "accumulation": 2},\n    /* end */\n'
        '    "train": {\n        "compile": true\n    }\n}\n'
    )


@pytest.mark.parametrize(
    ("form", "text", "edited"),
    [
        ("json", "", '{\n  "train": {\n    "compile": true\n  }\n}\n'),
        ("json", "{}", '{\n  "train": {\n    "compile": true\n  }\n}'),
        ("json", "// only a note", '// only a note\n{\n  "train": {\n    "compile": true\n  }\n}\n'),
        ("json", '{"train": null}', '{"train": {"compile": true}}'),
        ("json", '{"train": {}}', '{"train": {"compile": true}}'),
        ("toml", "", "[train]\ncompile = true\n"),
        ("toml", "seed = 1", "seed = 1\n\n[train]\ncompile = true\n"),
        ("toml", "[train]\n", "[train]\ncompile = true\n"),
        ("toml", "train = {}\n", "train = {compile = true}\n"),
        ("py", "", 'train = {"compile": True}\n'),
        ("py", "train = {}", 'train = {"compile": True}'),
        ("yaml", "# only a note\n", "# only a note\ntrain:\n  compile: true\n"),
        ("yaml", "a: 1\r\n", None),
    ],
)
def test_empty_files_and_tables_get_their_first_value(form, text, edited):
    if edited is None:
        text, edited = "seed: 1 # x\r\n", "seed: 1 # x\r\ntrain:\r\n  compile: true\r\n"
    assert edit_config(text, form, {"train.compile": True}, RECIPE) == edited


@pytest.mark.parametrize(
    ("text", "edited"),
    [
        ("[task.model]\nwidth = 3\n", "[task]\ndepth = 9\n\n[task.model]\nwidth = 3\n"),
        (
            "seed = 1\n\n[task.model]  # the net\nwidth = 3\n",
            "seed = 1\n\n[task]\ndepth = 9\n\n[task.model]  # the net\nwidth = 3\n",
        ),
        (
            "[task]\nvocab = 7\n[task.model]\nwidth = 3\n",
            "[task]\nvocab = 7\ndepth = 9\n[task.model]\nwidth = 3\n",
        ),
    ],
)
def test_a_toml_table_of_which_only_a_deeper_one_is_written_gets_its_own_header(text, edited):
    assert edit_config(text, "toml", {"task.depth": 9}, RECIPE) == edited


@pytest.mark.parametrize(
    ("form", "text", "edited"),
    [
        ("py", "device_batch_size = 8  # a GPU\n", "device_batch_size = 4  # a GPU\n"),
        ("json", '{"data": {"batch_size": 8}}', '{"data": {"batch_size": 4}}'),
        ("json", '{"batch.per_device": 8}', '{"batch.per_device": 4}'),
        ("toml", "per_device = 8\n", "per_device = 4\n"),
        ("yaml", "per_device: 8 # short\n", "per_device: 4 # short\n"),
        ("yaml", "data:\n  batch_size: 8\n", "data:\n  batch_size: 4\n"),
    ],
)
def test_a_value_is_changed_under_the_name_it_was_written_with(form, text, edited):
    assert edit_config(text, form, {"batch.per_device": 4}, RECIPE) == edited


def test_a_file_that_follows_a_guide_gets_the_guides_name():
    assert edit_config("max_depth = 3\n", "py", {"batch.per_device": 4}, RECIPE) == (
        "max_depth = 3\ndevice_batch_size = 4\n"
    )
    # The guide's total counts tokens, which would change what the file says; ours does not.
    assert "total_batch_size" not in edit_config("max_depth = 3\n", "py", {"batch.total": 4}, RECIPE)


@pytest.mark.parametrize(
    ("form", "text", "code"),
    [
        ("py", "device_batch_size = 2 * 4\n", "config/edit-not-plain"),
        ("py", "_n = 8\ndevice_batch_size = _n\n", "config/edit-not-plain"),
        ("py", "device_batch_size = 8\nmax_depth = device_batch_size\n", "config/edit-not-alone"),
        ("py", "device_batch_size = max_depth = 8\n", "config/edit-not-alone"),
        ("yaml", "max_depth: &n 8\ndevice_batch_size: *n\nseed: *n\n", None),
    ],
)
def test_what_cannot_be_changed_alone_is_refused(form, text, code):
    if code is None:  # an alias is replaced by its own value, and the anchor stays for the others
        edited = edit_config(text, form, {"batch.per_device": 4}, RECIPE)
        assert "device_batch_size: 4" in edited and "seed: *n" in edited
        return
    with pytest.raises(ConfigError, match=code):
        edit_config(text, form, {"batch.per_device": 4}, RECIPE)
