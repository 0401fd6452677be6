"""The last finished step, kept in memory that outlives this rank, and the way back to it after a fault.

What is kept is what a checkpoint holds, and it is taken up by the same code. It costs the ranks no message: each keeps
its own part, and a rank that is killed meanwhile leaves the step before whole (checkpoint/in_memory.py).
"""

from __future__ import annotations

import contextlib
import json
import os
import statistics
import time
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import torch

from headway.checkpoint import find_likely
from headway.checkpoint.commit import SaveFields, merge_parts
from headway.checkpoint.in_memory import SLOTS, Held, Region, Search, find_held, total_bytes
from headway.checkpoint.torch_state import copy_all, end_of, is_written, outline, pin, place_pieces, restore
from headway.engine.policy import is_multiple
from headway.engine.progress import read_progress
from headway.engine.rank_state import Run
from headway.engine.snapshot import fixed_facts, kept_pieces, rng_pieces, standing, take_up
from headway.errors import CheckpointError
from headway.machine import free_address_bytes, free_memory_bytes
from headway.units import size
from headway.weights.strict import finite_json

SHARE: Final = 0.05
"""Of the training time: what the copies may cost where the user has not said how often he wants them."""
_ROOM: Final = 0.5
"""Of the free memory: what the copies may take."""
_RECENT: Final = 8
_FIRST: Final = 3
"""Copies that say nothing about the price: they touch the memory for the first time."""
_TELL_AFTER: Final = 10
"""Copies after which their price is known."""
_MASK: Final = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class _Copying:
    """What is copied and where to, for each slot."""

    sources: list[torch.Tensor]
    """Weights, moments and statistics: the same memory in every step."""
    targets: list[list[torch.Tensor]]
    rng_targets: list[list[torch.Tensor]]


