"""The last steps of a run in memory that outlives its ranks: written by each rank, read by those of the next attempt.

The memory is one anonymous file of the supervisor (`memfd`): it has no name and no limit of /dev/shm, every rank of
every attempt is handed it open, and when the last process that has it open is gone, so is the memory. Each rank has a
region with two slots. It writes into the one that does not hold the newest step, and the seal of a slot is written
last, so that a rank which dies while it writes leaves the older slot whole. No rank can be two steps ahead of another:
a step sums over all of them. So the newest step that every rank holds is the last one or the one before.

A slot is taken only if it is whole: its seal, which hashes itself, and the hash of its bytes must hold. That hash is
BLAKE3 over the sums of pages of 4 KiB: it finds every flipped bit and every page that is not of this step, at the price
of reading them once.
"""

from __future__ import annotations

import mmap
import os
import struct
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from blake3 import blake3

from headway.checkpoint.disk import FileEntry
from headway.checkpoint.manifest import PieceEntry, TensorEntry, encode_tensors, parse_tensors
from headway.checkpoint.memory_file import REGION_BYTES
from headway.checkpoint.names import shard_name
from headway.checkpoint.shard import Box, Part, Shard
from headway.errors import CheckpointError
from headway.weights.layout import Span, encode_header, header_bytes, parse_header
from headway.weights.strict import Reader, parse_json

_PAGE: Final = 4096
_META_BYTES: Final = 1 << 20
_HEAD: Final = struct.Struct("<8sQQ32s")
"""Magic, bytes of the table, bytes of the data, hash of the table. A hash of all this follows, as behind a seal."""
_SEAL: Final = struct.Struct("<8sQQQQ32s32s")
"""Magic, attempt, number, step, bytes of the small state, its hash, hash of the data."""
_HEAD_MAGIC: Final = b"HWHEAD01"
_SEAL_MAGIC: Final = b"HWSTEP01"
_HASH_BYTES: Final = 32
_DONT_FORK: Final = 10
"""Linux's MADV_DONTFORK: a loader process has no need for it."""
SLOTS: Final = 2
"""The one that holds the newest step, and the one that is written."""

_ROW: Final = 3 * SLOTS + 1
"""Numbers that a rank tells of one region."""

Gather = Callable[[Sequence[int]], Sequence[Sequence[int]]]
"""Takes this rank's numbers, returns every rank's; all ranks call it at the same place with as many."""


@dataclass(frozen=True, slots=True, order=True)
class Kept:
    """Which state a slot holds. Later attempts are newer, whatever their steps: one may have gone back."""

    attempt: int
    number: int
    """Counts the copies of an attempt and of those it continues."""
    step: int


class Region:
    """One rank's part of the file, mapped for writing."""

    def __init__(
        self, file: int, *, rank: int, attempt: int, boxes: Mapping[str, Box], spans: Mapping[str, Span], num_bytes: int
    ) -> None:
        """Take the region over; what it holds stays if it is laid out as these pieces are, and is dropped otherwise."""
        self.num_bytes = num_bytes
        table = _encode_table(boxes, spans, rank)
        self._attempt = attempt
        self._places = _Places(len(table), self.num_bytes)
        self._map = mmap.mmap(file, self._places.end, mmap.MAP_SHARED, offset=rank * REGION_BYTES)
        if sys.platform == "linux":
            self._map.madvise(_DONT_FORK)
        self._newest: Kept | None = None
        self._slot = 0
        head = _signed(_HEAD.pack(_HEAD_MAGIC, len(table), self.num_bytes, blake3(table).digest()))
        if self._map[: len(head)] != head:
            self._map[: len(head)] = bytes(len(head))
            for slot in range(SLOTS):
                self._unseal(slot)
            self._map[_PAGE : _PAGE + len(table)] = table
            self._map[: len(head)] = head

    def continue_from(self, kept: Kept, slot: int) -> None:
        """Keep this slot until a newer one is sealed."""
        self._newest, self._slot = kept, 1 - slot

    def open(self) -> None:
        """Begin to write the next slot: from here on it holds nothing."""
        self._unseal(self._slot)

    @property
    def slot(self) -> int:
        """The slot that is written next."""
        return self._slot

    def data(self, slot: int) -> memoryview:
        """Return the bytes of a slot, to be written once it is opened."""
        start = self._places.data(slot)
        return memoryview(self._map)[start : start + self.num_bytes]

    def seal(self, step: int, small: bytes) -> Kept:
        """Say that the slot holds this step, whole; the very last thing that is written."""
        if len(small) > _META_BYTES:
            raise CheckpointError("checkpoint/memory-small-state", have=len(small), cap=_META_BYTES)
        kept = Kept(self._attempt, self._newest.number + 1 if self._newest else 1, step)
        slot, places = self._slot, self._places
        at = places.seal(slot) + _PAGE
        self._map[at : at + len(small)] = small
        start = places.data(slot)
        with memoryview(self._map)[start : start + places.padded] as data:
            digests = blake3(small).digest(), hash_pages(data)
        seal = _signed(_SEAL.pack(_SEAL_MAGIC, kept.attempt, kept.number, kept.step, len(small), *digests))
        at = places.seal(slot)
        self._map[at : at + len(seal)] = seal
        self._newest, self._slot = kept, 1 - slot
        return kept

    def _unseal(self, slot: int) -> None:
        at = self._places.seal(slot)
        self._map[at : at + _SEAL.size + _HASH_BYTES] = bytes(_SEAL.size + _HASH_BYTES)


