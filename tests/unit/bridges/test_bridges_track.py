"""What a tracker is given: each step once, also after a resume, a redone step and a kill in the middle."""

from __future__ import annotations

import json
import sys
import types
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from headway.bridges.settings import read_settings
from headway.bridges.track import Point, Track, read_about
from headway.bridges.track_state import read_state
from headway.telemetry import EventLog, MetricsWriter, RunDir


class FakeTracker:
    """Keeps what it is given."""

    id = "its-own-name"

    def __init__(self) -> None:
        self.points: list[Point] = []

    def send(self, points: Sequence[Point]) -> None:
        self.points += points

    def finish(self, state: str) -> None:
        """Nothing to do."""


class BrokenTracker(FakeTracker):
    """Dies on the second batch."""

    def send(self, points: Sequence[Point]) -> None:
        if self.points:
            raise ConnectionError("gone")
        super().send(points)


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    found = RunDir(tmp_path / "run")
    found.rank(0).mkdir(parents=True)
    config = {"seed": 3, "alert": {"to": ["X"]}, "track": {"to": "wandb", "project": "mine", "name": "its name"}}
    found.job.write_text(json.dumps({"config": config}))
    return found


def steps(run: RunDir, first: int, last: int, attempt: int = 1) -> None:
    writer = MetricsWriter(run.metrics(0), attempt)
    for step in range(first, last + 1):
        writer.add(step, step * 8, 1 / step, 0.1, float("nan"), 1e9 + step, 0.5)
    writer.close()


def given(tracker: FakeTracker) -> list[int]:
    return [point[0] for point in tracker.points]


def test_steps_and_validations_arrive_once_as_they_come(run: RunDir) -> None:
    tracker = FakeTracker()
    track = Track(run, "wandb", tracker)
    steps(run, 1, 3)
    track.catch_up()
    steps(run, 4, 5)
    log = EventLog(run.events)
    log.append("validation", step=5, measures={"bpb": 1.5, "odd": "NaN"})
    log.close()
    track.catch_up()
    track.catch_up()
    assert given(tracker) == [1, 2, 3, 4, 5, 5]
    assert tracker.points[0][2]["train/loss"] == 1.0 and "train/grad_norm" not in tracker.points[0][2]
    assert tracker.points[-1][2] == {"val/bpb": 1.5}


def test_a_resume_goes_on_and_redone_steps_are_not_doubled(run: RunDir) -> None:
    steps(run, 1, 10)
    Track(run, "wandb", FakeTracker()).catch_up()
    steps(run, 6, 12, attempt=2)
    later = FakeTracker()
    Track(run, "wandb", later).catch_up()
    assert given(later) == [11, 12]
    assert read_state(run, "wandb").id == "its-own-name" and read_about(run, "wandb").id == "its-own-name"


def test_a_tracker_that_dies_loses_a_batch_and_doubles_none(run: RunDir) -> None:
    steps(run, 1, 450)
    first = BrokenTracker()
    with pytest.raises(ConnectionError):
        Track(run, "wandb", first).catch_up()
    later = FakeTracker()
    Track(run, "wandb", later).catch_up()
    assert given(first) == list(range(1, 201)) and given(later) == list(range(401, 451))


def test_the_config_goes_along_without_the_section_of_alerts(run: RunDir) -> None:
    about = read_about(run, "wandb")
    assert about.config["seed"] == 3 and not any(key.startswith("alert") for key in about.config)
    assert (about.project, about.name, read_settings(run).trackers) == ("mine", "its name", ("wandb",))


def test_wandb_is_called_as_it_is_documented(run: RunDir, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Any] = []

    class Run:
        id = "abc"
        log = staticmethod(lambda values, step=None: calls.append(("log", values, step)))
        finish = staticmethod(lambda exit_code: calls.append(("finish", exit_code)))
        define_metric = staticmethod(lambda *args, **kwargs: None)

    fake: Any = types.ModuleType("wandb")
    fake.Settings = lambda **settings: settings
    fake.init = lambda **settings: calls.append(("init", settings)) or Run()
    monkeypatch.setitem(sys.modules, "wandb", fake)
    monkeypatch.delenv("WANDB_DIR", raising=False)
    monkeypatch.delitem(sys.modules, "headway.bridges.to_wandb", raising=False)
    from headway.bridges import to_wandb

    tracker = to_wandb.start(read_about(run, "wandb"))
    tracker.send([(4, 1e9, {"train/loss": 1.0}), (4, 1e9, {"val/bpb": 2.0})])
    tracker.finish("failed")
    monkeypatch.delitem(sys.modules, "headway.bridges.to_wandb")
    assert calls[0][1]["project"] == "mine" and calls[0][1]["id"] == "run" and calls[0][1]["resume"] == "allow"
    assert calls[1:] == [
        ("log", {"train/loss": 1.0}, 4),
        ("log", {"val/bpb": 2.0, "step": 4}, None),
        ("finish", 1),
    ]