class LastStep:
    """Keeps steps of one rank, at most as often as its price allows."""

    def __init__(self, run: Run, region: Region, copying: _Copying, held: Search) -> None:
        self._region, self._copying = region, copying
        self._every = run.config.save.in_memory
        self._fixed = fixed_facts(run)
        self._kept_step: int | None = None
        self._since = 0
        self._cost_s: deque[float] = deque(maxlen=_RECENT)
        self._pace_s: deque[float] = deque(maxlen=_RECENT)
        self._sent_at: float | None = None
        self._num = 0
        self._older: int | None = None
        """Memory from before the number of ranks changed; freed once all ranks have kept a step in the new one."""
        if held.held is not None:
            region.continue_from(held.held.kept, held.slot)
            self._kept_step = held.held.kept.step

    def free_later(self, file: int) -> None:
        """Free a memory that this one replaces, as soon as it does."""
        self._older = file

    def is_wanted(self) -> bool:
        """Say whether this rank, at this price, wants the step that is under way kept; called once a step."""
        now = time.monotonic()
        if self._sent_at is not None:
            self._pace_s.append(now - self._sent_at)
        self._sent_at = now
        if self._every != "auto" or len(self._cost_s) < _FIRST:
            return True
        # The least of the last: a copy that was held up by something else says nothing about the price.
        cost_s, pace_s = min(self._cost_s), statistics.median(self._pace_s)
        return (self._since + 1) * pace_s * SHARE >= cost_s

    def is_due(self, step: int, *, is_wanted: bool) -> bool:
        """Say whether a step that has ended is kept, the same on every rank."""
        self._since += 1
        return is_wanted if self._every == "auto" else is_multiple(step, int(self._every))

    def has(self, step: int) -> bool:
        """Say whether the newest state that is kept is of this step."""
        return self._kept_step == step

    def keep(self, run: Run, *, is_saved: bool) -> None:
        """Copy the state; the loop waits for it.

        Args:
            is_saved: a checkpoint of this very state is begun right after.
        """
        # On CPU ranks the processor's time: on a crowded machine a wait for a core says nothing about the price.
        clock = time.monotonic if run.ranks.device.type == "cuda" else time.thread_time
        began = clock()
        region, copying, slot = self._region, self._copying, self._region.slot
        region.open()
        if run.ranks.device.type != "cuda":
            if copying.sources:  # of a tiny model one of many ranks may own nothing but its generators
                with torch.no_grad():
                    torch._foreach_copy_(copying.targets[slot], copying.sources)
        else:
            copy_all(copying.sources, copying.targets[slot])
        copy_all([piece.tensor for piece in rng_pieces(run)], copying.rng_targets[slot])
        # Nothing is to be missing of a step that will not be taken again.
        run.metrics.flush()
        try:
            region.seal(run.progress.step, self._small(run, is_saved=is_saved))
        except CheckpointError as err:  # its small state is too large: the run has its checkpoints
            run.last_step = None
            run.reporter.event({"kind": "warning", "code": err.code, "facts": dict(err.facts)})
            return
        self._kept_step, self._since = run.progress.step, 0
        self._cost_s.append(clock() - began)
        self._num += 1
        if self._older is not None and self._num == 2:  # all have sealed their first, or this step had no sums
            if run.ranks.rank == 0:
                os.ftruncate(self._older, 0)
            self._older = None
        if self._num == _TELL_AFTER and run.ranks.rank == 0:
            self._tell(run)

    def _small(self, run: Run, *, is_saved: bool) -> bytes:
        own: dict[str, Any] = {"ledger": run.ledger.peek()}
        if run.ranks.rank == 0:
            own |= {
                "strategy": run.plan.strategy,
                "meta": {**standing(run), **self._fixed},
                "measures": run.measures,
                "measured_step": run.measured_step,
                "saved": run.progress.step if is_saved else run.saved_step,
            }
        return json.dumps(finite_json(own)).encode()

    def _tell(self, run: Run) -> None:
        """Say once what the copies cost."""
        cost_s, pace_s = min(self._cost_s), statistics.median(self._pace_s) if self._pace_s else 0.0
        every = self._every if self._every != "auto" else max(1, -(-cost_s // (pace_s * SHARE))) if pace_s else 1
        event = {"kind": "memory_copies", "every": int(every), "copy_ms": round(cost_s * 1000, 3)}
        run.reporter.event({**event, "step_ms": round(pace_s * 1000, 3), "bytes": self._region.num_bytes})


@dataclass(frozen=True, slots=True)
class Older:
    """The memory that was written before the number of ranks changed."""

    file: int
    world_size: int


def go_back(run: Run, file: int | None, attempt: int, older: Older | None = None) -> bool:
    """Take up the newest step that all ranks hold in memory, and keep steps from here on; say whether there was one.

    Args:
        file: the memory that outlives the ranks; None: there is none.
        attempt: number of this attempt.
        older: where a step is looked for if `file` holds nothing yet.
    """
    if file is None or run.config.save.in_memory == 0:
        return False
    ranks = run.ranks
    search = find_held(file, rank=ranks.rank, world_size=ranks.world_size, gather=ranks.gather)
    own = search
    if search.held is None and not search.why and older is not None:
        own, search = (
            Search(None),
            find_held(
                older.file, rank=ranks.rank, world_size=ranks.world_size, gather=ranks.gather, regions=older.world_size
            ),
        )
    why = search.why
    held = search.held
    if held is not None:
        why = _take_up(run, held)
        if any(vote for (vote,) in ranks.gather([int(bool(why))])):
            search = own = Search(None)
            why = why or "another rank could not read its part"
            # Some ranks have taken up a part of it already: only a checkpoint makes them whole again.
            run.needs_checkpoint = True
        else:
            _look_at_disk(run, held.small()[0]["saved"])
            run.metrics.go_back(run.progress.step)
    if why:
        run.reporter.event({"kind": "memory_refused", "rank": ranks.rank, "why": why})
    run.last_step = _open(run, file, attempt, own)
    if run.last_step is not None and older is not None:
        run.last_step.free_later(older.file)
    return search.held is not None


def _open(run: Run, file: int, attempt: int, search: Search) -> LastStep | None:
    pieces, rng = (list(filter(is_written, found)) for found in (kept_pieces(run), rng_pieces(run)))
    boxes, spans = outline([*pieces, *rng])
    num_bytes, ranks = end_of(spans), run.ranks
    if search.held is None and not _has_room(run, num_bytes):
        return None
    region = None
    try:
        region = Region(file, rank=ranks.rank, attempt=attempt, boxes=boxes, spans=spans, num_bytes=num_bytes)
    except OSError as err:  # there is no room for it in the addresses of this process
        facts = {"why": err.strerror or str(err)}
        run.reporter.event({"kind": "warning", "code": "launch/no-memory-file", "facts": facts})
    if any(vote for (vote,) in ranks.gather([int(region is None)])) or region is None:
        return None
    buffers = [torch.frombuffer(region.data(slot), dtype=torch.uint8) for slot in range(SLOTS)]
    if ranks.device.type == "cuda":
        for buffer in buffers:
            _pin(run, buffer)
    copying = _Copying(
        sources=[piece.tensor.detach() for piece in pieces],
        targets=[place_pieces(pieces, spans, buffer) for buffer in buffers],
        rng_targets=[place_pieces(rng, spans, buffer) for buffer in buffers],
    )
    return LastStep(run, region, copying, search)


def _pin(run: Run, buffer: torch.Tensor) -> None:
    """Let the GPU write into this memory by itself; where it may not, copies are slower and cost what they cost."""
    code = pin(buffer)
    if code != 0:
        run.reporter.event({"kind": "warning", "code": "engine/memory-not-pinned", "facts": {"code": code}})


def _has_room(run: Run, own_bytes: int) -> bool:
    """Say, the same on every rank, whether the copies leave the machine enough memory."""
    rows = run.ranks.gather([own_bytes, free_memory_bytes(), free_address_bytes()])
    # All of them share the machine's memory; addresses (`ulimit -v`) each has of its own.
    sides = [(total_bytes(row[0] for row in rows), rows[0][1]), *[(total_bytes(row[:1]), row[2]) for row in rows]]
    tight = [(need, free) for need, free in sides if need > _ROOM * free]
    if not tight:
        return True
    if run.ranks.rank == 0:
        facts = {"need": size(tight[0][0]), "free": size(tight[0][1])}
        run.reporter.event({"kind": "warning", "code": "engine/memory-no-room", "facts": facts})
    return False


def _take_up(run: Run, held: Held) -> str:
    """Bring the run to a step that is held in memory; return why that cannot be, or nothing."""
    everyones = held.small()
    first = everyones[0]
    fields = SaveFields(strategy=first["strategy"], samples=first["meta"]["progress"]["position"], meta=first["meta"])
    where = Path("memory")
    try:
        parts = [reading.part for reading in held.readings]
        manifest = merge_parts(parts, step=held.kept.step, attempt=held.kept.attempt, fields=fields, where=str(where))
        take_up(run, manifest, lambda pieces: restore(where, manifest, pieces, partial=True, source=held))
    except CheckpointError as err:
        return err.text()
    run.progress.ledger = (run.progress.ledger + sum(small["ledger"] for small in everyones)) & _MASK
    run.measures, run.measured_step = first["measures"], first["measured_step"]
    return ""


def _look_at_disk(run: Run, saved: int | None) -> None:
    """Note which checkpoint is the newest, and whether one that was begun is missing."""
    newest = [-1, 0, 0]
    if run.ranks.rank == 0:
        with contextlib.suppress(CheckpointError):  # a disk that cannot be read just now: a save will tell
            if (manifest := find_likely(run.checkpoints).manifest) is not None:
                newest = [manifest.step, int(manifest.suspect), read_progress(manifest.meta).guard_events]
    step, suspect, events = run.ranks.gather(newest)[0]
    # What the disk has of this very step was not read and proven: where it is needed, it is written again.
    run.saved_step = step if 0 <= step != run.progress.step else None
    run.is_saved_suspect, run.guard_events_saved = bool(suspect), events
    run.owes_save = saved is not None and step < saved
