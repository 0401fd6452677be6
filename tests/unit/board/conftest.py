"""A board over a few runs, and one who may look at it."""

from __future__ import annotations

import functools

import pytest

from fakes.asgi import ask
from fakes.run_fixture import FakeRun, write_live_run, write_run
from headway.telemetry import DeviceLog
from headway.ui.board import Gate, make_app
from headway.ui.board.store import run_id

TOKEN = "t" * 43
HOSTS = frozenset({"127.0.0.1:8787", "localhost:8787", "[::1]:8787"})


class Look:
    """A board, asked with the token."""

    def __init__(self, out):
        self.out = out
        self.app = make_app(out)
        self.gate = Gate(self.app, token=TOKEN, hosts=HOSTS, cookie="headway-board-8787")
        self.get = functools.partial(ask, self.gate, cookie=f"headway-board-8787={TOKEN}")
        self.bare = functools.partial(ask, self.gate)

    def run(self, name, tab="", **more):
        """Ask for a page of a run."""
        return self.get(f"/run/{run_id(name)}{tab}", **more)


@pytest.fixture
def empty(tmp_path):
    (tmp_path / "runs").mkdir()
    return Look(tmp_path / "runs")


@pytest.fixture(scope="module")
def board(tmp_path_factory):
    out = tmp_path_factory.mktemp("board") / "runs"
    done = write_run(out / "done_nanochat_1")
    log = DeviceLog(done.devices)
    log.about({"cores": 2, "mem": 8 << 30, "gpus": [{"i": 0, "name": "NVIDIA H20", "mem": 96 << 30}]})
    for second in range(40):
        one = {"i": 0, "util": 91, "mem": 70 << 30, "temp": 77, "power": 400.0, "procs": ["7 ann python 70000"]}
        log.add({"t": 1_760_000_000.0 + second, "gpus": [one], "host": {"cpu": 40.0, "disk_free": 100 << 30}})
    log.close()
    write_live_run(out / "live_nanochat_2")
    failed = FakeRun(out / "failed_atlas_3")
    failed.begin()
    failed.train(1, 1, 60)
    failed.event("finding", code="devices/gpu-silent", key="1", facts={"gpu": 1, "why": "lost"}, since=failed.t)
    failed.crash(1, 1, "rank 1 ran out of GPU memory", "Traceback (most recent call last):\nOutOfMemoryError")
    failed.end("failed", 5, "diagnose/oom")
    return Look(out)
