from __future__ import annotations

import errno
import fcntl
import json
import os
import subprocess
import threading

import pytest

import headway.process as process_of
import headway.telemetry.state as state_of
from headway.errors import UsageError
from headway.launch import find_holder, request_stop
from headway.launch.lease import Lease, clear_abandoned
from headway.process import make_lease
from headway.telemetry import LOCK_NAME, RunDir, is_locked, is_supervised


@pytest.fixture
def run(tmp_path):
    return RunDir(tmp_path)


def write_lease(run, **changes):
    run.lease.write_text(json.dumps({**make_lease(), "attempt": 3, "tag": "no-such-tag", **changes}))


def dead_pid():
    process = subprocess.Popen(["true"])
    process.wait()
    return process.pid


def test_a_lease_names_its_holder_and_is_gone_after_release(run):
    lease = Lease(run, attempt=2, tag="t")
    assert find_holder(run)["pid"] == os.getpid()
    assert find_holder(run)["attempt"] == 2
    lease.release()
    assert find_holder(run) is None
    assert list(run.root.iterdir()) == []


def test_a_second_lease_is_refused(run):
    lease = Lease(run, attempt=1, tag="t")
    with pytest.raises(UsageError) as refused:
        Lease(run, attempt=1, tag="u")
    assert refused.value.code == "launch/already-supervised"
    assert str(os.getpid()) in refused.value.text()
    lease.release()


@pytest.mark.parametrize(
    "changes",
    [
        {"pid": dead_pid()},
        {"start_ticks": 1},
        {"boot_id": "00000000-0000-0000-0000-000000000000"},
        {"pid": "not a number"},
    ],
)
def test_a_stale_lease_is_taken_over_and_told(run, changes):
    write_lease(run, **changes)
    lease = Lease(run, attempt=1, tag="t")
    assert lease.took_over["attempt"] == 3
    assert find_holder(run)["pid"] == os.getpid()
    lease.release()


def test_a_living_holder_without_a_lock_is_respected(run):
    write_lease(run)
    with pytest.raises(UsageError):
        Lease(run, attempt=1, tag="t")


def test_a_torn_lease_is_taken_over(run):
    run.lease.write_text('{"pid": 12')
    lease = Lease(run, attempt=1, tag="t")
    assert lease.took_over == {}
    lease.release()


def test_another_machines_lease_is_respected_until_it_goes_quiet(run):
    write_lease(run, host="elsewhere", pid=1)
    with pytest.raises(UsageError) as refused:
        Lease(run, attempt=1, tag="t")
    assert refused.value.code == "launch/lease-elsewhere"
    assert [path.name for path in run.root.iterdir()] == ["lease.json"]
    old = run.lease.stat().st_mtime - 3600
    os.utime(run.lease, (old, old))
    lease = Lease(run, attempt=1, tag="t")
    assert lease.took_over["host"] == "elsewhere"
    lease.release()


def test_a_torn_lease_of_a_strange_kind_does_not_name_a_holder(run):
    run.lease.write_text("[1, 2]")
    assert find_holder(run) is None


def test_a_lease_that_is_handed_over_is_held_without_a_gap_and_cleared_when_nobody_takes_it_up(run):
    lease = Lease(run)
    with lease.handed_over() as lock:
        heir = os.dup(lock)  # as a process that inherits it
    lease.release()
    with pytest.raises(UsageError):
        Lease(run)
    second = Lease(run, tag="t", lock=heir)
    assert find_holder(run)["tag"] == "t"
    second.release()
    assert list(run.root.iterdir()) == []
    third = Lease(run)
    with third.handed_over():
        pass  # the process has died at once
    clear_abandoned(run)
    assert list(run.root.iterdir()) == []


def test_a_lease_taken_over_by_another_machine_is_noticed_before_anything_is_written(run):
    lease = Lease(run)
    lease.prove()
    write_lease(run, host="elsewhere", pid=1)
    with pytest.raises(UsageError) as refused:
        lease.prove()
    assert "elsewhere" in refused.value.text()
    lease.release()


def elsewhere(run, **changes):
    """A lease of another container of this machine."""
    write_lease(run, pid=2**22 + 7, pid_ns=make_lease()["pid_ns"] + 12345, **changes)


@pytest.fixture
def from_a_container(monkeypatch):
    """Be where not every process of the machine can be seen."""
    own = make_lease()["pid_ns"]
    monkeypatch.setattr(process_of, "_FIRST_NAMESPACE", own + 1)


def test_a_holder_in_another_container_is_judged_by_its_lock(run, from_a_container):
    elsewhere(run)
    assert find_holder(run) is None
    assert not is_supervised(run)
    lock = os.open(run.root / LOCK_NAME, os.O_RDWR | os.O_CREAT)
    fcntl.flock(lock, fcntl.LOCK_EX)
    assert find_holder(run)["pid"] == 2**22 + 7
    assert is_supervised(run)
    with pytest.raises(UsageError) as refused:
        request_stop(run)
    assert refused.value.code == "launch/stop-elsewhere"
    with pytest.raises(UsageError) as held:
        Lease(run, attempt=1, tag="t")
    assert held.value.code == "launch/already-supervised"
    os.close(lock)
    Lease(run, attempt=1, tag="t").release()


def test_a_lock_that_cannot_be_looked_at_leaves_freshness(run, from_a_container, monkeypatch):
    elsewhere(run)
    monkeypatch.setattr(state_of, "is_locked", lambda root: None)
    assert is_supervised(run)
    for path in run.root.iterdir():
        os.utime(path, (1, 1))
    assert not is_supervised(run)


def test_a_look_at_the_lock_does_not_keep_anybody_from_taking_it(run):
    lock = os.open(run.root / LOCK_NAME, os.O_RDWR | os.O_CREAT)
    fcntl.flock(lock, fcntl.LOCK_SH)
    timer = threading.Timer(0.03, os.close, [lock])
    timer.start()
    lease = Lease(run, attempt=1, tag="t")
    assert is_locked(run.root)
    lease.release()
    timer.join()
    assert not is_locked(run.root)


def test_a_lease_of_an_older_version_means_this_container(run):
    write_lease(run)
    lease = json.loads(run.lease.read_text())
    del lease["pid_ns"]
    run.lease.write_text(json.dumps(lease))
    assert find_holder(run)["pid"] == os.getpid()


@pytest.mark.parametrize(
    "place", ["ranks", "ranks/0", "ranks/0/stacks", "checkpoints", "config.yaml", "supervisor.log"]
)
def test_a_run_directory_with_a_link_in_it_is_not_written_into(tmp_path, place):
    """Issue 10, item 10: resume wrote through folders that are links, and emptied the target of `stacks`."""
    (tmp_path / "victims").mkdir()
    run = RunDir(tmp_path / "run")
    (run.root / place).parent.mkdir(parents=True)
    (run.root / place).symlink_to(tmp_path / "victims")
    with pytest.raises(OSError, match=place) as refused:
        Lease(run)
    assert refused.value.errno == errno.ELOOP
    assert list((tmp_path / "victims").iterdir()) == []
    assert not run.lease.exists()
