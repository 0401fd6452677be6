"""The search on made-up machines: how near the best point it comes, how few probes it takes, what it says when lost."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.errors import PlanError, TrainError, UsageError
from headway.tune import KEYS, OutOfTime, Probe, Settings, Skip, Space, search

START = Settings(
    micro_batch=8, precision="fp32", activation_checkpoint=False, compile=False, threads=2, workers=0, prefetch=2
)
SPACE = Space(
    values={
        "precision": ("fp32", "bf16"),
        "micro_batch": (1, 2, 4, 8, 16, 32, 64),
        "threads": (1, 2, 4),
        "activation_checkpoint": (False, True),
        "compile": (False, True),
        "workers": (0, 1, 2, 4),
        "prefetch": (2, 4),
    },
    skips=(),
)


def never(_: Settings) -> None:
    return None


class Machine:
    """A machine by formula: a hill over the micro-batch, a wait for data that workers shorten, a wall of memory."""

    def __init__(self, *, hill=32, data=0.0, compiled=1.0, half=1.0, threads=2, wall=10_000):
        self.hill, self.data, self.compiled, self.half, self.threads, self.wall = (
            hill,
            data,
            compiled,
            half,
            threads,
            wall,
        )
        self.tried = []

    def rate(self, one: Settings) -> float:
        distance = abs(one.micro_batch.bit_length() - self.hill.bit_length())
        work = 1.0 * 1.25**distance / (self.half if one.precision == "bf16" else 1.0)
        work /= self.compiled if one.compile else 1.0
        work *= 1.2 ** abs(one.threads.bit_length() - self.threads.bit_length())
        work *= 1.3 if one.activation_checkpoint else 1.0
        return 100 / (work + self.wait(one))

    def wait(self, one: Settings) -> float:
        return self.data / (1 + 2 * one.workers)

    def measure(self, one: Settings, number: int) -> Probe:
        self.tried.append(one)
        if one.micro_batch * (1 if one.activation_checkpoint else 4) > self.wall:
            facts = {"type": "", "text": "no memory"}
            code = "diagnose/host-out-of-memory"
            return Probe(number=number, settings=one, ending="out-of-memory", code=code, facts=facts)
        parts = {"data": self.wait(one), "forward": 100 / self.rate(one) - self.wait(one)}
        return Probe(number=number, settings=one, ending="ok", samples_s=self.rate(one), parts=parts)

    def best(self) -> float:
        points = (
            Settings(**dict(zip(SPACE.values, values, strict=True)))
            for values in itertools.product(*SPACE.values.values())
        )
        fitting = (one for one in points if one.micro_batch * (1 if one.activation_checkpoint else 4) <= self.wall)
        return max(self.rate(one) for one in fitting)


@settings(max_examples=60, deadline=None)
@given(
    hill=st.sampled_from([1, 4, 8, 16, 64]),
    data=st.sampled_from([0.0, 0.1, 1.0]),
    compiled=st.sampled_from([0.7, 1.0, 1.5]),
    half=st.sampled_from([0.6, 1.0, 2.0]),
    threads=st.sampled_from([1, 2, 4]),
)
def test_the_search_comes_near_the_best_of_the_grid_with_few_probes(hill, data, compiled, half, threads):
    there = Machine(hill=hill, data=data, compiled=compiled, half=half, threads=threads)
    found = search(START, SPACE, there.measure, never)
    assert found.best.samples_s >= 0.95 * there.best()
    assert len(found.probes) <= SPACE.grid / 4
    assert len(there.tried) - len(set(there.tried)) in (0, 2, 3, 4), "only the best and its rivals are measured twice"


def test_a_busy_second_does_not_decide_between_the_best_and_its_rivals():
    there = Machine(hill=32, threads=2)
    disturbed = []

    def measure(one: Settings, number: int) -> Probe:
        probe = there.measure(one, number)
        if one.micro_batch == 32 and not disturbed:  # the best point, slowed down once
            disturbed.append(one)
            return replace(probe, samples_s=0.9 * there.rate(replace(one, micro_batch=16)))
        return probe

    found = search(replace(START, micro_batch=16), SPACE, measure, never)
    assert disturbed and found.best.settings.micro_batch == 32
    assert found.best.samples_s == there.best()


def test_recomputation_is_tried_only_when_memory_is_the_wall():
    free = Machine(hill=8)
    search(START, SPACE, free.measure, never)
    assert not any(one.activation_checkpoint for one in free.tried)
    walled = Machine(hill=64, wall=64)
    found = search(START, SPACE, walled.measure, never)
    assert any(one.activation_checkpoint for one in walled.tried)
    assert found.best.settings.micro_batch == 64


def test_a_start_that_has_no_memory_is_shrunk_until_it_runs():
    found = search(replace(START, micro_batch=64), SPACE, Machine(hill=64, wall=16).measure, never)
    assert found.start.ending == "out-of-memory" and found.gain is None
    assert found.best.is_ok


def test_what_the_forecast_rules_out_costs_no_probe():
    there = Machine(hill=64)

    def rule_out(one: Settings) -> Skip | None:
        facts = {"used": "9 GiB", "have": "8 GiB"}
        is_large = one.micro_batch > 16
        return (
            Skip(axis="micro_batch", value=one.micro_batch, code="tune/skip-too-large", facts=facts)
            if is_large
            else None
        )

    found = search(START, SPACE, there.measure, rule_out)
    assert max(one.micro_batch for one in there.tried) == 16
    assert {skip.value for skip in found.skips if skip.code == "tune/skip-too-large"} >= {32}


def test_nothing_fits_is_refused_with_every_probe_and_exit_code_4():
    with pytest.raises(PlanError) as refused:
        search(START, SPACE, Machine(wall=0).measure, never)
    assert refused.value.code == "tune/nothing-fits" and refused.value.exit_code == 4
    assert "batch.per_device=1 " in refused.value.text() and "no memory" in refused.value.text()


def test_nothing_runs_is_refused_with_the_reason():
    def broken(one: Settings, number: int) -> Probe:
        facts = {"type": "KeyError", "text": "'ids'"}
        return Probe(number=number, settings=one, ending="failed", code="diagnose/python-exception", facts=facts)

    with pytest.raises(TrainError) as refused:
        search(replace(START, compile=True, workers=2), SPACE, broken, never)
    assert "KeyError" in refused.value.text()


def test_a_compiler_that_fails_is_left_out_of_the_footing():
    there = Machine()

    def measure(one: Settings, number: int) -> Probe:
        if one.compile:
            facts = {"type": "E", "text": "no"}
            return Probe(number=number, settings=one, ending="failed", code="diagnose/python-exception", facts=facts)
        return there.measure(one, number)

    found = search(replace(START, compile=True), SPACE, measure, never)
    assert found.best.is_ok and not found.best.settings.compile


def test_the_end_of_the_budget_keeps_the_best_so_far():
    there = Machine(hill=64)

    def measure(one: Settings, number: int) -> Probe:
        if number > 4:
            raise OutOfTime
        return there.measure(one, number)

    found = search(START, SPACE, measure, never)
    assert found.is_cut and len(found.probes) == 4
    assert found.best.samples_s == max(probe.samples_s for probe in found.probes)


def test_a_budget_without_a_single_probe_says_so():
    def measure(one: Settings, number: int) -> Probe:
        raise OutOfTime

    with pytest.raises(UsageError) as refused:
        search(START, SPACE, measure, never)
    assert refused.value.code == "tune/budget-too-short"


def test_every_axis_is_searched():
    assert set(KEYS) == {*SPACE.values}


def test_a_start_that_never_ends_is_left_by_a_recipes_own_key():
    start = replace(START, own=(("task.graph_mode", True),))
    space = Space(values={**dict.fromkeys(KEYS), "task.graph_mode": (True, False)}, skips=())
    space = replace(space, values={axis: space.values[axis] or (start.value(axis),) for axis in start.axes()})

    def measure(settings, number):
        is_graph = settings.value("task.graph_mode")
        ending = {"ending": "too-slow", "code": "tune/probe-late", "facts": {"took": "1 s"}}
        return Probe(number=number, settings=settings, **(ending if is_graph else {"ending": "ok", "samples_s": 2.0}))

    found = search(start, space, measure, never)
    assert found.best.settings.words(start) == "task.graph_mode=false" and found.gain is None
