"""Which devices the suite runs on: CUDA cards, or with HEADWAY_SUITE_ON=cpu CPU ranks, which prove its logic."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "e2e"))
ON_CPU = os.environ.get("HEADWAY_SUITE_ON") == "cpu"
CARDS = 0 if ON_CPU else torch.cuda.device_count()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip, loudly, what has no card."""
    mine = [item for item in items if Path(__file__).parent in item.path.parents]
    short = 0
    for item in mine:
        marker = item.get_closest_marker("gpu")
        need = marker.args[0] if marker is not None and marker.args else 1
        if not ON_CPU and need > CARDS:
            short += 1
            item.add_marker(pytest.mark.skip(reason=f"NOT TESTED ON A GPU: needs {need} CUDA device(s), {CARDS} here"))
    if short:
        text = f"{short} of {len(mine)} GPU tests are skipped: {CARDS} CUDA device(s) here (HEADWAY_SUITE_ON=cpu: CPU)"
        print(text, file=sys.stderr)


def devices(number: int) -> str:
    """Return the words that choose so many ranks."""
    return f"parallel.cpus={number}" if ON_CPU else f"parallel.gpus={number}"
