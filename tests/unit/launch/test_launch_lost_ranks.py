"""Ranks that are lost: which are, how the batch is dealt out over the others, and when they are tried again."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from types import SimpleNamespace

import pytest

from fakes.engine_run import make_job
from headway.diagnosis import Diagnosis
from headway.errors import UsageError
from headway.launch.job import read_job, write_job
from headway.launch.lost_ranks import DeviceProbe, LostRanks, alive, ask_back, wish_file, with_all, without, write_ranks
from headway.launch.shrink import shrink
from headway.telemetry import RunDir


@pytest.fixture
def run(tmp_path) -> RunDir:
    run = make_job(tmp_path, "batch.per_device=4", "batch.accumulation=2", "parallel.cpus=4")
    stored = json.loads(run.job.read_text())
    launch = {"world_size": 4, "threads": 1, "devices": [], "restarts": 3, "grace_s": 30, "on_hang": "wait"}
    run.job.write_text(json.dumps({**stored, "task": "tiny.task", "launch": {**launch, "hang_s": 10}}))
    return run


def on_gpus(job):
    plan = {**job.program.plan, "device": "cuda", "gpus": [4, 5, 6, 7], "gpu_uuids": [f"GPU-{n}" for n in "abcd"]}
    return replace(job, devices=("4", "5", "6", "7"), program=replace(job.program, plan=plan))


def scene(rank, kind, step, *, text="", stop=None, hang=None):
    found = Diagnosis(kind=kind, code="diagnose/killed", facts={"text": text}, is_transient=True)
    incident = SimpleNamespace(rank=rank, diagnosis=found)
    what = SimpleNamespace(reach=SimpleNamespace(steps=step), stop=stop, attempt=SimpleNamespace(hang=hang))
    return what, SimpleNamespace(incident=incident)


def beats(attempt, step, num):
    return [SimpleNamespace(attempt=attempt, step=step) for _ in range(num)]


def test_the_batch_stays_and_what_is_left_takes_it_unevenly(run):
    job = read_job(run)
    fewer = without(job, [2])
    write_ranks(run, fewer)
    plan = json.loads(run.plan.read_text())
    assert (plan["world_size"], plan["micro_batch"], plan["accumulation"], plan["batch_samples"]) == (3, 4, 3, 32)
    assert read_job(run) == fewer.job and fewer.job.world_size == 3 and alive(fewer.job) == [0, 1, 3]
    assert {name: fewer.facts[name] for name in ("lost", "before", "after", "least", "most")} == {
        "lost": "2",
        "before": 4,
        "after": 3,
        "least": 2,
        "most": 3,
    }
    rows = {row["key"]: row for row in plan["rows"]}
    assert rows["ranks"]["value"] == "3" and rows["ranks"]["origin"] == "rank 2 was lost"
    everyone = with_all(fewer.job).job
    assert everyone.world_size == 4 and everyone.program.lost is None
    assert everyone.program.plan["accumulation"] == 2 and with_all(everyone) is None


def test_further_losses_add_up_and_one_rank_alone_is_no_group(run):
    two = without(without(read_job(run), [0]).job, [3]).job
    assert alive(two) == [1, 2] and two.program.plan["accumulation"] == 4
    one = without(two, [1]).job
    assert one.program.plan["strategy"] == "single" and one.program.plan["accumulation"] == 8
    assert without(one, [2]) is None
    assert with_all(one).job.program.plan["strategy"] == "ddp"


def test_gpus_are_named_so_that_their_numbers_may_change(run):
    job = on_gpus(read_job(run))
    fewer = without(job, [1]).job
    assert fewer.devices == ("GPU-a", "GPU-c", "GPU-d") and fewer.program.plan["gpus"] == [4, 6, 7]
    assert with_all(fewer).job == replace(
        job, program=replace(job.program, plan=with_all(fewer).job.program.plan, lost=None)
    )


def test_a_micro_batch_that_shrinks_meanwhile_still_divides_when_all_are_back(run):
    fewer = without(read_job(run), [2]).job
    smaller = shrink(fewer, "host-out-of-memory", attempt=1).job
    plan = smaller.program.plan
    assert (plan["micro_batch"], plan["accumulation"], plan["batch_samples"]) == (2, 6, 32)
    assert with_all(smaller).job.program.plan["accumulation"] == 4


def test_a_rank_is_lost_when_it_fails_again_at_once(run):
    lost = LostRanks(run, read_job(run))
    assert lost.hear(*scene(1, "killed", 10)) is None
    assert lost.hear(*scene(1, "killed", 10)) is None
    assert lost.hear(*scene(1, "killed", 10)).facts["lost"] == "1"


def test_a_crash_that_moves_to_the_next_rank_is_not_a_lost_rank(run):
    lost = LostRanks(run, read_job(run))
    fewer = [lost.hear(*scene(0, "crashed", 0)) for _ in range(3)][-1]
    lost.take(fewer.job)
    assert all(lost.hear(*scene(0, "crashed", 0)) is None for _ in range(5))


@pytest.mark.parametrize(
    "ends",
    [
        [(1, "killed", 10), (2, "killed", 10), (1, "killed", 10), (2, "killed", 10)],
        [(1, "killed", 10), (1, "killed", 11), (1, "killed", 12), (1, "killed", 13)],
        [(1, "python-exception", 10)] * 5,
        [(1, "host-oom-kill", 10)] * 5,
        [(None, "nursery-died", 10)] * 5,
    ],
)
def test_other_failures_are_not_a_lost_rank(run, ends):
    lost = LostRanks(run, read_job(run))
    assert all(lost.hear(*scene(*end)) is None for end in ends)


def test_nothing_is_lost_where_that_is_not_wanted(run):
    stored = json.loads(run.job.read_text())
    stored["config"]["launch"]["on_lost"] = "stop"
    run.job.write_text(json.dumps(stored))
    lost = LostRanks(run, read_job(run))
    assert all(lost.hear(*scene(1, "killed", 0)) is None for _ in range(5))


def test_a_gpu_that_is_out_of_order_is_lost_at_once(run, monkeypatch):
    job = on_gpus(read_job(run))
    monkeypatch.setattr(DeviceProbe, "wait", lambda self: frozenset({"GPU-a", "GPU-b", "GPU-c", "GPU-d"}))
    lost = LostRanks(run, job)
    broken = scene(2, "device-error", 10, text="CUDA error: uncorrectable ECC error encountered")
    assert lost.hear(*broken).job.devices == ("GPU-a", "GPU-b", "GPU-d")
    assert LostRanks(run, job).hear(*scene(2, "device-error", 10, text="an illegal memory access")) is None
    # One that the driver no longer shows, whoever was the first to fail by it.
    monkeypatch.setattr(DeviceProbe, "wait", lambda self: frozenset({"GPU-a", "GPU-c", "GPU-d"}))
    assert LostRanks(run, job).hear(*scene(2, "no-gpu", 10)).facts["lost"] == "1"
    monkeypatch.setattr(DeviceProbe, "wait", lambda self: frozenset())
    assert LostRanks(run, job).hear(*scene(2, "no-gpu", 10)) is None


def test_lost_ranks_are_tried_again_after_a_while_and_then_after_twice_as_long(run, monkeypatch):
    now = [100.0]
    monkeypatch.setattr("headway.launch.lost_ranks.time.monotonic", lambda: now[0])
    job = read_job(run)
    lost = LostRanks(run, job)
    lost.take(without(job, [2]).job)
    now[0] += 61
    assert not lost.is_time(beats(4, 10, 3)), "no step yet"
    assert lost.is_time(beats(4, 13, 3))
    lost.take(job)
    fewer = lost.hear(*scene(2, "killed", 0))
    assert fewer is not None, "at once: it has just been tried"
    lost.take(fewer.job)
    now[0] += 61
    assert not lost.is_time(beats(6, 20, 3)) and not lost.is_time(beats(6, 30, 3))
    now[0] += 60
    assert lost.is_time(beats(6, 31, 3))


def test_a_gpu_is_only_tried_when_the_driver_shows_it(run, monkeypatch):
    job = on_gpus(read_job(run))
    lost = LostRanks(run, job)
    lost.take(without(job, [1]).job)
    wish_file(run).touch()
    seen = [None, frozenset({"GPU-a"}), None, frozenset({"GPU-a", "GPU-b"})]
    monkeypatch.setattr(DeviceProbe, "poll", lambda self: seen.pop(0))
    assert not lost.is_time(beats(2, 1, 3))
    assert not lost.is_time(beats(2, 5, 3)) and not lost.is_time(beats(2, 5, 3))
    assert not wish_file(run).exists(), "answered"
    wish_file(run).touch()
    assert not lost.is_time(beats(2, 6, 3)) and lost.is_time(beats(2, 6, 3))


def test_who_asks_for_ranks_that_are_not_lost_is_told(run):
    with pytest.raises(UsageError) as refused:
        ask_back(run)
    assert refused.value.code == "launch/nothing-lost"
    write_job(run, without(read_job(run), [1]).job)
    assert ask_back(run) == "1" and wish_file(run).exists()


@pytest.mark.parametrize(
    ("program", "seen"),
    [("print('GPU-1\\nMIG-2\\nrubbish')", {"GPU-1", "MIG-2"}), ("raise SystemExit(9)", set())],
)
def test_the_driver_is_asked_in_a_process_of_its_own(program, seen):
    assert DeviceProbe([sys.executable, "-c", program]).wait() == seen


def test_a_driver_that_hangs_or_is_not_there_says_nothing(monkeypatch):
    monkeypatch.setattr("headway.launch.lost_ranks._PROBE_S", 0.1)
    assert DeviceProbe(["sleep", "60"]).wait() == set()
    assert DeviceProbe(["/no/such/program"]).wait() == set()
