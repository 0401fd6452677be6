from __future__ import annotations

import errno
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakes.disks import CountingDisk, Crash, Keep, disk_dying_at, make_checkpoint, make_writer, save_step
from headway.checkpoint import CheckpointInfo, find_resumable, list_checkpoints, plan_prune, prune, sweep
from headway.checkpoint.disk import Space


def info(step: int, is_verified: bool | None = True, rewrite: int = 0) -> CheckpointInfo:
    return CheckpointInfo(path=Path(f"{step}.{rewrite}"), step=step, rewrite=rewrite, is_verified=is_verified)


def gone(infos, **rule) -> list[int]:
    rule = {"keep_last": 2, "keep_every": None, "best_step": None, **rule}
    steps = {info.path: info.step for info in infos}
    return [steps[path] for path in plan_prune(infos, **rule)]


def test_the_newest_stay():
    assert gone([info(step) for step in (10, 2, 30, 4)]) == [2, 4]


def test_multiples_and_the_best_stay():
    infos = [info(step) for step in (10, 20, 30, 40, 50)]
    assert gone(infos, keep_last=1, keep_every=20, best_step=10) == [30]


def test_what_is_in_use_stays():
    infos = [info(step) for step in (10, 20, 30)]
    assert gone(infos, keep_last=1, in_use=[infos[0].path]) == [20]


def test_nothing_goes_while_nothing_is_verified():
    assert gone([info(step, None) for step in range(9)], keep_last=1) == []


def test_broken_ones_do_not_count_as_kept():
    infos = [info(10), info(20), info(30, False), info(40, False)]
    assert gone(infos, keep_last=2) == []
    assert gone([*infos, info(50)], keep_last=2) == [10, 30, 40]


def test_a_step_written_twice_does_not_push_out_another_step():
    twice = [info(10), info(20), info(30), info(30, rewrite=1)]
    assert gone(twice) == [10, 30]
    unproven = [info(10), info(20), info(30), info(30, None, rewrite=1)]
    assert gone(unproven) == [10, 20], "only what is proven takes another's place"


def test_a_second_writing_replaces_the_first():
    infos = [info(10, False), info(10, True, 1)]
    assert plan_prune(infos, keep_last=1, keep_every=None, best_step=10) == [Path("10.0")]


@given(
    st.lists(st.tuples(st.integers(0, 40), st.sampled_from([True, False, None])), unique_by=lambda pair: pair[0]),
    st.integers(1, 4),
    st.none() | st.integers(1, 7),
    st.none() | st.integers(0, 40),
)
def test_the_last_verified_and_the_best_always_stay(pairs, keep_last, keep_every, best):
    infos = [info(step, is_verified) for step, is_verified in pairs]
    left = {one.step for one in infos} - set(gone(infos, keep_last=keep_last, keep_every=keep_every, best_step=best))
    verified = [step for step, is_verified in pairs if is_verified]
    assert not verified or max(verified) in left
    assert not any(step == best and ok is not False for step, ok in pairs) or best in left
    assert all(step in left for step, _ in pairs if not verified or step > max(verified))


def test_steps_are_listed_by_number_and_nothing_half_done_is(tmp_path):
    names = ["step-00000009", "step-00000010", "step-100000000", "step-00000010.r1"]
    junk = [
        "step-00000011.tmp-1",
        "step-00000012.trash-0a0b0c0d",
        "step-13",
        "latest",
        "notes",
        "step-00000014.dropped-1",
    ]
    for name in (*names, *junk):
        (tmp_path / name).mkdir()
    found = [info.path.name for info in list_checkpoints(tmp_path)]
    assert found == ["step-00000009", "step-00000010", "step-00000010.r1", "step-100000000"]


def test_a_saver_keeps_what_the_rule_says(tmp_path):
    events: list[dict] = []
    writer = make_writer(tmp_path, events, retention=Keep(keep_last=1, keep_every=40))
    for step in range(10, 70, 10):
        save_step([writer], step, best_step=20)
    assert [info.step for info in list_checkpoints(tmp_path)] == [20, 40, 60]
    assert [event["step"] for event in events if event["kind"] == "checkpoint_pruned"] == [10, 30, 50]
    assert (tmp_path / "latest").read_text() == "step-00000060\n"


