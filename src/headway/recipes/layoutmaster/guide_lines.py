"""What the guide says a healthy run shows, and the checkpoints it leaves, as the events of a run come in."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from headway.config import SaveConfig
from headway.errors import HeadwayError
from headway.machine import inspect_machine
from headway.messages import language, say
from headway.recipes.layoutmaster.guide_files import BEST, Exporter, Made, epoch_file
from headway.telemetry import Event, RunDir, read_record

_PATIENCE_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """What the lines need to know of a run before it starts."""

    train: int
    """Training posters."""
    held: int
    """Posters that are held out."""
    device: str = "CPU"
    save: SaveConfig = field(default_factory=SaveConfig)

    def count_lines(self) -> list[str]:
        """Return the guide's own two lines; they are looked for word for word, so they are not translated."""
        return [f"✅ 训练数据集包含 {self.train} 个样本", f"✅ 验证数据集包含 {self.held} 个样本"]


class GuideLines:
    """Turns a run's events and steps into the guide's lines and files."""

    def __init__(self, setup: Setup, folder: Path, write: Callable[[str], None]) -> None:
        self._setup, self._folder, self._write = setup, folder, write
        self._exporter = Exporter(folder)
        self._exports: queue.SimpleQueue[tuple[int, str] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._export_all)
        self._thread.start()
        self._run: RunDir | None = None
        self._batch = 0
        """Samples of a step; known once the run has a plan."""
        self._is_planned = threading.Event()
        self._saved: dict[int, Path] = {}
        self._measures: dict[int, dict[str, float]] = {}
        self._due: dict[int, str] = {}
        """Files of epochs that are saved and not yet written."""
        self._best: int | None = None
        self._best_written: int | None = None
        self._sums: dict[int, tuple[float, int]] = {}
        """Sum of losses and steps of each epoch."""

    def on_run(self, run: RunDir) -> None:
        """Take note of the run's directory."""
        self._run = run

    def epoch_of(self, step: int) -> int:
        """Return how many epochs are over after a step; 1 within the first, as the guide counts."""
        return max(1, step * self._batch // self._setup.train)

    def on_step(self, step: int, loss: float, lr: float, seconds: float) -> str | None:
        """Add a step up; return the epoch's line when its last sample is used. A step belongs to where it begins."""
        # Steps and events are followed by two threads; the first event is on its way when there is a step.
        self._is_planned.wait(_PATIENCE_S)
        epoch = (step - 1) * self._batch // self._setup.train + 1
        total, steps = self._sums.get(epoch, (0.0, 0))
        self._sums[epoch] = total + loss, steps + 1
        is_over = step * self._batch >= epoch * self._setup.train
        return self._epoch_line(epoch, lr) if is_over else None

    def _epoch_line(self, epoch: int, lr: float) -> str:
        total, steps = self._sums[epoch]
        return f"Epoch {epoch} - Train Loss: {total / steps:.4f}, LR: {lr:.3g}"

    def on_event(self, event: Event) -> str | None:
        """Answer one event of the run."""
        kind = event["kind"]
        if kind == "attempt_started" and not self._is_planned.is_set():
            assert self._run is not None, "events come from a run"
            self._batch = int(read_record(self._run.plan)["batch_samples"])
            self._is_planned.set()
            self._write_start(int(event["world_size"]))
        elif kind == "validation":
            self._validated(event)
        elif kind == "checkpoint_committed":
            self._committed(int(event["step"]), Path(event["path"]))
        return None

    def _write_start(self, ranks: int) -> None:
        what = "GPU" if self._setup.device == "GPU" else "CPU进程"
        for line in (f"✅ 使用 {ranks} 个{what}进行训练", *self._setup.count_lines()):
            self._write(line)
        if language() != "zh":
            facts = {"ranks": ranks, "device": self._setup.device}
            told = say("layoutmaster/guide-setup", train=self._setup.train, held=self._setup.held, **facts)
            self._write(told)

    def _validated(self, event: Event) -> None:
        step, measures = int(event["step"]), dict(event["measures"])
        self._measures[step] = measures
        told = f"Epoch {self.epoch_of(step)} - Val Loss: {measures['loss']:.4f}, mean IoU: {measures['mean_iou']:.4f}"
        self._write(told)
        self._write_use()
        self._write_due()
        if event["best"]:
            self._best = step
            self._write_best()

    def _write_use(self) -> None:
        """Write how busy the GPUs are, measured now; the guide wants 90 %."""
        if self._setup.device != "GPU":
            return
        used = [gpu.utilisation for gpu in inspect_machine(Path.cwd()).gpus if gpu.utilisation is not None]
        if used:
            mean = sum(used) / len(used)
            self._write(f"{'✅' if mean >= 50 else '❌'} GPU利用率: {mean:.0f}%")

    def _committed(self, step: int, path: Path) -> None:
        self._saved[step] = path
        span = (self._setup.save.every_epochs or 0) * self._setup.train
        done = step * self._batch
        if span and done // span > (done - self._batch) // span:
            self._due[step] = epoch_file(int(done // self._setup.train))
        self._write_due(unless=step if step not in self._measures else None)
        self._write_best()

    def _write_due(self, *, unless: int | None = None) -> None:
        """Write the epochs' files, but for one whose validation is still to come: its loss belongs into the file."""
        for step in [step for step in self._due if step != unless]:
            self._exports.put((step, self._due.pop(step)))

    def _write_best(self) -> None:
        """Write the best model once its step is both validated and saved; either may come first."""
        if self._best is not None and self._best in self._saved and self._best != self._best_written:
            self._best_written = self._best
            self._exports.put((self._best, BEST))

    def _export_all(self) -> None:
        """Write the files in a thread of its own: a large one must not hold up the lines."""
        while (wanted := self._exports.get()) is not None:
            self._export(*wanted)

    def _export(self, step: int, name: str) -> None:
        losses = [found["loss"] for at, found in self._measures.items() if at <= step]
        made_of = Made(
            epoch=self.epoch_of(step), best_loss=min(losses, default=None), measures=self._measures.get(step, {})
        )
        try:
            made = self._exporter.write(self._saved[step], name, made_of)
        except (HeadwayError, OSError) as error:
            # The run's own checkpoint is safe; only its copy under the guide's name is not there.
            self._write(f"{error.text()} [{error.code}]" if isinstance(error, HeadwayError) else str(error))
            return
        self._write(say("layoutmaster/guide-saved", path=made))

    def finish(self) -> None:
        """Say whether the loss fell, by the numbers of the first and the last epoch."""
        if len(self._sums) < 2:
            return
        first, last = (total / steps for total, steps in (self._sums[min(self._sums)], self._sums[max(self._sums)]))
        mark, word = ("✅", "稳定下降") if last < first else ("❌", "没有下降")
        self._write(f"{mark} 损失函数{word}: {first:.4f} → {last:.4f}")

    def close(self) -> None:
        """Write what is still to be written, and end what was started."""
        self._write_due()
        self._exports.put(None)
        self._thread.join()
        self._exporter.close()
