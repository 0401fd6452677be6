"""The n-th call fails, the process dies at the n-th call, the power goes at any moment: what is found afterwards."""

from __future__ import annotations

import errno
import os
import random
import threading
from pathlib import Path

import pytest

from fakes.disks import (
    CountingDisk,
    Crash,
    Keep,
    PowerCut,
    build,
    disk_dying_at,
    disk_failing_at,
    disk_full_after,
    make_checkpoint,
    make_writer,
    rows_shard,
    save_step,
    start_step,
)
from headway.checkpoint import find_resumable, list_checkpoints, verify_checkpoint
from headway.checkpoint.shard import write_shard
from headway.errors import CheckpointError

ERRORS = (errno.ENOSPC, errno.EIO, errno.EDQUOT, errno.EFBIG, errno.EROFS)


def kinds(events: list[dict]) -> list[str]:
    return [event["kind"] for event in events]


def names(root: Path) -> list[str]:
    return sorted(path.name for path in root.iterdir())


@pytest.mark.parametrize("for_good", [False, True])
def test_an_error_at_any_call_never_costs_a_committed_checkpoint(tmp_path, for_good):
    outcomes = set()
    for number in range(1, 200):
        root = tmp_path / str(number)
        make_checkpoint(root, 10, world_size=1)
        events: list[dict] = []
        disk = disk_failing_at(number, ERRORS[number % 5], for_good=for_good)
        writer = make_writer(root, events, disk=disk)
        save_step([writer], 20)
        found = find_resumable(root)
        committed = "checkpoint_committed" in kinds(events)
        # A whole one that could neither be made durable nor removed may remain; it was not called committed.
        may_be = {20} if committed else {10, 20} if for_good else {10}
        assert found.manifest.step in may_be and not found.skipped, (number, events)
        assert committed == (writer.last_committed == 20)
        assert committed != ("checkpoint_failed" in kinds(events)), (number, events)
        outcomes.add(kinds(events)[0])
        if disk.calls < number:
            break
    else:
        pytest.fail("no save ever ran without an error")
    assert number > 14 and len(outcomes) == 2


def test_an_error_that_goes_away_is_cured_by_another_try_from_memory(tmp_path):
    for number in range(1, 14):  # every call up to the one that makes the new name durable
        root, events = tmp_path / str(number), []
        writer = make_writer(
            root, events, disk=disk_failing_at(number, errno.EIO, for_good=False), backoff_s=(0.0, 0.0)
        )
        save_step([writer], 20)
        assert verify_checkpoint(root / "step-00000020").step == 20
        assert kinds(events)[-1] == "checkpoint_committed"
        assert names(root) == ["latest", "step-00000020"]


def test_a_failed_sync_is_never_asked_again_of_the_same_file(tmp_path):
    synced: list[str] = []
    opened: dict[int, str] = {}

    def before(call, name, args):
        if name == "create":
            opened["last"] = str(args[0])
        if name == "sync":
            synced.append(opened["last"])
            if len(synced) == 1:
                raise OSError(errno.EIO, "Input/output error")

    save_step([make_writer(tmp_path, [], disk=CountingDisk(before), backoff_s=(0.0,))], 20)
    assert len(synced) == len(set(synced)) > 4
    assert "tmp-1/" in synced[0] and "tmp-1.1/" in synced[1]


def test_a_full_disk_is_told_with_path_need_and_free_and_nothing_is_left(tmp_path):
    make_checkpoint(tmp_path, 10, world_size=1)
    events: list[dict] = []
    save_step([make_writer(tmp_path, events, disk=disk_full_after(3000))], 20)
    event, lost = events
    assert lost["kind"] == "save_lost" and lost["num"] == 1
    assert (event["kind"], event["code"], event["step"]) == ("checkpoint_failed", "checkpoint/disk-full", 20)
    assert event["need_bytes"] == 8192 and event["free_bytes"] > 0
    assert str(tmp_path) in event["path"] and "8.0 KiB" in event["why"]
    assert names(tmp_path) == ["latest", "step-00000010"]


def test_what_cannot_fit_is_refused_before_a_byte_is_written(tmp_path):
    calls = []
    disk = CountingDisk(lambda call, name, args: calls.append(name), free_bytes=1000)
    events: list[dict] = []
    save_step([make_writer(tmp_path, events, disk=disk)], 20)
    assert events[0]["code"] == "checkpoint/disk-full" and "1000 B" in events[0]["why"]
    assert "create" not in calls and names(tmp_path) == []


