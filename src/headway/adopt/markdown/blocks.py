"""The parts of a Markdown text: fenced blocks under their headings, tables, and keys with their comments."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_FENCE = re.compile(r"([ \t]*)(`{3,}|~{3,})[ \t]*([\w+-]*)")
_HEADING = re.compile(r"#{1,6}\s+(.*)")
_KEYS = {
    "python": re.compile(r"^\s*(\w+)\s*=\s*([^#]+?)\s*(?:#\s*(.*))?$"),
    "ini": re.compile(r"^\s*(\w+)\s*=\s*([^#;]+?)\s*(?:[#;]\s*(.*))?$"),
    "yaml": re.compile(r"^\s*(?:-\s+)?([\w.]+):\s+([^#]+?)\s*(?:#\s*(.*))?$"),
    "json": re.compile(r"\"(\w+)\"\s*:\s*([^,/#{\[]+?)\s*,?\s*(?:(?://|#)\s*(.*))?$"),
    "flags": re.compile(r"^\s*(?:\S.*?\s)??--([\w-]+)[= ]([^\s#\\]+)\s*\\?\s*(?:#\s*(.*))?$"),
}
MAX_LINE = 1_000
"""Lines longer than this are data, not something a person wrote; patterns would spend their square on them."""
SHELL = ("bash", "sh", "shell", "console", "zsh")


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block."""

    language: str
    text: str
    first_line: int
    """The line of its first line of text, from 1."""
    heading: str
    """The headings above it, outermost first, apart by ` / `."""


@dataclass(frozen=True, slots=True)
class Key:
    """A setting shown in a block."""

    name: str
    value: str
    comment: str
    line: int
    block: Block

    @property
    def number(self) -> int | None:
        """The value as a whole number."""
        return int(self.value) if re.fullmatch(r"\d{1,12}", self.value) else None


@dataclass(frozen=True, slots=True)
class Table:
    """A table: its header and its rows, each with its line."""

    header: tuple[str, ...]
    rows: tuple[tuple[int, tuple[str, ...]], ...]


def read_blocks(text: str) -> tuple[Block, ...]:
    """Return the fenced blocks of a text."""
    blocks: list[Block] = []
    headings: list[str] = []
    inside: list[str] | None = None
    mark = language = indent = ""
    began = 0
    for place, line in enumerate(text.splitlines(), start=1):
        match = _FENCE.match(line)
        if inside is not None:
            if match and match[2][0] == mark[0] and len(match[2]) >= len(mark) and not match[3]:
                blocks.append(Block(language, "\n".join(inside) + "\n", began, " / ".join(headings)))
                inside = None
            else:
                inside.append(line.removeprefix(indent))
        elif match:
            indent, mark, language, inside, began = match[1], match[2], match[3].lower(), [], place + 1
        elif heading := _HEADING.match(line):
            depth = len(line) - len(line.lstrip("#"))
            headings = [*headings[: depth - 1], heading[1].strip()]
    return tuple(blocks)


def read_keys(block: Block) -> Iterator[Key]:
    """Return the settings of a block; a shell block may show JSON lines or flags."""
    aliases = {"py": "python", "yml": "yaml", "jsonc": "json", "toml": "ini", "cfg": "ini"}
    forms = ["flags", "json"] if block.language in SHELL else [aliases.get(block.language, block.language)]
    for number, line in enumerate(block.text.splitlines(), start=block.first_line):
        for form in forms if len(line) <= MAX_LINE else ():
            match = _KEYS[form].search(line) if form in _KEYS else None
            if match:
                yield Key(match[1].replace("-", "_"), match[2].strip().strip("\"'"), match[3] or "", number, block)


def read_tables(text: str) -> list[Table]:
    """Return the tables of a text."""
    tables: list[Table] = []
    lines = [line if len(line) <= MAX_LINE else "" for line in text.splitlines()]
    at = 0
    while at + 1 < len(lines):
        if "|" in lines[at] and re.fullmatch(r"\s*\|?[\s:|-]*-[\s:|-]*\|?\s*", lines[at + 1]) and "|" in lines[at + 1]:
            header, rows = _cells(lines[at]), []
            at += 2
            while at < len(lines) and "|" in lines[at]:
                rows.append((at + 1, _cells(lines[at])))
                at += 1
            tables.append(Table(header, tuple(rows)))
        at += 1
    return tables


def _cells(line: str) -> tuple[str, ...]:
    return tuple(cell.strip().strip("*").strip() for cell in line.strip().strip("|").split("|"))
