"""The lines the guide tells its reader to look for, and the checkpoints it names, as the events of a run come in."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headway.config import RunConfig
from headway.errors import HeadwayError
from headway.messages import say
from headway.recipes.atlas.guide_files import BEST, Exporter, epoch_file, step_file
from headway.telemetry import Event, RunDir, read_record

_LINES = 20
"""Lines of steps in a run, at most."""
_MOST_STEPS = 100
"""The original writes a line every so many steps."""
_PATIENCE_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What the lines need of a run's plan."""

    batch: int
    """Samples of a step."""
    in_epoch: int
    """Training samples."""
    steps: int
    samples: int
    """Of the whole run; the last step may take a few more."""

    def epoch_of(self, step: int) -> int:
        """Return the epoch, from 0, in which a step ends."""
        return max(0, min(step * self.batch, self.samples) - 1) // self.in_epoch

    def ended_epoch(self, step: int) -> int | None:
        """Return the epoch, from 0, whose last sample was in a step, if there is one."""
        done = step * self.batch // self.in_epoch
        return done - 1 if done > (step - 1) * self.batch // self.in_epoch else None


def setup_lines(plan: Mapping[str, Any], base_lr: float) -> list[str]:
    """Return what the guide tells its reader to check; looked for word for word, so not translated. Any: JSON."""
    ranks, batch, turns = plan["world_size"], plan["micro_batch"], plan["accumulation"]
    return [
        "Training setup:",
        f"  Distributed: {ranks > 1}",
        f"  World size: {ranks}",
        "  Rank: 0, Local rank: 0",
        f"  Batch size per GPU: {batch}, effective batch size: {batch} × {ranks} × {turns} = {plan['batch_samples']}",
        f"  Base learning rate: {base_lr:.3g}, effective learning rate: {base_lr * plan['lr_factor']:.3g}",
    ]


class GuideLines:
    """Turns a run's events and steps into lines and files."""

    def __init__(self, config: RunConfig, folder: Path, write: Callable[[str], None]) -> None:
        self._config, self._write = config, write
        self._exporter = Exporter(folder)
        self._exports: queue.SimpleQueue[tuple[int, str] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work)
        self._thread.start()
        self._run: RunDir | None = None
        self._shape: Shape | None = None
        """Known once the run has a plan."""
        self._is_planned = threading.Event()
        self._saved: dict[int, Path] = {}
        self._best: tuple[int, float] | None = None
        self._best_written: int | None = None
        self._named: int | None = None
        """Newest step that has a file of its own."""

    def on_run(self, run: RunDir) -> None:
        """Take note of the run's directory."""
        self._run = run

    def on_step(self, step: int, loss: float, lr: float, seconds: float) -> str | None:
        """Return the line of a step, for some of them."""
        # Steps and events are followed by two threads; the plan is on its way when there is a step.
        self._is_planned.wait(_PATIENCE_S)
        shape = self._shape
        if shape is None or step % max(1, min(_MOST_STEPS, shape.steps // _LINES)):
            return None
        numbers = f"loss {loss:.4f} | lr {lr:.3g} | {1000 * seconds:.0f} ms"
        return f"Epoch {shape.epoch_of(step)} | Step {step}/{shape.steps} | {numbers}"

    def on_event(self, event: Event) -> str | None:
        """Answer one event of the run."""
        match event["kind"]:
            case "attempt_started" if self._shape is None:
                self._planned()
            case "validation":
                return self._validated(event)
            case "checkpoint_committed":
                self._committed(int(event["step"]), Path(event["path"]))
            case "trial":
                found = event["measures"]
                rate = f"{found['success_rate']:.2f} of {found['episodes']:.0f} episodes"
                return f"Step {event['step']} | success rate {rate}"
        return None

    def _planned(self) -> None:
        assert self._run is not None, "events come from a run"
        plan = read_record(self._run.plan)
        self._shape = Shape(
            batch=plan["batch_samples"],
            in_epoch=plan["epoch_samples"],
            steps=plan["total_steps"],
            samples=plan["total_samples"],
        )
        for text in setup_lines(plan, self._config.lr.base):
            self._write(text)
        self._is_planned.set()

    def _validated(self, event: Event) -> str:
        step, found = int(event["step"]), event["measures"]
        if event["best"]:
            self._best = step, found["loss"]
            self._write_best()
        errors = f"val/pose_l1_error {found['pose_l1']:.4f} | val/pose_l2_error {found['pose_l2']:.4f}"
        gripper = f"val/gripper_accuracy {found['gripper_accuracy']:.4f}"
        return f"Step {step} | val/loss {found['loss']:.4f} | {errors} | {gripper}"

    def _committed(self, step: int, path: Path) -> None:
        assert self._shape is not None, "a checkpoint comes after the plan"
        self._saved[step] = path
        ended, every = self._shape.ended_epoch(step), self._config.save.every
        if ended is not None:
            self._name(step, epoch_file(ended))
        elif every and step % every == 0:
            self._name(step, step_file(step))
        self._write_best()

    def _name(self, step: int, name: str) -> None:
        self._named = step
        self._exports.put((step, name))

    def _write_best(self) -> None:
        """Write the best model once its step is both validated and saved; either may come first."""
        if self._best is not None and self._best[0] in self._saved and self._best[0] != self._best_written:
            self._best_written = self._best[0]
            self._exports.put((self._best[0], BEST))

    def _work(self) -> None:
        """Count and write files in a thread of its own: neither may hold up the lines."""
        try:
            total, trained = self._exporter.count(self._config.task.model_dump(mode="json"))
            self._is_planned.wait(_PATIENCE_S)
            self._write(f"  Total parameters: {total:,}, trainable parameters: {trained:,}")
        except HeadwayError as error:
            self._write(f"{error.text()} [{error.code}]")
        while (wanted := self._exports.get()) is not None:
            self._export(*wanted)

    def _export(self, step: int, name: str) -> None:
        assert self._shape is not None, "a checkpoint comes after the plan"
        best = self._best[1] if self._best is not None else None
        try:
            made = self._exporter.write(self._saved[step], name, epoch=self._shape.epoch_of(step), best_loss=best)
        except HeadwayError as error:
            # The run's own checkpoint is safe; only its copy under the guide's name is not there.
            self._write(f"{error.text()} [{error.code}]")
            return
        self._write(say("atlas/guide-saved", path=made, step=step))

    def close(self) -> None:
        """Write what is still to be written, and end what was started."""
        last = max(self._saved, default=None)
        if last is not None and last != self._named:
            # Stopped within an epoch: without a file of its own nobody could go on from here by the guide's command.
            self._name(last, step_file(last))
        self._exports.put(None)
        self._thread.join()
        self._exporter.close()
