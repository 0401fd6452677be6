"""A pytest plugin of `mutants.py`: which test runs which line of the package, and how long each takes."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import coverage
import pytest

ROOT = Path.cwd()
SEEN = coverage.Coverage(data_file=None, source=[str(ROOT / "src" / "headway")], branch=False, config_file=False)
SECONDS: dict[str, float] = {}
FAILED: list[str] = []


def pytest_configure() -> None:
    """Begin before anything of the package is imported."""
    SEEN.start()


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Note what runs from here on, fixtures included, as of this test."""
    SEEN.switch_context(item.nodeid)
    yield
    SEEN.switch_context("")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Note the time of a test and whether it failed without any change."""
    SECONDS[report.nodeid] = SECONDS.get(report.nodeid, 0.0) + report.duration
    if report.failed:
        FAILED.append(report.nodeid)


def pytest_unconfigure() -> None:
    """Write what was seen, as one file per process."""
    SEEN.stop()
    data = SEEN.get_data()
    lines = {
        str(Path(path).relative_to(ROOT)): {
            number: [one for one in names if one] for number, names in data.contexts_by_lineno(path).items()
        }
        for path in data.measured_files()
    }
    place = Path(os.environ["HEADWAY_MUTANTS"]) / f"{os.getpid()}.json"
    place.write_text(json.dumps({"lines": lines, "seconds": SECONDS, "failed": FAILED}))
