"""Real probes in processes of their own: they are timed, they run out of memory, they die, and the search continues."""

from __future__ import annotations

import contextlib
import json
import os
import signal
from dataclasses import replace

import pytest

from fakes.engine_run import TINY
from headway.config import load_config
from headway.errors import PlanError
from headway.launch import start_nursery
from headway.machine import inspect_machine
from headway.planner import expect, fingerprint, make_plan, recall
from headway.task import find_recipe
from headway.tune import ENTRY, Effort, Probe, Prober, Question, probe_plan, settings_of, tune

pytestmark = pytest.mark.slow

QUICK = Effort(warmup=1, least=1, most=2, seconds=0.05, limit_s=120.0)


class Silent:
    def begin(self, settings, number):
        pass

    def begin_rates(self):
        self.has_rates = True

    def tick(self):
        pass

    def end(self, probe):
        pass


def question(place, *words: str, limit_bytes: int | None = None, text: str = "{}") -> Question:
    (place / "run.yaml").write_text(text)
    loaded = load_config(
        place / "run.yaml",
        recipe=find_recipe,
        overrides=[f"recipe={TINY}", f"out={place}", "parallel.cpus=1", "parallel.threads=1", *words],
    )
    machine = inspect_machine(place, config=loaded.config)
    plan = make_plan(loaded, machine, loaded.recipe)
    return Question(
        loaded=loaded, machine=machine, plan=plan, place=place, budget_s=250.0, effort=QUICK, limit_bytes=limit_bytes
    )


def nursery():
    return start_nursery(None, ["headway.engine.probe"], ENTRY)


def prober(asked: Question, **more) -> Prober:
    facts = {"place": asked.place, "loaded": asked.loaded, "machine": asked.machine, "plan": asked.plan}
    return Prober(**facts, start_nursery=nursery, effort=QUICK, **more)


KEPT = ("train.compile=false", "parallel.workers=0", "parallel.prefetch=2")


@pytest.mark.alone  # a search that measures speed
def test_a_search_survives_probes_that_run_out_of_memory(tmp_path):
    # 128 units of 65 644 samples are 32 MiB a tensor; a rank that may take 150 MiB holds a quarter of the batch.
    # 65 644 has few divisors, so the search is short.
    text = "batch: {per_device: 65644, total: 65644}\nema: {decay: 0.9}\n"
    asked = question(
        tmp_path, *KEPT, "task.width=128", "train.activation_checkpoint=false", limit_bytes=150 << 20, text=text
    )
    found, _ = tune(asked, start_nursery=nursery, watcher=Silent())
    endings = {probe.settings.micro_batch: probe.ending for probe in found.probes}
    assert endings[65644] == "out-of-memory"
    assert found.best.is_ok and found.best.settings.micro_batch < 65644 and found.best.samples_s > 0
    lines = [json.loads(line) for line in (tmp_path / "tune.jsonl").read_text().splitlines()]
    assert [line["number"] for line in lines] == list(range(1, len(lines) + 1))
    assert {line["ending"] for line in lines} >= {"ok", "out-of-memory"}
    assert json.loads((tmp_path / "tune.json").read_text())["schema"] == "tune/1"


def test_a_search_that_fits_nowhere_says_so_with_every_reason(tmp_path):
    text = "batch: {per_device: 65536, total: 131072}\n"
    asked = question(
        tmp_path,
        *KEPT,
        "task.width=128",
        "batch.per_device=65536",
        "train.activation_checkpoint=false",
        text=text,
        limit_bytes=80 << 20,
    )
    with pytest.raises(PlanError) as refused:
        tune(asked, start_nursery=nursery, watcher=Silent())
    assert refused.value.code == "tune/nothing-fits"
    assert "batch.per_device=65536" in refused.value.text()


