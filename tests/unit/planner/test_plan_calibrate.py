"""Time by what a machine has been seen to do."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from fakes.machines import machine
from headway.config import load_config
from headway.planner import Sighting, expect, fingerprint, look_ahead, make_plan, recall, remember
from headway.planner.recipe_trace import _place
from headway.task import find_recipe


def planned(*words: str):
    base = ["recipe=nanochat", "parallel.cpus=2", "batch.unit=samples"]
    loaded = load_config(None, recipe=find_recipe, overrides=[*base, *words], environ={})
    return loaded, make_plan(loaded, machine(), loaded.recipe)


def seen(micro: int, *, ranks: int = 2, micro_s: float | None = None, fixed_s: float = 0.5, source: str = "probe"):
    seconds = 0.1 + 0.05 * micro if micro_s is None else micro_s
    return Sighting(
        source=source, model="m", world_size=ranks, micro_batch=micro, micro_s=seconds, fixed_s=fixed_s, t=1.0
    )


def test_a_line_through_two_sizes_gives_a_third_and_any_accumulation():
    _, plan = planned("batch.per_device=12", "batch.accumulation=3")
    found = expect([seen(8), seen(16)], plan)
    assert found is not None and found.step_s == pytest.approx(0.5 + 3 * (0.1 + 0.05 * 12))
    assert found.samples_s == pytest.approx(72 / found.step_s) and not found.is_stretched


def test_one_size_alone_is_stretched_in_proportion_and_says_so():
    _, plan = planned("batch.per_device=16")
    found = expect([seen(8, micro_s=1.0, fixed_s=0.0)], plan)
    assert found is not None and found.step_s == pytest.approx(2.0) and found.is_stretched


def test_latency_is_added_once_a_step_and_only_between_ranks():
    _, plan = planned("batch.per_device=8")
    slow, fast = (expect([seen(8)], plan, latency_s=latency) for latency in (0.2, 0.0))
    assert slow is not None and fast is not None and slow.step_s - fast.step_s == pytest.approx(0.2)
    alone = expect([seen(8, ranks=1)], replace(plan, world_size=1), latency_s=0.2)
    assert alone is not None and alone.step_s == pytest.approx(0.5 + 0.5)


def test_communication_of_more_ranks_follows_the_ring():
    _, plan = planned("batch.per_device=8")
    known = [seen(8, ranks=1, fixed_s=0.1), seen(8, ranks=2, fixed_s=0.3)]
    found = expect(known, replace(plan, world_size=4))
    assert found is not None and found.step_s == pytest.approx(0.5 + 0.1 + 0.4 * 3 / 4)


def test_what_was_measured_is_kept_by_machine_and_by_model(tmp_path):
    loaded, plan = planned()
    name = fingerprint(plan, loaded.config, machine())
    remember(replace(seen(8), model=name), machine(), tmp_path)
    (path,) = tmp_path.iterdir()
    path.write_text(path.read_text() + "torn line\n")
    assert [one.micro_batch for one in recall(name, machine(), tmp_path)] == [8]
    assert recall("other", machine(), tmp_path) == []
    assert recall(name, machine(cores=3), tmp_path) == []


def test_another_model_or_arithmetic_is_another_step():
    names = set()
    for words in ((), ("task.depth=3",), ("train.precision=bf16",), ("train.compile=true",), ("parallel.workers=2",)):
        loaded, plan = planned(*words)
        names.add(fingerprint(plan, loaded.config, machine()))
    assert len(names) == 5


def test_other_code_in_a_recipe_of_ones_own_is_another_step(tmp_path):
    names = {}
    for place in ("a/own", "b/own", "c/own"):
        shutil.copytree(Path(__file__).parents[2] / "fakes" / "tiny", tmp_path / place)
    (tmp_path / "b/own/task.py").write_text("# another model\n")
    for place in ("a/own", "b/own", "c/own"):
        loaded = load_config(str(tmp_path / place), recipe=find_recipe, overrides=[], environ={})
        plan = make_plan(loaded, machine(), loaded.recipe)
        names[place[0]] = fingerprint(plan, loaded.config, machine()), _place("own", {}, plan, (1, 2))
    assert names["a"] == names["c"]
    assert names["a"][0] != names["b"][0] and names["a"][1] != names["b"][1]


def test_the_plan_tells_time_by_earlier_runs_and_says_so(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    loaded, plan = planned("batch.per_device=8")
    before, _ = look_ahead(plan, loaded, machine(), loaded.recipe)
    assert "step-time" not in {row.key for row in before.rows}
    name = fingerprint(plan, loaded.config, machine())
    remember(replace(seen(8, source="run"), model=name), machine())
    after, _ = look_ahead(plan, loaded, machine(), loaded.recipe)
    row = next(row for row in after.rows if row.key == "step-time")
    assert row.origin_code == "plan/from-run"
    assert after.forecast is not None and after.forecast["time_source"] == "run"
    assert after.forecast["step_s"] == pytest.approx(1.0)


def test_a_step_that_was_timed_is_expected_to_take_that_long_again():
    _, plan = planned("batch.per_device=8")
    # The other size splits its time otherwise; its half must not replace this one's.
    found = expect([seen(8, micro_s=0.3, fixed_s=0.2), seen(4, micro_s=0.25, fixed_s=0.0)], plan)
    assert found is not None and found.step_s == pytest.approx(0.5)


def test_what_one_rank_has_shown_steadies_the_line_of_two():
    _, plan = planned("batch.per_device=4")
    alone = [seen(8, ranks=1, micro_s=1.0), seen(16, ranks=1, micro_s=2.0)]
    two = [seen(8, micro_s=1.2, fixed_s=0.0), seen(16, micro_s=2.6, fixed_s=0.0)]  # one was disturbed
    without, found = expect(two, plan), expect([*alone, *two], plan)
    truth = 1.25 * 0.5
    assert without is not None and found is not None
    assert abs(found.step_s - truth) < abs(without.step_s - truth)
    # A size that only one rank has tried is told by the factor between them.
    known = expect([*alone, seen(4, ranks=1, micro_s=0.5), *two], plan)
    assert known is not None and known.step_s == pytest.approx(truth)
