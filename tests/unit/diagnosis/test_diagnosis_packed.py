"""A packed log is unpacked in bounded pieces, whatever it is packed with."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import random

import pytest

from headway.diagnosis.log_source import readable

PACKS = {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress}


def pieces(packed):
    file = readable(io.BytesIO(packed))
    found = []
    while piece := file.read(1 << 20):
        found.append(piece)
    return found


@pytest.mark.parametrize("how", PACKS)
@pytest.mark.parametrize("size", [1, 1000, 300_000, 5_000_000])
def test_several_packed_logs_behind_each_other_come_back_byte_for_byte(how, size):
    data = random.Random(size).randbytes(min(size, 300_000)) * (1 if size < 300_000 else size // 300_000)
    found = pieces(PACKS[how](data) + PACKS[how](b"end\n"))
    assert b"".join(found) == data + b"end\n"


@pytest.mark.parametrize("how", PACKS)
def test_a_bomb_is_unpacked_in_pieces(how):
    """300 KB of gzip were 300 MB in memory, several times over."""
    found = pieces(PACKS[how](bytes(20 << 20)))
    assert sum(map(len, found)) == 20 << 20
    assert max(map(len, found)) <= 4 << 20


@pytest.mark.parametrize("how", PACKS)
def test_one_that_is_cut_off_gives_what_is_before_that_place(how):
    data = random.Random(3).randbytes(900_000)
    found = b"".join(pieces(PACKS[how](data)[:450_000]))
    assert (found or how == "bz2") and data.startswith(found)
