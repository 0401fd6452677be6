"""The way of a run through the real command: train, stop, fail, resume, on other ranks and layouts."""

from __future__ import annotations

import json
import os
import shutil
import signal
import time

import pytest
from command import TINY, events, headway, only_run, processes_of, start, stop_hard, wait_for_step, wait_until

from headway.checkpoint import find_resumable, list_checkpoints
from headway.task.order import Order, expected_ledger
from headway.telemetry import RunDir, read_beat, read_events, read_json, read_metrics, run_state

pytestmark = pytest.mark.slow


def test_train_goes_all_the_way_and_says_what_is_next(tmp_path):
    done = headway(tmp_path, "train", TINY, "save.every=5", "eval.every=10")
    assert done.returncode == 0, done.stderr
    run = only_run(tmp_path)
    assert run_state(run).state == "done"
    for words in (
        "plan for tiny",
        "validation: mse",
        "checkpoint saved and verified",
        "done: 20 of 20",
        "next: ",
    ):
        assert words in done.stderr
    kinds = [event["kind"] for event in read_events(run.events)]
    assert kinds[:3] == ["run_started", "checked", "planned"]
    assert kinds[-1] == "run_ended"
    assert len(read_metrics(run.metrics(1))["loss"]) == 20
    assert run.report.stat().st_size > 10_000
    assert processes_of(tmp_path) == []


def test_a_rank_that_is_killed_costs_no_more_than_the_steps_since_the_save(tmp_path):
    process = start(tmp_path, "train", TINY, "train.steps=80", "save.every=10", "task.sleep_s=0.02")
    run = wait_for_step(tmp_path, 35)
    os.kill(read_beat(run.heartbeat(1)).pid, signal.SIGKILL)
    assert process.wait(120) == 0
    _, second = events(run, "attempt_started")
    (incident,) = events(run, "incident")
    assert (incident["rank"], incident["action"]) == (1, "restart")
    assert second["resume_step"] >= 20
    assert list(read_metrics(run.metrics(0))["step"]) == list(range(1, 81))


def test_the_failing_ranks_traceback_is_the_last_thing_on_the_screen(tmp_path):
    done = headway(tmp_path, "train", TINY, "task.fail_step=5", "task.fail_rank=1")
    assert done.returncode == 5
    assert done.stderr.rstrip().endswith("ValueError: the tiny task was told to fail")
    assert "rank 1" in done.stderr
    assert len(events(only_run(tmp_path), "attempt_started")) == 1


def test_a_nan_is_told_in_our_words_and_in_chinese(tmp_path):
    done = headway(tmp_path, "train", TINY, "task.nan_samples=[41]", "train.steps=30", "--lang", "zh")
    assert done.returncode == 5
    last = done.stderr[-600:]
    assert "样本 41" in last
    assert "guard.policy=skip" in last
    assert "Traceback" not in last