@dataclass(frozen=True, slots=True)
class _Places:
    """Where everything is in a region."""

    table_bytes: int
    data_bytes: int

    @property
    def padded(self) -> int:
        """Bytes of the data, up to whole pages."""
        return _up(self.data_bytes)

    @property
    def end(self) -> int:
        return self.seal(SLOTS)

    def seal(self, slot: int) -> int:
        return _PAGE + _up(self.table_bytes) + slot * (_PAGE + _META_BYTES + self.padded)

    def data(self, slot: int) -> int:
        return self.seal(slot) + _PAGE + _META_BYTES


@dataclass(frozen=True, slots=True)
class Slot:
    """A slot whose seal holds; its bytes are not proven yet."""

    kept: Kept
    slot: int
    small_bytes: int
    small_digest: bytes
    data_digest: bytes


class Reading:
    """What one rank's region holds, read without mapping it."""

    def __init__(self, file: int, rank: int) -> None:
        """Read the head and both seals.

        Raises:
            CheckpointError: the region is damaged.
        """
        self._file, self._base, self.rank = file, rank * REGION_BYTES, rank
        self.slots: list[Slot] = []
        """Those that are sealed, the newest first; none where nothing was ever kept."""
        signed = self._read(0, _HEAD.size + _HASH_BYTES)
        if not any(signed):
            return
        head = _check(signed)
        if head is None:
            raise CheckpointError("checkpoint/memory-damaged", rank=rank, what="head")
        _, table_bytes, data_bytes, digest = _HEAD.unpack(head)
        self._places = _Places(table_bytes, data_bytes)
        table = self._read(_PAGE, table_bytes)
        if blake3(table).digest() != digest:
            raise CheckpointError("checkpoint/memory-damaged", rank=rank, what="table")
        self.spans, self.tensors = _decode_table(table, data_bytes, rank)
        self.slots = sorted(filter(None, map(self._slot, range(SLOTS))), key=lambda one: one.kept, reverse=True)

    def find(self, kept: Kept) -> Slot | None:
        """Return the slot with this state."""
        return next((slot for slot in self.slots if slot.kept == kept), None)

    def is_whole(self, slot: Slot) -> bool:
        """Say whether every byte of a slot is as it was when it was sealed."""
        with mmap.mmap(self._file, self._places.end, mmap.MAP_SHARED, mmap.PROT_READ, offset=self._base) as whole:
            start = self._places.data(slot.slot)
            with memoryview(whole)[start : start + self._places.padded] as view:
                is_same = hash_pages(view) == slot.data_digest
        return is_same and blake3(self._small(slot)).digest() == slot.small_digest

    def small(self, slot: Slot) -> Any:
        """Return the small state of a slot; Any: JSON."""
        return parse_json(self._small(slot), where=f"memory of rank {self.rank}")

    def fill(self, slot: Slot, at: int, into: memoryview) -> None:
        """Read bytes of the data, from a place in it on."""
        start, done = self._base + self._places.data(slot.slot) + at, 0
        while done < len(into):
            num = os.preadv(self._file, [into[done:]], start + done)
            if num == 0:
                raise CheckpointError("checkpoint/memory-damaged", rank=self.rank, what="data")
            done += num

    @property
    def part(self) -> Part:
        """What a manifest says of this rank."""
        return Part(shard_name(self.rank), FileEntry(self._places.data_bytes, "0" * 64), self.tensors)

    def _small(self, slot: Slot) -> bytes:
        return self._read(self._places.seal(slot.slot) + _PAGE, slot.small_bytes)

    def _slot(self, number: int) -> Slot | None:
        seal = _check(self._read(self._places.seal(number), _SEAL.size + _HASH_BYTES))
        if seal is None or not seal.startswith(_SEAL_MAGIC):
            return None
        _, attempt, count, step, small_bytes, small_digest, data_digest = _SEAL.unpack(seal)
        return Slot(Kept(attempt, count, step), number, small_bytes, small_digest, data_digest)

    def _read(self, at: int, size: int) -> bytes:
        return os.pread(self._file, size, self._base + at)


@dataclass(frozen=True, slots=True)
class Held:
    """One step that every rank holds whole; a source for `restore`."""

    kept: Kept
    readings: Sequence[Reading]
    slots: Sequence[Slot]
    _ranks: dict[str, int] = field(default_factory=dict)

    def read(self, piece: PieceEntry, start: int, into: memoryview) -> None:
        """Fill bytes from a place in a saved piece."""
        rank = self._ranks.setdefault(piece.file, int(piece.file.partition("-")[2].partition(".")[0]))
        reading = self.readings[rank]
        reading.fill(self.slots[rank], reading.spans[piece.key].start + start, into)

    def small(self) -> list[Any]:
        """Return every rank's small state."""
        return [reading.small(slot) for reading, slot in zip(self.readings, self.slots, strict=True)]


