"""docs/guides.md quotes every line of prose of the five guides, with what becomes of it and what proves it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
GUIDES = ROOT.parent / "shared" / "guides"
NAMES = {"atlas": "Atlas", "layoutmaster": "LayoutMaster", "nanochat": "nanochat", "rdt": "RDT", "tfnet": "TFNet"}
FILES = ("guides.md", "guides.zh-CN.md")
_RULE = re.compile(r"\|[-| ]+\|")


def prose_of(text: str) -> list[str]:
    """Return every line that says something: bullets, numbered lines, rows, sentences; not headings, not code."""
    lines, is_code = [], False
    for line in map(str.strip, text.splitlines()):
        if line.startswith("```"):
            is_code = not is_code
        elif line and not is_code and not line.startswith("#") and line != "---" and not _RULE.fullmatch(line):
            lines.append(line)
    return lines


def rows_of(file: str, name: str) -> list[str]:
    """Return the rows of a guide's table of promises."""
    text = (ROOT / "docs" / file).read_text(encoding="utf-8")
    section = re.split(r"^### ", text, flags=re.MULTILINE)
    (own,) = [part for part in section if re.match(rf"{NAMES[name]}(: promises| 的承诺)\n", part)]
    return [line for line in own.splitlines() if line.startswith("| 「")]


def quotes_of(rows: list[str]) -> list[str]:
    return [quote.replace("\\|", "|") for row in rows for quote in re.findall(r"「(.+?)」", row)]


def test_prose_is_told_from_headings_and_code():
    text = "# a\n- one\n```bash\nls\n```\n| x | y |\n|---|---|\n---\n1. two\n"
    assert prose_of(text) == ["- one", "| x | y |", "1. two"]


@pytest.mark.shared
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("file", FILES)
def test_every_line_of_a_guide_is_quoted_in_its_table_of_promises(name, file):
    guide = GUIDES / f"{name}.md"
    if not guide.is_file():
        pytest.skip(f"NOT TESTED: the reference guides are not beside the repository ({GUIDES})")
    lines, quotes = prose_of(guide.read_text(encoding="utf-8")), quotes_of(rows_of(file, name))
    assert len(lines) > 30 and len(quotes) > 30
    assert [line for line in lines if not any(quote in line for quote in quotes)] == []
    assert [quote for quote in quotes if not any(quote in line for line in lines)] == [], "no guide says this"


def test_both_languages_quote_the_same_promises():
    found = {file: [quotes_of(rows_of(file, name)) for name in NAMES] for file in FILES}
    assert found[FILES[0]] == found[FILES[1]]
    assert sum(len(rows_of(FILES[0], name)) for name in NAMES) >= 73


@pytest.mark.parametrize("file", FILES)
def test_every_promise_names_a_test_and_every_test_it_names_is_there(file):
    tests = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py")}
    for name in NAMES:
        for row in rows_of(file, name):
            proof = re.split(r"(?<!\\)\| ", row)[3].strip(" |")
            named = re.findall(r"`(test_\w+\.py)::(test_\w+)`", proof)
            assert named, row
            for path, function in named:
                assert f"def {function}(" in tests[path], f"{path}::{function}"
