"""The state of a run comes from its directory alone."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from fakes.run_fixture import FakeRun, bpb_at, loss_at, write_live_run, write_run
from headway.errors import UsageError
from headway.process import is_held, make_lease
from headway.telemetry import (
    EventLog,
    MetricsWriter,
    RunDir,
    find_run,
    held_validations,
    number,
    read_events,
    read_json,
    run_state,
    write_json,
)


def test_a_finished_run_is_told_whole(tmp_path: Path) -> None:
    state = run_state(write_run(tmp_path / "r"))
    assert (state.state, state.exit_code, state.step, state.total_steps) == ("done", 0, 400, 400)
    assert state.best is not None and (state.best.name, state.best.value, state.best.step) == ("bpb", bpb_at(400), 400)
    assert state.best_checkpoint == str(tmp_path / "r" / "checkpoints" / "step-00000400")
    assert state.loss == loss_at(400) and state.samples == 6400
    assert (state.attempts, state.incidents, state.eta_s) == (2, 1, None)
    assert [saved.step for saved in state.checkpoints if saved.is_there] == [300, 400]


def test_speed_and_time_left_leave_out_validation_and_saving(tmp_path: Path) -> None:
    state = run_state(write_live_run(tmp_path / "r", step=100))
    assert state.state == "running"
    assert state.eta_s is not None and 20 < state.eta_s < 32
    assert state.rate_samples_s is not None and 150 < state.rate_samples_s < 210


def test_a_run_whose_supervisor_died_is_lost(tmp_path: Path) -> None:
    run = write_live_run(tmp_path / "r")
    lease = read_json(run.lease)
    write_json(run.lease, {**lease, "start_ticks": lease["start_ticks"] - 1})
    assert run_state(run).state == "lost"
    write_json(run.lease, {**lease, "boot_id": "another"})
    assert run_state(run).state == "lost"
    run.lease.unlink()
    assert run_state(run).state == "lost"


def test_a_supervisor_on_another_host_is_judged_by_its_files(tmp_path: Path) -> None:
    run = write_live_run(tmp_path / "r")
    write_json(run.lease, {**read_json(run.lease), "host": "far-away"})
    assert run_state(run).state == "running"
    for path in [run.lease, run.events, run.metrics(0), run.metrics(1)]:
        os.utime(path, (1.0, 1.0))
    assert run_state(run).state == "lost"


def test_a_lease_is_held_by_this_process_only_while_it_lives() -> None:
    assert is_held(make_lease())
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    zombie = {**make_lease(), "pid": child}
    assert not is_held(zombie)
    os.waitpid(child, 0)
    assert not is_held(make_lease(child))


def test_a_run_started_again_after_its_end_is_no_longer_ended(tmp_path: Path) -> None:
    run = write_run(tmp_path / "r")
    log = EventLog(run.events)
    log.append("run_started", command=[])
    log.close()
    assert run_state(run).state == "lost"
    write_json(run.lease, make_lease())
    assert run_state(run).state == "running"


def test_the_step_goes_back_with_a_restart(tmp_path: Path) -> None:
    fake = FakeRun(tmp_path / "r")
    fake.begin()
    fake.train(1, 1, 160)
    fake.train(2, 101, 110)
    fake.events.close()
    state = run_state(fake.run)
    assert (state.step, state.attempts) == (110, 2)


def test_a_moved_run_directory_tells_the_same(tmp_path: Path) -> None:
    write_run(tmp_path / "r")
    shutil.move(tmp_path / "r", tmp_path / "elsewhere")
    state = run_state(find_run(str(tmp_path / "elsewhere"), tmp_path))
    assert state.best_checkpoint == str(tmp_path / "elsewhere" / "checkpoints" / "step-00000400")


def test_an_empty_directory_has_a_state_too(tmp_path: Path) -> None:
    (tmp_path / "r" / "ranks").mkdir(parents=True)
    # Made a moment ago, it may be a run in the background that has not begun its history yet.
    assert run_state(find_run("r", tmp_path)).state == "running"
    os.utime(tmp_path / "r", (1.0, 1.0))
    state = run_state(find_run("r", tmp_path))
    assert (state.state, state.step, state.total_steps, state.loss) == ("lost", 0, None, None)


def test_broken_records_are_read_as_absent(tmp_path: Path) -> None:
    run = write_run(tmp_path / "r")
    for path in (run.job, run.plan, run.heartbeat(0)):
        path.write_bytes(b'{"half')
    state = run_state(run)
    assert (state.state, state.step, state.total_steps, state.recipe) == ("done", 400, None, None)


def test_a_measure_where_more_is_better_and_nan_are_read(tmp_path: Path) -> None:
    fake = FakeRun(tmp_path / "r")
    fake.event(
        "validation", step=1, measures={"loss": "NaN", "accuracy": 0.5}, best=True, measure="accuracy", sense="max"
    )
    fake.event("validation", step=2, measures={"loss": 1.0, "accuracy": float("nan")}, best=False, measure="accuracy")
    fake.events.close()
    state = run_state(fake.run)
    assert state.best is not None and (state.best.name, state.best.value, state.best.sense) == ("accuracy", 0.5, "max")
    assert state.validation is not None and str(state.validation.value) == "nan"


def test_runs_are_found_by_path_name_part_and_age(tmp_path: Path) -> None:
    for name in ("20260101-000000_a_1111", "20260102-000000_b_2222", "20260103-000000_b_3333"):
        (tmp_path / name / "ranks").mkdir(parents=True)
    assert find_run(None, tmp_path).name.endswith("3333")
    assert find_run("a_11", tmp_path).name.endswith("1111")
    assert find_run(str(tmp_path / "20260102-000000_b_2222"), Path("nowhere")).name.endswith("2222")
    with pytest.raises(UsageError) as many:
        find_run("_b_", tmp_path)
    assert many.value.code == "telemetry/many-runs" and "20260103-000000_b_3333" in many.value.hint()
    with pytest.raises(UsageError) as none:
        find_run("zzz", tmp_path)
    assert none.value.code == "telemetry/no-run" and "zzz" in str(none.value)
    with pytest.raises(UsageError) as empty:
        find_run(None, tmp_path / "nothing")
    assert empty.value.code == "telemetry/no-runs"


def test_number_reads_what_plain_wrote() -> None:
    values = json.loads('["NaN", "Infinity", "-Infinity", 1, null, "text", {}]')
    assert [str(number(value)) for value in values] == ["nan", "inf", "-inf", "1.0", "nan", "nan", "nan"]


def test_a_run_that_is_being_resumed_runs_and_is_not_done(tmp_path: Path) -> None:
    run = write_run(tmp_path / "r")
    log = EventLog(run.events)
    log.append("run_resumed", command=[], changes={}, starter=make_lease())
    log.close()
    assert run_state(run).state == "running"


def test_a_resume_that_died_before_it_supervised_leaves_a_lost_run(tmp_path: Path) -> None:
    run = write_run(tmp_path / "r")
    log = EventLog(run.events)
    log.append("run_resumed", command=[], changes={}, starter={**make_lease(), "start_ticks": 1})
    log.close()
    assert run_state(run).state == "lost"


def test_a_supervisor_that_has_taken_an_ended_run_makes_it_run_again(tmp_path: Path) -> None:
    run = write_run(tmp_path / "r")
    write_json(run.lease, make_lease())
    assert run_state(run).state == "running"


def test_a_foreign_run_shows_the_last_loss_it_printed(tmp_path: Path) -> None:
    run = RunDir(tmp_path / "r")
    run.rank(0).mkdir(parents=True)
    write_json(run.job, {"schema": "job/2", "kind": "foreign", "launch": {"world_size": 1}})
    nan = float("nan")
    writer = MetricsWriter(run.metrics(0), 1)
    writer.add(50, 0, 0.5, nan, nan, 1.0, 0.1, *[0.0] * 7)
    writer.add(60, 0, nan, nan, nan, 2.0, 0.1, *[0.0] * 7)
    writer.close()
    assert (run_state(run).step, run_state(run).loss) == (60, 0.5)


def test_a_validation_that_the_run_went_back_behind_is_neither_its_best_nor_its_last(tmp_path: Path) -> None:
    log = EventLog(RunDir(tmp_path).events)

    def validate(step: int, mse: float, *, best: bool) -> None:
        log.append("validation", step=step, measures={"mse": mse}, best=best, measure="mse", sense="min")

    log.append("training_started", attempt=1, step=0)
    validate(3, 1.2, best=True)
    validate(6, 1.1, best=True)
    log.append("training_started", attempt=2, step=4)
    state = run_state(RunDir(tmp_path), read_events(RunDir(tmp_path).events))
    assert (state.best.step, state.validation.step) == (3, 3)
    validate(5, 1.3, best=False)
    validate(8, 1.0, best=True)
    log.append("rolled_back", step=5)
    log.close()
    state = run_state(RunDir(tmp_path))
    assert (state.best.step, state.validation.step, state.validation.value) == (3, 5, 1.3)


def test_all_that_a_program_prints_of_its_validations_is_kept(tmp_path: Path) -> None:
    log = EventLog(RunDir(tmp_path).events)
    for step, name in ((5, "loss"), (5, "acc"), (2, "loss")):
        log.append("validation", step=step, measures={name: 0.5}, best=name == "acc", is_printed=True)
    log.close()
    found = held_validations(read_events(RunDir(tmp_path).events))
    assert [event["step"] for event in found] == [5, 5, 2]
    state = run_state(RunDir(tmp_path))
    assert (state.best.name, state.validation.step) == ("acc", 2)