@dataclass(frozen=True, slots=True)
class Search:
    """What the memory has to offer to a new attempt."""

    held: Held | None
    slot: int = 0
    """Of this rank."""
    why: str = ""
    """Why there is nothing to take although something was kept; empty: nothing was."""


def find_held(file: int, *, rank: int, world_size: int, gather: Gather, regions: int | None = None) -> Search:
    """Return the newest step that is held whole; each rank proves the bytes of its regions, and all must agree.

    Args:
        file: the memory.
        rank: who asks, out of `world_size`.
        gather: takes this rank's numbers, returns every rank's.
        regions: ranks that have written it; none: as many as read it.
    """
    regions = world_size if regions is None else regions
    mine = range(rank, regions, world_size)
    # Every rank sends as many numbers, one that has fewer regions than others sends zeros.
    own = [_read_own(file, one) for one in mine]
    told = [number for reading, why in own for number in _numbers(reading, why)]
    rows = gather(told + [0] * (-(-regions // world_size) * _ROW - len(told)))
    found = {one: rows[one % world_size][one // world_size * _ROW :][:_ROW] for one in range(regions)}
    everyones = [{Kept(*row[at : at + 3]) for at in (0, 3) if row[at]} for row in found.values()]
    bad = [str(one) for one, row in found.items() if row[-1]]
    damaged: list[str] = []
    for kept in sorted(set.intersection(*everyones), reverse=True):
        slots = [reading.find(kept) if reading is not None else None for reading, _ in own]
        whole = [
            int(slot is not None and reading is not None and reading.is_whole(slot))
            for slot, (reading, _) in zip(slots, own, strict=True)
        ]
        votes = gather(whole + [1] * (-(-regions // world_size) - len(whole)))
        wrong = [str(one) for one in range(regions) if not votes[one % world_size][one // world_size]]
        if wrong:
            damaged.append(f"step {kept.step}: rank {', '.join(wrong)}")
            continue
        readings = [Reading(file, one) for one in range(regions)]
        proven = [slot for reading in readings if (slot := reading.find(kept)) is not None]
        assert len(proven) == regions, "all have just been found"
        return Search(Held(kept, readings, proven), proven[rank].slot if rank < regions else 0)
    if damaged or bad:
        return Search(None, why="; ".join([*damaged, *(["rank " + ", ".join(bad)] if bad else [])]))
    if any(everyones):
        steps = [max((kept.step for kept in one), default=0) for one in everyones]
        return Search(None, why=f"steps {', '.join(map(str, steps))}")
    return Search(None)


def _numbers(own: Reading | None, why: str) -> list[int]:
    """Return what a rank says of one region: which states it holds, and whether it is damaged."""
    return [number for kept in _pad(own) for number in (kept.attempt, kept.number, kept.step)] + [int(bool(why))]


def _read_own(file: int, rank: int) -> tuple[Reading | None, str]:
    try:
        return Reading(file, rank), ""
    except CheckpointError as err:
        return None, err.text()


def _pad(own: Reading | None) -> list[Kept]:
    found = [slot.kept for slot in own.slots] if own is not None else []
    return [*found, *[Kept(0, 0, 0)] * (SLOTS - len(found))]


def hash_pages(data: memoryview) -> bytes:
    """Return the hash of whole pages."""
    sums = np.frombuffer(data, np.int64).reshape(-1, _PAGE // 8).sum(axis=1)
    return blake3(sums.tobytes()).digest()


def _encode_table(boxes: Mapping[str, Box], spans: Mapping[str, Span], rank: int) -> bytes:
    tensors = Shard(boxes=boxes, spans=spans, data=memoryview(b"")).list_tensors(shard_name(rank))
    return encode_header(spans, {}) + encode_tensors(tensors).encode()


def _decode_table(table: bytes, data_bytes: int, rank: int) -> tuple[dict[str, Span], dict[str, TensorEntry]]:
    where = f"memory of rank {rank}"
    size = header_bytes(table[:8], where=where, file_bytes=len(table) + data_bytes)
    header = parse_header(table[:size], where=where, file_bytes=size + data_bytes)
    return dict(header.spans), parse_tensors(Reader(where), parse_json(table[size:], where=where))


def _signed(words: bytes) -> bytes:
    return words + blake3(words).digest()


def _check(signed: bytes) -> bytes | None:
    """Return what was signed, or None."""
    words, digest = signed[:-_HASH_BYTES], signed[-_HASH_BYTES:]
    return words if blake3(words).digest() == digest else None


def _up(size: int) -> int:
    return -(-size // _PAGE) * _PAGE


def total_bytes(own_bytes: Iterable[int]) -> int:
    """Return the memory that the slots of all ranks take."""
    return sum(SLOTS * _up(size) for size in own_bytes)
