"""The pages of the reference that are made from the code: every config key, every command.

`make_reference.py` writes them beside the error book; a test compares the files with fresh ones.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import click
from click.testing import CliRunner
from pydantic_core import to_jsonable_python

from headway.config import Explained, RunConfig, explain
from headway.messages import Language, language, say, set_language
from headway.task import RECIPES, find_recipe

_PLAIN = "nanochat"
"""The default recipe: its presets show what a preset may set."""

_CONFIG = {
    "en": """# Every config key

*[中文](config.zh-CN.md)*

A key can be set in a file (`batch: {total: 64}`), on the command line (`batch.total=64`) or by a variable
(`HEADWAY_SET_BATCH__TOTAL=64`). The command line wins over variables, variables over the file, the file over the
preset, the preset over the recipe. `headway config show --origins` prints which of them set each value;
`headway config explain KEY` prints one entry of this page. Written by `scripts/make_reference.py`; do not edit.
""",
    "zh": """# 全部配置项

*[English](config.md)*

配置项可以写在文件里（`batch: {total: 64}`），写在命令行上（`batch.total=64`），也可以用环境变量设置
（`HEADWAY_SET_BATCH__TOTAL=64`）。优先级：命令行 > 环境变量 > 文件 > 预设 > 配方。
`headway config show --origins` 显示每个值来自哪一层；`headway config explain KEY` 显示本页中的一项。
本文件由 `scripts/make_reference.py` 生成，不要手工修改。
""",
}
_HEAD = {"en": "| key | takes | default | meaning |", "zh": "| 配置项 | 取值 | 默认 | 含义 |"}
_TOP = {"en": "General", "zh": "通用"}
_TASK = {"en": "Recipe {name}", "zh": "配方 {name}"}

_COMMANDS = {
    "en": """# Every command

*[中文](commands.zh-CN.md)*

The help pages as the terminal shows them. `--lang en|zh` and `--color auto|always|never` work with every command.
Written by `scripts/make_reference.py`; do not edit.
""",
    "zh": """# 全部命令

*[English](commands.md)*

与终端显示的帮助相同。每个命令都接受 `--lang en|zh` 和 `--color auto|always|never`。
本文件由 `scripts/make_reference.py` 生成，不要手工修改。
""",
}


def render_config(lang: Language) -> str:
    """Return every key of the config, and the section of every built-in recipe."""
    parts = [_CONFIG[lang]]
    top, sections = [], []
    for key in RunConfig.model_fields:
        found = explain(key, find_recipe(_PLAIN), lang)
        (sections if found.keys else top).append(found)
    parts += _table(_TOP[lang], "", top, lang)
    for section in sections:
        if section.key != "task":
            parts += _table(f"`{section.key}`", section.description, list(_entries(section, _PLAIN, lang)), lang)
    for name in RECIPES:
        task = explain("task", find_recipe(name), lang)
        parts += _table(_TASK[lang].format(name=name), "", list(_entries(task, name, lang)), lang)
    return "\n".join(parts) + "\n"


def _entries(section: Explained, recipe: str, lang: Language) -> Iterator[Explained]:
    for key in section.keys:
        yield explain(key, find_recipe(recipe), lang)


def _table(title: str, about: str, rows: list[Explained], lang: Language) -> list[str]:
    lines = [f"\n## {title}\n", *([f"{about}\n"] if about else []), _HEAD[lang], "|---|---|---|---|"]
    for row in rows:
        default = say("config/label-required", lang) if row.is_required else _code(_own_default(row))
        cells = (f"`{row.key}`", row.type.strip(), default, row.description)
        lines.append("| " + " | ".join(_cell(cell) for cell in cells) + " |")
    return lines


def _own_default(row: Explained) -> Any:
    """Return what the key is when no recipe sets it. Any: the value of any field."""
    section, _, name = row.key.rpartition(".")
    if row.key.startswith("task."):
        return row.default
    owner = RunConfig.model_fields[section].annotation if section else RunConfig
    return to_jsonable_python(owner.model_fields[name].get_default(call_default_factory=True))


def _code(value: Any) -> str:
    """Any: the value of any field."""
    return f"`{json.dumps(value, ensure_ascii=False)}`"


def _cell(text: str) -> str:
    return re.sub(r"\s+", " ", text).replace("|", "\\|")


def render_commands(lang: Language) -> str:
    """Return the help of every command and sub-command, in the order of `headway --help`."""
    root: click.Group = import_module("headway.cli.main").root
    parts = [_COMMANDS[lang]]
    for words in _walk(root, ()):
        title = " ".join(("headway", *words))
        parts.append(f"\n## {title}\n\n```text\n{_help(root, words, lang)}\n```")
    return "\n".join(parts) + "\n"


def _walk(group: click.Group, words: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    context = click.Context(group)
    yield words
    for name in group.list_commands(context):
        found = group.get_command(context, name)
        if isinstance(found, click.Group):
            yield from _walk(found, (*words, name))
        elif found is not None:
            yield (*words, name)


def _help(root: click.Group, words: tuple[str, ...], lang: Language) -> str:
    before = language()
    set_language(lang)
    done = CliRunner().invoke(root, [*words, "--help"], prog_name="headway", terminal_width=80)
    set_language(before)
    if done.exit_code != 0:
        raise RuntimeError(f"headway {' '.join(words)} --help ended with {done.exit_code}: {done.output}")
    return done.output.rstrip()
