"""The parts of a Markdown text: fenced blocks under their headings, tables, and keys with their comments."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markdown_it.token import Token

_FENCE = re.compile(r"^[ \t]*(?:`{3}|~{3})", re.MULTILINE)
_TAG = re.compile(r"<!--.*?-->|</?[A-Za-z][^<>\n]*>")
_KEYS = {
    "python": re.compile(r"^\s*(\w+)\s*=\s*([^#]+?)\s*(?:#\s*(.*))?$"),
    "ini": re.compile(r"^\s*(\w+)\s*=\s*([^#;]+?)\s*(?:[#;]\s*(.*))?$"),
    "yaml": re.compile(r"^\s*(?:-\s+)?([\w.]+):\s+([^#]+?)\s*(?:#\s*(.*))?$"),
    "json": re.compile(r"\"(\w+)\"\s*:\s*([^,/#{\[]+?)\s*,?\s*(?:(?://|#)\s*(.*))?$"),
    "flags": re.compile(r"^\s*(?:\S.*?\s)??--([\w-]+)[= ]([^\s#\\]+)\s*\\?\s*(?:#\s*(.*))?$"),
}
_DEEPEST = 3
"""How often a block is read again as Markdown."""
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
    return tuple(_blocks(text, 0, [], _DEEPEST))


def _blocks(text: str, offset: int, headings: list[str], deeper: int) -> Iterator[Block]:
    """Yield the fenced blocks of a text whose first line is line `offset` + 1; `headings` is kept up to date."""
    tokens = _parse(text)
    for place, token in enumerate(tokens):
        begin = offset + token.map[0] if token.map else offset
        if token.type == "fence":
            language = re.match(r"[\w+-]*", token.info.strip())
            yield Block(language.group().lower() if language else "", token.content, begin + 2, " / ".join(headings))
        elif token.type == "heading_open":
            headings[int(token.tag[1]) - 1 :] = [tokens[place + 1].content.strip()]
        elif token.type == "code_block" and deeper and _FENCE.search(token.content):
            # Indented too far for Markdown, as people write it under a numbered step.
            yield from _blocks(textwrap.dedent(token.content), begin, headings, deeper - 1)
        elif token.type == "html_block" and deeper and _FENCE.search(token.content):
            # A fence right behind <details>: GitHub shows it as it is, and people copy it.
            yield from _blocks(_TAG.sub("", token.content), begin, headings, deeper - 1)


def hide_comments(text: str) -> str:
    """Return the text with the lines of its <!-- comments --> empty: nobody sees them, so nobody types them."""
    lines = text.split("\n")
    for token in _parse(text):
        if token.type == "html_block" and token.map and token.content.lstrip().startswith("<!--"):
            lines[token.map[0] : token.map[1]] = [""] * (token.map[1] - token.map[0])
    return "\n".join(lines)


def _parse(text: str) -> list[Token]:
    """Return the blocks of a Markdown text; what is inside a line is left as it is written."""
    # Here and not above: every launch line passes this package, and only guides have to pay the 20 ms.
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark").enable("table").disable(["inline", "text_join"]).parse(text)


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
    rows: list[tuple[int, list[str]]] = []
    for token in _parse("\n".join(line if len(line) <= MAX_LINE else "" for line in text.split("\n"))):
        if token.type == "table_open":
            rows = []
        elif token.type == "tr_open" and token.map:
            rows.append((token.map[0] + 1, []))
        elif token.type == "inline" and rows and token.level > 3:
            rows[-1][1].append(token.content.strip().strip("*").strip())
        elif token.type == "table_close":
            header, *below = ((line, tuple(cells)) for line, cells in rows)
            tables.append(Table(header[1], tuple(below)))
            rows = []
    return tables
