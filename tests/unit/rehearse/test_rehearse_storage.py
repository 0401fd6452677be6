"""What a disk guarantees, and a full one that is not the user's."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from headway.rehearse import storage
from headway.rehearse.record import Rehearsal, Survival
from headway.rehearse.small_disk import SmallDisk
from headway.rehearse.storage import look_at_storage


def test_a_folder_is_tried_and_left_as_it_was(tmp_path, monkeypatch):
    monkeypatch.setattr(storage, "_RENAMES", 200)
    monkeypatch.setattr(storage, "_WRITE_BYTES", 2 << 20)
    found = look_at_storage(tmp_path / "runs")
    assert (found.renames, found.torn, found.locks, found.syncs_folders) == (200, 0, True, True)
    assert found.fsync_ms > 0 and found.write_mb_s > 0 and found.kind
    assert list((tmp_path / "runs").iterdir()) == []


def test_a_replacement_that_is_not_one_step_is_noticed(tmp_path, monkeypatch):
    """A file system on which a rename is a copy: the reader must see it."""
    monkeypatch.setattr(storage, "_RENAMES", 400)

    def copy(self, target):
        target.write_bytes(self.read_bytes())

    monkeypatch.setattr("headway.rehearse.storage.Path.rename", copy)
    torn, renames = storage._try_renames(tmp_path)
    assert renames == 400 and torn > 0


@pytest.mark.parametrize(
    ("kind", "times", "told"),
    [
        ("ext4", [2.0, 3.0], "plausible"),
        ("ext4", [0.005, 0.006], "too-fast"),
        ("tmpfs", [0.001], "memory"),
        ("nfs4", None, "refused"),
    ],
)
def test_a_sync_that_no_disk_can_have_answered_is_not_believed(kind, times, told):
    assert storage._judge_sync(kind, times) == told


def test_a_sync_that_is_refused_is_a_finding(tmp_path, monkeypatch):
    def refuse(fd):
        raise OSError(22, "no")

    monkeypatch.setattr(storage.os, "fsync", refuse)
    assert storage._time_syncs(tmp_path) is None and storage._syncs_folder(tmp_path) is False


def test_without_a_disk_of_its_own_one_process_can_write_no_more(tmp_path):
    writer = "import sys, pathlib\nfor line in sys.stdin:\n  try:\n    pathlib.Path('x').write_bytes(b'12')\n"
    writer += "    print('written',flush=True)\n"
    writer += "  except OSError: print('refused',flush=True)"
    guard = "import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
    with subprocess.Popen(
        [sys.executable, "-c", guard + writer],
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:

        def ask():
            process.stdin.write("\n")
            process.stdin.flush()
            return process.stdout.readline().strip()

        with SmallDisk(tmp_path / "disk", wanted=False) as disk:
            assert ask() == "written" and not disk.is_real
            with disk.full(process.pid):
                assert ask() == "refused"
            assert ask() == "written"
        process.stdin.close()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts")
def test_a_disk_of_its_own_runs_full_and_is_gone_afterwards(tmp_path, monkeypatch):
    monkeypatch.setattr("headway.rehearse.small_disk._BYTES", 1 << 20)
    place = tmp_path / "disk"
    with SmallDisk(place, wanted=True) as disk:
        if not disk.is_real:
            pytest.skip("mounting is not allowed here")
        with disk.full(0), pytest.raises(OSError, match="No space left"):
            (place / "more").write_bytes(bytes(1 << 16))
        (place / "less").write_bytes(bytes(1 << 16))
        disk.rescue(tmp_path / "kept")
    assert not os.path.ismount(place) and (tmp_path / "kept" / "less").exists()


def test_a_rehearsal_is_survived_when_all_faults_are_and_the_data_is_exact():
    good, skipped = Survival(fault="kill", state="survived"), Survival(fault="port", state="skipped")

    def survived(*faults, exact=True):
        found = Rehearsal(faults=faults, storage=None, seconds=1.0, is_data_exact=exact, log="")
        assert found.to_json()["survived"] is found.has_survived
        return found.has_survived

    assert survived(good, skipped) and survived(good, exact=None)
    assert not survived(good, exact=False)
    assert not survived(good, Survival(fault="disk", state="failed"))
