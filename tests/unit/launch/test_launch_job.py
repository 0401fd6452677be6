"""The job file: what is written, what stays in memory, and files of earlier versions."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from fakes.machines import four_4090, machine
from headway.config import load_config
from headway.errors import HeadwayError
from headway.launch import ForeignLine, Job, Training, read_job, write_job
from headway.launch.history import History
from headway.launch.job import training_job
from headway.launch.outcome import SilentObserver
from headway.launch.program import Program, Seat
from headway.launch.run import make_program
from headway.launch.supervisor import _death_s
from headway.planner import make_plan
from headway.task import find_recipe
from headway.telemetry import EventLog, RunDir, run_state

LINE = ForeignLine(argv=("python", "x.py", "--password", "canary"), cwd="/", is_distributed=True, run_id="r")
TRAINING = Training(recipe="tiny", task="tasks.tiny", config={"seed": 1}, plan={"world_size": 2})


def job(program: Training | ForeignLine, **facts) -> Job:
    usual = {"world_size": 2, "threads": 3, "devices": ("0", "GPU-1"), "restarts": 4, "grace_s": 5.5}
    return Job(program=program, **{**usual, **facts})


def program(place: Path, wanted: Job) -> Program:
    log = EventLog(place / "events.jsonl")
    log.close()
    return make_program(RunDir(place), wanted, History(log, SilentObserver()))


def seat(rank: int, attempt: int = 2) -> Seat:
    return Seat(attempt=attempt, rank=rank, local_rank=rank, world_size=2, port=29400)


def test_a_training_is_read_as_it_was_written(tmp_path: Path) -> None:
    written = job(TRAINING, on_hang="restart", hang_s=7.0)
    write_job(RunDir(tmp_path), written)
    assert read_job(RunDir(tmp_path)) == written


def test_a_line_is_written_without_secrets_values_or_a_plan(tmp_path: Path) -> None:
    written = job(LINE, environment={"TOKEN": "canary"}, env_names=("TOKEN",), devices=None, threads=None)
    write_job(RunDir(tmp_path), written)
    text = (tmp_path / "job.json").read_text()
    assert "canary" not in text
    assert {"plan", "config", "recipe", "task"}.isdisjoint(json.loads(text))
    read = read_job(RunDir(tmp_path))
    assert (read.env_names, read.devices, read.environment) == (("TOKEN",), None, {})
    assert isinstance(read.program, ForeignLine) and read.program.argv[:2] == ("python", "x.py")


def test_a_training_of_an_earlier_version_is_read(tmp_path: Path) -> None:
    config = {"launch": {"grace_s": 20, "restarts": 3, "on_hang": "stop"}}
    plan = {"world_size": 2, "threads": 4, "gpus": [1, 3]}
    old = {"schema": "job/1", "recipe": "tiny", "task": "tasks.tiny", "config": config, "plan": plan}
    (tmp_path / "job.json").write_text(json.dumps(old))
    read = read_job(RunDir(tmp_path))
    assert (read.world_size, read.threads, read.devices) == (2, 4, ("1", "3"))
    assert (read.restarts, read.grace_s, read.on_hang) == (3, 20.0, "stop")
    assert read.program == Training(recipe="tiny", task="tasks.tiny", config=config, plan=plan)


def test_a_line_of_an_earlier_version_is_read(tmp_path: Path) -> None:
    own = {**LINE.to_json(), "argv": ["python", "x.py"], "devices": ["7"], "on_hang": "restart", "hang_s": 60.0}
    old = {
        "schema": "job/1",
        "kind": "foreign",
        "recipe": None,
        "task": None,
        "config": {"launch": {"grace_s": 1.0, "restarts": 2}, "env": {"python": None}},
        "plan": {"world_size": 8, "threads": 1, "gpus": []},
        "foreign": own,
    }
    (tmp_path / "job.json").write_text(json.dumps(old))
    read = read_job(RunDir(tmp_path))
    assert (read.world_size, read.devices, read.on_hang, read.hang_s) == (8, ("7",), "restart", 60.0)
    assert (read.restarts, read.grace_s) == (2, 1.0)
    assert isinstance(read.program, ForeignLine) and read.program.is_distributed and read.program.run_id == "r"


@pytest.mark.parametrize("text", ["{}", '{"launch": {}}', '{"launch": 3, "recipe": "x"}', '{"kind": "foreign"}'])
def test_a_damaged_job_is_refused_by_name(tmp_path: Path, text: str) -> None:
    (tmp_path / "job.json").write_text(text)
    with pytest.raises(HeadwayError, match=r"job\.json"):
        read_job(RunDir(tmp_path))


def test_screens_know_the_ranks_of_a_line(tmp_path: Path) -> None:
    write_job(RunDir(tmp_path), job(LINE, world_size=8))
    assert run_state(RunDir(tmp_path)).world_size == 8


def test_a_rank_of_our_own_is_told_its_seat_threads_and_devices(tmp_path: Path) -> None:
    order = program(tmp_path, job(TRAINING)).order(seat(1))
    assert order.env == {
        "RANK": "1",
        "LOCAL_RANK": "1",
        "WORLD_SIZE": "2",
        "LOCAL_WORLD_SIZE": "2",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": "29400",
        "OMP_NUM_THREADS": "3",
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        "CUDA_VISIBLE_DEVICES": "0,GPU-1",
        "PYTORCH_ALLOC_CONF": "expandable_segments:True",
        "TORCH_FR_BUFFER_SIZE": "2000",
        "TORCH_NCCL_TRACE_BUFFER_SIZE": "2000",
        "TORCH_NCCL_DUMP_ON_TIMEOUT": "1",
        "TORCH_FR_DUMP_TEMP_FILE": f"{tmp_path}/collectives-2-",
        "TORCH_NCCL_DEBUG_INFO_TEMP_FILE": f"{tmp_path}/collectives-2-",
    }
    assert (order.call["attempt"], order.call["master_port"], order.call["rank"]) == (2, 29400, 1)


def test_a_rank_of_a_line_is_told_what_torchrun_would_say(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    order = program(tmp_path, job(LINE)).order(seat(1))
    told = {name: order.env[name] for name in ("RANK", "TORCHELASTIC_RESTART_COUNT", "TORCHELASTIC_MAX_RESTARTS")}
    assert told == {"RANK": "1", "TORCHELASTIC_RESTART_COUNT": "1", "TORCHELASTIC_MAX_RESTARTS": "4"}
    assert order.env["OMP_NUM_THREADS"] == "1" and order.env["TORCHELASTIC_RUN_ID"] == "r"
    assert order.env["CUDA_VISIBLE_DEVICES"] == "0,GPU-1" and "CUDA_DEVICE_ORDER" not in order.env
    assert order.call["argv"][-1] == "canary"


def test_what_the_line_sets_for_its_ranks_counts_and_not_what_the_supervisor_has(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "/supervisor")
    line = job(LINE, environment={"OMP_NUM_THREADS": "8", "PYTHONPATH": None})
    order = program(tmp_path, line).order(seat(0))
    assert "OMP_NUM_THREADS" not in order.env and "/supervisor" not in order.env["PYTHONPATH"]


def test_ranks_on_gpus_keep_their_last_collectives_and_what_the_user_has_set_stays(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("TORCH_FR_BUFFER_SIZE", "77")
    env = program(tmp_path, job(TRAINING)).order(seat(1)).env
    assert env["TORCH_NCCL_DUMP_ON_TIMEOUT"] == "1" and "TORCH_FR_BUFFER_SIZE" not in env
    assert env["TORCH_FR_DUMP_TEMP_FILE"].startswith(str(tmp_path))
    assert "TORCH_NCCL_DUMP_ON_TIMEOUT" not in program(tmp_path, job(TRAINING, devices=())).order(seat(1)).env


def test_a_killed_rank_on_a_gpu_gets_longer_to_be_gone() -> None:
    assert _death_s(job(TRAINING, devices=())) < _death_s(job(TRAINING, devices=("0",))) == 60


def test_a_large_checkpoint_gets_the_time_to_be_saved_and_gpus_are_named_by_uuid() -> None:
    loaded = load_config(None, recipe=find_recipe, overrides=["recipe=nanochat"], environ={})
    config, plan = loaded.config, make_plan(loaded, machine(four_4090()), loaded.recipe)
    small, large = (replace(plan, forecast={"checkpoint_bytes": size}) for size in (1e6, 18e9))
    assert training_job("x", config, small).grace_s == 30
    assert training_job("x", config, large).grace_s == 120
    wanted = config.model_copy(update={"launch": config.launch.model_copy(update={"grace_s": 5.0})})
    assert training_job("x", wanted, large).grace_s == 5
    assert training_job("x", config, plan).devices == tuple(gpu.uuid for gpu in four_4090())
