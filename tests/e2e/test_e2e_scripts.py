"""The two scripts of a fresh clone, where Python is missing."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent


@pytest.mark.parametrize("script", ["start_training.sh", "run_tests.sh"])
def test_a_missing_python_is_said_in_both_languages(tmp_path, script):
    clone, tools = tmp_path / "clone", tmp_path / "bin"
    tools.mkdir()
    for name in ("bash", "dirname", "cat", "tr", "cksum", "sed"):
        (tools / name).symlink_to(shutil.which(name))
    (clone / "scripts").mkdir(parents=True)
    for file in (script, "scripts/setup.sh", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / file, clone / file)
    done = subprocess.run(["bash", script], cwd=clone, env={"PATH": str(tools)}, capture_output=True, text=True)
    assert done.returncode == 3
    assert "Python 3.11 or newer is missing" in done.stderr
    assert "缺少 Python 3.11" in done.stderr
    assert not (clone / ".venv").exists()


def test_ci_runs_the_test_script_and_nothing_else():
    lines = [line for line in (ROOT / ".ci" / "run").read_text().splitlines() if line and not line.startswith("#")]
    assert lines == ['exec "$(dirname "$0")/../run_tests.sh"']
