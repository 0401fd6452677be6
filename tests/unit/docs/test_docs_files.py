"""Pages written by hand name what the code has: files, events, exit codes; every link leads somewhere."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest
from make_site import ROOT, list_pages, relink

import headway.errors as errors
from headway.telemetry import GPU_KEYS, HOST_KEYS, JOB_KEYS, RANK_KEYS, RunDir

_PAGES = ("docs/reference/files.md", "docs/reference/files.zh-CN.md")
_SENT = re.compile(r"""(?:emit|append|event)\(\s*"([a-z_]+)"|"kind": "([a-z_]+)\"""")
_OWN_PROTOCOLS = frozenset(
    {"event", "error", "finished", "foreign", "ready", "failed", "forked", "fork_failed", "exited"}
)
"""Kinds of messages between our processes, which are not in the history."""


@pytest.mark.parametrize("page", _PAGES)
def test_every_event_is_described(page):
    text, seen = (ROOT / page).read_text(encoding="utf-8"), set()
    for file in (ROOT / "src" / "headway").rglob("*.py"):
        if file.relative_to(ROOT / "src" / "headway").parts[0] in ("engine", "checkpoint", "launch", "start", "cli"):
            seen |= {first or second for first, second in _SENT.findall(file.read_text(encoding="utf-8"))}
    kinds = {kind for kind in seen - _OWN_PROTOCOLS if "_" in kind or kind in ("incident", "hang", "guard", "trial")}
    assert len(kinds) > 15
    assert [kind for kind in sorted(kinds) if f"`{kind}`" not in text] == []


@pytest.mark.parametrize("page", _PAGES)
def test_every_file_of_a_run_and_every_exit_code_is_described(page):
    text, run = (ROOT / page).read_text(encoding="utf-8"), RunDir(Path("R"))
    places = [name for name, _ in inspect.getmembers(RunDir, lambda member: isinstance(member, property))]
    paths = [getattr(run, name) for name in places if isinstance(getattr(run, name), Path)]
    assert len(paths) > 8
    assert [path.name for path in paths if f"`{path.name}" not in text] == []
    codes = {kind.exit_code for _, kind in inspect.getmembers(errors, inspect.isclass) if hasattr(kind, "exit_code")}
    assert [code for code in sorted(codes) if not re.search(rf"^\| {code} \|", text, re.MULTILINE)] == []


@pytest.mark.parametrize("page", _PAGES)
def test_every_key_of_a_device_reading_is_described(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    keys = {*GPU_KEYS, *HOST_KEYS, *JOB_KEYS, *RANK_KEYS, "finding", "finding_over"}
    assert [key for key in sorted(keys) if f"`{key}`" not in text] == []


def test_every_link_between_documents_leads_somewhere():
    pages = list_pages()
    assert len(pages) > 60
    for path in pages:
        relink((ROOT / path).read_text(encoding="utf-8"), path, pages)


def test_every_page_for_users_exists_in_both_languages():
    pages = [path for path in list_pages() if path.startswith(("docs/howto/", "docs/reference/"))]
    assert len(pages) > 14
    chinese = {path.replace(".zh-CN.md", ".md") for path in pages if path.endswith(".zh-CN.md")}
    assert sorted({path for path in pages if not path.endswith(".zh-CN.md")} - chinese) == []
