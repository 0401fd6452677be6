"""The end of a step as pure functions: what is owed, what is saved, what is best, when it is over."""

from __future__ import annotations

import numpy as np
import pytest

from fakes.engine_run import TINY, make_run, reports
from headway.checkpoint import list_checkpoints, read_manifest
from headway.config import GuardConfig, SaveConfig, load_config
from headway.engine.loop import train
from headway.engine.policy import (
    Course,
    after_roll_back,
    answer_guard,
    choose_save,
    early_stop_event,
    end_step,
    is_over,
    is_save_time,
    is_suspect,
    judge,
)
from headway.engine.progress import Progress, read_progress
from headway.errors import TrainError
from headway.task import find_recipe
from headway.task.order import Order


def course(*words: str) -> Course:
    config = load_config(None, recipe=find_recipe, overrides=[f"recipe={TINY}", *words]).config
    return Course(config=config, total_steps=10, in_epoch=97)


def test_a_step_owes_its_validation_and_trial_and_the_last_one_always_a_validation():
    own = course("eval.every=4", "eval.trial_every=2")
    owed = [end_step(own, Progress(step=step), before=(step - 1, 0)) for step in (1, 2, 4, 10)]
    assert [(one.owes_validation, one.owes_trial) for one in owed] == [
        (False, False),
        (False, True),
        (True, True),
        (True, False),
    ]


def test_a_run_taken_back_owes_what_its_checkpoint_says_and_is_not_saved_again():
    own, back = course("eval.every=4", "save.every=4"), Progress(step=4, owes_validation=False)
    assert end_step(own, back, before=(6, 24)) is back
    wishes = {"is_stop_wanted": False, "is_save_wanted": True}
    assert choose_save(own, back, before=(6, 24), **wishes) == "no"


def test_an_epoch_that_ends_in_samples_left_out_counts_with_the_step_after_them():
    # The epoch ends at 97, inside 92 to 100, which the guard left out.
    own, stands = course("eval.every_epochs=1"), Progress(step=9, position=104, skips=[(92, 100)])
    assert end_step(own, stands, before=(8, 92)).owes_validation
    assert not end_step(own, Progress(step=10 - 1, position=108), before=(8, 104)).owes_validation


def test_the_best_is_judged_once_and_the_older_ones_are_remembered():
    stands = Progress(step=2, owes_validation=True)
    for step, value in ((2, 3.0), (4, 2.0), (6, 2.5), (8, float("nan")), (10, 1.0)):
        stands.step = step
        stands = judge(stands, value)
    assert (stands.best_step, stands.best_value, stands.older_bests, stands.stale) == (10, 1.0, [4, 2], 0)
    assert not stands.owes_validation


def test_patience_ends_a_run_and_says_so():
    own, stands = course("eval.patience=2"), Progress(step=6, best_step=2, stale=2)
    assert is_over(own, stands) and not is_over(course(), stands)
    assert early_stop_event(own, stands)["facts"] == {"step": 6, "stale": 2, "best": 2, "more": 4}
    assert early_stop_event(own, Progress(step=10, stale=2)) is None


def test_progress_of_an_older_checkpoint_is_read():
    stored = {"step": 3, "position": 12, "updates": 3, "ledger": 0, "skips": [[4, 8]], "stale": 1}
    found = read_progress({"is_validation_owed": True, "progress": stored})
    assert (found.owes_validation, found.owes_trial, found.skips) == (True, False, [(4, 8)])


def suspects(run) -> list[int]:
    return [info.step for info in list_checkpoints(run.checkpoints) if read_manifest(info.path).suspect]


def bad_sample(step: int) -> str:
    ids, _ = Order(97, 0).samples(np.arange(97))
    return f"task.nan_samples=[{ids[4 * step - 4]}]"


GUARDED = ("guard.policy=skip", "train.steps=12", "save.keep_last=99", "task.dropout=0")


def test_the_first_checkpoint_after_a_guards_event_is_suspect_and_no_other_after_a_resume(tmp_path):
    # Counted in epochs, a save waits for an older one: none is left out on a busy machine.
    words = (*GUARDED, bad_sample(3), "save.every_epochs=0.0825", "save.keep_best=false")
    run = make_run(tmp_path, *words)
    run.is_stop_wanted = lambda: run.progress.step >= 7
    train(run)
    train(make_run(tmp_path, *words, attempt=2))
    assert suspects(run) == [4]


def test_the_best_checkpoint_is_never_suspect(tmp_path):
    run = make_run(tmp_path, *GUARDED, bad_sample(3), "save.every=4", "eval.every=4")
    run.task.summarize = lambda sums: {"mse": 1 / run.progress.step}
    train(run)
    newest = {info.step: info.path for info in list_checkpoints(run.checkpoints)}
    assert reports(tmp_path, "validation")[0]["best"] and not read_manifest(newest[4]).suspect


def test_what_was_rolled_back_is_not_suspect_and_its_validation_counts_once(tmp_path):
    words = ("guard.policy=rollback", "train.steps=8", bad_sample(6), "eval.every=4", "save.keep_last=99")
    run = make_run(tmp_path, *words)
    run.task.summarize = lambda sums: {"mse": 1.0}
    assert train(run) == "done"
    assert [event["step"] for event in reports(tmp_path, "validation")] == [4, 8]
    assert (run.progress.stale, suspects(run)) == (1, [])


