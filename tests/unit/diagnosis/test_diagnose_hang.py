"""Which of the ranks that hang is the odd one."""

from __future__ import annotations

import pytest

from headway.diagnosis import RankView, judge_hang
from headway.messages import say


def view(rank, **facts):
    base = {"state": "S", "step": 5, "phase": "collective", "collectives": 9, "collective": "all_reduce", "numel": 4}
    return RankView(rank=rank, **{**base, **facts})


OUT = {"collective": None, "collectives": 8}


@pytest.mark.parametrize(
    ("odd", "kind"),
    [
        ({"state": "T", **OUT}, "rank-stopped"),
        ({"state": "0", **OUT}, "early-exit"),
        ({"state": "D", **OUT}, "disk-wait"),
        (OUT, "rank-behind"),
        ({**OUT, "cpu_share": 0.99}, "rank-busy"),
        ({**OUT, "cpu_share": 0.2}, "rank-busy"),
        ({**OUT, "state": "R", "cpu_share": 0.0}, "rank-busy"),
        ({**OUT, "stack": ("/x/torch/utils/data/dataloader.py:700 in __next__",)}, "data-stall"),
        ({"collective": "barrier"}, "collective-mismatch"),
        ({"numel": 8}, "collective-mismatch"),
        ({"collectives": 8}, "collective-mismatch"),
        ({"collectives": 10}, "collective-mismatch"),
    ],
)
def test_the_odd_rank_of_four_is_found(odd, kind):
    hang = judge_hang([view(0), view(1), view(2, **odd), view(3)], 12.0)
    assert (hang.kind, hang.rank) == (kind, 2)


def test_ranks_that_all_wait_in_the_same_place_have_no_odd_one():
    hang = judge_hang([view(0), view(1)], 12.0)
    assert (hang.kind, hang.rank) == ("all-wait", None)
    assert not hang.is_certain


def test_a_hang_says_where_both_sides_are():
    facts = judge_hang([view(0), view(1, collective="barrier", numel=-1)], 12.4).facts()
    assert (facts["own"], facts["others"], facts["seconds"]) == ("barrier #9", "all_reduce #9 (4)", 12)


@pytest.mark.parametrize("state", ["S", "R", "D"])
def test_a_rank_that_works_alone_after_the_others_have_left_is_no_early_exit(state):
    hang = judge_hang([view(0, state=state, **OUT), view(1, state="0", **OUT), view(2, state="0", **OUT)], 12.0)
    assert hang.kind != "early-exit"
    assert not hang.is_certain
    assert not hang.is_waited_for


@pytest.mark.parametrize("odd", [{"state": "D"}, {}, {"stack": ("/x/torch/utils/data/dataloader.py:700 in __next__",)}])
def test_a_rank_outside_of_collectives_may_still_come_back(odd):
    hang = judge_hang([view(0, **{**OUT, **odd}), view(1), view(2)], 12.0)
    assert hang.rank == 0
    assert not hang.is_certain
    assert hang.is_waited_for


def test_a_rank_that_others_may_wait_for_keeps_them_from_an_early_exit():
    hang = judge_hang([view(0, **OUT), view(1), view(2, state="0", **OUT)], 12.0)
    assert (hang.kind, hang.rank) == ("rank-behind", 0)


@pytest.mark.parametrize(("ranks", "odd"), [(4, 0), (4, 2), (4, 3), (8, 0), (8, 7), (3, 1)])
@pytest.mark.parametrize("facts", [{"collective": "barrier"}, {"numel": 8}, {"collectives": 8}, {"collectives": 10}])
def test_the_majority_is_right_whichever_rank_is_odd(ranks, odd, facts):
    hang = judge_hang([view(rank, **(facts if rank == odd else {})) for rank in range(ranks)], 12.0)
    assert (hang.kind, hang.rank, hang.code) == ("collective-mismatch", odd, "diagnose/hang-collective-mismatch")


@pytest.mark.parametrize("odd", [0, 1])
@pytest.mark.parametrize("facts", [{"collective": "barrier"}, {"numel": 8}, {"collectives": 8}])
def test_two_ranks_that_disagree_are_both_named_and_neither_is_blamed(odd, facts):
    hang = judge_hang([view(rank, **(facts if rank == odd else {})) for rank in range(2)], 12.0)
    assert (hang.kind, hang.rank, hang.code) == ("collective-mismatch", None, "diagnose/hang-disagree")
    assert "rank 0 and rank 1 disagree" in say(hang.code, "en", **hang.facts()) and hang.is_certain


def test_halves_that_disagree_are_named_as_such():
    hang = judge_hang([view(rank, numel=rank % 2) for rank in range(4)], 12.0)
    assert hang.rank is None
    words = "rank 0, 2 and rank 1, 3 disagree: all_reduce #9 (0) and all_reduce #9 (1)"
    assert say(hang.code, "en", **hang.facts()) == words


@pytest.mark.parametrize("odd", [0, 1])
def test_of_two_ranks_the_one_outside_of_the_collective_is_odd(odd):
    hang = judge_hang([view(rank, **(OUT if rank == odd else {})) for rank in range(2)], 12.0)
    assert (hang.kind, hang.rank) == ("rank-behind", odd)
