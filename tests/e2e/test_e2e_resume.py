"""`headway resume` as it is typed: the batch, the length, the layers and the right to write into the run."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from command import TINY, clean_env, events, headway, only_run, wait_until

from headway.checkpoint import find_resumable
from headway.process import is_held, make_lease
from headway.task.order import Order, expected_ledger
from headway.telemetry import RunDir, read_json, read_metrics, run_state

HALF = str(Path(__file__).parents[1] / "fakes" / "half")
SHORT = ("save.every=2", "launch.restarts=0", "task.fail_rank=0")
NAMES = ("job.json", "plan.json", "config.yaml", "origins.json", "events.jsonl", "lease.json", "command.json")


def contents(run: RunDir) -> dict[str, bytes]:
    """Return what a refused command must not have touched."""
    return {name: (run.root / name).read_bytes() for name in NAMES if (run.root / name).exists()}


def failed_run(place, *words: str) -> RunDir:
    """Return a run that failed in its fifth step and can be resumed at the fourth."""
    done = headway(place, "train", TINY, *SHORT, "task.fail_step=5", *words)
    assert done.returncode == 5, done.stderr
    return only_run(place)


def test_batch_and_learning_rate_survive_other_ranks_another_micro_batch_and_more_resumes(tmp_path):
    # A recipe's train.steps lies below: without its layers the config would hold two lengths.
    run = failed_run(tmp_path, "train.epochs=2", "lr.schedule=linear", "lr.warmup_samples=24")
    for words in (("seed=5",), ("preset=balanced",)):
        before = contents(run)
        refused = headway(tmp_path, "resume", *words)
        assert refused.returncode == 2
        assert words[0] in refused.stderr and "headway train" in refused.stderr
        assert contents(run) == before
    # Four micro-batches of this rank, two steps, and the fifth fails.
    assert headway(tmp_path, "resume", "parallel.cpus=1").returncode == 5
    assert headway(tmp_path, "resume", "task.fail_step=9").returncode == 5
    done = headway(tmp_path, "resume", "batch.per_device=2", "task.fail_step=0")
    assert done.returncode == 0, done.stderr
    total, batch = 194, 8
    steps = -(-total // batch)
    rows = read_metrics(run.metrics(0))
    assert list(rows["step"]) == list(range(1, steps + 1))
    assert list(rows["samples"]) == [batch * step for step in rows["step"]]
    rise = [min(1.0, batch * step / 24) for step in range(1, steps + 1)]
    fall = [1 - batch * step / total for step in range(steps)]
    assert list(rows["lr"]) == pytest.approx([0.01 * up * down for up, down in zip(rise, fall, strict=True)])
    found = find_resumable(run.checkpoints).manifest
    assert int(found.ledger, 16) == expected_ledger(Order(97, 0), steps * batch, [])
    changes = [event["changes"] for event in events(run, "run_resumed")]
    assert changes[0]["plan.world_size"] == [2, 1] and changes[2]["plan.micro_batch"] == [4, 2]
    assert not any("plan.batch_samples" in change or "plan.total_steps" in change for change in changes)


def test_six_resumes_at_once_have_one_winner_and_a_refused_one_changes_nothing(tmp_path):
    run = failed_run(tmp_path, "train.steps=30")
    # A supervisor of another machine, which no lock of this one can show.
    run.lease.write_text(json.dumps({**make_lease(), "host": "elsewhere", "attempt": 1, "tag": "t"}))
    before = contents(run)
    refused = headway(tmp_path, "resume", "lr.base=0.5", "batch.total=16")
    assert refused.returncode == 2 and "elsewhere" in refused.stderr
    assert contents(run) == before
    run.lease.unlink()

    rates = [0.001 * number for number in range(1, 7)]
    command = [sys.executable, "-m", "headway", "resume", "task.fail_step=0", "task.sleep_s=0.1"]
    pipes = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    racers = [
        subprocess.Popen([*command, f"lr.base={rate}"], cwd=tmp_path, env=clean_env(tmp_path), **pipes)
        for rate in rates
    ]
    wait_until(lambda: events(run, "run_resumed"))
    watched = headway(tmp_path, "watch")  # the old end is not this one's
    said = [racer.communicate(timeout=240)[1].decode() for racer in racers]
    codes = [racer.returncode for racer in racers]
    assert sorted(codes) == [0, 2, 2, 2, 2, 2], said
    assert watched.stdout.splitlines()[-1].startswith("done | step 30/30"), watched.stdout + watched.stderr
    (resumed,) = events(run, "run_resumed")
    winner = rates[codes.index(0)]
    assert resumed["changes"]["lr.base"] == [0.01, winner]
    assert read_json(run.job)["config"]["lr"]["base"] == winner
    numbers = [json.loads(line)["seq"] for line in run.events.read_text().splitlines()]
    assert numbers == list(range(1, len(numbers) + 1))
    rows = read_metrics(run.metrics(0))
    assert set(rows["lr"][4:]) == {winner} and len(rows["lr"]) == 30


def test_a_detached_resume_holds_the_run_from_its_first_moment_and_leaves_no_lock(tmp_path):
    run = failed_run(tmp_path, "train.steps=4000")
    done = headway(tmp_path, "resume", "--detach", "task.fail_step=0", "task.sleep_s=0.05")
    assert done.returncode == 0, done.stderr
    lease = read_json(run.lease)
    assert is_held(lease) and lease["tag"]
    before = contents(run)["job.json"]
    refused = headway(tmp_path, "resume", "lr.base=0.5")
    assert refused.returncode == 2 and str(lease["pid"]) in refused.stderr
    assert contents(run)["job.json"] == before
    assert headway(tmp_path, "stop").returncode == 0
    wait_until(lambda: run_state(run).state == "interrupted", 30)
    wait_until(lambda: not list(run.root.glob(".lease-lock")) and not run.lease.exists(), 10)
    assert len(events(run, "run_resumed")) == 1


def test_a_finished_run_whose_supervisor_died_before_it_said_so_is_ended_by_resume(tmp_path):
    assert headway(tmp_path, "train", TINY, "train.steps=4", "eval.every=2").returncode == 0
    run = only_run(tmp_path)
    # What a kill between the last commit and the last line leaves behind.
    lines = run.events.read_text().splitlines(keepends=True)
    last = max(number for number, line in enumerate(lines) if '"checkpoint_committed"' in line)
    run.events.write_text("".join(lines[: last + 1]))
    assert run_state(run).state == "lost"
    done = headway(tmp_path, "resume")
    assert done.returncode == 0, done.stderr
    assert run_state(run).state == "done"
    assert list(read_metrics(run.metrics(0))["step"]) == [1, 2, 3, 4]
    again = headway(tmp_path, "resume")
    assert again.returncode == 2 and "finished" in again.stderr


def test_a_run_resumed_in_fp16_begins_with_a_loss_scale_and_keeps_it(tmp_path):
    def type_line(*words: str) -> None:
        done = headway(tmp_path, *words, PYTHONPATH=HALF)
        assert done.returncode == 0, done.stderr

    def scale() -> list[float] | None:
        return find_resumable(only_run(tmp_path).checkpoints).manifest.meta["scale"]

    type_line("train", TINY, "train.precision=bf16", "train.steps=2")
    assert scale() is None
    type_line("resume", "train.precision=fp16", "train.steps=7")
    steps = read_metrics(only_run(tmp_path).metrics(0))["step"]
    overflows = [step for step in range(3, 8) if step not in steps]  # each halves the scale, once
    good = 7 - max([2, *overflows])
    assert len(overflows) < 4 and scale() == [2.0**16 / 2 ** len(overflows), good]
    type_line("resume", "train.steps=8")
    assert scale()[0] >= 2.0**15 / 2 ** len(overflows)
    type_line("resume", "train.precision=fp32", "train.steps=9")
    assert scale() is None
