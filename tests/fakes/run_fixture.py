"""A run directory as a real run leaves it: 2 ranks, 400 steps, one restart. For tests and for looking at screens."""

from __future__ import annotations

import math
import random
from pathlib import Path
from typing import Any

from headway.planner.record import Plan, PlanRow
from headway.process import make_lease
from headway.telemetry import EventLog, HeartbeatWriter, MetricsWriter, RunDir, write_json

START_T = 1_760_000_000.0
"""When the run began, unix seconds."""
STEPS = 400
BATCH = 16
TOKENS = 128
UNIGRAM_BPB = 4.312


def make_plan_record(steps: int = STEPS) -> Plan:
    """Return the plan of the fake run."""
    return Plan(
        world_size=2,
        device="cpu",
        gpus=(),
        backend="gloo",
        strategy="ddp",
        precision="fp32",
        threads=1,
        workers=0,
        micro_batch=8,
        accumulation=1,
        batch_samples=BATCH,
        tokens_per_sample=TOKENS,
        total_samples=BATCH * steps,
        total_steps=steps,
        lr_factor=1.0,
        warmup_samples=320,
        rows=(
            PlanRow(key="ranks", value="2", origin="parallel.cpus (default)"),
            PlanRow(key="micro-batch", value="8 samples", origin="recipe nanochat"),
            PlanRow(key="batch", value="2 048 tokens", origin="8 samples x 2 ranks x 128 tokens"),
            PlanRow(key="steps", value=str(steps), origin="command line"),
        ),
    )


def loss_at(step: int) -> float:
    """Return the training loss of a step: a curve with noise, the same in every attempt."""
    noise = random.Random(step).gauss(0, 0.04)
    return 1.35 + 4.2 * math.exp(-step / 70) + noise * (1 + math.exp(-step / 100))


def bpb_at(step: int) -> float:
    """Return the validation measure at a step."""
    return 1.62 + 2.9 * math.exp(-step / 90)


