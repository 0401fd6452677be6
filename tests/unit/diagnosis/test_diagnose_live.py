"""Findings while a run trains: none in healthy noise, every planted fault by name, in both languages."""

from __future__ import annotations

import json
import re

import pytest

from fakes.noisy_runs import FAULTS, Made
from headway.config import RunConfig
from headway.diagnosis.live import LiveFindings
from headway.diagnosis.live_scene import Targets, read_targets
from headway.telemetry import MetricsWriter, RunDir
from headway.ui.findings import finding_command, finding_hint, finding_text

STEPS = 3000


@pytest.mark.parametrize("seed", (102,))
def test_ten_thousand_noisy_healthy_steps_raise_no_alarm(seed):
    run = Made(seed=seed)
    run.play()
    assert run.codes() == set()


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_found_with_cost_and_cure_in_both_languages(fault):
    run = Made(seed=7, steps=STEPS, fault=fault)
    events = run.play()
    (first, *_) = [one for one in events if one["kind"] == "finding" and one["code"] in FAULTS[fault]]
    assert first["ignored_s"] >= 0
    texts = {lang: finding_text(first, lang) for lang in ("en", "zh")}
    assert texts["en"] != texts["zh"] and "{" not in texts["en"] + texts["zh"]
    assert finding_hint(first, "en") or first["code"] == "live/data-starved-cores"
    assert all(re.match(r"(\S+/)?(headway|kill|nvidia-smi) ", line) for line in finding_command(first).splitlines())
    overs = [one for one in events if one["kind"] == "finding_over" and one["code"] == first["code"]]
    assert overs and all(one["cost_s"] >= 0 for one in overs)


def test_the_number_of_workers_is_what_the_measured_wait_asks_for():
    found = [one for one in Made(seed=3, steps=STEPS, fault="starved").play() if "data-starved" in one["code"]]
    wanted = int(found[0]["facts"]["wanted"])
    assert found[0]["cure"] == f"parallel.workers={wanted}" and wanted > int(found[0]["facts"]["now"])


def test_the_targets_of_the_config_are_those_of_the_finders():
    watch = RunConfig().watch.model_dump()
    assert watch == {name: getattr(Targets(), name) for name in watch}
    assert read_targets({"watch": {"gpu_busy": 0.5, "unknown": 1, "temp_c": "hot"}}) == Targets(gpu_busy=0.5)


def test_a_run_directory_is_followed_and_what_is_broken_in_it_ends_nothing(tmp_path):
    run = RunDir(tmp_path)
    run.job.write_text(json.dumps({"config": {"watch": "?"}, "plan": {"world_size": "many", "gpus": 3}}))
    run.events.write_text('{"kind":"attempt_started","attempt":1,"t":1.0}\n{"kind":"validation","measures":7}\n[]\n')
    metrics = MetricsWriter(run.metrics(0), 1)
    for step in range(1, 60):
        metrics.add(step, step, 1.0, 0.1, 1.0, 100.0 + step, 1.0, data=0.5, forward=0.4)
    metrics.close()
    with run.metrics(0).open("ab") as file:
        file.write(b'{"a":1,"step":"x"}\n{"a":1,"step":60,"loss":"NaN"}\n{"a":1,')
    findings = LiveFindings(run, {"cores": 4, "gpus": None, "mem": "?"})
    events = findings.take({"t": 1.0, "host": None, "ranks": None, "gpus": None}, ())
    events += findings.close()
    assert {one["code"] for one in events} >= {"live/loss-nan"}
    assert all(one["kind"] in ("finding", "finding_over", "warning") for one in events)
