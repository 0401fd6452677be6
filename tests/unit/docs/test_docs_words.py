"""Documents, docstrings and comments keep to the rules of words; the README's commands are ones that exist."""

from __future__ import annotations

import ast
import io
import re
import shlex
import sys
import tokenize
from collections.abc import Iterator

import pytest
from click import Context, Group
from make_site import ROOT

sys.path.insert(0, str(ROOT / "tests" / "unit" / "messages"))
from word_rules import CHINESE, PROSE, find_words

from headway.cli.main import root

FOLDERS = ("src", "bench", "scripts", "tests")
PAGES = sorted(
    path.relative_to(ROOT).as_posix()
    for path in (*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("bench/*.md"))
    if path.name not in ("CHANGELOG.md", "claims.zh-CN.md", "errors.md", "errors.zh-CN.md")
)
"""Pages written by hand; the history, the guides' own claims and the error book are made of other people's words."""
COMMANDED = [page for page in PAGES if page.startswith(("README", "docs/howto/"))]


def prose_of_page(text: str) -> Iterator[str]:
    """Yield the lines of a Markdown page without code, addresses and quotations."""
    text = re.sub(r"(?ms)^```.*?^```", "", text)
    yield from re.sub(r"`[^`\n]*`|「[^」]*」|“[^”]*”|\"[^\"\n]*\"|\]\([^)]*\)", "", text).splitlines()


def prose_of_code(text: str) -> Iterator[str]:
    """Yield the docstrings and comments of a module."""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.string
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield re.sub(r"`[^`\n]*`", "", node.value.value)


@pytest.mark.parametrize("page", PAGES)
def test_a_page_follows_the_rules_of_words(page):
    rules = CHINESE if ".zh-CN" in page else PROSE
    lines = prose_of_page((ROOT / page).read_text(encoding="utf-8"))
    assert "\n".join(found for line in lines for found in find_words(line, rules)) == ""


@pytest.mark.parametrize("folder", FOLDERS)
def test_docstrings_and_comments_follow_the_rules_of_words(folder):
    wrong = [
        f"{path.relative_to(ROOT)}: {found}"
        for path in sorted((ROOT / folder).rglob("*.py"))
        if path.name != "word_rules.py"
        for prose in prose_of_code(path.read_text(encoding="utf-8"))
        for found in find_words(prose, PROSE)
    ]
    assert "\n".join(wrong) == ""


def commands_of_page(text: str) -> Iterator[list[str]]:
    """Yield the words of every `headway …` line of a page's shell blocks."""
    for block in re.findall(r"(?ms)^```bash\n(.*?)^```", text):
        for line in block.splitlines():
            words = shlex.split(line, comments=True)
            if words[:1] == ["headway"]:
                yield words[1:]


@pytest.mark.parametrize("page", COMMANDED)
def test_every_command_of_a_page_exists_with_its_options(page):
    wrong = []
    for words in commands_of_page((ROOT / page).read_text(encoding="utf-8")):
        command, context = root, Context(root)
        while isinstance(command, Group) and words and not words[0].startswith("-"):
            found = command.get_command(context, words[0])
            if found is None:
                wrong.append(f"no command: headway {shlex.join(words)}")
                break
            command, words = found, words[1:]
        if command.name in ("run", "submit"):  # what follows is the user's own line
            continue
        known = {option for param in command.params for option in (*param.opts, *param.secondary_opts)} | {"--help"}
        given = {word.partition("=")[0] for word in words if word.startswith("--")}
        wrong += [f"headway {command.name} has no {option}" for option in sorted(given - known - {"--lang"})]
    assert wrong == []


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("the file stands in the folder", "is in"),
        ("memory a rank", "per"),
        ("what is no number", "is not a"),
        ("the run goes on", "continue"),
        ("a checkpoint that verifies", "passes"),
        ("about 65 % of it", "65%"),
        ("it is made anew", "again"),
    ],
)
def test_a_rule_finds_what_it_is_for(text, rule):
    assert any(rule in found for found in find_words(text, PROSE))
