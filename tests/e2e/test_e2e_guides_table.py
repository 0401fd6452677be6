"""docs/guides.md lists every command of the five guides that starts something, in both languages."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
GUIDES = ROOT.parent / "shared" / "guides"
NAMES = ("atlas", "layoutmaster", "nanochat", "rdt", "tfnet")
STARTERS = ("python", "torchrun", "accelerate", "bash", "watch", "tail", "./")
"""What a command begins with that starts a program of the project, or something that continues by itself."""
_FENCE = re.compile(r"^[ \t]*```(?:bash|sh|shell)\n(.*?)^[ \t]*```", re.MULTILINE | re.DOTALL)
_INLINE = re.compile(r"`(\./[^`<]+)`")
_SETTING = re.compile(r"[A-Z_]+=\S+ ")


def commands_of(text: str) -> set[str]:
    """Return the commands of a guide that start something, each on one line, without comments."""
    found = {" ".join(one.split()) for one in _INLINE.findall(text)}
    for block in _FENCE.findall(text):
        # Some guides write a comment behind the backslash.
        joined = re.sub(r"\\[ \t]*(?:#[^\n]*)?\n", " ", block)
        for line in joined.splitlines():
            command = " ".join(re.sub(r"(?:^|\s)#.*", "", line).split())
            bare = _SETTING.sub("", command)
            if bare.startswith(STARTERS):
                found.add(command)
    return found


def table_of(file: Path) -> set[str]:
    """Return the first column of every table, as commands."""
    rows = (line.split(" | ")[0] for line in file.read_text(encoding="utf-8").splitlines() if line.startswith("| `"))
    return {row.removeprefix("| ").strip("`").replace("\\|", "|") for row in rows}


def test_commands_are_found_with_their_settings_and_without_their_comments():
    text = "x `./go.sh --a=1` y `./go.sh <file>`\n```bash\n# no\nA=0,1 python t.py \\  # why\n  --x  # so\ncd y\n```\n"
    assert commands_of(text) == {"./go.sh --a=1", "A=0,1 python t.py --x"}


@pytest.mark.shared
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("file", ["guides.md", "guides.zh-CN.md"])
def test_every_command_of_a_guide_that_starts_something_is_in_the_table(name, file):
    guide = GUIDES / f"{name}.md"
    if not guide.is_file():
        pytest.skip(f"NOT TESTED: the reference guides are not beside the repository ({GUIDES})")
    wanted = commands_of(guide.read_text(encoding="utf-8"))
    assert len(wanted) >= 4
    assert sorted(wanted - table_of(ROOT / "docs" / file)) == []


@pytest.mark.parametrize("file", ["guides.md", "guides.zh-CN.md"])
def test_every_test_that_the_table_names_is_there(file):
    text = (ROOT / "docs" / file).read_text(encoding="utf-8")
    named = set(re.findall(r"`(test_e2e_\w+\.py)(?:::(test_\w+))?`", text))
    assert len(named) >= 5
    for path, function in named:
        source = (ROOT / "tests" / "e2e" / path).read_text(encoding="utf-8")
        assert not function or f"def {function}(" in source, f"{path}::{function}"
