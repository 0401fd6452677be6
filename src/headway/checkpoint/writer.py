"""The background half of a save, one per rank: write, agree through the folder, commit, retry from memory.

Rank 0 makes the temporary folder; the other ranks write into it when they see it, and learn from the folder how it
ended. No message passes between ranks, so a save can neither disturb nor wait for the training's own traffic.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal, Protocol

from headway.checkpoint.commit import (
    SaveFields,
    gather_parts,
    leave_mark,
    merge_parts,
    point_latest,
    prove,
    seal,
)
from headway.checkpoint.disk import Abandoned, Disk, RealDisk
from headway.checkpoint.failure import DISK_FAULTS, OWN_FAULTS, explain, read_space, too_full
from headway.checkpoint.manifest import Manifest, TensorEntry, encode_manifest
from headway.checkpoint.names import (
    TempName,
    dropped_name,
    parse_dropped,
    parse_final,
    parse_temp,
    shard_name,
)
from headway.checkpoint.retention import best_there, discard, plan_prune, sweep
from headway.checkpoint.search import CheckpointInfo, list_checkpoints, read_latest
from headway.checkpoint.shard import Part, Shard, write_shard
from headway.checkpoint.verify import read_manifest
from headway.errors import CheckpointError

Report = Callable[[dict[str, Any]], None]
"""Takes an event; called from the writer's thread."""

_FIRST_POLL_S: Final = 0.005
_LAST_POLL_S: Final = 0.1
_MOST_LOST: Final = 2
"""Saves in a row that may fail their own verification before the run ends: it would have nothing to show."""


class Retention(Protocol):
    """What stays; the `save` section of a config is one."""

    @property
    def keep_last(self) -> int:
        """Newest checkpoints to keep."""

    @property
    def keep_every(self) -> int | None:
        """Keep every multiple of this step."""

    @property
    def keep_best(self) -> bool:
        """Keep the one with the best validation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Save:
    """One rank's state of one step, on the host, on its way to the disk."""

    step: int
    shard: Shard
    fields: SaveFields
    stall_s: float
    """Time the loop waited for the copy."""
    began: float
    """Monotonic seconds."""


