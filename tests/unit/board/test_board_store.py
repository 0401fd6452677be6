"""How the board reads runs: little of a long one at first, all of it behind the page, and none of it too often."""

from __future__ import annotations

import time

from fakes.run_fixture import FakeRun
from headway.telemetry import MetricsWriter
from headway.ui.board.store import Store


def write_steps(run, first, last):
    writer = MetricsWriter(run.metrics(0), 1)
    for step in range(first, last + 1):
        writer.add(step, step, 2.0, 1e-3, 0.5, 1e9 + step / 10, 0.1)
    writer.close()


def test_a_long_run_that_has_ended_is_glanced_at_and_then_read_whole(tmp_path, monkeypatch):
    monkeypatch.setattr("headway.ui.rows._LONG_BYTES", 1 << 16)
    fake = FakeRun(tmp_path / "r")
    fake.begin()
    fake.train(1, 1, 1)
    write_steps(fake.run, 2, 4000)
    fake.end()
    store = Store(tmp_path)
    first = store.facts(fake.run)
    assert first.is_glance and first.state.step > 0
    deadline = time.monotonic() + 20
    while not store.is_whole(fake.run) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not store.facts(fake.run).is_glance, "nobody read it whole"
    assert store.facts(fake.run) is store.facts(fake.run)


def test_a_run_that_costs_much_to_read_is_read_less_often(tmp_path, monkeypatch):
    now = [0.0]
    fake = FakeRun(tmp_path / "r")
    fake.begin()
    fake.train(1, 1, 5)
    store = Store(tmp_path, clock=lambda: now[0])
    costs = iter([0.0, 0.5, 0.0, 0.0])
    monkeypatch.setattr("time.thread_time", lambda: next(costs))
    first = store.facts(fake.run)
    write_steps(fake.run, 6, 7)
    now[0] = 9.9
    assert store.facts(fake.run) is first, "half a second of reading is worth ten seconds of peace"
    now[0] = 10.1
    assert store.facts(fake.run) is not first
