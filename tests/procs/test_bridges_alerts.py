"""Messages of real runs: the end, a death of all ranks or of the supervisor, channels that hang, secrets."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from fakes import launches
from fakes.channels import Requests, black_hole, http_server
from fakes.launches import Launch, fault, launched, make_run, wait_until
from headway.bridges import read_notes
from headway.telemetry import MetricsWriter, RunDir
from headway.telemetry.tfevents import ScalarFile

SECRET = "Hidden0Hook9Address7"
LEFT_S = 10.0


def send_to(addresses: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADWAY_ALERT_TO", addresses)
    monkeypatch.delenv("no_proxy", raising=False)


def finish(run: RunDir) -> tuple[float, float]:
    """Return how long the command took, and how long its processes lived on."""
    began = time.monotonic()
    with launched(run) as launch:
        launch.wait()
        ended = time.monotonic()
        launch.wait_clean()
    return ended - began, time.monotonic() - ended


def kinds(server: Requests) -> list[str]:
    return [one["body"]["kind"] for one in server.taken]


def told(server: Requests, kind: str) -> dict[str, Any]:
    return next(one["body"] for one in server.taken if one["body"]["kind"] == kind)


def test_a_run_that_ends_well_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with http_server() as server:
        send_to(server.url("/hook"), monkeypatch)
        _, left_s = finish(make_run(tmp_path, steps=5))
    assert kinds(server) == ["finished"] and left_s < LEFT_S
    assert "finished after 5 steps" in told(server, "finished")["text"]


def test_ranks_killed_without_a_word_are_told_with_the_cause(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    faults = [fault("signal_itself", signal="SIGKILL", rank=rank, step=2) for rank in (0, 1)]
    with http_server() as server:
        send_to(server.url("/hook"), monkeypatch)
        finish(make_run(tmp_path, steps=9, restarts=1, faults=faults))
    found = told(server, "failed")
    assert kinds(server)[-1] == "failed" and "SIGKILL" in found["text"] and "headway diagnose run" in found["text"]
    assert "restarted" in kinds(server)


def test_a_killed_supervisor_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = make_run(tmp_path, steps=1000, step_s=0.05)
    with http_server() as server:
        send_to(server.url("/hook"), monkeypatch)
        with launched(run) as launch:
            launch.wait_event("training_started")
            wait_until(lambda: keepers(launch), "the keeper")
            launch.signal(signal.SIGKILL)
            wait_until(lambda: kinds(server), "a message")
            launch.wait_clean()
    assert kinds(server) == ["lost"] and "headway resume run" in told(server, "lost")["text"]


def keepers(launch: Launch) -> list[int]:
    found = []
    for pid in launch.left_over():
        try:
            if b"headway.bridges.keeper" in Path(f"/proc/{pid}/cmdline").read_bytes():
                found.append(pid)
        except OSError:
            continue
    return found


def test_a_channel_that_hangs_costs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HEADWAY_ALERT_TO", raising=False)
    alone_s, _ = finish(make_run(tmp_path, "alone", steps=5))
    with black_hole() as port, http_server() as server:
        send_to(f"http://127.0.0.1:{port}/hook {server.url('/good')}", monkeypatch)
        run = make_run(tmp_path, steps=5)
        took_s, left_s = finish(run)
    assert took_s < alone_s + 2.0, "the command waits for nobody"
    assert left_s < LEFT_S and kinds(server) == ["finished"], "the other channel was served"
    notes = read_notes(run)
    assert [(one["kind"], one.get("why")) for one in notes if one["kind"] == "not_sent"] == [
        ("not_sent", "alert/timeout")
    ]


def test_no_file_holds_the_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with http_server() as server:
        server.answer = (403, b"")
        send_to(server.url(f"/{SECRET}"), monkeypatch)
        run = make_run(tmp_path, steps=3)
        finish(run)
    assert len(server.taken) == 1
    for place in run.root.rglob("*"):
        assert not place.is_file() or SECRET.encode() not in place.read_bytes(), place
    assert [one["facts"]["why"] for one in read_notes(run)] == ["HTTP 403"]


def test_without_a_channel_there_is_no_keeper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HEADWAY_ALERT_TO", raising=False)
    run = make_run(tmp_path, steps=200, step_s=0.01)
    with launched(run) as launch:
        launch.wait_event("training_started")
        assert not keepers(launch)
    assert not (run.root / "bridges.jsonl").exists()


def track(run: RunDir, name: str) -> RunDir:
    job = json.loads(run.job.read_text())
    job["config"]["track"] = {"to": [name]}
    run.job.write_text(json.dumps(job))
    return run


def test_a_tracker_that_hangs_costs_nothing_and_is_named(tmp_path: Path) -> None:
    package = tmp_path / "site" / "trackio"
    package.mkdir(parents=True)
    with black_hole() as port:
        hang = (
            "import socket, subprocess\n"
            "subprocess.Popen(['sleep', '60'])\n"
            f"socket.create_connection(('127.0.0.1', {port})).recv(1)\n"
        )
        (package / "__init__.py").write_text(hang)
        run = track(make_run(tmp_path, steps=5), "trackio")
        env = launches.environment("of-a-tracker")
        env |= {"PYTHONPATH": f"{env['PYTHONPATH']}:{tmp_path / 'site'}"}
        began = time.monotonic()
        with launched(run, env=env) as launch:
            assert launch.wait() == 0
            took_s = time.monotonic() - began
            launch.mark = "of-a-tracker"
            launch.wait_clean()
    assert time.monotonic() - began - took_s < LEFT_S
    assert [one["code"] for one in read_notes(run)] == ["alert/tracker-slow"]


def test_tensorboard_gets_the_steps_of_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HEADWAY_ALERT_TO", raising=False)
    run = track(make_run(tmp_path, steps=5), "tensorboard")
    writer = MetricsWriter(run.metrics(0), 1)
    for step in range(1, 6):
        writer.add(step, step, 1 / step, 0.1, 0.5, 1e9, 0.1)
    writer.close()
    finish(run)
    (path,) = (run.root / "tensorboard").iterdir()
    assert [one.step for one in ScalarFile(path).read() if one.tag == "train/loss"] == [1, 2, 3, 4, 5]
