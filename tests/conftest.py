"""What holds for every test: the processor's settings, English, and nothing left behind."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from fakes.leaks import ROOT, no_leaks
from headway.machine import find_cpu
from headway.messages import set_language

# The tests compute with what this processor really runs, as ranks do: set before anything imports a framework.
found = find_cpu()
if found is not None:
    os.environ.update(found.settings)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let the longest begin first: files that hold slow tests, then those that start processes, then the others.

    Two cores that share whole files end together only when the last ones are short.
    """
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: (item.path not in slow, "unit" in item.path.parts))


@pytest.fixture(scope="session")
def outside(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, ...]]:
    """Give this process a home and a folder for temporary files of its own; return where nothing may be left."""
    base = tmp_path_factory.mktemp("outside")
    home, temporary = base / "home", base / "tmp"
    with pytest.MonkeyPatch.context() as patch:
        for name, place in (("HOME", home), ("TMPDIR", temporary)):
            place.mkdir()
            patch.setenv(name, str(place))
        patch.setattr(tempfile, "tempdir", None)
        yield home, temporary, ROOT, ROOT / "tests", ROOT / "src", ROOT / "src" / "headway"


_NOT_YET = {
    "adopt",
    "api",
    "checkpoint",
    "config",
    "diagnosis",
    "guide",
    "hook",
    "recipes",
    "start",
    "telemetry",
    "tune",
    "ui",
}
"""Folders of unit tests that were never run whole under the guard: take one out, run it, repair what it finds."""


@pytest.fixture(autouse=True)
def _guard(request: pytest.FixtureRequest, outside: tuple[Path, ...]) -> Iterator[None]:
    """Fail a test that leaves variables, threads, processes or files behind. First of all, so that it ends last."""
    if request.path.parent.name in _NOT_YET:
        yield
        return
    with no_leaks(*outside, own=lambda: request.node.funcargs.get("tmp_path")):
        yield


@pytest.fixture(autouse=True)
def _english(_guard: None) -> None:
    """Begin every test in English, whatever language the one before it has chosen for this process."""
    set_language("en")
