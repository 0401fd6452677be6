"""Gather the documentation and build the site into build/site.

    python scripts/make_site.py

The pages keep the links that work in the repository. Here they become links of the site: pages beside the code
(recipes, benchmarks, contributing) join it, and a link to a file that is not a page becomes plain text.
"""

from __future__ import annotations

import posixpath
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
GATHERED = ROOT / "build" / "docs"
RECIPES = ("nanochat", "layoutmaster", "atlas", "rdt", "tfnet")
_OUTSIDE = {
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "CHANGELOG.md": "changelog.md",
    "bench/README.md": "benchmarks.md",
    **{f"src/headway/recipes/{name}/README.md": f"recipes/{name}.md" for name in RECIPES},
    **{f"src/headway/recipes/{name}/README.zh-CN.md": f"recipes/{name}.zh-CN.md" for name in RECIPES},
    # The front page is the project's own.
    "README.md": "index.md",
    "README.zh-CN.md": "index.zh-CN.md",
    "docs/README.md": "map.md",
}
_CHINESE = ".zh-CN.md"
_LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(([^)\s]+)\)")
_SWITCH = re.compile(r"^\*\[(?:中文|English)\]\([^)]*\)\*\n\n", re.MULTILINE)
"""The link to the other language, which the site has in its header."""
_FENCE = re.compile(r"(^```.*?^```)", re.MULTILINE | re.DOTALL)


def list_pages() -> dict[str, str]:
    """Return every file of the documentation and the page it becomes."""
    inside = {path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md")}
    return {path: path.removeprefix("docs/") for path in sorted(inside)} | _OUTSIDE


def relink(text: str, path: str, pages: dict[str, str]) -> str:
    """Return a file's text with the links of the site; code blocks stay as they are."""
    parts = _FENCE.split(_SWITCH.sub("", text))
    return "".join(part if part.startswith("```") else _relink(part, path, pages) for part in parts)


def _relink(text: str, path: str, pages: dict[str, str]) -> str:
    def turn(link: re.Match[str]) -> str:
        words, target = link.groups()
        if re.match(r"[a-z]+:|#", target):
            return link.group()
        file, _, anchor = target.partition("#")
        found = posixpath.normpath(posixpath.join(posixpath.dirname(path), file))
        if found not in pages:
            if not (ROOT / found).exists():
                raise SystemExit(f"{path}: the link to {target} leads nowhere")
            return words
        # The site shows each page in the reader's language, so a link names it without one.
        page = pages[found].removesuffix(_CHINESE) + ".md" if found.endswith(_CHINESE) else pages[found]
        here = posixpath.relpath(page, posixpath.dirname(pages[path]) or ".")
        return f"[{words}]({here}{'#' + anchor if anchor else ''})"

    return _LINK.sub(turn, text)


def gather() -> int:
    """Write all pages again into build/docs; return their number."""
    pages = list_pages()
    shutil.rmtree(GATHERED, ignore_errors=True)
    for path, page in pages.items():
        place = GATHERED / page
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(relink((ROOT / path).read_text(encoding="utf-8"), path, pages), encoding="utf-8")
    return len(pages)


def main() -> int:
    """Gather the pages and let MkDocs build the site; return its exit code."""
    sys.stdout.write(f"{gather()} pages\n")
    return subprocess.call(
        [sys.executable, "-m", "mkdocs", "build", "--quiet", "--config-file", str(ROOT / "mkdocs.yml")]
    )


if __name__ == "__main__":
    sys.exit(main())
