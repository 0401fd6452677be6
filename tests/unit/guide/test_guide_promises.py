"""docs/guides.md quotes every line of the five guides but their commands, with what becomes of it and what proves it.

Commands that start something have tables of their own (`tests/e2e/test_e2e_guides_table.py`).
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
GUIDES = ROOT.parent / "shared" / "guides"
NAMES = {"atlas": "Atlas", "layoutmaster": "LayoutMaster", "nanochat": "nanochat", "rdt": "RDT", "tfnet": "TFNet"}
FILES = ("guides.md", "guides.zh-CN.md")
STARTERS = ("python", "torchrun", "accelerate", "bash", "watch", "tail", "./")
_FENCE = re.compile(r"^[ \t]*```(\w*)\n(.*?)^[ \t]*```", re.MULTILINE | re.DOTALL)
_VARIABLE = re.compile(r"[A-Z_]+=\S+ ")
_LABEL = re.compile(r"^(?:#|//)\s*(?:(?:方法|方案|GPU)?\s*\d+[.:：]?\s*)?")
"""How a remark in code begins, with its number; one that then has neither number nor value only names what follows."""
_SHAPE = re.compile(r"[\s{}\[\],.=─│├└`]*|.*[:{]")
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


def code_of(text: str) -> list[str]:
    """Return the lines in code that are not commands: settings, variables, expected output, remarks with numbers."""
    found = []
    for language, block in _FENCE.findall(text):
        is_shell = language in ("bash", "sh", "shell")
        joined = re.sub(r"\\[ \t]*(?:#[^\n]*)?\n", " ", block) if is_shell else block
        for line in (" ".join(line.split()) for line in joined.splitlines()):
            is_command = is_shell and _VARIABLE.sub("", line).startswith(STARTERS)
            is_label = line.startswith(("#", "//")) and not re.search(r"\d|=", _LABEL.sub("", line))
            if not is_command and not is_label and not _SHAPE.fullmatch(line):
                found.append(line)
    return found


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


def test_settings_and_expected_output_are_told_from_commands_and_labels():
    text = "```bash\n# 方法1: go\nA=0,1 python t.py \\  # why\n  --x\nexport A=1  # so\n# 有效 = 4\n```\n"
    text += '```json\n{\n  "data": {\n    "lr": 8e-4\n  }\n}\n```\n```\n✅ fine\n```\n'
    assert code_of(text) == ["export A=1 # so", "# 有效 = 4", '"lr": 8e-4', "✅ fine"]


@pytest.mark.shared
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("file", FILES)
def test_every_line_of_a_guide_is_quoted_in_its_table_of_promises(name, file):
    guide = GUIDES / f"{name}.md"
    if not guide.is_file():
        pytest.skip(f"NOT TESTED: the reference guides are not beside the repository ({GUIDES})")
    text, quotes = guide.read_text(encoding="utf-8"), quotes_of(rows_of(file, name))
    lines = [*prose_of(text), *code_of(text)]
    assert len(lines) > 30 and len(quotes) > 30
    assert [line for line in lines if not any(quote in line for quote in quotes)] == []
    assert [quote for quote in quotes if not any(quote in line for line in lines)] == [], "no guide says this"


def test_both_languages_quote_the_same_promises():
    found = {file: [quotes_of(rows_of(file, name)) for name in NAMES] for file in FILES}
    assert found[FILES[0]] == found[FILES[1]]
    assert sum(len(rows_of(FILES[0], name)) for name in NAMES) >= 120


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
