"""What a guide says its reader will see, and the files it names, as the steps and events of a run come in."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headway.checkpoint import read_manifest
from headway.errors import CheckpointError
from headway.guide.checkpoints import Made, NamedCheckpoints
from headway.guide.follow import Listener, Step
from headway.messages import say
from headway.telemetry import Event, RunDir, best_measure, read_record

_PATIENCE_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """A run's plan, as far as lines need it. Epochs are counted in samples: a resumed run may have another batch."""

    batch: int
    """Samples of a step."""
    in_epoch: int
    """Training samples; 0 where nobody could count them."""
    steps: int
    samples: int
    """Of the whole run; the last step may take a few more."""
    ranks: int = 1
    plan: Mapping[str, Any] = field(default_factory=dict)
    """The whole record. Any: JSON."""

    @classmethod
    def of(cls, run: RunDir) -> Shape:
        """Read the plan of a run."""
        plan = read_record(run.plan)
        return cls(
            batch=int(plan["batch_samples"]),
            in_epoch=int(plan.get("epoch_samples") or 0),
            steps=int(plan.get("total_steps") or 0),
            samples=int(plan.get("total_samples") or 0),
            ranks=int(plan.get("world_size") or 1),
            plan=plan,
        )

    def began_in(self, samples: int) -> int:
        """Return the epoch, from 0, in which the step that ends at so many samples began."""
        return max(0, samples - self.batch) // self.in_epoch if self.in_epoch else 0

    def epoch_of(self, samples: int) -> int:
        """Return the epoch, from 0, of the last sample taken."""
        done = min(samples, self.samples) if self.samples else samples
        return max(0, done - 1) // self.in_epoch if self.in_epoch else 0

    def ended_epoch(self, samples: int) -> int | None:
        """Return the epoch, from 0, whose last sample was in the step that ends here, if there is one."""
        if not self.in_epoch:
            return None
        done = samples // self.in_epoch
        return done - 1 if done > (samples - self.batch) // self.in_epoch else None

    def passed(self, samples: int, epochs: float) -> bool:
        """Say whether the step that ends here went past a multiple of so many epochs."""
        span = epochs * self.in_epoch
        return bool(span) and samples // span > (samples - self.batch) // span


@dataclass(frozen=True, slots=True, kw_only=True)
class Voice:
    """One guide's own lines and names; what is left out is not said."""

    start: Callable[[Shape], list[str]] = lambda _: []
    """When the ranks begin."""
    training: Callable[[Shape, int], str | None] = lambda *_: None
    """When the first step is about to be taken, from a step."""
    step: Callable[[Shape, Step], str | None] = lambda *_: None
    epoch: Callable[[int, float, Step], str | None] = lambda *_: None
    """When an epoch, from 0, is over: the mean of the losses of the steps that began in it, and its last step."""
    validation: Callable[[Shape, int, int, Mapping[str, float]], str | None] = lambda *_: None
    """Step, samples, measures."""
    trial: Callable[[int, Mapping[str, float]], str | None] = lambda *_: None
    end: Callable[[Mapping[int, float]], list[str]] = lambda _: []
    """The mean loss of each epoch, when all is over."""
    name: Callable[[Shape, int, int], str | None] = lambda *_: None
    """Shape, step and samples of a checkpoint to the guide's name for it; none: it has none."""
    last_name: Callable[[int], str | None] = lambda _: None
    """Name of the last checkpoint of a run that was stopped, where `name` had none for it."""
    is_end_named: bool = False
    """Whether `last_name` also names the last checkpoint of a run that was not stopped."""
    saved: Callable[[Path, Made], str | None] = lambda path, made: say("guide/saved", path=path, step=made.step)
    """When a file is there."""
    current: str | None = None
    """A file that is always the newest checkpoint."""
    best: str | None = None
    epoch_base: int = 0
    """Number of the first epoch in files."""