def test_a_rank_that_is_killed_is_a_result_and_the_next_probe_runs(tmp_path):
    asked = question(tmp_path, *KEPT, "task.sleep_s=0.2")
    killed = []

    def kill() -> None:
        events = tmp_path / "probes" / "001" / "events.jsonl"
        for line in events.read_text().splitlines() if events.exists() and not killed else []:
            with contextlib.suppress(ProcessLookupError):
                for pid in json.loads(line).get("pids", ()):
                    os.kill(pid, signal.SIGKILL)
                    killed.append(pid)

    there = prober(asked, tick=kill)
    settings = settings_of(asked.plan, asked.loaded.config)
    try:
        first, second = there.measure(settings, 1), there.measure(settings, 2)
    finally:
        there.close()
    assert killed and first.ending == "failed" and first.code == "diagnose/killed"
    assert second.is_ok and second.step_s is not None and second.step_s > 0.2
    assert second.parts["forward"] > 0.2


def test_a_probe_that_never_ends_is_ended(tmp_path):
    asked = question(tmp_path, *KEPT, "task.sleep_s=60")
    there = prober(asked)
    try:
        late = there.measure(settings_of(asked.plan, asked.loaded.config), 1, limit_s=4.0)
    finally:
        there.close()
    assert late.ending == "too-slow" and late.code == "tune/probe-late"


def test_two_ranks_are_probed_with_more_than_one_micro_batch(tmp_path):
    asked = question(tmp_path, *KEPT, "parallel.cpus=2", "batch.accumulation=3", "task.sleep_s=0.05")
    there = prober(asked)
    try:
        found = there.measure(settings_of(asked.plan, asked.loaded.config), 1)
    finally:
        there.close()
    assert found.is_ok and found.first_s is not None and found.more_s is not None
    assert found.step_s == pytest.approx(found.first_s + 2 * found.more_s)
    assert found.samples_s == pytest.approx(24 / found.step_s)


def test_the_range_test_gives_a_curve(tmp_path):
    asked = question(tmp_path, *KEPT)
    there = prober(asked)
    try:
        curve = there.sweep(settings_of(asked.plan, asked.loaded.config), 1, {"low": 0.01, "high": 10.0, "steps": 12})
    finally:
        there.close()
    assert isinstance(curve, list) and len(curve) >= 8
    assert curve[0][0] == pytest.approx(0.01)


def test_a_range_test_finds_where_the_loss_falls(tmp_path):
    fixed = ("train.activation_checkpoint=false", "train.precision=fp32", "batch.per_device=16", "batch.total=16")
    asked = question(tmp_path, *KEPT, *fixed)
    watcher = Silent()
    found, advice = tune(asked, start_nursery=nursery, watcher=watcher, has_rates=True)
    assert watcher.has_rates and found.best.is_ok
    line = json.loads((tmp_path / "tune.jsonl").read_text().splitlines()[-1])
    factors = [factor for factor, _ in line["lr_range"]]
    assert factors == sorted(factors) and factors[0] == pytest.approx(1e-3)
    # A two-layer network learns from 1e-5 on and breaks before 1.0, whatever the luck of its batches.
    assert advice is None or 1e-3 <= advice.factor <= 100


def test_a_range_test_that_dies_is_told_as_such(tmp_path):
    asked = question(tmp_path, *KEPT, "task.fail_step=12", "task.fail_rank=0", "batch.per_device=4", "batch.total=4")
    asked = replace(asked, effort=replace(QUICK, most=1))
    found, advice = tune(asked, start_nursery=nursery, watcher=Silent(), has_rates=True)
    assert found.best.is_ok
    assert isinstance(advice, Probe) and advice.ending == "failed" and advice.code


def test_a_plan_is_probed_as_configured_first_and_expected_to_take_as_long_again(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    asked = question(tmp_path, *KEPT, text="batch: {per_device: 8, total: 16}\n")
    probes = probe_plan(asked, start_nursery=nursery, watcher=Silent())
    assert [probe.settings.micro_batch for probe in probes] == [8, 4]
    config = asked.loaded.config
    seen = expect(recall(fingerprint(asked.plan, config, asked.machine), asked.machine), asked.plan)
    assert seen is not None and seen.source == "probe" and not seen.is_stretched
    assert seen.step_s == pytest.approx(max(probes[0].step_s, 2 * probes[0].more_s))
