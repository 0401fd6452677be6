"""Saves that fail one after the other, a hint that cannot be used, a rank that can tell nobody (issues 10 and 19)."""

from __future__ import annotations

import errno
import io
import os
import time
from types import SimpleNamespace

import pytest

from fakes.disks import CountingDisk, Keep, disk_failing_at, make_writer, save_step
from headway.checkpoint import list_checkpoints, mark_for, writer
from headway.errors import CheckpointError
from headway.messages import set_language
from headway.ui.terminal.run_screen import RunScreen


def failing_on(is_bad, code=errno.EIO):
    """Return a disk that fails every call on some paths."""

    def before(call, name, args):
        if isinstance(args[0], os.PathLike) and is_bad(args[0]):
            raise OSError(code, os.strerror(code), str(args[0]))

    return CountingDisk(before)


def pick(events, kind):
    return [event for event in events if event["kind"] == kind]


def test_every_lost_save_is_told_with_how_many_and_what_is_at_stake(tmp_path):
    events: list[dict] = []
    one = make_writer(tmp_path, events)
    save_step([one], 10)
    one._disk = disk_failing_at(1, errno.ENOSPC, for_good=True)
    save_step([one], 20)
    save_step([one], 30)
    lost = pick(events, "save_lost")
    assert [(event["step"], event["num"], event["committed"]) for event in lost] == [(20, 1, 10), (30, 2, 10)]
    one._disk = CountingDisk(lambda *_: None)
    save_step([one], 40)
    one._disk = disk_failing_at(1, errno.ENOSPC, for_good=True)
    save_step([one], 50)
    assert pick(events, "save_lost")[-1]["num"] == 1


@pytest.mark.parametrize(("lang", "word"), [("en", "NOT SAVED"), ("zh", "未保存")])
def test_a_lost_save_takes_lines_of_its_own_on_the_screen(lang, word):
    stream = io.StringIO()
    plan = SimpleNamespace(total_steps=100, tokens_per_sample=None)
    event = {"kind": "save_lost", "step": 20, "num": 2, "committed": None, "why": "no space", "hint": "free some space"}
    set_language(lang)
    try:
        RunScreen(stream, plan).event(event)
    finally:
        set_language("en")
    lines = stream.getvalue().splitlines()
    assert [line.startswith(word) for line in lines] == [True, True, False] and "free some space" in lines[2]


def test_saves_that_fail_their_own_verification_end_the_run(tmp_path, monkeypatch):
    def prove(*_, is_known):
        raise CheckpointError("checkpoint/form", path="x", place="y", found="1", wanted="2")

    monkeypatch.setattr(writer, "prove", prove)
    events: list[dict] = []
    one = make_writer(tmp_path, events)
    save_step([one], 10)
    with pytest.raises(CheckpointError) as ended:
        save_step([one], 20)
    assert ended.value.code == "checkpoint/saves-keep-failing" and len(pick(events, "save_lost")) == 2


def test_a_hint_that_cannot_be_written_costs_nothing_but_a_warning(tmp_path):
    events: list[dict] = []
    disk = failing_on(lambda path: path.name.startswith("latest"))
    ranks = [
        make_writer(tmp_path, events, rank=rank, world_size=2, disk=disk, retention=Keep(keep_last=1))
        for rank in (0, 1)
    ]
    began = time.monotonic()
    for step in (10, 20, 30):
        for one in ranks:
            assert one.reserve()
        save_step(ranks, step)
    assert time.monotonic() - began < 15
    assert [event["step"] for event in pick(events, "checkpoint_committed")] == [10, 20, 30]
    assert [info.step for info in list_checkpoints(tmp_path)] == [30]
    assert len(pick(events, "warning")) == 3


def test_a_hint_that_cannot_be_read_does_not_end_training(tmp_path, monkeypatch):
    def read_latest(root):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(writer, "read_latest", read_latest)
    events: list[dict] = []
    ranks = [make_writer(tmp_path, events, rank=rank, world_size=2) for rank in (0, 1)]
    began = time.monotonic()
    save_step(ranks, 10)
    assert time.monotonic() - began < 10 and ranks[1].last_committed == 10


def test_a_rank_that_can_write_nothing_is_spoken_for_by_the_supervisor(tmp_path):
    """Rank 0 waited for all of its 600 seconds."""
    events: list[dict] = []

    def hear(event):
        events.append(event)
        mark_for(tmp_path, event)

    def is_of_rank_1(path):
        return path.name.startswith("rank-00001")

    ranks = [
        make_writer(tmp_path, events, rank=0, world_size=2, parts_timeout_s=60),
        make_writer(tmp_path, events, rank=1, world_size=2, disk=failing_on(is_of_rank_1), report=hear),
    ]
    began = time.monotonic()
    save_step(ranks, 10)
    assert time.monotonic() - began < 10
    (failed,) = [event for event in pick(events, "checkpoint_failed") if event["rank"] == 0]
    assert failed["code"] == "checkpoint/rank-failed" and "rank 1" in failed["why"]


def test_a_mark_is_left_in_temporary_folders_of_this_run_only(tmp_path):
    event = {"kind": "checkpoint_failed", "rank": 1, "why": "x"}
    (tmp_path / "elsewhere").mkdir()
    for folder in (None, str(tmp_path / "elsewhere"), "/", str(tmp_path.parent / "step-00000001.tmp-1")):
        assert not mark_for(tmp_path, {**event, "folder": folder})
    assert not list((tmp_path / "elsewhere").iterdir())