class Writer:
    """Writes one save at a time in a thread of its own."""

    def __init__(
        self,
        root: Path,
        *,
        rank: int,
        world_size: int,
        attempt: int,
        retention: Retention,
        report: Report,
        disk: Disk | None = None,
        parts_timeout_s: float = 600.0,
        backoff_s: Sequence[float] = (1.0, 5.0, 20.0),
    ) -> None:
        self.root, self.rank, self.world_size, self.attempt = root, rank, world_size, attempt
        self.last_committed: int | None = None
        self._retention, self._report, self._disk = retention, report, disk or RealDisk()
        self._parts_timeout_s, self._backoff_s = parts_timeout_s, tuple(backoff_s)
        self._turn = threading.Condition()
        self._state: Literal["idle", "writing", "waiting"] = "idle"
        self._is_superseded = False
        self._is_held = False
        self._thread: threading.Thread | None = None
        self._fault: BaseException | None = None
        self._verified: set[Path] = set()
        self._broken: set[Path] = set()
        self._lost = 0
        self._known: Mapping[str, TensorEntry] | None = None
        """The tensors of the last checkpoint that was read back and understood."""
        self._save: Save | None = None
        if rank == 0:
            self._prepare_root()

    @property
    def in_flight(self) -> Save | None:
        """The save that is not over yet."""
        return self._save

    def reserve(self) -> bool:
        """Hold the writer for a new save, unless bytes of an older one are still on their way.

        While it is held no other try of an older save begins, so that the ranks can agree. Then `begin` or `release`.
        """
        with self._turn:
            if self._state == "writing":
                return False
            self._is_held = True
        if self.rank == 0:
            self._clear_marks()
        return True

    def release(self) -> None:
        """Let an older save continue with its tries."""
        with self._turn:
            self._is_held = False
            self._turn.notify_all()

    def give_up(self) -> None:
        """Let no older save continue: what it was to write is gone, or a newer one takes its place."""
        with self._turn:
            self._is_superseded = True
            self._turn.notify_all()
        self.wait(None)
        self._is_superseded, self._is_held = False, False

    def trust(self, path: Path, step: int) -> None:
        """Take a checkpoint that was read and proven, and that the run continues from, as committed."""
        self.last_committed = step
        self._verified.add(path)

    def distrust(self, skipped: Iterable[tuple[Path, CheckpointError]]) -> None:
        """Take checkpoints that did not pass as broken; one that could not be read just now may yet be intact."""
        self._broken.update(path for path, why in skipped if why.code != "checkpoint/unreadable")

    def begin(self, save: Save) -> None:
        """Start writing; an older save that only waits for another try is given up."""
        self.give_up()
        self._state, self._save = "writing", save
        self._thread = threading.Thread(target=self._run, args=(save,), name=f"save-{save.step}", daemon=True)
        self._thread.start()

    def poll(self) -> bool:
        """Tell whether nothing is in flight; raise what went wrong in the thread if it was our own fault."""
        if self._fault is not None:
            fault, self._fault = self._fault, None
            raise fault
        return self._thread is None or not self._thread.is_alive()

    def wait(self, deadline_s: float | None) -> bool:
        """Wait for the save in flight to end, one way or the other; tell whether it did."""
        if self._thread is not None:
            self._thread.join(deadline_s)
        return self.poll()

    def _prepare_root(self) -> None:
        try:
            self.root.mkdir(parents=True, exist_ok=True)
        except OSError as err:
            raise explain(err, path=self.root, need_bytes=0, disk=self._disk) from err
        try:
            sweep(self.root, self.attempt, disk=self._disk)
        except OSError as err:
            self._warn(explain(err, path=self.root, need_bytes=0, disk=self._disk))

    def _clear_marks(self) -> None:
        """Remove rank 0's own dropped marks: the next ones mean the next save."""
        try:
            for name in os.listdir(self.root):
                if parse_dropped(name) is not None:
                    self._disk.unlink(self.root / name)
        except OSError as err:
            self._warn(explain(err, path=self.root, need_bytes=0, disk=self._disk))

    def _warn(self, failure: CheckpointError) -> None:
        """Report what failed without harm to any checkpoint."""
        facts = {key: str(value) for key, value in failure.facts.items()}
        self._report({"kind": "warning", "code": "checkpoint/tidy-failed", "facts": {**facts, "text": failure.text()}})

    def _run(self, save: Save) -> None:
        try:
            if self.rank == 0:
                self._lead(save)
            else:
                self._follow(save)
        except BaseException as err:  # border: a fault in this thread must reach the loop, `poll` raises it there
            self._fault = err
        finally:
            with self._turn:
                self._state, self._save = "idle", None

    # rank 0

    def _lead(self, save: Save) -> None:
        for number, backoff_s in enumerate((*self._backoff_s, None)):
            place, failure = self._try_commit(save, number)
            if failure is None:
                return
            left = self._clear_away(place)
            retry_s = None if failure.code in {*OWN_FAULTS, "checkpoint/parts-missing"} else backoff_s
            self._report_failure(save, failure, retry_s=retry_s, left=left)
            if failure.code in OWN_FAULTS:
                self._mark_dropped(save.step)
                raise failure
            if retry_s is None or not self._pause(retry_s):
                break
        self._mark_dropped(save.step)
        assert failure is not None, "a save without one has returned"
        self._lose(save, failure)

    def _lose(self, save: Save, failure: CheckpointError) -> None:
        """Say loudly that a step will not be saved; what no disk is to blame for, twice in a row, ends the run."""
        self._lost += 1
        facts = {"num": self._lost, "committed": self.last_committed, "why": failure.text(), "hint": failure.hint()}
        self._report({"kind": "save_lost", "step": save.step, "code": failure.code, **facts})
        if failure.code not in DISK_FAULTS and self._lost >= _MOST_LOST:
            raise CheckpointError("checkpoint/saves-keep-failing", num=self._lost, why=failure.text())

    def _try_commit(self, save: Save, number: int) -> tuple[Path | None, CheckpointError | None]:
        """Write and commit once; return what is left lying on failure, and why."""
        place: Path | None = None
        try:
            self._make_room(save)
            folder = self.root / str(self._make_temp_name(save.step, number))
            self._disk.make_dir(folder)
            place = folder
            is_alone = self.world_size == 1
            own = write_shard(self._disk, folder, save.shard, rank=0, marks=self._marks(save), is_alone=is_alone)
            parts = gather_parts(folder, self.world_size, own, timeout_s=self._parts_timeout_s)
            manifest = merge_parts(parts, step=save.step, attempt=self.attempt, fields=save.fields, where=str(folder))
            data = encode_manifest(manifest)
            place = seal(self._disk, self.root, folder, manifest, data)
            prove(self._disk, self.root, place, manifest, data, is_known=manifest.tensors == self._known)
            self._known = manifest.tensors
        except OSError as err:
            return place, explain(err, path=self.root, need_bytes=save.shard.need_bytes, disk=self._disk)
        except CheckpointError as err:
            return place, err
        self._settle(save, place, manifest)
        return None, None

    def _settle(self, save: Save, final: Path, manifest: Manifest) -> None:
        """Say that it is committed, then do what may fail without harm."""
        self.last_committed, self._lost = save.step, 0
        self._verified.add(final)
        self._report(
            {
                "kind": "checkpoint_committed",
                "step": save.step,
                "path": str(final),
                "bytes": manifest.total_bytes,
                "stall_s": round(save.stall_s, 6),
                "write_s": round(time.monotonic() - save.began, 6),
            }
        )
        try:
            point_latest(self._disk, self.root, final)
        except OSError as err:
            self._warn(explain(err, path=self.root, need_bytes=0, disk=self._disk))
            self._mark_dropped(save.step)  # the others look for the hint; nothing more is coming
        try:
            self._prune(save)
        except OSError as err:
            self._warn(explain(err, path=self.root, need_bytes=0, disk=self._disk))
        except CheckpointError as err:
            self._warn(err)

    def _prune(self, save: Save) -> None:
        infos = [replace(info, is_verified=self._is_sound(info, save.step)) for info in list_checkpoints(self.root)]
        best = best_there(infos, (save.fields.best_step, *save.fields.older_bests))
        for path in plan_prune(
            infos,
            keep_last=self._retention.keep_last,
            keep_every=self._retention.keep_every,
            best_step=best if self._retention.keep_best else None,
        ):
            discard(self.root, path, disk=self._disk)
            name = parse_final(path.name)
            self._report({"kind": "checkpoint_pruned", "step": name.step if name else None, "path": str(path)})

    def _is_sound(self, info: CheckpointInfo, step: int) -> bool | None:
        """Say what this run knows of a checkpoint; None: nothing."""
        if info.path in self._verified:
            return True
        # Newer than the step that is saved means: resume looked at it and did not take it.
        return False if info.path in self._broken or info.step > step else None

    def _make_room(self, save: Save) -> None:
        """Refuse at once what cannot fit; what retention lets go anyway goes first."""
        need = save.shard.need_bytes
        everyones = need * self.world_size  # ranks hold about the same; what one of them lacks shows when it writes
        if not self.root.exists():
            self._disk.make_dir(self.root)  # somebody removed it; its parent must still be there
        if self._disk.space(self.root).free_bytes >= everyones:
            return
        self._prune(save)
        space = self._disk.space(self.root)
        if space.free_bytes < need:
            raise too_full(self.root, need_bytes=need, space=space)

    def _make_temp_name(self, step: int, number: int) -> TempName:
        """Return the next temporary name nobody has: one that could not be removed is never written to again."""
        names = [parse_temp(name) for name in os.listdir(self.root)]
        taken = [name.number for name in names if name and (name.step, name.attempt) == (step, self.attempt)]
        return TempName(step, self.attempt, max([number, *(used + 1 for used in taken)]))

    def _clear_away(self, place: Path | None) -> Path | None:
        """Remove what a failed try wrote; return it when that fails too."""
        if place is None:
            return None
        try:
            discard(self.root, place, disk=self._disk)
        except OSError:
            return place  # named in the failure's event; the next start sweeps it
        return None

    def _mark_dropped(self, step: int) -> None:
        """Tell the other ranks that no other try will come."""
        if self.world_size == 1:
            return
        try:
            self._disk.close(self._disk.create(self.root / dropped_name(step, self.attempt)))
        except OSError:
            return  # the others find out by their own deadline

    def _report_failure(
        self,
        save: Save,
        failure: CheckpointError,
        *,
        retry_s: float | None,
        left: Path | None,
        folder: Path | None = None,
    ) -> None:
        space = read_space(self._disk, self.root)
        self._report(
            {
                "kind": "checkpoint_failed",
                "step": save.step,
                "rank": self.rank,
                "why": failure.text(),
                "code": failure.code,
                "path": str(failure.facts.get("path", self.root)),
                "need_bytes": save.shard.need_bytes,
                "free_bytes": space.free_bytes if space else None,
                "retry_s": retry_s,
                "left": str(left) if left else None,
                "folder": str(folder) if folder else None,
            }
        )

    # the other ranks

    def _follow(self, save: Save) -> None:
        part: Part | None = None
        tried, wait_s = -1, _FIRST_POLL_S
        deadline = time.monotonic() + self._parts_timeout_s
        while time.monotonic() < deadline:
            if part is not None and self._is_committed(save.step, part):
                self.last_committed = save.step
                return
            if os.path.lexists(self.root / dropped_name(save.step, self.attempt)):
                return
            temp = self._find_temp(save.step)
            if temp is not None and temp.number > tried:
                if not self._take_turn():
                    return
                tried, part = temp.number, self._write_part(save, self.root / str(temp))
                wait_s, deadline = _FIRST_POLL_S, time.monotonic() + self._parts_timeout_s
            if not self._pause(wait_s, is_turn_over=True):
                return
            wait_s = min(wait_s * 1.5, _LAST_POLL_S)

    def _write_part(self, save: Save, folder: Path) -> Part | None:
        """Write this rank's shard; when that fails, leave a mark so that rank 0 need not wait."""
        try:
            marks = self._marks(save)
            return write_shard(
                self._disk, folder, save.shard, rank=self.rank, marks=marks, keep_going=lambda: not _is_gone(folder)
            )
        except Abandoned:
            return None
        except OSError as err:
            if _is_gone(folder):
                return None  # rank 0 dropped this try
            failure = explain(err, path=folder, need_bytes=save.shard.need_bytes, disk=self._disk)
        self._leave_mark(save, folder, failure)
        return None

    def _leave_mark(self, save: Save, folder: Path, failure: CheckpointError) -> None:
        try:
            # What was written is worth nothing and may be what fills the disk.
            (folder / shard_name(self.rank)).unlink(missing_ok=True)
            leave_mark(self._disk, folder, self.rank, failure.text())
        except OSError:
            # Rank 0 cannot be told through the folder, so this rank tells the supervisor, which leaves the mark.
            self._report_failure(save, failure, retry_s=None, left=None, folder=folder)

    def _find_temp(self, step: int) -> TempName | None:
        try:
            names = [parse_temp(name) for name in os.listdir(self.root)]
        except OSError:
            return None  # rank 0 sees it too, and reports it
        mine = [name for name in names if name and (name.step, name.attempt) == (step, self.attempt)]
        return max(mine, default=None)

    def _is_committed(self, step: int, part: Part) -> bool:
        """Tell whether rank 0 has committed and proved exactly what this rank wrote."""
        try:
            latest = read_latest(self.root)
        except OSError:
            # The hint cannot be read here. A checkpoint under its final name has been sealed with this rank's part.
            latest = next((info.path for info in self._finals() if info.step == step), None)
        name = parse_final(latest.name) if latest else None
        if latest is None or name is None or name.step != step:
            return False
        try:
            return read_manifest(latest).files.get(part.file) == part.entry
        except CheckpointError:
            return False  # pruned or replaced meanwhile; the deadline bounds the waiting

    def _finals(self) -> list[CheckpointInfo]:
        try:
            return list_checkpoints(self.root)[::-1]
        except CheckpointError:
            return []  # the deadline bounds the waiting

    # turns: while a thread waits, a newer save may take its place

    def _pause(self, seconds: float, *, is_turn_over: bool = False) -> bool:
        """Wait, ready to be superseded; say whether to continue. `is_turn_over` leaves the writer not busy after it."""
        with self._turn:
            self._state = "waiting"
            self._turn.wait_for(lambda: self._is_superseded, timeout=seconds)
        return not self._is_superseded if is_turn_over else self._take_turn()

    def _take_turn(self) -> bool:
        """Begin to write, unless a newer save has come; while the writer is held, wait for what is decided."""
        with self._turn:
            self._turn.wait_for(lambda: self._is_superseded or not self._is_held)
            if self._is_superseded:
                return False
            self._state = "writing"
            return True

    def _marks(self, save: Save) -> dict[str, str]:
        """What a shard says about itself, so that one in the wrong place can be named."""
        return {
            "format": "pt",
            "step": str(save.step),
            "attempt": str(self.attempt),
            "world_size": str(self.world_size),
        }


def _is_gone(path: Path) -> bool:
    """Tell whether a name was removed; a disk that cannot say is not an answer, and ends no thread."""
    try:
        os.lstat(path)
    except OSError as err:
        return isinstance(err, FileNotFoundError)
    return False
