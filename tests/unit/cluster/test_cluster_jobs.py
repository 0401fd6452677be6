"""Jobs that were submitted from a folder of runs: listed, found again by their run, stopped from the login node."""

from __future__ import annotations

import json
import os
import stat

import pytest

from headway.cli.main import main
from headway.cluster import job_of_run, list_jobs, own_job, record_job

SLURM = """#!/bin/bash
echo "$(basename "$0") $*" >>"$FAKE_SLURM/said"
case $(basename "$0") in
squeue)
    for job in 7 8 9_0 9_1; do [ -e "$FAKE_SLURM/$job" ] && echo "$job|$(<"$FAKE_SLURM/$job")"; done; exit 0 ;;
scancel)
    if [ "$1" = --signal=INT ]; then job=${2%.0}; else job=$1; fi; echo "FAILED|NonZeroExitCode" >"$FAKE_SLURM/$job" ;;
esac
"""


@pytest.fixture
def slurm(tmp_path, monkeypatch):
    """A Slurm that answers from files: its states are written by the test."""
    folder = tmp_path / "slurm"
    folder.mkdir()
    for name in ("squeue", "scancel", "sacct"):
        program = folder / name
        program.write_text(SLURM)
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("FAKE_SLURM", str(folder))
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    return folder


@pytest.fixture
def out(tmp_path):
    """Three submitted jobs; the second has begun a run, the third is an array."""
    out = tmp_path / "runs"
    for job in ("7", "8", "9"):
        folder = out / "slurm" / f"2026-{job}"
        folder.mkdir(parents=True)
        record_job(folder, job, f"name-{job}")
    run = out / "20261119-064155_tiny_712a"
    (run / "ranks").mkdir(parents=True)
    (out / "slurm" / "2026-8" / "run-8").write_bytes(os.fsencode(run))
    return out


@pytest.fixture
def ran(capsys):
    """Return what runs a command: its exit code, stdout and stderr."""

    def run(*words):
        with pytest.raises(SystemExit) as ended:
            main(["--lang", "en", *map(str, words)])
        said = capsys.readouterr()
        return int(ended.value.code or 0), said.out, said.err

    return run


def states(slurm, **found):
    for job, state in found.items():
        (slurm / job.removeprefix("j")).write_text(state + "\n")


def test_the_list_of_runs_shows_queue_and_reason(slurm, out, ran):
    states(slurm, j7="PENDING|Priority", j8="RUNNING|None", j9_0="PENDING|JobArrayTaskLimit")
    told = json.loads(ran("runs", "--runs", out, "--json")[1])
    jobs = {job["job"]: (job["state"], job["reason"]) for job in told["jobs"]}
    assert jobs == {"7": ("PENDING", "Priority"), "8": ("RUNNING", None), "9_0": ("PENDING", "JobArrayTaskLimit")}
    shown = ran("runs", "--runs", out)[1]
    assert "PENDING  Priority" in shown and "20261119-064155_tiny_712a" in shown


def test_a_silent_slurm_does_not_hide_the_runs(out, monkeypatch, ran):
    monkeypatch.setenv("PATH", "/nonexistent")
    code, shown, said = ran("runs", "--runs", out)
    assert code == 0 and "20261119-064155_tiny_712a" in shown
    assert "squeue is not on this machine" in said


def test_a_run_is_known_by_its_live_job(slurm, out):
    run = out / "20261119-064155_tiny_712a"
    states(slurm, j8="RUNNING|None")
    found = job_of_run(run, list_jobs(out, 20.0))
    assert found is not None and found.job == "8"
    states(slurm, j8="COMPLETED|None")
    assert job_of_run(run, list_jobs(out, 20.0)) is None


@pytest.mark.parametrize(
    ("given", "state", "asked"),
    [
        ("7", "PENDING|Priority", "scancel 7"),
        ("8", "RUNNING|None", "scancel --signal=INT 8.0"),
        ("20261119-064155_tiny_712a", "RUNNING|None", "scancel --signal=INT 8.0"),
    ],
)
def test_stop_takes_a_job_out_of_the_queue_or_lets_its_run_save(slurm, out, ran, given, state, asked):
    states(slurm, **{"j7" if given == "7" else "j8": state})
    code, shown, _ = ran("stop", given, "--runs", out)
    assert code == 0 and "has ended: FAILED" in shown
    assert asked in (slurm / "said").read_text().splitlines()


def test_stop_of_an_array_asks_which_element(slurm, out, ran):
    states(slurm, j9_0="RUNNING|None", j9_1="PENDING|None")
    code, _, said = ran("stop", "9", "--runs", out)
    assert code == 2 and "[cluster/array-element]" in said
    assert "scancel" not in (slurm / "said").read_text()


def test_an_element_of_an_array_is_a_job_of_its_own():
    assert own_job({"SLURM_JOB_ID": "12"}) == "12"
    assert own_job({"SLURM_JOB_ID": "13", "SLURM_ARRAY_JOB_ID": "12", "SLURM_ARRAY_TASK_ID": "3"}) == "12_3"
    assert own_job({}) is None
