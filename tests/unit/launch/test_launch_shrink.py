"""Out of memory: which micro-batch is tried next, and what is written down."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from fakes.engine_run import make_job
from headway.launch.job import read_job, write_job
from headway.launch.shrink import shrink, smaller_micro_batch, write_smaller


@pytest.mark.parametrize(
    ("micro_batch", "accumulation", "smaller"),
    [(8, 1, 4), (4, 3, 3), (12, 1, 6), (6, 2, 4), (7, 1, 1), (7, 8, 4), (2, 1, 1), (1, 5, None), (1, 1, None)],
)
def test_the_next_micro_batch_divides_the_share_and_is_clearly_smaller(micro_batch, accumulation, smaller):
    assert smaller_micro_batch(micro_batch, accumulation) == smaller
    if smaller:
        assert micro_batch * accumulation % smaller == 0 and smaller <= 0.75 * micro_batch


@pytest.fixture
def job(tmp_path):
    run = make_job(tmp_path, "batch.per_device=8", "batch.accumulation=2")
    stored = json.loads(run.job.read_text())
    launch = {
        "world_size": 2,
        "threads": 1,
        "devices": [],
        "restarts": 3,
        "grace_s": 30,
        "on_hang": "wait",
        "hang_s": 10,
    }
    run.job.write_text(json.dumps({**stored, "task": "tiny.task", "launch": launch}))
    return run


def test_the_total_stays_and_every_reader_finds_the_new_numbers(job):
    before = read_job(job)
    found = shrink(before, "device-out-of-memory", attempt=3)
    assert found is not None
    write_smaller(job, found)
    stored, plan = json.loads(job.job.read_text()), json.loads(job.plan.read_text())
    assert (plan["micro_batch"], plan["accumulation"]) == (4, 4) and stored["plan"] == plan
    assert plan["batch_samples"] == before.program.plan["batch_samples"]
    assert stored["shrunk"] == {"attempt": 4, "before": 8, "is_agreed": False}
    rows = {row["key"]: row for row in plan["rows"]}
    assert rows["batch-per-device"]["value"] == "4" and rows["batch-accumulation"]["value"] == "4"
    assert rows["batch-per-device"]["origin"] == "8 samples per device ran out of memory"
    assert read_job(job) == found.job
    # And once more, from there.
    again = shrink(read_job(job), "device-out-of-memory", attempt=4)
    assert again.facts == {"before": 4, "after": 2, "accumulation": 8, "batch": plan["batch_samples"]}


@pytest.mark.parametrize(
    ("device", "kind", "is_shrunk"),
    [
        ("cuda", "device-out-of-memory", True),
        ("cuda", "host-out-of-memory", False),
        ("cuda", "host-oom-kill", False),
        ("cpu", "host-out-of-memory", True),
        ("cpu", "host-oom-kill", True),
        ("cpu", "python-exception", False),
    ],
)
def test_only_memory_that_the_batch_takes_is_saved_by_a_smaller_one(job, device, kind, is_shrunk):
    known = read_job(job)
    training = replace(known.program, plan={**known.program.plan, "device": device})
    assert (shrink(replace(known, program=training), kind, attempt=1) is not None) == is_shrunk


@pytest.mark.parametrize(("wish", "is_agreed"), [("stop", None), ("always", True), ("shrink", False), (None, False)])
def test_the_user_decides(job, wish, is_agreed):
    known = read_job(job)
    launch = {name: value for name, value in known.program.config["launch"].items() if name != "on_oom"}
    launch |= {"on_oom": wish} if wish else {}  # runs that began before the key existed have none
    training = replace(known.program, config={**known.program.config, "launch": launch})
    found = shrink(replace(known, program=training), "device-out-of-memory", attempt=1)
    assert (found.job.program.shrunk["is_agreed"] if found else None) == is_agreed


def test_a_probe_of_tune_is_left_to_tune(job):
    known = read_job(job)
    probe = replace(known, program=replace(known.program, probe={"seconds": 1}))
    write_job(job, probe)
    assert read_job(job).program.probe == {"seconds": 1}
    assert shrink(probe, "device-out-of-memory", attempt=1) is None
