"""One road for `train` and `run`: GPUs are claimed, the line's own environment decides, and ours is left alone."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from fakes.engine_run import TINY
from fakes.machines import FakeGpuDriver, four_4090, machine, reading
from headway.adopt import read_line
from headway.errors import CheckError
from headway.launch import Claims
from headway.machine import Framework, count_visible, inspect_for_line, judge_machine
from headway.machine.judge import judge_line
from headway.start import decide as deciding
from headway.start import decide_line as line_deciding
from headway.start.decide import decide
from headway.start.decide_line import LineWish, decide_line
from headway.start.detach import Orders
from headway.start.devices import claim_one
from headway.start.source import load_words
from headway.start.write import write_run


class Screen:
    def tell(self, text):
        pass

    def machine(self, report):
        self.report = report

    def plan(self, loaded, plan):
        pass


@pytest.fixture
def four(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    here = machine(four_4090())
    monkeypatch.setattr(
        deciding, "inspect_machine", lambda *_, config: replace(here, findings=judge_machine(here, config))
    )
    return tmp_path / "claims"


def take(folder: Path, name: str, *words: str):
    claims = Claims(name, folder)
    decision = decide(load_words([TINY, *words]), Screen(), claims, trace=False)
    assert decision.plan is not None
    return decision, claims


def test_two_trainings_never_take_the_same_gpu(four):
    first, _ = take(four, "first", "parallel.gpus=2")
    second, other = take(four, "second", "parallel.gpus=2")
    assert (first.plan.gpus, second.plan.gpus) == ((0, 1), (2, 3))
    screen = Screen()
    with pytest.raises(CheckError) as refused:
        decide(load_words([TINY, "parallel.gpus=1"]), screen, Claims("third", four), trace=False)
    assert refused.value.exit_code == 3
    (stop,) = (one for one in screen.report.findings if one.level == "stop")
    assert stop.code == "machine/gpus-taken" and "first" in stop.facts["holders"] and "second" in stop.facts["holders"]
    other.release()
    assert take(four, "fourth", "parallel.gpus=auto")[0].plan.gpus == (2, 3)


def test_a_gpu_that_is_named_and_claimed_is_refused_by_name(four):
    take(four, "first", "parallel.gpus=[1]")
    with pytest.raises(CheckError) as refused:
        take(four, "second", "parallel.gpus=[1]")
    assert refused.value.code == "run/gpu-claimed" and "first" in refused.value.facts["holder"]


def test_one_that_was_faster_by_a_moment_is_planned_around(four, monkeypatch):
    monkeypatch.setattr(deciding, "mark_claimed", lambda report, claims: report)  # the claim comes after the look
    take(four, "first", "parallel.gpus=1")
    decision, _ = take(four, "second", "parallel.gpus=1")
    assert decision.plan.gpus == (1,)


def test_a_dry_run_claims_nothing(four):
    decide(load_words([TINY, "parallel.gpus=4"]), Screen(), Claims("dry", four), is_dry=True, trace=False)
    assert not four.exists()


@pytest.mark.parametrize(
    ("value", "num"),
    [(None, 4), ("0,-1,1", 1), ("2,3", 2), ("", 0), ("1gpu,2x", 2), ("MIG-a,MIG-b", 2), ("MIG-a,MIG-a", 0)],
)
def test_devices_in_sight_are_counted_as_torch_counts_them(value, num):
    assert count_visible(four_4090(), value) == num


def test_the_lines_own_variables_decide_and_our_environment_is_left_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(line_deciding, "read_gpus", four_4090)
    before = dict(os.environ)
    line = "CUDA_VISIBLE_DEVICES=0,-1,1 TOKEN_X=hidden torchrun --nproc_per_node=gpu train.py"
    job = decide_line(read_line((line,)), LineWish(out=tmp_path), Claims("x", tmp_path), print).job
    assert job.world_size == 1 and dict(os.environ) == before
    assert job.environment["TOKEN_X"] == "hidden" and "hidden" not in json.dumps(job.to_json())


def test_a_look_that_takes_too_long_delays_nothing_and_is_written_when_it_comes(tmp_path, monkeypatch):
    asked = threading.Event()

    def look(*_):
        asked.wait(30)
        return machine()

    monkeypatch.setattr(line_deciding, "inspect_for_line", look)
    began = time.monotonic()
    decision = decide_line(read_line(("python", "x.py")), LineWish(out=tmp_path), Claims("x", tmp_path), print)
    assert decision.machine is None and time.monotonic() - began < 5
    run, _ = write_run(decision)
    assert not run.machine.exists()
    asked.set()
    decision.late.result(30)
    deadline = time.monotonic() + 30
    while not run.machine.exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_what_a_supervisor_in_the_background_is_told_reads_back(tmp_path):
    read = read_line(("SECRET=a\udcffb", "python", "x.py", "--api-key=hidden"))
    job = decide_line(read, LineWish(out=tmp_path), Claims("x", tmp_path), print).job
    orders = Orders.of(job, Claims("x", tmp_path), when_free=2)
    with orders.handed_over() as fd:
        again = Orders.read(os.dup(fd))
    assert again == orders and again.environment["SECRET"] == "a\udcffb"
    stored = type(job).from_json(json.loads(json.dumps(job.to_json())))
    assert stored.foreign.argv != job.foreign.argv and again.apply(stored).foreign.argv == job.foreign.argv


def test_a_line_is_warned_and_never_refused(tmp_path):
    bare = replace(machine(), framework=Framework(python="/p", python_version="3.11.0"), out_writable=False)
    assert {one.level for one in judge_machine(bare)} >= {"stop"}
    found = judge_line(bare)
    assert [one.code for one in found if one.level == "warn"] == ["machine/out-not-writable"]
    assert all(one.level != "stop" for one in found)
    report = inspect_for_line(tmp_path, None, {}, driver=FakeGpuDriver(reading(())))
    assert report.framework.torch is None and all(one.level != "stop" for one in report.findings)


def test_a_wrapper_in_place_of_the_interpreter_is_run_once_and_never_asked(tmp_path, monkeypatch):
    (tmp_path / "python").write_text("#!/bin/sh\ndate\n")
    (tmp_path / "python").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    read = read_line(["python", "x.py"])
    assert read.is_native and line_deciding.find_interpreter(read, os.environ) is None
    own = read_line([os.path.realpath(sys.executable), "x.py"])
    assert line_deciding.find_interpreter(own, os.environ) == os.path.realpath(sys.executable)
    assert line_deciding.find_interpreter(read_line(["env", "-u", "X", "python", "x.py"]), os.environ) is None


def test_a_process_of_its_own_gets_a_free_gpu_that_nobody_else_takes(tmp_path, monkeypatch):
    driver = FakeGpuDriver(reading(four_4090()))
    first, second = Claims("first", tmp_path), Claims("second", tmp_path)
    try:
        shown, holders = claim_one(first, environ={"CUDA_VISIBLE_DEVICES": "2"}, driver=driver)
        assert (shown["CUDA_VISIBLE_DEVICES"], holders) == ("2", "")
        shown, holders = claim_one(second, environ={"CUDA_VISIBLE_DEVICES": "2"}, driver=driver)
        assert shown["CUDA_VISIBLE_DEVICES"] == "" and "first" in holders
        assert claim_one(second, environ={}, driver=driver)[0]["CUDA_VISIBLE_DEVICES"] == "0"
        assert claim_one(second, environ={"CUDA_VISIBLE_DEVICES": "MIG-a"}, driver=driver) == ({}, "")
    finally:
        first.release()
        second.release()
    assert claim_one(Claims("none", tmp_path), environ={}, driver=FakeGpuDriver(None)) == ({}, "")
