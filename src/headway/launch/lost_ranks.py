"""Ranks that are lost permanently: the same batch on those that are left, and on all of them when they are back.

The micro-batches of a step stay what they are; only who takes them changes. The loop divides the sum of all gradients
once by the sum of all counts, so a rank that takes two micro-batches weighs twice as much as one that takes one, and
the step is the same but for the order in which it is added up. Learning rates go by samples, which do not change.
"""

from __future__ import annotations

import contextlib
import re
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from headway.errors import UsageError
from headway.launch.job import Job, Training, read_job, write_job
from headway.launch.verdict import Scene, Verdict
from headway.messages import say
from headway.telemetry import Beat, RunDir, write_json

_OWN: Final = frozenset({"killed", "crashed", "device-error", "unknown-end", "rank-stopped", "rank-busy", "disk-wait"})
"""Ends and hangs that may be the fault of what one rank runs on."""
_GONE: Final = re.compile(
    r"(?i)GPU is lost|fallen off the bus|uncorrectable (?:NVLink|ECC) error|ErrorECCUncorrectable|device unavailable"
)
"""Of a GPU that is out of order: no attempt helps."""
_MAY_BE_GONE: Final = frozenset({"device-error", "no-gpu", "killed", "crashed", "unknown-end"})
_LONGEST_S: Final = 3600.0
_STEPS: Final = 3
"""Taken before ranks are tried again, and before one that is back is trusted."""
_PROBE_S: Final = 10.0
_KEPT: Final = ("world_size", "accumulation", "strategy", "gpus", "gpu_uuids")
"""Of the plan with all ranks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherRanks:
    """The run on fewer ranks, or on all of them again."""

    job: Job
    facts: Mapping[str, object]
    """Of the message `launch/ranks-fewer` or `launch/ranks-back`."""


def alive(job: Job) -> list[int]:
    """Return which of the planned ranks are left: rank r of an attempt is the r-th of them."""
    lost = _lost(job)
    total = lost["full"]["world_size"] if lost else job.world_size
    return [one for one in range(total) if one not in (lost["ranks"] if lost else ())]


def without(job: Job, ranks: Sequence[int]) -> OtherRanks | None:
    """Return the run without these of its planned ranks; None: nobody would be left, or it cannot be dealt out."""
    training = job.program
    left = [one for one in alive(job) if one not in ranks]
    if not isinstance(training, Training) or training.probe is not None or not left:
        return None
    plan = training.plan
    before = _lost(job)
    full = before["full"] if before else {name: plan.get(name, ()) for name in _KEPT}
    devices = before["devices"] if before else None if job.devices is None else list(job.devices)
    lost: dict[str, Any] = {
        "ranks": sorted({*(before["ranks"] if before else ()), *ranks}),
        "full": full,
        "devices": devices,
    }
    total = full["world_size"]
    uuids, gpus, own = (_of(left, many or (), total) for many in (full["gpu_uuids"], full["gpus"], devices))
    in_step = plan["batch_samples"] // plan["micro_batch"]
    accumulation = -(-in_step // len(left))
    changed = {
        "world_size": len(left),
        "accumulation": accumulation,
        "strategy": "single" if len(left) == 1 else full["strategy"],
        "gpus": gpus,
        "gpu_uuids": uuids,
        # What was foreseen was foreseen for all ranks.
        "forecast": None,
    }
    # By their names: a GPU that has gone may have changed the numbers of the others.
    names: Sequence[object] = uuids if plan["device"] == "cuda" and uuids else own
    devices_now = tuple(str(one) for one in names)
    facts = {
        "lost": ", ".join(map(str, lost["ranks"])),
        "before": job.world_size,
        "after": len(left),
        "batch": plan["batch_samples"],
        "least": in_step // len(left),
        "most": accumulation,
    }
    return OtherRanks(job=_changed(job, changed, lost, None if devices is None else devices_now), facts=facts)


def with_all(job: Job) -> OtherRanks | None:
    """Return the run on all the ranks it was planned for; None: none of them is lost."""
    lost = _lost(job)
    if not lost:
        return None
    assert isinstance(job.program, Training)
    plan, full = job.program.plan, dict(lost["full"])
    # The micro-batch may have become smaller meanwhile.
    full["accumulation"] = -(-(plan["batch_samples"] // plan["micro_batch"]) // full["world_size"])
    facts = {
        "lost": ", ".join(map(str, lost["ranks"])),
        "before": job.world_size,
        "after": full["world_size"],
        "batch": plan["batch_samples"],
    }
    devices = lost["devices"]
    return OtherRanks(job=_changed(job, full, None, None if devices is None else tuple(devices)), facts=facts)


def write_ranks(run: RunDir, other: OtherRanks) -> None:
    """Let every rank that starts from now on find the new numbers."""
    assert isinstance(other.job.program, Training)
    write_job(run, other.job)
    write_json(run.plan, dict(other.job.program.plan))


def _of(left: Sequence[int], many: Sequence[object], total: int) -> list[object]:
    """Return what belongs to the ranks that are left, of what there is one of for each rank."""
    return [many[one] for one in left] if len(many) == total else list(many)


def _lost(job: Job) -> Mapping[str, Any]:
    """Any: plain JSON, see `Training.lost`."""
    return (job.program.lost or {}) if isinstance(job.program, Training) else {}


def _changed(
    job: Job, changed: Mapping[str, Any], lost: Mapping[str, Any] | None, devices: tuple[str, ...] | None
) -> Job:
    training = job.program
    assert isinstance(training, Training)
    plan = {**training.plan, **changed}
    values = {"ranks": plan["world_size"], "batch-accumulation": plan["accumulation"]}
    plan["rows"] = [_row(row, values, lost) for row in plan.get("rows", ())]
    program = replace(training, plan=plan, lost=lost)
    return replace(job, program=program, world_size=plan["world_size"], devices=devices)


def _row(row: Mapping[str, Any], values: Mapping[str, int], lost: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return a row of the plan's table with the new numbers and where they come from."""
    if row["key"] not in values:
        return dict(row)
    code, facts = "plan/from-all-ranks", {}
    if lost is not None:
        code, facts = "plan/from-lost-ranks", {"lost": ", ".join(map(str, lost["ranks"]))}
    origin = {"origin": say(code, "en", **facts), "origin_code": code, "facts": facts}
    return {**row, "value": str(values[row["key"]]), **origin}


