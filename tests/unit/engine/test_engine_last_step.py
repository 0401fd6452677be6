"""A rank that ends without a word continues from the step it kept in memory, bit for bit."""

from __future__ import annotations

import errno
import mmap
import os

import numpy as np
import pytest

from fakes.engine_run import make_job, read_tensors, reports
from headway.checkpoint.memory_file import make_file
from headway.engine.loop import end_step, take_step, train
from headway.engine.precision import Precision
from headway.engine.rank import prepare
from headway.engine.reporter import Reporter
from headway.task.order import Order
from headway.telemetry import RunDir, read_metrics

WORDS = ("train.steps=12", "save.every=5", "eval.every=4", "task.norm=true", "ema.decay=0.9", "batch.accumulation=2")
WORDS += ("save.in_memory=1",)
MAP = mmap.mmap


@pytest.fixture
def memory():
    file = make_file(1)
    yield file
    os.close(file)


def open_run(place, memory, attempt, *words):
    run = make_job(place, "parallel.cpus=1", "parallel.threads=1", *WORDS, *words)
    fd = os.open(place / "reports", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    job = {"run_dir": str(run.root), "rank": 0, "local_rank": 0, "world_size": 1, "attempt": attempt, "lang": "en"}
    call = {**job, "report_fd": fd, "listen_fd": None, "master_port": 0, "memory_fd": memory}
    return prepare(call, Reporter(fd))


def take(run, count):
    """Take steps as the loop does, then forget the run: a kill leaves no more than this."""
    run.open_data()
    for _ in range(count):
        before = run.progress.step, run.progress.position
        end_step(run, take_step(run), before)
    run.saver.wait()
    run.close_data()


def scaled(name, device):
    """A loss scale as fp16 has it, on a CPU."""
    made = Precision(name, device)
    made.is_scaled, made.scale = True, 1024.0
    return made


@pytest.mark.parametrize("words", [(), ("optimizer.name=sgd",), ("optimizer.name=muon",)])
def test_a_run_killed_twice_is_the_undisturbed_one(tmp_path, memory, words, monkeypatch):
    monkeypatch.setattr("headway.engine.rank.Precision", scaled)
    monkeypatch.setattr("headway.engine.precision._GROW_AFTER", 2)
    train(open_run(tmp_path / "quiet", None, 1, *words))
    place = tmp_path / "killed"
    take(open_run(place, memory, 1, *words), 3)
    again = open_run(place, memory, 2, *words)
    assert (again.came_from, again.progress.step, again.saved_step) == ("memory", 3, None)
    take(again, 4)
    last = open_run(place, memory, 3, *words)
    assert (last.came_from, last.progress.step, last.saved_step) == ("memory", 7, 5)
    assert (last.precision.scale, last.precision.good_steps) == (1024.0 * 8, 1)
    assert train(last) == "done"
    assert read_tensors(RunDir(place)) == read_tensors(RunDir(tmp_path / "quiet"))
    losses = [list(read_metrics(RunDir(one).metrics(0))["loss"]) for one in (place, tmp_path / "quiet")]
    assert losses[0] == losses[1]
    assert len(losses[0]) == 12


def test_a_damaged_copy_is_refused_by_name_and_the_disk_is_taken(tmp_path, memory):
    take(open_run(tmp_path, memory, 1), 7)
    for at in range(0, 8 << 20, 4096):
        page = os.pread(memory, 8, at)
        if page.startswith(b"HWSTEP01"):
            (byte,) = os.pread(memory, 1, at + 4096 + (1 << 20) + 64)
            os.pwrite(memory, bytes([byte ^ 4]), at + 4096 + (1 << 20) + 64)
    run = open_run(tmp_path, memory, 2)
    assert (run.came_from, run.progress.step) == ("checkpoint", 5)
    (event,) = reports(tmp_path, "memory_refused")
    assert event["why"] == "step 7: rank 0; step 6: rank 0"
    take(run, 2)
    assert open_run(tmp_path, memory, 3).progress.step == 7


def test_a_checkpoint_that_was_lost_on_its_way_is_written_again(tmp_path, memory):
    run = open_run(tmp_path, memory, 1)
    run.saver.save = lambda *_, **__: 0.0
    take(run, 5)
    again = open_run(tmp_path, memory, 2, "save.every=100")
    assert (again.progress.step, again.owes_save) == (5, True)
    train(again)
    assert next(event["step"] for event in reports(tmp_path, "checkpoint_committed")) == 5


def test_lines_beyond_the_kept_step_are_not_of_the_run_that_goes_on_from_it(tmp_path, memory):
    """The step after it is skipped by the guard, so it has no line of its own that would say so."""
    bad = int(Order(97, 0).samples(np.arange(42, 43))[0][0])
    words = ("save.in_memory=5", "save.every=100", "guard.policy=skip", f"task.nan_samples=[{bad}]")
    run = open_run(tmp_path, memory, 1, *words)
    take(run, 8)
    run.metrics.flush()
    again = open_run(tmp_path, memory, 2, *words)
    assert (again.came_from, again.progress.step) == ("memory", 5)
    take(again, 1)
    again.metrics.flush()
    assert list(read_metrics(RunDir(tmp_path).metrics(0))["step"]) == [1, 2, 3, 4, 5]


def test_without_room_there_is_none_and_it_is_said(tmp_path, memory, monkeypatch):
    monkeypatch.setattr("headway.engine.last_step.free_memory_bytes", lambda: 100)
    assert open_run(tmp_path, memory, 1).last_step is None
    assert [event["code"] for event in reports(tmp_path, "warning")] == ["engine/memory-no-room"]


def test_no_copies_are_kept_where_none_are_wanted(tmp_path, memory):
    take(open_run(tmp_path, memory, 1, "save.in_memory=0"), 2)
    assert os.pread(memory, 4096, 0) == bytes(4096)


def test_copies_that_cost_much_are_taken_less_often(tmp_path, memory):
    run = open_run(tmp_path, memory, 1, "save.in_memory=auto")
    keeper = run.last_step
    keeper._cost_s.extend([1.0] * 8)
    keeper._pace_s.extend([2.0] * 8)
    wanted = []
    for step in range(1, 21):
        keeper._pace_s.extend([2.0] * 8)
        keeper._sent_at = None
        wanted.append(keeper.is_due(step, is_wanted=keeper.is_wanted()))
        keeper._since = 0 if wanted[-1] else keeper._since
    assert [step for step, is_kept in enumerate(wanted, 1) if is_kept] == [10, 20]


@pytest.mark.parametrize(
    ("name", "value", "code"),
    [
        ("headway.checkpoint.in_memory._META_BYTES", 100, "checkpoint/memory-small-state"),
        ("headway.engine.last_step.free_address_bytes", lambda: 10_000, "engine/memory-no-room"),
        ("mmap.mmap", lambda file, *args, **more: refuse_mapping(file, *args, **more), "launch/no-memory-file"),
    ],
)
def test_a_run_whose_copies_have_no_room_trains_without_them(tmp_path, memory, name, value, code, monkeypatch):
    monkeypatch.setattr(name, value)
    run = open_run(tmp_path / "run", memory, 1)
    take(run, 2)
    assert run.last_step is None
    assert [one["code"] for one in reports(tmp_path / "run", "warning")] == [code]


def refuse_mapping(file, size, *args, **more):
    """Map as `ulimit -v` lets a process: a page of a heartbeat, not a copy of a state."""
    if size > 1 << 20:
        raise OSError(errno.ENOMEM, "Cannot allocate memory")
    return MAP(file, size, *args, **more)


def test_a_rank_that_owns_no_tensor_keeps_its_generators(tmp_path, memory, monkeypatch):
    monkeypatch.setattr("headway.engine.last_step.kept_pieces", lambda run: [])
    run = open_run(tmp_path / "run", memory, 1)
    take(run, 1)
    assert run.last_step.has(1)