def test_a_folder_removed_under_the_run_is_made_again(tmp_path):
    events: list[dict] = []
    writer = make_writer(tmp_path / "run" / "checkpoints", events)
    writer.root.rmdir()
    save_step([writer], 20)
    assert kinds(events) == ["checkpoint_committed"]


def test_death_at_any_call_leaves_the_old_or_the_new_and_never_half(tmp_path):
    seen = {10: 0, 20: 0}
    for number in range(1, 200):
        root, events = tmp_path / str(number), []
        make_checkpoint(root, 10, world_size=1)
        disk = disk_dying_at(number)
        writer = make_writer(root, events, disk=disk, retention=Keep(keep_last=1))
        start_step([writer], 20)
        try:
            writer.wait(30)
        except Crash:
            pass
        else:
            break
        found = find_resumable(root)
        assert not found.skipped
        assert found.manifest.step == 20 or "checkpoint_committed" not in kinds(events)
        seen[found.manifest.step] += 1
        make_writer(root, events, attempt=2)
        assert all(
            name == "latest" or not name.startswith("step") or name in ("step-00000010", "step-00000020")
            for name in names(root)
        )
    else:
        pytest.fail("no save ever ran to its end")
    assert number > 20 and all(seen.values())


def test_two_ranks_dying_together_at_any_call_leave_the_old_or_the_new(tmp_path):
    deaths = 0
    for number in range(1, 200, 3):
        root, events = tmp_path / str(number), []
        make_checkpoint(root, 10)
        disk = disk_dying_at(number)
        writers = [
            make_writer(root, events, rank=rank, world_size=2, disk=disk, parts_timeout_s=0.2) for rank in range(2)
        ]
        start_step(writers, 20)
        for writer in writers:
            try:
                writer.wait(30)
            except Crash:
                deaths += 1
        found = find_resumable(root)
        assert not found.skipped
        assert found.manifest.step == 20 or "checkpoint_committed" not in kinds(events)
        if disk.calls < number:
            break
    else:
        pytest.fail("no save ever ran to its end")
    assert deaths > 8


def cut_everywhere(tmp_path: Path, power: PowerCut, root: Path, num: int) -> tuple[int, list[str]]:
    """Build every state a power cut may leave and look what resume finds; return how many, and what was lost."""
    chance, lost, built = random.Random(3), [], 0
    for moment in range(len(power.log) + 1):
        told = [entry[1] for entry in power.log[:moment] if entry[0] == "event"]
        committed = max((event["step"] for event in told if event["kind"] == "checkpoint_committed"), default=0)
        for state in power.states(root, moment, chance, num):
            built += 1
            place = tmp_path / f"cut-{built}"
            build(state, place)
            found = find_resumable(place, threads=1)
            step = found.manifest.step if found.manifest else 0
            if step < committed:
                lost.append(f"after {power.log[moment - 1][:2]}: {step} < {committed}")
    return built, lost


def record(root: Path, *, without: tuple[str, ...] = ()) -> PowerCut:
    power = PowerCut()
    writer = make_writer(root, [], disk=power.disk(without=without), report=power.mark, retention=Keep(keep_last=1))
    for step in (10, 20):
        save_step([writer], step)
    return power


def test_a_power_cut_at_any_moment_keeps_what_was_committed(tmp_path):
    power = record(tmp_path / "run")
    built, lost = cut_everywhere(tmp_path, power, tmp_path / "run", num=4)
    assert not lost
    assert built > 200 and len(power.log) > 40


@pytest.mark.parametrize("call", ["sync", "sync_dir"])
def test_the_power_cut_would_find_a_forgotten_sync(tmp_path, call):
    power = record(tmp_path / "run", without=(call,))
    _, lost = cut_everywhere(tmp_path, power, tmp_path / "run", num=1)
    assert lost


def test_a_rank_that_cannot_write_fails_the_save_at_once_on_all_ranks(tmp_path):
    make_checkpoint(tmp_path, 10)
    events: list[dict] = []
    writers = [
        make_writer(tmp_path, events, rank=0, world_size=2, parts_timeout_s=60),
        make_writer(tmp_path, events, rank=1, world_size=2, parts_timeout_s=60, disk=disk_full_after(100)),
    ]
    save_step(writers, 20)
    event, lost = events
    assert lost["kind"] == "save_lost" and lost["num"] == 1
    assert event["code"] == "checkpoint/rank-failed" and event["why"].startswith("rank 1 could not write its shard")
    assert find_resumable(tmp_path).manifest.step == 10
    assert not [name for name in names(tmp_path) if "tmp" in name or "trash" in name]


