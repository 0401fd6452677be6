"""The mutants of `bench/mutants.py`: each is another program, and those of one seed are always the same."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
SOURCE = '''
"""A text is left alone."""
LIMITS = {"a": 1}


def choose(values: list[int], most: int = 3) -> int:
    """So is this one."""
    if len(values) > most and values:
        raise ValueError(f"{len(values) + 1} values")
    values.append(-1)
    return max(values) if values else 0
'''


@pytest.fixture
def make(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "bench"))
    import mutants_make

    yield mutants_make
    sys.modules.pop("mutants_make", None)


@pytest.fixture
def tree(tmp_path):
    place = tmp_path / "src" / "headway" / "launch"
    place.mkdir(parents=True)
    (place / "one.py").write_text(SOURCE)
    return tmp_path


def test_every_mutant_is_another_program_that_python_takes(make, tree):
    found = make.mutants_of(tree, "src/headway/launch/one.py")
    texts = [one.source(tree) for one in found]
    assert None not in texts
    assert len(set(texts)) == len(texts)
    assert SOURCE not in texts
    assert {one.kind for one in found} == {
        "and-or", "branch", "call", "compare", "constant", "left-out", "raise", "return", "sign", "term",
    }  # fmt: skip


def test_tables_texts_and_annotations_are_left_alone(make, tree):
    for one in make.mutants_of(tree, "src/headway/launch/one.py"):
        text = one.source(tree)
        assert 'LIMITS = {"a": 1}' in text
        assert "list[int]" in text
        if one.kind != "raise":
            assert 'f"{len(values) + 1} values"' in text


def test_a_seed_draws_the_same_again_and_another_seed_others(make, tree):
    first, again, other = (make.draw(tree, ["launch"], 5, seed) for seed in (1, 1, 2))
    assert first == again
    assert len(first) == 5
    assert first != other
