"""Compute capability by the name of a generation, for boards without a row of their own and names cut short."""

from __future__ import annotations

import pytest

from headway.machine.cards import gpu_models, series_capability


@pytest.mark.parametrize(
    ("name", "capability"),
    [
        ("GeForce GTX 780", (3, 5)),
        ("GeForce GTX 108...", (6, 1)),
        ("Tesla V100-SXM2...", (7, 0)),
        ("NVIDIA GeForce RTX 2080 ...", (7, 5)),
        ("NVIDIA RTX A200...", (8, 6)),
        ("NVIDIA H20", (9, 0)),
        ("NVIDIA RTX PRO 6000 Blac...", (12, 0)),
        ("NVIDIA GeForce ...", None),
        ("Graphics Device", None),
        (None, None),
    ],
)
def test_a_generation_is_known_by_its_name(name, capability):
    assert series_capability(name) == capability


def test_the_generation_agrees_with_the_table_wherever_both_know():
    rows = [model for model in gpu_models() if model.vendor == "nvidia" and series_capability(model.name)]
    assert len(rows) > 40
    assert {(one.name, series_capability(one.name)) for one in rows} == {
        (one.name, one.compute_capability) for one in rows
    }
