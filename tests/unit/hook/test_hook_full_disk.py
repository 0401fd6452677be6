"""A runs disk without room costs the watching, never the script: no page is written that has no place of its own."""

from __future__ import annotations

import errno
import os
import subprocess
import sys

import pytest

from headway.launch.hook import HOOK_SITE
from headway.telemetry import HeartbeatWriter, read_beat

STEP = "import _headway_hook as h, sys; page = h.Page(sys.argv[1], 1); page.steps = 7; page.write(); print(page.steps)"


def full(*_: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_heartbeat_on_a_full_disk_is_nobodys_but_does_not_kill(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "posix_fallocate", full)
    writer = HeartbeatWriter(tmp_path / "heartbeat", 1)
    writer.beat(3, step=5)
    assert read_beat(tmp_path / "heartbeat") is None


def test_pages_take_their_place_on_the_disk_at_once(tmp_path):
    HeartbeatWriter(tmp_path / "heartbeat", 1)
    assert (tmp_path / "heartbeat").stat().st_blocks >= 8
    subprocess.run([sys.executable, "-c", STEP, str(tmp_path / "page")], cwd=HOOK_SITE, check=True)
    assert (tmp_path / "page").stat().st_blocks >= 8


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to mount a small disk")
def test_a_script_outlives_a_disk_that_is_really_full(tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(disk)], capture_output=True).returncode:
        pytest.skip("no disk can be mounted here")
    try:
        (disk / "page").touch()
        with (disk / "rest").open("wb", buffering=0) as file, pytest.raises(OSError, match="No space"):
            while True:
                file.write(bytes(4096))
        words = [sys.executable, "-c", STEP, str(disk / "page")]
        ran = subprocess.run(words, cwd=HOOK_SITE, capture_output=True, text=True)
        assert (ran.returncode, ran.stdout) == (0, "7\n"), ran.stderr
    finally:
        subprocess.run(["umount", str(disk)], check=True)