class Story:
    """Turns a run's events and steps into the guide's lines and files."""

    def __init__(
        self,
        voice: Voice,
        files: NamedCheckpoints,
        write: Callable[[str], None],
        clear: Callable[[RunDir], None] = lambda _: None,
    ) -> None:
        """Take what speaks, what writes files and lines, and what makes room for the files of a run that begins."""
        self._voice, self._files, self._write, self._clear = voice, files, write, clear
        self._run: RunDir | None = None
        self._shape: Shape | None = None
        self._is_planned = threading.Event()
        self._saved: dict[int, tuple[Path, int]] = {}
        """Step to checkpoint and samples."""
        self._samples: dict[int, int] = {}
        self._measures: dict[int, dict[str, float]] = {}
        self._decides: tuple[str, str] = ("", "min")
        self._due: dict[int, list[str]] = {}
        """Files of steps that are saved and not yet written."""
        self._named: int | None = None
        self._best: int | None = None
        self._best_written: int | None = None
        self._sums: dict[int, tuple[float, int]] = {}

    def listener(self) -> Listener:
        """Return what `follow` calls."""
        return Listener(run=self._begin, event=self._hear, step=self._step)

    def _begin(self, run: RunDir) -> None:
        self._run = run
        self._clear(run)

    def _step(self, at: Step) -> str | None:
        # Steps and events are followed by two threads; the plan is on its way when there is a step.
        self._is_planned.wait(_PATIENCE_S)
        shape = self._shape
        if shape is None:
            return None
        self._samples[at.step] = at.samples
        epoch = shape.began_in(at.samples)
        total, steps = self._sums.get(epoch, (0.0, 0))
        self._sums[epoch] = total + at.loss, steps + 1
        lines = [self._voice.step(shape, at)]
        if shape.in_epoch and at.samples >= (epoch + 1) * shape.in_epoch:
            lines.append(self._voice.epoch(epoch, self._mean(epoch), at))
        return "\n".join(line for line in lines if line) or None

    def _mean(self, epoch: int) -> float:
        total, steps = self._sums[epoch]
        return total / steps

    def _hear(self, event: Event) -> str | None:
        match event["kind"]:
            case "attempt_started" if self._shape is None:
                assert self._run is not None, "events come from a run"
                self._shape = Shape.of(self._run)
                for line in self._voice.start(self._shape):
                    self._write(line)
                self._is_planned.set()
            case "training_started" if self._shape is not None:
                return self._voice.training(self._shape, int(event["step"]))
            case "validation":
                return self._validated(event)
            case "trial":
                found = dict(event["measures"])
                self._measures.setdefault(int(event["step"]), {}).update(found)
                return self._voice.trial(int(event["step"]), found)
            case "checkpoint_committed":
                self._committed(int(event["step"]), Path(event["path"]))
            case "checkpoint_pruned":
                self._pruned(int(event["step"]))
        return None

    def _validated(self, event: Event) -> str | None:
        step = int(event["step"])
        self._measures.setdefault(step, {}).update(event["measures"])
        self._decides = best_measure(event), str(event.get("sense", "min"))
        if event["best"]:
            self._best = step
        self._flush()
        shape = self._shape
        if shape is None:
            return None
        samples = self._samples.get(step) or self._saved.get(step, (Path(), step * shape.batch))[1]
        return self._voice.validation(shape, step, samples, dict(event["measures"]))

    def _committed(self, step: int, path: Path) -> None:
        shape = self._shape
        assert shape is not None, "a checkpoint comes after the plan"
        try:
            samples = read_manifest(path).samples
        except (CheckpointError, OSError):  # pruned or taken away since; a newer one follows
            samples = self._samples.get(step, step * shape.batch)
        self._saved[step] = path, samples
        name = self._voice.name(shape, step, samples)
        if name is not None:
            self._due.setdefault(step, []).append(name)
            self._named = step
        if self._voice.current is not None:
            self._due.setdefault(step, []).append(self._voice.current)
        self._flush(unless=step if step not in self._measures else None)

    def _pruned(self, step: int) -> None:
        samples = self._saved.get(step, (Path(), 0))[1]
        name = self._voice.name(self._shape, step, samples) if self._shape is not None else None
        if name is not None and self._run is not None and not self._voice.best:
            self._files.drop(name, self._run)

    def _flush(self, *, unless: int | None = None) -> None:
        """Ask for files that are due, but for those of a step whose validation is still to come: it belongs there."""
        for step in [step for step in self._due if step != unless]:
            for name in self._due.pop(step):
                self._ask(step, name)
        if self._voice.best and self._best in self._saved and self._best != self._best_written:
            self._best_written = self._best
            self._ask(self._best, self._voice.best)

    def _ask(self, step: int, name: str) -> None:
        assert self._shape is not None and self._run is not None
        path, samples = self._saved[step]
        losses = [found["loss"] for at, found in self._measures.items() if at <= step and "loss" in found]
        made = Made(
            run=self._run,
            step=step,
            epoch=self._shape.epoch_of(samples) + self._voice.epoch_base,
            measures=self._measures.get(step, {}),
            best=min(losses, default=None),
            decides=self._decides[0],
            sense=self._decides[1],
        )
        self._files.add(path, name, made)

    def close(self, *, is_done: bool) -> None:
        """Write what is still to be written; a run that was stopped gets a file to continue from."""
        last = max(self._saved, default=None)
        if last is not None and last != self._named and (not is_done or self._voice.is_end_named):
            name = self._voice.last_name(last)
            self._due.setdefault(last, []).extend([name] if name else [])
        self._flush()
        self._files.close()
        for line in self._voice.end({epoch: self._mean(epoch) for epoch in self._sums}):
            self._write(line)
