"""The wheel: built as a user builds it, unpacked beside nothing of the source, it holds a board with its charts."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import urllib.request
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NEEDED = ("board.js", "board.css", "icon.svg", "built/charts.js", "built/charts.css")


@pytest.mark.slow
def test_a_wheel_holds_the_board_and_its_charts_and_opens_it_without_the_source(tmp_path):
    pytest.importorskip("hatchling", reason="NO HATCHLING: no wheel is built (pip install hatchling)")
    if not (ROOT / "src/headway/ui/board/static/built/charts.js").is_file() and shutil.which("npm") is None:
        pytest.skip("NEITHER NPM NOR BUILT CHARTS: no wheel can be made (npm --prefix web run setup)")
    env = {**os.environ, "npm_config_cache": str(tmp_path / "npm")}
    line = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path]
    subprocess.run(line, cwd=ROOT, check=True, env=env)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        archive.extractall(tmp_path / "site")
    assert {f"headway/ui/board/static/{name}" for name in NEEDED} <= names
    assert not [name for name in names if "node_modules" in name or name.startswith(("web/", "tests/"))]
    (tmp_path / "runs").mkdir()
    env = {**os.environ, "PYTHONPATH": str(tmp_path / "site"), "XDG_STATE_HOME": str(tmp_path / "state")}
    command = [sys.executable, "-P", "-m", "headway", "board", "--runs", "runs", "--port", "0", "--json"]
    with subprocess.Popen(command, cwd=tmp_path, env=env, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL) as board:
        try:
            told = json.loads(board.stdout.readline())
            token = (tmp_path / "state" / "headway" / "board-token").read_text().strip()
            asked = urllib.request.Request(f"{told['address']}/static/charts.js")
            asked.add_header("Authorization", f"Bearer {token}")
            with urllib.request.urlopen(asked, timeout=30) as answer:
                assert answer.status == 200 and len(answer.read()) > 50_000
            where = subprocess.check_output(
                [sys.executable, "-P", "-c", "import headway; print(headway.__file__)"],
                cwd=tmp_path,
                env=env,
                text=True,
            )
            assert where.startswith(str(tmp_path / "site"))
        finally:
            board.terminate()