class LostRanks:
    """Tells ranks that are lost from those that have only failed, and when to try lost ones again."""

    def __init__(self, run: RunDir, job: Job) -> None:
        launch = job.program.config["launch"] if isinstance(job.program, Training) else {}
        self.job = job
        self._wish = wish_file(run)
        self._after = min(int(launch.get("lost_after", 2)), job.restarts)
        self._is_wanted = launch.get("on_lost", "stop") == "continue" and job.restarts > 0
        self._first_wait_s = self._wait_s = float(launch.get("return_s", 60.0))
        self._retry_at = time.monotonic() + self._wait_s
        self._reached = 0
        self._lost_at = -1
        """Step at which ranks were lost last."""
        self._suspect: int | None = None
        self._again = 0
        self._begun: tuple[int, int] | None = None
        self._back: frozenset[int] = frozenset()
        """Ranks that have come back and have not taken steps yet."""
        self._probe: DeviceProbe | None = None
        self.is_returning = False
        """The ranks were asked to save and end, so that all can start again."""

    def take(self, job: Job) -> None:
        """Continue with another number of ranks."""
        before, self.job = alive(self.job), job
        self._back = frozenset(alive(job)) - frozenset(before)
        self._suspect, self._again, self.is_returning, self._begun = None, 0, False, None
        if not self._back:
            self._lost_at = self._reached
        if not self._back:  # each time in vain, wait twice as long
            self._retry_at = time.monotonic() + self._wait_s
            self._wait_s = min(_LONGEST_S, 2 * self._wait_s)
        self._forget_wish()

    def hear(self, scene: Scene, verdict: Verdict) -> OtherRanks | None:
        """Take in the end of an attempt; return the run without the ranks that are lost by it."""
        has_moved = scene.reach.steps > self._reached
        self._reached = max(self._reached, scene.reach.steps)
        self.is_returning = False
        incident = verdict.incident
        if incident is None or scene.stop is not None or not self._is_wanted:
            return None
        hang = scene.attempt.hang
        rank, kind = (hang.rank, hang.kind) if hang is not None else (incident.rank, incident.diagnosis.kind)
        if rank is None or kind not in _OWN | _MAY_BE_GONE:
            self._suspect = None
            return None
        slot = alive(self.job)[rank]
        is_same = slot == self._suspect and not has_moved
        self._suspect, self._again = slot, self._again + 1 if is_same else 0
        said = f"{incident.diagnosis.evidence} {incident.diagnosis.facts.get('text', '')}"
        gone = [slot] if _GONE.search(said) else self._missing() if kind in _MAY_BE_GONE else []
        # Another one, and no step since the last was lost: it is what they run, not what they run on.
        is_other = slot not in self._back and self._reached == self._lost_at
        is_lost = (
            kind in _OWN and not is_other and (self._again >= self._after or (slot in self._back and not has_moved))
        )
        if not gone and not is_lost:
            return None
        return without(self.job, gone or [slot])

    def _missing(self) -> list[int]:
        """Return the ranks whose GPU is not among those that the driver shows."""
        uuids = self.job.program.plan.get("gpu_uuids") if isinstance(self.job.program, Training) else ()
        slots = alive(self.job)
        if not uuids or len(uuids) != len(slots):
            return []
        probe = DeviceProbe()
        seen = probe.wait()
        # None at all: the driver does not answer, which says nothing of one GPU.
        return [] if not seen else [slot for slot, uuid in zip(slots, uuids, strict=True) if uuid not in seen]

    def is_time(self, beats: Sequence[Beat | None]) -> bool:
        """Say whether the ranks are to save and end now so that all can start again; called ten times per second."""
        steps = [beat.step for beat in beats if beat is not None]
        if len(steps) < len(beats) or self.is_returning:
            return False
        attempt, step = max(beat.attempt for beat in beats if beat is not None), min(steps)
        if self._begun is None or self._begun[0] != attempt:
            self._begun = attempt, step
        if step < self._begun[1] + _STEPS:
            return False
        if self._back:
            self._back, self._wait_s = frozenset(), self._first_wait_s
        if not _lost(self.job) or not self._is_wanted:
            return False
        is_asked = self._wish.exists()
        if not is_asked and time.monotonic() < self._retry_at:
            return False
        return self._are_there(is_asked=is_asked)

    def _are_there(self, *, is_asked: bool) -> bool:
        """Say whether the devices of the lost ranks answer; of a processor nobody can tell before it is tried."""
        full = _lost(self.job)["full"]
        wanted = [full["gpu_uuids"][one] for one in _lost(self.job)["ranks"] if full["gpu_uuids"]]
        if not wanted:
            return True
        if self._probe is None:
            self._probe = DeviceProbe()
        seen = self._probe.poll()
        if seen is None:
            return False  # it is still looking
        self._probe = None
        self._retry_at = time.monotonic() + self._first_wait_s  # to look costs nothing, so the wait does not grow
        if set(wanted) <= seen:
            return True
        if is_asked:
            self._forget_wish()
        return False

    def _forget_wish(self) -> None:
        with contextlib.suppress(OSError):
            self._wish.unlink(missing_ok=True)

    def close(self) -> None:
        """Let go of a look that is under way."""
        if self._probe is not None:
            self._probe.close()


