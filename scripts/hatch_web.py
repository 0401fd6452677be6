"""Builds the board's script before a wheel or a source archive is made, so that both always carry it.

An editable installation does not wait for it: set-up builds it beside, and without it the server-drawn pages stay.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

HINT = """\
error: the board's script is not built, and npm is not there to build it
hint:  install Node.js 20 or newer (Debian/Ubuntu: sudo apt install nodejs npm), or install this folder as it is:
       pip install -e .
错误：看板脚本尚未构建，且找不到 npm
建议：安装 Node.js 20 或更新版本（Debian/Ubuntu：sudo apt install nodejs npm），或直接安装本目录：
       pip install -e .
"""


class WebHook(BuildHookInterface):
    """Called by hatchling."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build what is missing or older than its source."""
        if version == "editable" or is_built(Path(self.root)):
            return
        npm = shutil.which("npm")
        if npm is None:
            sys.exit(HINT)
        web = Path(self.root) / "web"
        task = "build" if (web / "node_modules" / "vite").is_dir() else "setup"
        subprocess.run([npm, "--prefix", str(web), "run", task], check=True, stdout=sys.stderr)


def is_built(root: Path) -> bool:
    """Say whether the script is there and newer than what it is made from; an archive holds it as it was built."""
    web, built = root / "web", root / "src/headway/ui/board/static/built"
    made = [built / name for name in ("charts.js", "charts.css")]
    if not all(path.is_file() for path in made):
        return False
    if (root / "PKG-INFO").is_file():
        return True
    sources = [web / "package-lock.json", web / "vite.config.ts", *(web / "src").iterdir()]
    return max(path.stat().st_mtime for path in sources) <= min(path.stat().st_mtime for path in made)
