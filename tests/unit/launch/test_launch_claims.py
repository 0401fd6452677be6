"""Claims on GPUs and ports between the runs of a machine."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import socket
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from headway.errors import CheckError
from headway.launch import claims
from headway.launch.claims import Claims
from headway.launch.foreign.ports import PortHold
from headway.process import make_lease


def test_a_claim_holds_against_another_run_and_names_the_holder(tmp_path):
    first, second = Claims("first", tmp_path / "c"), Claims("second", tmp_path / "c")
    assert first.take("gpu-0") is None
    holder = second.take("gpu-0")
    assert (holder["run"], holder["pid"]) == ("first", make_lease()["pid"])
    first.release()
    assert second.take("gpu-0") is None


def test_the_claim_of_a_process_that_is_gone_is_taken_over(tmp_path):
    dead = {**make_lease(), "start_ticks": 1, "run": "old", "user": "x"}
    (tmp_path / "gpu-0").write_text(json.dumps(dead))
    claims = Claims("new", tmp_path)
    assert claims.take("gpu-0") is None
    assert json.loads((tmp_path / "gpu-0").read_text())["run"] == "new"


def test_a_claim_that_cannot_be_read_counts_as_held(tmp_path):
    (tmp_path / "gpu-0").write_text("torn")
    assert Claims("new", tmp_path).take("gpu-0") is not None


@pytest.mark.parametrize("plant", [os.mkfifo, lambda path: path.symlink_to("/dev/zero"), lambda path: path.mkdir()])
def test_what_another_user_plants_in_the_folder_is_not_waited_for(tmp_path, plant):
    plant(tmp_path / "gpu-0")
    assert Claims("new", tmp_path).take("gpu-0") == {"is_held": True}


def test_a_folder_that_another_user_keeps_locked_or_closed_is_said(tmp_path, monkeypatch):
    monkeypatch.setattr(claims, "_LOCK_S", 0.1)
    holder = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(holder, fcntl.LOCK_EX)
    with pytest.raises(CheckError) as refused:
        Claims("new", tmp_path).take("gpu-0")
    os.close(holder)
    assert refused.value.code == "launch/claims-locked"
    (tmp_path / "file").touch()
    with pytest.raises(CheckError) as refused:
        Claims("new", tmp_path / "file").take("gpu-0")
    assert refused.value.code == "launch/claims-closed"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_folder_that_belongs_to_another_user_and_is_closed_is_one_error(tmp_path):
    folder = tmp_path / "claims"
    folder.mkdir(mode=0o700)
    child = os.fork()
    if child == 0:
        code = 1
        with contextlib.suppress(BaseException):
            os.setuid(65534)
            try:
                Claims("new", folder).take("gpu-0")
            except CheckError as refused:
                code = 0 if refused.code == "launch/claims-closed" else 2
        os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_release_lets_go_of_some_and_leaves_no_file_in_the_end(tmp_path):
    claims = Claims("run", tmp_path)
    claims.take("gpu-0")
    claims.take("port-1")
    claims.release("port-")
    assert [path.name for path in tmp_path.iterdir()] == ["gpu-0"]
    claims.release()
    assert list(tmp_path.iterdir()) == []


def test_a_chosen_port_is_free_and_no_two_runs_choose_the_same():
    holds = [PortHold() for _ in range(20)]
    ports = {hold.renew() for hold in holds}
    assert len(ports) == 20
    for port in ports:
        with socket.create_server(("127.0.0.1", port)):
            pass
    for hold in holds:
        hold.release()


def test_the_next_attempt_gets_another_port():
    hold = PortHold()
    assert hold.renew() != hold.renew()
    hold.release()


def test_of_many_racers_at_a_stale_claim_one_wins(tmp_path, monkeypatch):
    dead = {**make_lease(), "start_ticks": 1, "run": "old", "user": "x"}
    (tmp_path / "gpu-0").write_text(json.dumps(dead))
    look = claims._read_holder

    def look_slowly(path):
        found = look(path)
        time.sleep(0.02)  # everybody sees the stale claim before anybody removes it
        return found

    monkeypatch.setattr(claims, "_read_holder", look_slowly)
    racers = [Claims(f"run {number}", tmp_path) for number in range(6)]
    with ThreadPoolExecutor(6) as pool:
        won = [holder is None for holder in pool.map(lambda racer: racer.take("gpu-0"), racers)]
    assert won.count(True) == 1
