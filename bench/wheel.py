"""Whether the wheel has everything: built, installed into an empty environment, its board opened.

Run it: python bench/wheel.py [--index URL]

`pip wheel` makes the wheel of this tree, `python -m venv` an environment with nothing in it, pip installs the wheel
with its dependencies (no framework), and `headway board` over an empty folder is asked for its first page and scripts.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]


def main() -> None:
    """Build, install, open; print the seconds of each and one JSON object last."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--index", help="a package index for pip")
    asked = parser.parse_args()
    more = ["--index-url", asked.index] if asked.index else []
    told: dict[str, object] = {}
    with tempfile.TemporaryDirectory() as place:
        here = Path(place)
        began = time.perf_counter()
        pip(sys.executable, "wheel", "--no-deps", str(ROOT), "-w", str(here / "wheels"), *more)
        (wheel,) = (here / "wheels").glob("headway-*.whl")
        told["build_s"] = round(time.perf_counter() - began, 1)
        told["wheel_mb"] = round(wheel.stat().st_size / 1e6, 2)
        names = zipfile.ZipFile(wheel).namelist()
        told["has_charts"] = any(name.endswith("static/built/charts.js") for name in names)
        began = time.perf_counter()
        subprocess.run([sys.executable, "-m", "venv", here / "venv"], check=True)
        python = str(here / "venv" / "bin" / "python")
        pip(python, "install", "--constraint", str(ROOT / "constraints.txt"), str(wheel), *more)
        told["install_s"] = round(time.perf_counter() - began, 1)
        told["opened"] = open_board(here, python)
    for key, value in told.items():
        print(f"{key:12} {value}")
    print(json.dumps(told))
    sys.exit(0 if told["has_charts"] and told["opened"] else 1)


def pip(python: str, *words: str) -> None:
    """Run pip, quietly."""
    subprocess.run([python, "-m", "pip", "--quiet", "--disable-pip-version-check", *words], check=True)


def open_board(here: Path, python: str) -> bool:
    """Say whether the board answers with a page and with its script."""
    (here / "runs").mkdir()
    env = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    env["XDG_STATE_HOME"] = str(here / "state")
    command = [str(Path(python).with_name("headway")), "board", "--runs", "runs", "--port", "0", "--json"]
    with subprocess.Popen(command, cwd=here, env=env, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL) as board:
        try:
            address = json.loads(board.stdout.readline())["address"]  # type: ignore[union-attr]
            token = (here / "state" / "headway" / "board-token").read_text().strip()
            return all(
                len(get(address + path, token)) > 1000 for path in ("/", "/static/charts.js", "/static/board.js")
            )
        finally:
            board.terminate()


def get(url: str, token: str) -> bytes:
    """Return an answer's body."""
    asked = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"})
    with urllib.request.urlopen(asked, timeout=60) as answer:
        return bytes(answer.read())


if __name__ == "__main__":
    main()
