"""The commands of the READMEs run as they are written, one after the other, in one folder."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

from command import clean_env, headway

ROOT = Path(__file__).parents[2]
TRAINS = ("train", "run")
"""Commands that get `--dry-run` here; every other one runs in full."""
SCRIPT = "print('a script of one\\'s own')\n"


def lines_of(page: str) -> list[str]:
    """Return the lines of a page's shell blocks, without remarks."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return [
        shlex.join(words)
        for block in re.findall(r"(?ms)^```bash\n(.*?)^```", text)
        for line in block.splitlines()
        if (words := shlex.split(line, comments=True))
    ]


def typed(line: str) -> list[str]:
    """Return the words of a `headway` line, with `--dry-run` where it would train."""
    _, command, *rest = shlex.split(line)
    return [command, *(["--dry-run"] if command in TRAINS else []), *rest]


def test_both_readmes_type_the_same_commands():
    assert lines_of("README.md") == lines_of("README.zh-CN.md")


def test_every_command_of_the_readme_runs(tmp_path):
    small = ("train", "nanochat", "steps=2", "depth=1", "batch.per_device=1", "parallel.cpus=1", "eval.every=2")
    trained = headway(tmp_path, *small, "task.max_seq_len=32")
    assert trained.returncode == 0, trained.stderr
    (tmp_path / "train.py").write_text(SCRIPT, encoding="utf-8")
    ran = []
    for line in lines_of("README.md"):
        if line.startswith("headway "):
            done = headway(tmp_path, *typed(line))
        elif line.startswith("pytest "):
            command = [sys.executable, "-m", *shlex.split(line), "-q", "-p", "no:cacheprovider"]
            done = subprocess.run(command, cwd=tmp_path, env=clean_env(tmp_path), capture_output=True, text=True)
        else:  # the set-up, which installs packages, has its own tests
            assert line.startswith(("./start_training.sh", "source .venv/", "pip install -e")), line
            continue
        assert done.returncode == 0, f"{line}\n{done.stdout[-500:]}\n{done.stderr[-1500:]}"
        ran.append(line)
    assert len(ran) >= 10
    assert (tmp_path / "mytask" / "task.py").is_file()


def test_the_config_of_the_readme_is_one_that_headway_reads(tmp_path):
    for page in ("README.md", "README.zh-CN.md"):
        (block,) = re.findall(r"(?ms)^```yaml\n(.*?)^```", (ROOT / page).read_text(encoding="utf-8"))
        (tmp_path / "run.yaml").write_text(block, encoding="utf-8")
        shown = headway(tmp_path, "config", "show", "run.yaml")
        assert shown.returncode == 0 and "total: 24576" in shown.stdout, shown.stderr
