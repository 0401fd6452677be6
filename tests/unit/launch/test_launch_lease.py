from __future__ import annotations

import json
import os
import subprocess

import pytest

from headway.errors import UsageError
from headway.launch import find_holder
from headway.launch.lease import Lease, clear_abandoned
from headway.telemetry import RunDir, make_lease


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