@pytest.mark.parametrize(("signum", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_stop_signal_saves_and_resume_goes_on_bit_equal(tmp_path, signum, code):
    words = ("train.steps=40", "task.sleep_s=0.02", "batch.accumulation=2")
    process = start(tmp_path, "train", TINY, *words)
    run = wait_for_step(tmp_path, 8)
    process.send_signal(signum)
    assert process.wait(60) == code
    assert find_resumable(run.checkpoints).manifest.step >= 8
    assert run_state(run).state == "interrupted"
    resumed = headway(tmp_path, "resume", "task.sleep_s=0")
    assert resumed.returncode == 0, resumed.stderr
    whole = headway(tmp_path, "train", TINY, *words, "task.sleep_s=0", "out=whole")
    assert whole.returncode == 0, whole.stderr
    (other,) = (tmp_path / "whole").glob("*/ranks/0/metrics.jsonl")
    assert read_metrics(run.metrics(0))["loss"] == read_metrics(other)["loss"]


@pytest.mark.alone
def test_twice_ctrl_c_stops_at_once(tmp_path):
    process = start(tmp_path, "train", TINY, "train.steps=400", "task.sleep_s=0.3")
    run = wait_for_step(tmp_path, 1)
    process.send_signal(signal.SIGINT)
    time.sleep(0.25)
    began = time.monotonic()
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 130
    assert time.monotonic() - began < 5
    assert run_state(run).state == "interrupted"


def test_nothing_is_left_after_kill_9_of_the_supervisor(tmp_path):
    process = start(
        tmp_path, "train", TINY, "train.steps=4000", "task.sleep_s=0.02", "parallel.workers=2", "save.every=5"
    )
    run = wait_for_step(tmp_path, 12)
    process.kill()
    process.wait()
    wait_until(lambda: processes_of(tmp_path) == [], 10)
    assert run_state(run).state == "lost"
    resumed = headway(tmp_path, "resume", "train.steps=20", "task.sleep_s=0")
    assert resumed.returncode == 0, resumed.stderr
    assert run_state(run).state == "done"


def test_a_detached_run_survives_a_hang_up_and_can_be_stopped(tmp_path):
    done = headway(tmp_path, "train", TINY, "train.steps=4000", "task.sleep_s=0.02", "--detach")
    assert done.returncode == 0, done.stderr
    run = wait_for_step(tmp_path, 3)
    assert run_state(run).state == "running"
    os.kill(read_json(run.lease)["pid"], signal.SIGHUP)
    before = read_beat(run.heartbeat(0)).step
    wait_until(lambda: read_beat(run.heartbeat(0)).step > before + 3, 20)
    stopped = headway(tmp_path, "stop")
    assert stopped.returncode == 0, stopped.stderr
    assert find_resumable(run.checkpoints).manifest is not None
    wait_until(lambda: processes_of(tmp_path) == [], 10)


def test_other_ranks_and_layouts_go_on_with_each_others_checkpoints(tmp_path):
    words = ("batch.total=12", "batch.per_device=3", "optimizer.name=muon", "ema.decay=0.9", "task.width=12")
    assert headway(tmp_path, "train", TINY, *words, "train.steps=6").returncode == 0
    run = only_run(tmp_path)
    layouts = [
        ("parallel.cpus=1", "parallel.strategy=single"),
        ("parallel.cpus=4", "parallel.strategy=ddp"),
        ("parallel.cpus=2", "parallel.strategy=fsdp"),
        ("parallel.cpus=2", "parallel.strategy=ddp"),
    ]
    for turn, layout in enumerate(layouts):
        done = headway(tmp_path, "resume", *layout, f"train.steps={12 + 6 * turn}")
        assert done.returncode == 0, done.stderr
    found = find_resumable(run.checkpoints).manifest
    assert (found.step, found.samples) == (30, 30 * 12)
    assert int(found.ledger, 16) == expected_ledger(Order(97, 0), 30 * 12, [])
    changes = events(run, "run_resumed")
    assert changes[0]["changes"]["parallel.cpus"] == [2, 1]


def test_a_finished_run_is_not_resumed_and_says_how_to_train_longer(tmp_path):
    assert headway(tmp_path, "train", TINY, "train.steps=3").returncode == 0
    done = headway(tmp_path, "resume")
    assert done.returncode == 2
    assert "steps=6" in done.stderr


def test_a_run_killed_in_its_last_validation_is_not_finished_and_resume_ends_it(tmp_path):
    words = ("train.steps=4", "task.die_in=validation", "launch.restarts=0")
    assert headway(tmp_path, "train", TINY, *words).returncode == 5
    run = only_run(tmp_path)
    assert [info.step for info in list_checkpoints(run.checkpoints)] == [4] and not events(run, "validation")
    assert headway(tmp_path, "resume", run.name, "--step", "4").returncode == 0
    (fork,) = {job.parent for job in (tmp_path / "runs").glob("*/job.json")} - {run.root}
    done = headway(tmp_path, "resume", run.name)
    assert done.returncode == 0, done.stderr
    for one in (run, RunDir(fork)):
        assert [event["step"] for event in events(one, "validation")] == [4] and run_state(one).state == "done"
        assert headway(tmp_path, "resume", one.name).returncode == 2
        assert headway(tmp_path, "resume", one.name, "--step", "4").returncode == 2


def test_two_supervisors_do_not_share_a_run(tmp_path):
    process = start(tmp_path, "train", TINY, "train.steps=4000", "task.sleep_s=0.05")
    try:
        wait_for_step(tmp_path, 2)
        run = only_run(tmp_path)
        before = {path.name: path.read_bytes() for path in (run.job, run.plan, run.config)}
        done = headway(tmp_path, "resume", "train.steps=5000")
        assert done.returncode == 2
        assert str(process.pid) in done.stderr
        assert before == {path.name: path.read_bytes() for path in (run.job, run.plan, run.config)}
    finally:
        stop_hard(process)


def test_resume_from_an_older_step_begins_a_new_run_and_leaves_the_old_one(tmp_path):
    assert headway(tmp_path, "train", TINY, "train.steps=10", "save.every=4", "save.keep_last=9").returncode == 0
    old = only_run(tmp_path)
    kept = sorted(path.name for path in old.checkpoints.iterdir())
    refused = headway(tmp_path, "resume", "--step", "5")
    assert refused.returncode == 2
    assert "available: 4" in refused.stderr
    done = headway(tmp_path, "resume", "--step", "4")
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in old.checkpoints.iterdir()) == kept
    (new,) = [RunDir(job.parent) for job in (tmp_path / "runs").glob("*/job.json") if job.parent != old.root]
    assert list(read_metrics(new.metrics(0))["loss"]) == list(read_metrics(old.metrics(0))["loss"])[4:]
    assert run_state(new).state == "done"


def test_exported_weights_begin_a_run_that_measures_the_same_and_trains_on(tmp_path):
    words = ("task.norm=true", "parallel.cpus=1")
    headway(tmp_path, "train", TINY, "train.steps=4", *words)
    first = only_run(tmp_path)
    assert headway(tmp_path, "ckpt", "export", first.name, "--format", "folder", "--to", "out").returncode == 0
    wrong = headway(tmp_path, "ckpt", "import", TINY, "out", "task.width=8", "--to", "kept/again", *words)
    assert wrong.returncode == 5 and "checkpoint/import-shape" in wrong.stderr and not list(tmp_path.glob("kept/*"))
    made = headway(tmp_path, "ckpt", "import", TINY, "out", "--to", "kept/again", "--json", "train.steps=3", *words)
    assert made.returncode == 0 and json.loads(made.stdout)["num_tensors"] == 14, made.stderr
    found = json.loads(headway(tmp_path, "eval", "kept/again", "--json").stdout)
    assert (found["step"], found["measures"]) == (0, events(first, "validation")[-1]["measures"])
    assert headway(tmp_path, "resume", "kept/again").returncode == 0
    again = RunDir(tmp_path / "kept" / "again")
    assert [event["step"] for event in events(again, "training_started")] == [0]
    assert run_state(again).state == "done" and events(again, "weights_imported")[0]["tensors"] == 14


def test_what_a_recipe_raises_in_eval_is_one_error_that_names_its_line(tmp_path):
    shutil.copytree(TINY, tmp_path / "own")
    train = headway(tmp_path, "train", "./own", "train.steps=2", "parallel.cpus=2", "parallel.strategy=fsdp")
    assert train.returncode == 0 and "headway eval" in train.stderr + train.stdout, train.stderr
    assert [event["code"] for event in events(only_run(tmp_path), "warning")] == ["engine/no-trial-sharded"]
    task = tmp_path / "own" / "task.py"
    text = task.read_text()
    task.write_text(text.replace('self.die("validation")', '{}["no such key"]'))
    told = headway(tmp_path, "eval")
    line = 1 + task.read_text().split('{}["no such key"]')[0].count("\n")
    assert told.returncode == 5 and "Traceback" not in told.stderr
    assert f"KeyError: 'no such key', in the recipe's code at {task}, line {line}" in told.stderr
    task.write_text(text)
    assert headway(tmp_path, "eval").returncode == 0


def test_a_resume_that_does_not_fit_its_checkpoint_is_put_back_by_the_words_it_names(tmp_path):
    assert headway(tmp_path, "train", TINY, "train.steps=2", "parallel.cpus=1").returncode == 0
    refused = headway(tmp_path, "resume", "train.steps=4", "task.width=9")
    run = only_run(tmp_path)
    assert refused.returncode == 5 and "engine/change-does-not-fit" in refused.stderr
    # What is wrong is what the resume before changed, not what this one does.
    refused = headway(tmp_path, "resume", "lr.base=0.02")
    assert refused.returncode == 5 and "engine/change-does-not-fit" in refused.stderr
    told = refused.stderr.split("headway resume ")[-1].split("\n")[0].split()
    assert told[0] == run.name and any(word.startswith("task.width=") for word in told)
    assert headway(tmp_path, "resume", *told, "train.steps=4").returncode == 0
    assert headway(tmp_path, "resume", "train.steps=6", "ema.decay=0.9").returncode == 0
    assert json.loads(headway(tmp_path, "eval", "--step", "2", "--json").stdout)["step"] == 2
