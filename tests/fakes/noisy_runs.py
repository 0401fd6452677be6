"""Runs that never were: thousands of noisy steps of several ranks with readings of a machine, healthy or with a fault.

The time is made up, so ten thousand steps take a second. What is drawn differs from seed to seed: how long a step is,
how noisy, how heavy its tail, pauses for checkpoints, validation and garbage collection, how the loss falls.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, field
from typing import Any, Final

from headway.diagnosis.live import Judgement
from headway.diagnosis.live_scene import Scene, Step
from headway.telemetry import Beat, Event

GIB: Final = 1 << 30
FAULTS: Final = {
    "starved": ("live/data-starved", "live/data-starved-cores"),
    "starved-bursts": ("live/data-starved", "live/data-starved-cores"),
    "straggler": ("live/straggler",),
    "creep": ("live/memory-creep",),
    "gpu-creep": ("live/memory-creep",),
    "heat": ("devices/gpu-hot",),
    "power": ("devices/gpu-power-cap", "devices/gpu-brake"),
    "spike": ("live/loss-spike",),
    "nan": ("live/loss-nan",),
    "flat": ("live/plateau",),
    "stale": ("live/plateau",),
    "plan-slow": ("live/plan-slow",),
    "plan-memory": ("live/plan-memory",),
    "disk-slow": ("live/disk-slow",),
    "disk-filling": ("live/disk-filling",),
    "stranger": ("live/stranger",),
    "rank-waits": ("live/rank-waits",),
    "gpu-idle": ("live/gpu-idle",),
    "gpu-warm": ("live/gpu-warm",),
    "gpu-memory": ("live/gpu-memory",),
    "saving": ("live/save-share",),
}
"""A fault and the codes of which one must be found."""


@dataclass(slots=True, kw_only=True)
class Made:
    """One run that is made up."""

    seed: int
    steps: int = 10_000
    fault: str | None = None
    look_steps: int = 25
    """Steps between two looks; a run in real time is looked at every five seconds."""
    events: list[Event] = field(default_factory=list)
    """What was found."""

    def play(self) -> list[Event]:
        """Play the run to its end; return what was found."""
        draw = random.Random(f"{self.seed}/{self.fault}")
        run = _Run(draw, self.steps, self.fault)
        judgement = Judgement(run.scene.about)
        while run.step < self.steps:
            for _ in range(min(self.look_steps, self.steps - run.step)):
                run.take_step()
            self.events += judgement.see_devices(run.read(), run.scene.left_s)
            self.events += judgement.see(run.scene)
            if run.is_stuck:
                for _ in range(30):
                    run.now += 5.0
                    run.read()
                    self.events += judgement.see(run.scene)
                break
        self.events += judgement.close()
        return self.events

    def codes(self) -> set[str]:
        """Return what was found, by code."""
        return {str(event["code"]) for event in self.events if event["kind"] == "finding"}


class _Run:
    def __init__(self, draw: random.Random, steps: int, fault: str | None) -> None:
        self.draw, self.fault = draw, fault
        self.world = draw.choice([1, 2, 4, 8]) if fault not in ("straggler", "rank-waits") else draw.choice([2, 4, 8])
        self.is_gpu = draw.random() < 0.7 or fault in _GPU_FAULTS
        self.base = math.exp(draw.uniform(math.log(0.08), math.log(2.0)))
        self.noise = draw.uniform(0.01, 0.12)
        self.tail = draw.uniform(0.0, 0.01)
        """Share of steps that take several times as long: another job, a collection of garbage, a slow sample."""
        self.data_share = draw.uniform(0.0, 0.05)
        self.save_every, self.eval_every = draw.choice([200, 500, 1000]), draw.choice([100, 250, 1000])
        self.save_s, self.eval_s = (draw.uniform(0.5, 12) * self.base * part for part in (2, 5))
        self.start_loss, self.floor = draw.uniform(2, 12), draw.uniform(0.1, 2)
        self.power, self.loss_noise = draw.uniform(0.15, 0.5), draw.uniform(0.005, 0.08)
        self.begins = steps // 3
        """Step from which the fault shows."""
        self.now, self.step, self.is_stuck = 1.8e9 + draw.random() * 1e6, 0, False
        self.commit_bytes = draw.uniform(0.1, 20) * GIB
        self.total_bytes = draw.choice([24, 80]) * GIB
        self.ranks_bytes = draw.uniform(2, 6) * GIB
        self.used = draw.uniform(0.72, 0.79)
        self.disk_free = draw.uniform(200, 2000) * GIB
        planned = self.base * draw.uniform(0.8, 1.25)
        self.scene = Scene(
            name="made",
            plan={
                "world_size": self.world,
                "device": "cuda" if self.is_gpu else "cpu",
                "gpus": list(range(self.world)) if self.is_gpu else [],
                "workers": draw.choice([1, 2, 4]),
                "micro_batch": 8,
                "total_steps": steps,
                "batch_samples": 64,
                "warmup_samples": 64 * draw.choice([0, 100, 500]),
                "forecast": {
                    "step_s": planned / (2.5 if fault == "plan-slow" else 1),
                    "allocated_bytes": self.used * self.total_bytes / (2 if fault == "plan-memory" else 1),
                    "used_bytes": (self.used * self.total_bytes if self.is_gpu else self.ranks_bytes)
                    / (2 if fault == "plan-memory" else 1),
                },
            },
            config={"save": {"every": self.save_every, "keep_last": 2}, "lr": {"base": 1e-3}},
            about={
                "cores": 64,
                "mem": 512 * GIB,
                "gpus": [
                    {"i": at, "mem": self.total_bytes, "clock": 1980, "power_cap": 700.0}
                    for at in range(self.world if self.is_gpu else 0)
                ],
            },
            pids=range(1000, 1000 + self.world),
            began=self.now,
        )
        self.scene.now = self.now

    @property
    def is_on(self) -> bool:
        return self.fault is not None and self.step >= self.begins

    def take_step(self) -> None:
        """All ranks take a step together: it ends when the slowest has done its work."""
        draw, fault = self.draw, self.fault if self.is_on else None
        self.step += 1
        data, works = [], []
        for rank in range(self.world):
            wait = self.base * self.data_share * draw.random() * 2
            if fault == "starved":
                wait = self.base * draw.uniform(0.3, 0.7)
            if fault == "starved-bursts":
                wait = self.base * 3.0 * draw.uniform(0.8, 1.2) if self.step % 4 == 0 else wait
            work = self.base * max(0.3, draw.gauss(1, self.noise))
            if draw.random() < self.tail:
                work *= draw.uniform(2, 15)
            if fault == "straggler" and rank == self.world - 1:
                work *= 1.6
            data.append(wait)
            works.append(work + wait)
        save = self.save_s * draw.uniform(0.7, 1.5) if self.step % self.save_every == 0 else 0.0
        if fault == "saving" and self.step % 20 == 0:
            save = 15 * self.base
        check = self.eval_s * draw.uniform(0.9, 1.1) if self.step % self.eval_every == 0 else 0.0
        own = max(works)
        self.now += own + save + check
        is_split = not self.is_gpu or self.step % 20 == 0
        for rank in range(self.world):
            step = Step(
                step=self.step,
                t=self.now,
                loss=self._loss(),
                has_loss=True,
                took=own + save + check,
                data=data[rank] if is_split else 0.0,
                comm=own - works[rank] if is_split else 0.0,
                save=save,
                eval=check,
                is_split=is_split,
                memory=self.used * self.total_bytes if self.is_gpu else self.ranks_bytes,
            )
            self.scene.add(rank, step)
        if save:
            self._commit(fault)
        if check:
            self._validate()
        self.is_stuck = fault == "rank-waits" and self.step >= self.begins + 100

    def _loss(self) -> float:
        draw, fault = self.draw, self.fault if self.is_on else None
        if self.fault == "flat":
            return self.start_loss * max(0.01, draw.gauss(1, self.loss_noise))
        loss = self.floor + (self.start_loss - self.floor) * (1 + self.step / 20) ** -self.power
        loss *= max(0.01, draw.gauss(1, self.loss_noise))
        if draw.random() < 0.002:  # one hard batch
            loss *= draw.uniform(1.2, 2.5)
        if fault == "nan":
            return math.nan
        return loss * 3 + self.start_loss if fault == "spike" else loss

    def _validate(self) -> None:
        loss = self.floor + (self.start_loss - self.floor) * (1 + self.step / 20) ** -self.power
        loss *= self.draw.gauss(1, 0.002)
        if self.fault == "stale":
            best = self.begins // 2
            loss = loss if self.step <= best else self.start_loss * (1 + 0.1 * self.step / self.begins)
        event = {"kind": "validation", "step": self.step, "measures": {"loss": loss}, "measure": "loss", "sense": "min"}
        self.scene.validations.append(event)

    def _commit(self, fault: str | None) -> None:
        took = self.commit_bytes / (2 * GIB) * self.draw.uniform(0.6, 1.7)
        took = max(took, 2.0) * (12 if fault == "disk-slow" else 1)
        facts = {"step": self.step, "bytes": self.commit_bytes, "write_s": took, "stall_s": 0.1, "t": self.now}
        self.scene.commits.append({"kind": "checkpoint_committed", **facts})

    def read(self) -> dict[str, Any]:
        """Look at the machine, and are where the run is."""
        scene, draw, fault = self.scene, self.draw, self.fault if self.is_on else None
        passed = self.step - self.begins
        left = 1 - passed / max(1, self.scene.total_steps or 1)
        scene.now = self.now
        scene.monotonic_ns = int((self.now + 1e6) * 1e9)
        grown = max(0, passed) / (self.scene.total_steps or 1) * 900 * GIB if fault == "creep" else 0.0
        own = self.ranks_bytes * draw.uniform(0.98, 1.06) + min(1.0, self.step / 500) * GIB
        own += draw.choice([0, 0, 0, 2]) * GIB * draw.random()  # buffers of a save or a validation
        kept = min(len(scene.commits), 3) * self.commit_bytes
        lost = self.disk_free * 1.4 * (1 - left) if fault == "disk-filling" else 0.0
        reading: dict[str, Any] = {
            "t": self.now,
            "host": {
                "mem": 40 * GIB * draw.uniform(0.9, 1.1) + grown,
                "disk_free": max(0.0, self.disk_free - kept - lost - draw.choice([0, 0, 1]) * self.commit_bytes),
            },
            "ranks": [{"r": rank, "own": own + (grown if rank == 0 else 0.0)} for rank in range(self.world)],
        }
        if self.is_gpu:
            reading["gpus"] = [self._gpu(index, fault) for index in range(self.world)]
        scene.reading = reading
        scene.beats = {rank: self._beat(rank) for rank in range(self.world)}
        return reading

    def _gpu(self, index: int, fault: str | None) -> dict[str, Any]:
        draw = self.draw
        busy = draw.choice([99, 98, 97, 96, 95, 100, 93]) if draw.random() > 0.12 else draw.randint(0, 60)
        used = min(0.999, self.used + draw.uniform(0, 0.005))
        if fault == "gpu-creep":
            used = min(0.999, used + 0.5 * (self.step - self.begins) / (self.scene.total_steps or 1))
        gpu = {
            "i": index,
            "util": draw.randint(40, 70) if fault == "gpu-idle" else busy,
            "mem": used * self.total_bytes,
            "temp": draw.randint(55, 79) if draw.random() > 0.05 else 81,
            "clock": draw.randint(1700, 1980),
            "throttle": ["SW Power Cap"] if draw.random() < 0.5 else [],
            "procs": [f"{1000 + index} me python {int(used * self.total_bytes) >> 20}", f"{40 + index} root Xorg 120"],
        }
        if index == self.world - 1:
            gpu |= {
                "heat": {"throttle": ["HW Thermal Slowdown"], "clock": 1000, "temp": 88},
                "power": {"throttle": ["SW Power Cap"], "clock": 1100},
                "gpu-warm": {"temp": draw.randint(82, 85)},
                "gpu-memory": {"mem": 0.93 * self.total_bytes},
                "stranger": {"procs": [*gpu["procs"], "77777 bob python 9000"]},
            }.get(fault or "", {})
        return gpu

    def _beat(self, rank: int) -> Beat:
        silent_s = self.draw.random() * self.base
        phase = self.draw.choice(["data", "forward", "backward", "backward", "optimizer"])
        if self.is_stuck:
            last = self.scene.ranks[0][-1].t
            silent_s, phase = self.now - last, "forward" if rank == 1 else "backward"
        elif self.draw.random() < 0.02:  # all ranks are in a save or a validation, or wait for the rank that saves
            silent_s, phase = self.draw.uniform(0, 90), "save" if rank == 0 or self.draw.random() < 0.5 else "backward"
        moved = self.scene.monotonic_ns - int(silent_s * 1e9)
        return Beat(
            pid=1000 + rank,
            attempt=1,
            phase=phase,
            step=self.step,
            samples=0,
            monotonic_ns=moved,
            loss=1.0,
            lr=1e-3,
            rate=1.0,
        )


_GPU_FAULTS: Final = ("heat", "power", "stranger", "gpu-idle", "gpu-warm", "gpu-memory", "gpu-creep")
