"""The tests compute with what this processor really runs, as ranks do: set before anything imports a framework."""

from __future__ import annotations

import os

import pytest

from headway.machine import find_cpu
from headway.messages import set_language

found = find_cpu()
if found is not None:
    os.environ.update(found.settings)


@pytest.fixture(autouse=True)
def _english() -> None:
    """Begin every test in English, whatever language the one before it has chosen for this process."""
    set_language("en")
