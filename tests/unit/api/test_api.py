"""The Python API: its names, what importing it costs, and what a call means in words."""

from __future__ import annotations

import json
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import headway
from headway.api import RunHandle, _words, check, diagnose, plan, runs, train
from headway.errors import HeadwayError, PlanError, UsageError
from headway.launch import Claims
from headway.process import make_lease
from headway.telemetry import EventLog, RunDir, new_run_dir

NAMES = ["RunHandle", "check", "diagnose", "log", "plan", "resume", "run", "runs", "train"]


def test_the_public_names_are_these_and_each_has_a_docstring():
    assert sorted(headway.__all__) == sorted([*NAMES, "__version__"])
    assert dir(headway) == sorted(headway.__all__)
    assert all(getattr(headway, name).__doc__ for name in NAMES)
    with pytest.raises(AttributeError):
        _ = headway.no_such_name


def test_no_public_name_is_a_module_whose_import_would_replace_it():
    modules = {module.name for module in pkgutil.iter_modules(headway.__path__)}
    assert len(modules) > 15 and modules.isdisjoint(NAMES)


def test_importing_headway_and_logging_outside_of_a_run_load_nothing():
    code = (
        "import sys; before = set(sys.modules); import headway; headway.log(step=1, loss=0.5);"
        "print(sorted({name.partition('.')[0] for name in set(sys.modules) - before} - sys.stdlib_module_names))"
    )
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "['headway']\n"


def test_the_whole_control_side_imports_no_framework():
    code = """
import importlib, pkgutil, sys
import headway
out = ("engine", "trace", "recipes", "launch.hook.site", "bridges.to_")  # the last: side processes with a tracker
files = ("checkpoint.torch_state", "checkpoint.restore", "checkpoint.torch_types", "checkpoint.write_pt",
         "checkpoint.export_torch", "__main__")
names = [one.name for one in pkgutil.walk_packages(headway.__path__, "headway.")]
control = [name for name in names if not name.removeprefix("headway.").startswith(out + files)]
for name in control:
    importlib.import_module(name)
print(len(control), "torch" in sys.modules, "mindspore" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True)
    num, *loaded = done.stdout.split()
    assert int(num) > 250 and loaded == ["False", "False"]


def test_settings_become_the_words_of_a_command():
    words = _words("nanochat", {"train.steps": 3, "name": "a b"}, {"depth": 4, "lr": {"base": 1e-4}, "tags": ("a", 1)})
    assert words == ["nanochat", "train.steps=3", 'name="a b"', "depth=4", "lr.base=0.0001", 'tags=["a", 1]']
    assert _words(None, None, {"name": "true", "out": Path("/a b"), "recipe": "./own"}) == [
        'name="true"',
        'out="/a b"',
        "recipe=./own",
    ]


def test_a_plan_and_a_check_are_records_and_refuse_as_the_commands_do(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = plan("nanochat", depth=2, on="8xH20")
    assert (found.world_size, found.device) == (8, "cuda")
    assert check(on="2x4090").gpus[1].name == "NVIDIA GeForce RTX 4090"
    with pytest.raises(PlanError):
        plan("nanochat", depth=64, on="1x4090", batch={"per_device": 512})
    with pytest.raises(HeadwayError) as refused:
        train("nanochap")
    assert "recipes/unknown-near" in str(refused.value)
    assert not (tmp_path / "runs").exists()


def test_a_handle_tells_what_the_directory_tells(tmp_path):
    place = new_run_dir(tmp_path, "mine")
    log = EventLog(place.events)
    log.append("run_started", command=["headway"])
    facts = {"attempt": 1, "rank": 1, "class": "killed", "code": "diagnose/killed", "facts": {"signal": "SIGKILL"}}
    log.append("incident", **facts, action="stop", evidence="SIGKILL")
    log.append("run_ended", state="failed", exit_code=5, steps=7, best=None, why="launch/failed", facts={})
    log.close()
    (one,) = runs(tmp_path)
    assert one == RunHandle(place.root) and one.wait(1) is one
    assert (one.state, one.exit_code, one.step, one.best, one.logs) == ("failed", 5, 7, None, "")
    found = diagnose(one)
    assert found is not None and (found.kind, found.evidence) == ("killed", "SIGKILL")
    with pytest.raises(UsageError):
        one.stop()


def test_a_log_file_is_diagnosed(tmp_path):
    text = "Traceback (most recent call last):\n  File 'a.py', line 1\ntorch.OutOfMemoryError: CUDA out of memory.\n"
    (tmp_path / "log").write_text(text)
    found = diagnose(tmp_path / "log")
    assert found is not None and found.kind == "device-out-of-memory"


def test_claims_are_handed_over_to_the_process_that_supervises(tmp_path):
    mine, other = Claims("mine", tmp_path), Claims("other", tmp_path)
    assert mine.take("gpu-0") is None and other.find_holder("gpu-0") is not None
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        mine.hand_over(child.pid)
        mine.release()  # no longer ours
        assert json.loads((tmp_path / "gpu-0").read_text())["pid"] == child.pid
        assert other.take("gpu-0") is not None
        child.communicate(b"\n")
    assert other.take("gpu-0") is None


def test_a_run_that_does_not_end_in_time_is_told(tmp_path):
    place = new_run_dir(tmp_path, "mine")
    log = EventLog(place.events)
    log.append("run_started", command=["headway"], starter=make_lease())
    log.close()
    with pytest.raises(TimeoutError):
        RunHandle(RunDir(place.root).root).wait(0)
