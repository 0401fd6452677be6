"""A job that a scheduler starts again elsewhere: the lease of a dead machine is waited out, a living one is not."""

from __future__ import annotations

import importlib
import os
import time

import pytest

from headway.errors import UsageError
from headway.process import make_lease
from headway.start.slurm import place_in_step
from headway.telemetry import RunDir, write_json

resume = importlib.import_module("headway.cli.resume")


class Screen:
    def __init__(self):
        self.told = []

    def tell(self, text):
        self.told.append(text)


@pytest.fixture
def run(tmp_path):
    """A run whose supervisor was on another machine, seen 59.5 s ago."""
    place = RunDir(tmp_path / "run")
    place.root.mkdir()
    write_json(place.lease, {**make_lease(), "host": "elsewhere", "boot_id": "another"})
    then = time.time() - 59.5
    os.utime(place.lease, (then, then))
    return place


def test_a_job_that_starts_again_waits_for_the_lease_of_a_dead_machine(run, monkeypatch):
    monkeypatch.setattr(resume, "_POLL_S", 0.1)
    screen = Screen()
    lease = resume._take(run, screen, waits=True)
    assert lease.took_over["host"] == "elsewhere" and "elsewhere" in screen.told[0]
    lease.release()


def test_a_person_is_told_at_once(run):
    with pytest.raises(UsageError) as refused:
        resume._take(run, Screen(), waits=False)
    assert refused.value.code == "launch/lease-elsewhere"


def test_resume_in_a_step_of_several_nodes_leads_or_follows_as_train_does(monkeypatch, tmp_path):
    asked = []
    monkeypatch.setattr(resume, "find_run", lambda name, out: RunDir(tmp_path / "runs/r"))
    monkeypatch.setattr(resume, "refuse_foreign", lambda run: None)
    names = {"SLURM_JOB_ID": "7", "SLURM_STEP_ID": "0", "SLURM_STEP_NUM_NODES": "2", "SLURM_PROCID": "1"}
    monkeypatch.setattr(resume, "place_in_step", lambda wish, out: place_in_step(wish, out, names))
    monkeypatch.setattr(resume, "follow", lambda wish, tell: asked.append(wish) or 5)
    assert resume.resume.callback(
        words=("r",), add=False, detach=False, dry_run=False, trace=None, step=None, from_scratch=False, out=tmp_path,
        run_file=None, nodes=None, nodes_min=None, nodes_address=None, nodes_public=False, nodes_wait=1.0, meet=None,
    ) == 5  # fmt: skip
    assert asked[0].index == 1 and asked[0].meet.parent == tmp_path / "runs"
