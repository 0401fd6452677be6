"""One file, whatever its format, as a table of values with their places."""

from __future__ import annotations

from pathlib import Path

from headway.config.problems import Form, Place, Problems
from headway.config.source import FORMS, read_text
from headway.config.tree import Node, TreeBuilder


def read_config(path: Path, problems: Problems) -> Node:
    """Return the file's table. Problems that leave the rest readable are gathered, the others raised at once."""
    form = FORMS.get(path.suffix.lower())
    text = read_text(path, problems)
    if form is None:
        problems.stop(Place(0, str(path)), "config/unknown-format", suffix=path.suffix, known=" ".join(FORMS))
    node = read_form(form, text, TreeBuilder(Place(0, str(path), form=form), problems))
    if node is None or (node.value is None and not node.is_broken):
        return Node({}, 1, 1)
    if not isinstance(node.value, dict):
        problems.stop(Place(0, str(path), node.line, node.column, form), "config/not-a-table")
    return node


def read_form(form: Form, text: str, builder: TreeBuilder) -> Node | None:
    """Return a text's document in one format, or None when it says nothing."""
    # Each reader is imported when its format is met: ruamel alone takes longer than reading a small file.
    if form == "yaml":
        from headway.config.read_yaml import read_yaml

        return read_yaml(text, builder)
    if form == "toml":
        from headway.config.read_toml import read_toml

        return read_toml(text, builder)
    if form == "py":
        from headway.config.read_py import read_py

        return read_py(text, builder)
    from headway.config.read_json import read_json

    return read_json(text, builder)