def test_a_rank_that_fails_once_writes_again_with_all_the_others(tmp_path):
    events: list[dict] = []
    settings = {"world_size": 2, "backoff_s": (0.05,), "parts_timeout_s": 60}
    writers = [
        make_writer(tmp_path, events, rank=0, **settings),
        make_writer(tmp_path, events, rank=1, disk=disk_failing_at(2, errno.EIO, for_good=False), **settings),
    ]
    save_step(writers, 20)
    assert kinds(events) == ["checkpoint_failed", "checkpoint_committed"]
    assert [writer.last_committed for writer in writers] == [20, 20]
    assert verify_checkpoint(tmp_path / "step-00000020").world_size == 2


def test_a_rank_that_never_comes_is_named(tmp_path):
    events: list[dict] = []
    writers = [make_writer(tmp_path, events, rank=rank, world_size=3, parts_timeout_s=0.3) for rank in (0, 2)]
    save_step(writers, 20)
    event, lost = events
    assert lost["kind"] == "save_lost" and lost["num"] == 1
    assert event["code"] == "checkpoint/parts-missing" and "rank 1 " in event["why"]
    assert list_checkpoints(tmp_path) == []


def test_ranks_that_write_the_same_rows_are_our_own_fault_and_reach_the_loop(tmp_path):
    writers = [make_writer(tmp_path, [], rank=rank, world_size=2) for rank in range(2)]
    writers[1]._marks = writers[0]._marks
    start_step(writers[:1], 20)
    while not (tmp_path / "step-00000020.tmp-1").exists():
        pass
    write_shard(writers[1]._disk, tmp_path / "step-00000020.tmp-1", rows_shard(0, 2, seed=20), rank=1, marks={})
    with pytest.raises(CheckpointError) as refused:
        writers[0].wait(30)
    assert refused.value.code == "checkpoint/pieces-overlap"
    assert not list_checkpoints(tmp_path)


def test_a_step_written_again_gets_a_name_of_its_own(tmp_path):
    path = make_checkpoint(tmp_path, 10, world_size=1)
    shard = path / "rank-00000.safetensors"
    os.truncate(shard, 100)
    again = make_checkpoint(tmp_path, 10, world_size=1)
    assert again.name == "step-00000010.r1"
    # Nothing is written over; the damaged one goes once the other is committed, as it counts for the same step.
    assert find_resumable(tmp_path).path == again and not path.exists()


def test_a_checkpoint_that_reads_back_wrong_is_not_committed(tmp_path):
    def before(call, name, args):
        if name == "rename" and args[1].name == "step-00000020" and not broken:
            broken.append(1)
            os.truncate(args[0] / "rank-00000.safetensors", 50)

    broken, events = [], []
    save_step([make_writer(tmp_path, events, disk=CountingDisk(before), backoff_s=(0.0,))], 20)
    assert [event.get("code") for event in events] == ["checkpoint/wrong-size", None]
    assert kinds(events)[-1] == "checkpoint_committed" and find_resumable(tmp_path).manifest.step == 20


def test_a_newer_save_takes_the_place_of_one_that_waits_for_another_try(tmp_path):
    events: list[dict] = []
    writer = make_writer(tmp_path, events, disk=disk_failing_at(3, errno.EIO, for_good=False), backoff_s=(60.0,))
    start_step([writer], 20)
    while "checkpoint_failed" not in kinds(events):
        threading.Event().wait(0.005)
    while not writer.reserve():
        threading.Event().wait(0.005)
    save_step([writer], 30)
    assert [event["step"] for event in events if event["kind"] == "checkpoint_committed"] == [30]


def test_a_writer_that_writes_cannot_be_reserved(tmp_path):
    gate = threading.Event()
    writer = make_writer(tmp_path, [], disk=CountingDisk(lambda call, name, args: name != "sync" or gate.wait(20)))
    start_step([writer], 20)
    assert not writer.reserve() and writer.in_flight.step == 20
    gate.set()
    assert writer.wait(30) and writer.reserve()
    writer.release()


def test_planted_symlinks_are_not_written_through(tmp_path):
    outside = tmp_path / "outside"
    outside.write_text("mine")
    root = tmp_path / "run"
    writer = make_writer(root, [])
    (root / "latest").symlink_to(outside)
    (root / "latest.new").symlink_to(outside)
    save_step([writer], 20)
    assert outside.read_text() == "mine" and not (root / "latest").is_symlink()
