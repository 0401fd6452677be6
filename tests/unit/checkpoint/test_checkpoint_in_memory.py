"""The last step in memory: what is taken, what is refused, and which step when ranks hold different ones."""

from __future__ import annotations

import os
import random

import pytest

from headway.checkpoint.in_memory import Region, find_held
from headway.checkpoint.manifest import PieceEntry
from headway.checkpoint.memory_file import REGION_BYTES, make_file
from headway.checkpoint.names import shard_name
from headway.checkpoint.shard import Box
from headway.weights.layout import lay_out

SIZE = 5000


@pytest.fixture
def file():
    made = make_file(2)
    yield made
    os.close(made)


def region(file, rank, attempt=1, size=SIZE):
    spans = lay_out({f"w{rank}": ("U8", (size,))})
    boxes = {f"w{rank}": Box(f"w{rank}", (size,), (0,))}
    return Region(file, rank=rank, attempt=attempt, boxes=boxes, spans=spans, num_bytes=size)


def write(into, step):
    into.open()
    into.data(into.slot)[:] = bytes([step]) * len(into.data(into.slot))
    return into.seal(step, b'{"step": %d}' % step)


def find(file):
    """Search as both ranks would, one after the other: rounds of gathering are answered from a first pass."""
    asked = {0: [], 1: []}
    while True:
        found, is_short = {}, False
        for rank in (0, 1):
            turn = iter(range(99))

            def gather(row, rank=rank, turn=turn):
                at = next(turn)
                if len(asked[rank]) == at:
                    asked[rank].append(list(row))
                if len(asked[1 - rank]) == at:
                    raise LookupError
                return [asked[one][at] for one in (0, 1)]

            try:
                found[rank] = find_held(file, rank=rank, world_size=2, gather=gather)
            except LookupError:
                is_short = True
        if not is_short:
            return found[0], found[1]


def content(held, rank):
    into = bytearray(SIZE)
    held.read(PieceEntry(shard_name(rank), f"w{rank}", (0,), (SIZE,)), 0, memoryview(into))
    return set(into)


def test_nothing_was_kept_and_nothing_is_said(file):
    assert [(one.held, one.why) for one in find(file)] == [(None, "")] * 2


def test_the_newest_step_of_all_ranks_is_taken(file):
    ranks = [region(file, rank) for rank in (0, 1)]
    for step in (1, 2, 3):
        for one in ranks:
            write(one, step)
    held = find(file)[0].held
    assert held.kept.step == 3
    assert [content(held, rank) for rank in (0, 1)] == [{3}, {3}]
    assert held.small() == [{"step": 3}, {"step": 3}]


def test_a_rank_killed_while_it_copies_leaves_the_step_before(file):
    ranks = [region(file, rank) for rank in (0, 1)]
    for one in ranks:
        write(one, 1)
    write(ranks[0], 2)
    ranks[1].open()
    ranks[1].data(ranks[1].slot)[:100] = b"x" * 100
    assert [one.held.kept.step for one in find(file)] == [1, 1]


def test_ranks_with_nothing_in_common_are_refused(file):
    ranks = [region(file, rank) for rank in (0, 1)]
    write(ranks[0], 1)
    found = find(file)
    assert found[0].held is None
    assert found[0].why == "steps 1, 0"


def test_every_flipped_bit_of_the_copy_is_found(file):
    draw = random.Random(7)
    ranks = [region(file, rank) for rank in (0, 1)]
    for step in (1, 2):
        for one in ranks:
            write(one, step)
    start = next(at for at in range(0, 4 << 20, 4096) if os.pread(file, 16, REGION_BYTES + at) == b"\2" * 16)
    for _ in range(50):
        at = REGION_BYTES + start + draw.randrange(SIZE)
        (byte,) = os.pread(file, 1, at)
        os.pwrite(file, bytes([byte ^ 1 << draw.randrange(8)]), at)
        assert find(file)[0].held.kept.step == 1
        os.pwrite(file, bytes([byte]), at)
    assert find(file)[0].held.kept.step == 2


def test_a_damaged_seal_or_head_is_never_taken(file):
    ranks = [region(file, rank) for rank in (0, 1)]
    for one in ranks:
        write(one, 1)
    os.pwrite(file, b"\xff", REGION_BYTES + 9)
    found = find(file)
    assert (found[0].held, found[0].why) == (None, "rank 1")


def test_a_later_attempt_is_newer_whatever_its_step(file):
    ranks = [region(file, rank) for rank in (0, 1)]
    for step in (8, 9):
        for one in ranks:
            write(one, step)
    again = [region(file, rank, attempt=2) for rank in (0, 1)]
    for one in again:
        write(one, 4)  # from a checkpoint, or after the guard went back
    assert find(file)[0].held.kept.step == 4


def test_the_step_that_was_taken_up_stays_until_the_next_one_is_sealed(file):
    ranks = [region(file, rank) for rank in (0, 1)]
    for step in (1, 2):
        for one in ranks:
            write(one, step)
    found = find(file)
    again = [region(file, rank, attempt=2) for rank in (0, 1)]
    for one, search in zip(again, found, strict=True):
        one.continue_from(search.held.kept, search.slot)
    write(again[0], 3)
    again[1].open()
    assert find(file)[0].held.kept.step == 2


def test_another_layout_drops_what_was_kept(file):
    for rank in (0, 1):
        write(region(file, rank), 1)
    region(file, 1, attempt=2, size=SIZE + 1)
    assert find(file)[0].held is None
