"""Two nodes of one run: two supervisors on this machine, with ranks of a worker that needs no framework."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fakes.launches import ROOT, environment, fault, make_run, marked, wait_until
from headway.telemetry import RunDir, read_events

DRIVER = str(ROOT / "tests/fakes/nodes_driver.py")


class TwoNodes:
    """A leader and its followers at work, seen from outside."""

    def __init__(self, folder: Path, least: int, **fake: Any) -> None:
        self.run: RunDir = make_run(folder, world_size=4, **{"steps": 30, "step_s": 0.02, "save_every": 5, **fake})
        self.mark, self._meet = secrets.token_hex(8), str(folder / "meet.json")
        self.leader = self._start("lead", str(self.run.root), self._meet, str(least))
        self.follower = self.follow()

    def _start(self, *words: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, DRIVER, *words]
        return subprocess.Popen(command, env=environment(self.mark), stderr=subprocess.PIPE, stdout=subprocess.PIPE)

    def follow(self, meet: str | None = None) -> subprocess.Popen[bytes]:
        return self._start("follow", meet or self._meet)

    def events(self, kind: str) -> list[dict[str, Any]]:
        return [event for event in read_events(self.run.events) if event["kind"] == kind]

    def wait_event(self, kind: str, number: int = 1) -> dict[str, Any]:
        return wait_until(lambda: self.events(kind)[number - 1 : number], f"{kind} number {number}")[0]

    def end(self) -> tuple[int, int]:
        """Wait for both ends and until nothing is left; return both exit codes."""
        codes = self.leader.wait(60), self.follower.wait(60)
        wait_until(lambda: not marked(self.mark), f"the end of {marked(self.mark)}")
        return codes


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[Any]:
    started: list[TwoNodes] = []

    def start(least: int = 2, **fake: Any) -> TwoNodes:
        started.append(TwoNodes(tmp_path, least, **fake))
        return started[-1]

    yield start
    for two in started:
        for pid in marked(two.mark):
            os.kill(pid, signal.SIGKILL)
        for process in (two.leader, two.follower):
            process.communicate()


def test_ranks_are_numbered_over_both_nodes_and_nothing_is_left(nodes):
    two = nodes(steps=5, far=1)
    assert two.end() == (0, 0)
    assert two.events("attempt_started")[0]["nodes"] == [0, 0, 0, 1]
    assert [event["code"] for event in two.events("rank_exited")] == [0, 0, 0, 0]
    assert "rank 3 step 5" in two.run.stdout(3).read_text()
    assert " [3] rank 3 step 5" in two.run.log.read_text()


def test_a_killed_rank_on_the_other_node_is_blamed_and_all_are_restarted(nodes):
    two = nodes(faults=[fault("signal_itself", signal="SIGKILL", rank=3, step=8, attempts=[1])])
    assert two.end() == (0, 0)
    (incident,) = two.events("incident")
    assert (incident["rank"], incident["class"], incident["action"], incident["step"]) == (3, "killed", "restart", 7)
    first, second = two.events("attempt_started")
    assert (second["resume_step"], second["port"] != first["port"]) == (5, True)


def test_a_killed_follower_takes_its_ranks_with_it_and_may_come_back(nodes):
    two = nodes()
    two.wait_event("checkpoint_committed")
    pids = two.events("attempt_started")[0]["pids"][2:]
    two.follower.kill()
    two.follower.communicate()
    two.wait_event("node_lost")
    wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids), "the end of its ranks")
    two.follower = two.follow()
    assert two.end() == (0, 0)
    assert [one["class"] for one in two.events("incident")] == ["diagnose/node-lost"]
    assert [one["host"] for one in two.events("node_joined")] == [two.events("node_lost")[0]["host"]] * 2


def test_a_node_that_does_not_come_back_ends_the_run_resumable(nodes):
    two = nodes(steps=500, return_s=1.0)
    two.wait_event("checkpoint_committed")
    two.follower.kill()
    assert two.end()[0] == 6
    end = two.events("run_ended")[0]
    assert (end["state"], end["why"]) == ("stopped", "nodes/too-few")


def test_a_killed_leader_ends_the_followers_ranks(nodes):
    two = nodes(steps=500)
    two.wait_event("checkpoint_committed")
    two.leader.kill()
    assert two.end()[1] == 6


def test_a_signal_to_a_follower_saves_and_stops_the_whole_run(nodes):
    two = nodes(steps=500)
    two.wait_event("checkpoint_committed")
    two.follower.terminate()
    assert two.end() == (143, 143)
    assert two.events("run_ended")[0]["why"] == "launch/interrupted"
    assert two.events("stop_requested")[0]["why"] == "SIGTERM"