def wish_file(run: RunDir) -> Path:
    """Return the file by which `headway resume --add` asks a supervisor to take lost ranks back."""
    return run.root / "take-back"


def ask_back(run: RunDir) -> str:
    """Ask the supervisor of a run to take its lost ranks back now; return which they are.

    Raises:
        UsageError: none is lost.
    """
    lost = _lost(read_job(run))
    if not lost:
        raise UsageError("launch/nothing-lost", run=run.name)
    wish_file(run).touch()
    return ", ".join(map(str, lost["ranks"]))


class DeviceProbe:
    """Asks the driver which GPUs it shows, in a process of its own: a driver that hangs must not hold up anybody."""

    def __init__(self, command: Sequence[str] = ("nvidia-smi", "--query-gpu=uuid", "--format=csv,noheader")) -> None:
        self._until = time.monotonic() + _PROBE_S
        self._process: subprocess.Popen[str] | None = None
        with contextlib.suppress(OSError):  # no such program: nothing is known
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
            )

    def poll(self) -> frozenset[str] | None:
        """Return the GPUs by their names, none where the driver does not answer; None: not known yet."""
        process = self._process
        if process is None:
            return frozenset()
        if process.poll() is None:
            if time.monotonic() < self._until:
                return None
            self.close()
            return frozenset()
        assert process.stdout is not None
        lines = process.stdout.read().splitlines()
        process.stdout.close()
        self._process = None
        return frozenset(line.strip() for line in lines if line.startswith(("GPU-", "MIG-")))

    def wait(self) -> frozenset[str]:
        """Return the answer, at the latest when the time is up."""
        while (found := self.poll()) is None:
            time.sleep(0.02)
        return found

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            if self._process.stdout is not None:
                self._process.stdout.close()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(0.5)
            self._process = None