def failing_once(step: int) -> CountingDisk:
    """Return a disk on which no folder of this step can be made."""

    def fail(number, name, args):
        if name == "make_dir" and f"step-{step:08d}" in str(args[0]):
            raise OSError(errno.ENOSPC, "No space left on device")

    return CountingDisk(fail)


def test_the_older_best_stays_when_the_new_best_could_not_be_saved(tmp_path):
    writer = make_writer(tmp_path, [], retention=Keep(keep_last=1), disk=failing_once(8))
    save_step([writer], 4, best_step=4)
    save_step([writer], 8, best_step=8, older_bests=[4])
    for step in (12, 16):
        save_step([writer], step, best_step=8, older_bests=[4])
    assert [info.step for info in list_checkpoints(tmp_path)] == [4, 16]
    save_step([writer], 20, best_step=20, older_bests=[8, 4])
    assert [info.step for info in list_checkpoints(tmp_path)] == [20]


def test_a_resumed_writer_makes_room_by_what_the_run_goes_on_from(tmp_path):
    paths = [make_checkpoint(tmp_path, step, world_size=1) for step in (10, 20, 30)]
    events: list[dict] = []
    disk = CountingDisk(lambda number, name, args: None)
    disk.space = lambda path: Space(0 if len(list_checkpoints(tmp_path)) > 1 else 1 << 40, None)
    writer = make_writer(tmp_path, events, retention=Keep(keep_last=1), disk=disk, attempt=2)
    writer.trust(paths[-1], 30)
    save_step([writer], 40)
    assert [event["kind"] for event in events if event["kind"] != "checkpoint_pruned"] == ["checkpoint_committed"]
    assert writer.last_committed == 40


def test_pruning_cut_short_at_any_call_leaves_whole_checkpoints_and_sweeping_finishes(tmp_path):
    for number in range(1, 30):
        root = tmp_path / str(number)
        paths = [make_checkpoint(root, step, world_size=1) for step in (10, 20, 30)]
        disk = disk_dying_at(number)
        try:
            prune(root, paths[:2], disk=disk)
        except Crash:
            pass
        else:
            break
        found = find_resumable(root)
        assert found.path == paths[2] and not found.skipped
        for one in list_checkpoints(root):
            assert find_resumable(root).path is not None and not (one.path.name).endswith("trash")
        assert all(find_resumable_at(info.path) for info in list_checkpoints(root))
        sweep(root, 1)
        assert not [path.name for path in root.iterdir() if "trash" in path.name]
    else:
        pytest.fail("pruning never came to its end")
    assert number > 8


def find_resumable_at(path: Path) -> bool:
    from headway.checkpoint import verify_checkpoint

    return verify_checkpoint(path).step > 0


def test_sweeping_takes_dead_attempts_and_leaves_everything_else(tmp_path):
    make_checkpoint(tmp_path, 10)
    stale = ["step-00000020.tmp-1", "step-00000020.tmp-2.3", "step-00000005.trash-00ff00ff"]
    mine = ["step-00000030.tmp-3", "notes", "step-00000040.tmp-x"]
    for name in (*stale, *mine):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text("x")
    (tmp_path / "step-00000020.dropped-1").touch()
    (tmp_path / "outside").mkdir()
    (tmp_path / "step-00000021.tmp-1").symlink_to(tmp_path / "outside")
    assert len(sweep(tmp_path, 2)) == 5
    left = sorted(path.name for path in tmp_path.iterdir())
    assert left == ["latest", "notes", "outside", "step-00000010", "step-00000030.tmp-3", "step-00000040.tmp-x"]


def test_is_verified_is_the_only_thing_a_plan_takes_on_trust():
    infos = [replace(info(step), is_verified=None) for step in (1, 2)]
    assert gone([*infos, info(3)], keep_last=1) == [1, 2]
