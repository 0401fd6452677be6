"""Lists inside a sentence are joined in its language, and what is absent is a dash in a table."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from string import Formatter

from message_rules import all_texts, load_catalogue

SOURCE = Path(__file__).parents[3] / "src" / "headway"
TEXTS = all_texts(load_catalogue())
OTHERS = {
    ("run/why-launcher", "launcher"): "words of a command line",
    ("diagnose/rule-wrong", "why"): "problems of a file, with their places",
    ("machine/smoke-failed", "why"): "words of the library",
    ("machine/smoke-wrong", "why"): "words of the library",
    ("ui/log-line", "note"): "joined by language in the line above",
}
"""Facts that hold joined words but are not a list of the sentence."""


def joined_facts() -> Iterator[tuple[Path, str, str]]:
    """Yield file, code and fact wherever a value joined by commas is handed to a text."""
    for path in sorted(SOURCE.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for body in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)):
            names = {
                target.id
                for node in ast.walk(body)
                if isinstance(node, ast.Assign) and _is_joined(node.value, set())
                for target in node.targets
                if isinstance(target, ast.Name)
            }
            for call in (node for node in ast.walk(body) if isinstance(node, ast.Call)):
                codes = [one.value for one in _values(call) if isinstance(one, ast.Constant) and one.value in TEXTS]
                facts = [(word.arg, word.value) for word in call.keywords if word.arg] + list(_dict_facts(call))
                yield from ((path, code, name) for code in codes for name, value in facts if _is_joined(value, names))


def _values(call: ast.Call) -> list[ast.expr]:
    return [*call.args, *(word.value for word in call.keywords if word.arg == "code")]


def _dict_facts(call: ast.Call) -> Iterator[tuple[str, ast.expr]]:
    for word in call.keywords:
        if word.arg == "facts" and isinstance(word.value, ast.Dict):
            for key, value in zip(word.value.keys, word.value.values, strict=True):
                if isinstance(key, ast.Constant):
                    yield str(key.value), value


def _is_joined(value: ast.expr, names: set[str]) -> bool:
    return any(
        (isinstance(node, ast.Name) and node.id in names)
        or (
            isinstance(node, ast.Attribute)
            and node.attr == "join"
            and isinstance(node.value, ast.Constant)
            and node.value.value == ", "
        )
        for node in ast.walk(value)
    )


def _kinds(code: str) -> dict[str, str]:
    text = TEXTS[code]
    parts = [part for one in (text.zh, text.zh_hint) for part in Formatter().parse(one)]
    return {name: spec or "" for _, name, spec, _ in parts if name}


def test_a_joined_fact_is_shown_as_a_list_of_the_sentences_language():
    found = list(joined_facts())
    assert len(found) > 40
    wrong = [
        f"{path.relative_to(SOURCE)}: {code}: write {{{name}:list}}"
        for path, code, name in found
        if name in _kinds(code) and _kinds(code)[name] != "list" and (code, name) not in OTHERS
    ]
    assert "\n".join(wrong) == ""


def test_a_screen_shows_a_dash_where_a_value_is_absent():
    pages = [path for path in (SOURCE / "ui").rglob("*") if path.suffix in (".py", ".html") and path.is_file()]
    assert len(pages) > 60
    assert [path.name for path in pages if "n/a" in path.read_text(encoding="utf-8")] == []