class FakeRun:
    """Writes a run directory step by step on a clock of its own."""

    def __init__(self, root: Path, steps: int = STEPS) -> None:
        self.run = RunDir(root)
        self.steps = steps
        self.t = START_T
        (root / "ranks").mkdir(parents=True)
        (root / "checkpoints").mkdir()
        self.events = EventLog(self.run.events, clock=lambda: self.t)
        self._write_records()

    def event(self, kind: str, wait_s: float = 0.0, **facts: Any) -> None:
        """Let time pass, then write an event."""
        self.t += wait_s
        self.events.append(kind, **facts)

    def begin(self) -> None:
        """Write the events before the first attempt."""
        self.event("run_started", command=["headway", "train", "nanochat", "train.steps=400"])
        self.event("checked", 0.4, findings=[])
        self.event("planned", 0.1)
        self.event("baseline", measures={"unigram_bpb": UNIGRAM_BPB})

    def train(self, attempt: int, first: int, last: int, *, save_every: int = 100, eval_every: int = 50) -> None:
        """Run the steps first..last of one attempt on both ranks."""
        self.event(
            "attempt_started", 0.2, attempt=attempt, world_size=2, pids=[11, 12], port=40001, resume_step=first - 1
        )
        self.event("training_started", 1.6, attempt=attempt, step=first - 1)
        writers = [MetricsWriter(self.run.metrics(rank), attempt) for rank in (0, 1)]
        beats = [HeartbeatWriter(self.run.heartbeat(rank), attempt) for rank in (0, 1)]
        for step in range(first, last + 1):
            saves, evals = step % save_every == 0, step % eval_every == 0
            self._step(writers, step, saves=saves, evals=evals)
            for beat in beats:
                beat.beat(2, step, step * BATCH, loss_at(step), lr_at(step, self.steps), 180.0)
            if evals:
                self.event(
                    "validation", step=step, measures={"bpb": bpb_at(step), "loss": 0.72 * bpb_at(step)}, best=True
                )
            if saves:
                self._save(step)
        for writer in writers:
            writer.close()

    def _step(self, writers: list[MetricsWriter], step: int, *, saves: bool, evals: bool) -> None:
        chance = random.Random(step * 7919)
        slow = 3.0 if step in (137, 262) else 1.0
        forward, backward = 0.021 * chance.uniform(0.95, 1.1) * slow, 0.043 * chance.uniform(0.95, 1.1)
        save_s, eval_s = (0.035 if saves else 0.0), (0.9 if evals else 0.0)
        data, comm, optimizer = 0.0015, 0.009 * chance.uniform(0.8, 1.4), 0.0085
        dt = data + forward + backward + comm + optimizer + save_s + eval_s + 0.001
        self.t += dt
        norm = 0.6 + 2.5 * math.exp(-step / 40) + abs(chance.gauss(0, 0.12)) + (6.0 if step == 137 else 0.0)
        for rank, writer in enumerate(writers):
            memory = 312_000_000 + rank * 9_000_000 + min(step, 60) * 900_000
            split = (data, forward, backward, comm, optimizer, save_s, eval_s)
            writer.add(step, step * BATCH, loss_at(step), lr_at(step, self.steps), norm, self.t, dt, *split, memory)
        if step % 25 == 0:
            for writer in writers:
                writer.flush()

    def _save(self, step: int) -> None:
        place = self.run.checkpoints / f"step-{step:08d}"
        place.mkdir(exist_ok=True)
        self.event(
            "checkpoint_committed", 0.05, step=step, path=str(place), bytes=14_680_064, stall_s=0.035, write_s=0.21
        )
        for old in sorted(self.run.checkpoints.glob("step-*"))[:-2]:
            old.rmdir()
            self.event("checkpoint_pruned", step=int(old.name[5:]))

    def crash(self, attempt: int, rank: int, text: str, traceback: str) -> None:
        """End an attempt by the death of a rank."""
        self.event("rank_exited", 0.3, rank=rank, attempt=attempt, code=None, signal=9)
        self.event(
            "incident",
            attempt=attempt,
            rank=rank,
            **{"class": "rank-killed"},
            text=text,
            traceback=traceback,
            action="restart",
        )
        self.event("attempt_ended", 0.4, attempt=attempt, how="failed")

    def end(self, state: str = "done", exit_code: int = 0, why: str | None = None) -> None:
        """Write the end of the run."""
        best = {"measure": "bpb", "value": bpb_at(self.steps), "step": self.steps}
        self.event("run_ended", 0.4, state=state, exit_code=exit_code, steps=self.steps, best=best, why=why)
        self.events.close()

    def hold(self) -> None:
        """Make this test process the run's supervisor."""
        write_json(self.run.lease, make_lease())

    def _write_records(self) -> None:
        plan = make_plan_record(self.steps).to_json()
        config = {
            "recipe": "nanochat",
            "preset": None,
            "seed": 0,
            "task": {"depth": 4, "sequence": TOKENS},
            "batch": {"per_device": 8, "total": 2048, "unit": "tokens"},
            "lr": {"base": 0.02, "schedule": "linear", "decay": 0.2},
            "train": {"steps": self.steps, "precision": "auto"},
            "eval": {"every": 50},
            "save": {"every": 100, "keep_last": 2},
        }
        origins = {"train.steps": "command line", "batch.per_device": "recipe nanochat", "eval.every": "run.yaml:7:3"}
        machine = {
            "schema": "machine/1",
            "host": "node-1",
            "system": "Linux 6.1",
            "cpu": {"model": "AMD EPYC 7B13", "cores": 2},
            "memory_bytes": 8_589_934_592,
            "gpus": [],
        }
        argv = ["headway", "train", "nanochat", f"train.steps={self.steps}"]
        command = {
            "argv": argv,
            "env": ["OMP_NUM_THREADS"],
            "commit": "0123abcd" * 5,
            "diff": "",
            "cwd": "/home/user/lab",
        }
        write_json(self.run.plan, plan)
        write_json(self.run.job, {"schema": "job/1", "recipe": "nanochat", "task": "x", "config": config, "plan": plan})
        write_json(self.run.origins, origins)
        write_json(self.run.machine, machine)
        write_json(self.run.command, command)
        self.run.log.write_text("rank 0: tokens ready\nrank 1: tokens ready\n", encoding="utf-8")


def lr_at(step: int, steps: int) -> float:
    """Return the learning rate of a step: a short warm-up, flat, then linear to zero."""
    return 0.02 * min(1.0, step / 20, (steps - step) / (0.2 * steps) + 1e-6)


def write_run(root: Path) -> RunDir:
    """Write a finished run: attempt 1 dies at step 262, attempt 2 continues from step 200."""
    fake = FakeRun(root)
    fake.begin()
    fake.train(1, 1, 262)
    text = "rank 1 was killed by signal 9 (SIGKILL); most often the system ran out of memory"
    fake.crash(1, 1, text, 'Traceback (most recent call last):\n  File "loop.py", line 88, in train\nKilled')
    fake.train(2, 201, STEPS)
    fake.event("attempt_ended", 0.2, attempt=2, how="finished")
    fake.end()
    return fake.run


def write_live_run(root: Path, step: int = 120) -> RunDir:
    """Write a run that is at a step and whose supervisor is this process."""
    fake = FakeRun(root)
    fake.hold()
    fake.begin()
    fake.train(1, 1, step)
    fake.events.close()
    return fake.run