def test_an_empty_validation_set_is_refused_before_the_first_step(tmp_path):
    with pytest.raises(TrainError) as refused:
        make_run(tmp_path, "task.held_out=0")
    assert refused.value.code == "engine/no-validation-samples"


def test_a_resumed_run_that_has_nothing_left_to_do_ends_well(tmp_path):
    train(make_run(tmp_path, "train.steps=4"))
    assert train(make_run(tmp_path, "train.steps=4", attempt=2)) == "done"


@pytest.mark.parametrize("steps", [5, 3])
def test_a_run_made_no_longer_than_it_is_holds_its_last_validation_once(tmp_path, steps):
    """It was stopped at a step that was not to be validated; then that step became its last."""
    common = ("eval.every=0", "save.every=0")
    run = make_run(tmp_path, "train.steps=10", *common)
    run.is_stop_wanted = lambda: run.progress.step + 1 >= 5
    assert train(run) == "stopped"
    for attempt in (2, 3):
        again = make_run(tmp_path, f"train.steps={steps}", *common, attempt=attempt)
        assert train(again) == "done"
        assert (again.progress.best_step, again.progress.stale) == (5, 0)
    assert [event["step"] for event in reports(tmp_path, "validation")] == [5]
    assert read_manifest(list_checkpoints(again.checkpoints)[-1].path).measures


def test_an_early_stop_says_so_is_saved_and_is_kept_by_a_resumed_run(tmp_path):
    words = ("train.steps=50", "eval.every=2", "eval.patience=2", "save.keep_best=false", "lr.base=1e-9")
    for attempt in (1, 2):
        run = make_run(tmp_path, *words, attempt=attempt)
        run.task.summarize = lambda sums: {"mse": 1.0}
        assert train(run) == "done"
        assert [info.step for info in list_checkpoints(run.checkpoints)] == [6]
    assert [event["code"] for event in reports(tmp_path, "warning")] == ["engine/stopped-early"] * 2


@pytest.mark.parametrize(
    ("policy", "events", "code", "is_roll_back"),
    [
        ("stop", 0, "engine/not-finite", False),
        ("skip", 2, None, False),
        ("skip", 3, "engine/not-finite-limit", False),
        ("rollback", 2, None, True),
        ("rollback", 3, "engine/not-finite-limit", True),
    ],
)
def test_the_guard_goes_on_up_to_its_limit_and_names_rank_step_and_samples(policy, events, code, is_roll_back):
    stands = Progress(step=6, guard_events=events)
    found = answer_guard(GuardConfig(policy=policy, limit=3), stands, what="loss", rank=2, samples=[7, 9])
    assert (found.error.code if found.error else None, found.is_roll_back) == (code, is_roll_back)
    assert found.event == {
        "kind": "guard",
        "step": 7,
        "rank": 2,
        "samples": [7, 9],
        "policy": policy,
        "what": "loss",
    }
    assert found.facts == {"what": "loss", "rank": 2, "step": 7, "samples": "7, 9"}
    assert stands.guard_events == events, "whoever carries it out counts"


def test_a_guard_that_finds_no_sample_says_so():
    assert (
        answer_guard(GuardConfig(policy="skip"), Progress(), what="gradient", rank=0, samples=[]).facts["samples"]
        == "n/a"
    )


def test_a_roll_back_leaves_out_the_bad_step_and_all_that_was_left_out_before():
    before = Progress(step=9, position=72, guard_events=2, skips=[(16, 24), (40, 48)], best_step=8)
    restored = Progress(step=4, position=32, guard_events=1, skips=[(16, 24)], best_step=4, updates=3)
    now = after_roll_back(restored, before, (64, 72))
    assert now.skips == [(16, 24), (40, 48), (64, 72)]
    assert (now.guard_events, now.step, now.position, now.best_step, now.updates) == (2, 4, 32, 4, 3)
    assert restored.skips == [(16, 24)], "the checkpoint's own is left alone"


@pytest.mark.parametrize(
    ("every_s", "asked_at", "now", "is_time"),
    [
        (None, 0.0, 1e9, False),
        (60.0, 0.0, 159.9, False),
        (60.0, 0.0, 160.0, True),
        (None, 100.0, 100.0, False),
        (None, 100.1, 100.2, True),
    ],
)
def test_a_save_is_wanted_by_the_clock_or_by_a_wish_newer_than_the_last_save(every_s, asked_at, now, is_time):
    assert is_save_time(SaveConfig(every_s=every_s), saved_at=100.0, asked_at=asked_at, now=now) is is_time


def test_a_checkpoint_is_suspect_after_a_new_guard_event_unless_it_is_proven_best():
    assert is_suspect(Progress(step=5, guard_events=2), 1)
    assert not is_suspect(Progress(step=5, guard_events=2), 2)
    assert not is_suspect(Progress(step=5, guard_events=2, best_step=5), 1)
    assert is_suspect(Progress(step=5, guard_events=2, best_step=4), 1)
