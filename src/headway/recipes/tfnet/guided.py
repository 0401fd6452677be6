"""The TFNet guide's commands, on Headway: the set-up test, the quick start, and training by its config file."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headway.checkpoint import export_ckpt, find_resumable, read_manifest
from headway.config import LoadedConfig, layer_of
from headway.errors import CheckpointError, UsageError
from headway.machine import inspect_machine, read_mindspore
from headway.messages import hint, say
from headway.recipes import guided
from headway.recipes.tfnet.data import count_train_samples
from headway.recipes.tfnet.synthetic import CLIPS
from headway.telemetry import Event, RunDir, write_json

CONFIG = Path("configs/gpu_config.json")
DATA = Path("data/CE-CSL")
CHECKPOINTS, LOGS, OUT = Path("checkpoints_gpu"), Path("logs_gpu"), Path("output_gpu")
_GUIDE_SIZE = ["recipe=tfnet", "preset=gpu"]
_HERE = (
    "task.graph_mode",
    "task.force_pynative",
    "task.profiling",
    "task.dump",
    "task.kd_temperature",
    "task.kd_weight",
    "eval.patience",
)
"""Keys of the guide's file that mean the same at every size; the rest describes the guide's machine."""
_MEMORY_BYTES, _DISK_BYTES = 16 << 30, 20 << 30
"""What the guide asks of a machine."""
_PRINT_EVERY = 10
"""Batches between lines of the guide's log."""


@dataclass(frozen=True, slots=True)
class Asked:
    """One of the guide's commands as it was typed."""

    config: Path
    words: list[str]
    python: str | None
    """The interpreter that was typed (`python …`), in which the guide's reader keeps MindSpore."""
    is_full: bool


def main(entry: str, argv: Sequence[str]) -> int:
    """Run one of the guide's commands."""
    asked = _read(argv)
    if entry == "test_gpu_setup":
        return check(asked)
    if entry == "quick_start_gpu":
        code = check(asked)
        if code:
            return code
    log = guided.GuideLog.of_now(LOGS, "gpu_training")
    try:
        return _train(log, asked)
    finally:
        log.close()


def _read(argv: Sequence[str]) -> Asked:
    is_full = guided.FULL_SIZE in argv or has_device()
    words = [word for word in argv if word != guided.FULL_SIZE]
    taken: dict[str, str] = {}
    rest: list[str] = []
    while words:
        name, is_pair, value = words.pop(0).partition("=")
        if name in ("--config", "--python"):
            taken[name] = value if is_pair or not words else words.pop(0)
        else:
            rest.append(name + is_pair + value)
    config = Path(taken.get("--config") or CONFIG)
    if not config.is_file():
        known = ", ".join(sorted(str(path) for path in Path("configs").glob("*.json"))) or "n/a"
        raise UsageError("tfnet/guide-no-config", path=config, known=known)
    # Read before anything is started: a file that cannot be read is an error, never a silent default.
    guided.load(config, _GUIDE_SIZE)
    return Asked(config, rest, taken.get("--python"), is_full)


def has_device() -> bool:
    """Say whether there is a GPU or NPU that can be used."""
    return guided.has_gpu() or bool(inspect_machine(Path.cwd()).npus)


def check(asked: Asked) -> int:
    """Tell what this machine can train with: by what is there, not by the name of an environment."""
    report = inspect_machine(Path.cwd())
    devices = [gpu.name or "GPU" for gpu in report.gpus if not gpu.lost] + [npu.name or "NPU" for npu in report.npus]
    _line("ok" if devices else "note", "tfnet/guide-device", names=", ".join(devices) or "CPU")
    memory, disk = report.memory_bytes or 0, report.disk_free_bytes or 0
    sizes = (("tfnet/guide-memory", memory, _MEMORY_BYTES), ("tfnet/guide-disk", disk, _DISK_BYTES))
    for code, have, want in sizes:
        facts = {"have": f"{have / 2**30:.1f}", "want": f"{want / 2**30:.0f}"}
        _line("ok" if have >= want else "warn", code, **facts)
    _line("note", "tfnet/guide-conda", name=os.environ.get("CONDA_DEFAULT_ENV") or "n/a")
    _line("ok", "tfnet/guide-config", path=asked.config)
    sys.stdout.flush()
    words = _words(asked)
    loaded = guided.load(words[0], words[1:])
    smoke = ["--smoke"] if loaded.framework == "mindspore" else []
    return subprocess.call(guided.headway("check", *words, *smoke))


def _line(level: str, code: str, **facts: Any) -> None:
    mark = {"ok": "✓", "note": "·", "warn": "!"}[level]
    advice = hint(code, **facts) if level == "warn" else None
    sys.stdout.write(f"{mark} {say(code, **facts)}\n" + (f"  → {advice}\n" if advice else ""))


def _words(asked: Asked) -> list[str]:
    """Return what `headway train` is given: the guide's file and size, or a small model that learns on CPU."""
    given = guided.load(asked.config, [*_GUIDE_SIZE, *asked.words])
    python = _interpreter(asked, given)
    own = [*([f"env.python={python}"] if python else []), *asked.words]
    if asked.is_full:
        return [str(asked.config), *_GUIDE_SIZE, *own]
    kept = [f"{key}={_plain(given, key)}" for key in _HERE if key in given.guide_names]
    data = []
    if (DATA / "label" / "train.csv").exists() and _is_of_guide(given.origins["task.data_dir"]):
        data = [f"task.data_dir={DATA}", "task.synthetic=false"]
    return ["tfnet", f"out={OUT}", *kept, *data, *own]


def _is_of_guide(origin: str) -> bool:
    """Say whether nobody but the guide's own file and preset, or no one at all, chose a value."""
    return layer_of(origin) not in ("environment", "command line")


def _plain(loaded: LoadedConfig, key: str) -> str:
    section, _, name = key.partition(".")
    value = getattr(getattr(loaded.config, section), name)
    return str(value).lower() if isinstance(value, bool) else str(value)


def _interpreter(asked: Asked, given: LoadedConfig) -> str | None:
    """Return the interpreter that was typed, where it has MindSpore; where none is named, Headway looks itself."""
    python = asked.python
    if given.framework != "mindspore" or given.config.env.python or not python or not Path(python).exists():
        return None
    return python if python != sys.executable and read_mindspore(python).mindspore else None


@dataclass(slots=True)
class _Story:
    """What the guide's log tells of a run, and the files it leaves."""

    log: guided.GuideLog
    batch: int
    samples: int
    began: float = field(default_factory=time.monotonic)
    losses: list[float] = field(default_factory=list)
    best: int | None = None
    committed: dict[int, Path] = field(default_factory=dict)
    saved_best: int | None = None

    def step(self, step: int, loss: float, lr: float, seconds: float) -> str:
        """Return the guide's line of a step, and of an epoch where one ends."""
        self.losses.append(loss)
        batches = -(-self.samples // self.batch)
        epoch, batch = divmod(step - 1, batches)
        lines = []
        if (batch + 1) % _PRINT_EVERY == 0 or batch + 1 == batches:
            lines.append(f"Epoch {epoch + 1} - Batch {batch + 1}/{batches}, Loss: {loss:.4f}")
        if batch + 1 == batches:
            lines.append(f"Epoch {epoch + 1} completed - Training loss: {sum(self.losses) / len(self.losses):.4f}")
            self.losses.clear()
        return "\n".join(lines)

    def event(self, event: Event) -> str | None:
        """Return the guide's line of a validation; copy weights to the guide's names once they are on disk."""
        lines = []
        if event["kind"] == "validation":
            lines.append(f"Validation WER: {event['measures']['wer']:.2f}%")
            self.best = event["step"] if event["best"] else self.best
        if event["kind"] == "checkpoint_committed":
            self.committed[event["step"]] = Path(event["path"])
            lines += self._export(Path(event["path"]), "current_model.ckpt")
        if self.best in self.committed and self.saved_best != self.best:
            self.saved_best = self.best
            lines += self._export(self.committed[self.best], "best_model.ckpt")
        return "\n".join(lines) or None

    def _export(self, path: Path, name: str) -> list[str]:
        out = CHECKPOINTS / name
        fresh = out.with_name(f".new-{name}")
        fresh.unlink(missing_ok=True)
        try:
            export_ckpt(path, fresh)
        except CheckpointError as error:
            if not path.exists():
                return []  # a newer one is on disk, and its own event follows
            return [say("tfnet/guide-not-copied", name=name, why=error.text())]
        os.replace(fresh, out)
        return [f"Best model saved: {out}"] if name.startswith("best") else []


def _train(log: guided.GuideLog, asked: Asked) -> int:
    log.write(guided.size_line(asked.is_full, "hidden 64, crop 32"))
    log.write(say("tfnet/guide-start", config=asked.config, log=log.path))
    words = _words(asked)
    loaded = guided.load(words[0], words[1:])
    guided.set_aside([path for path in CHECKPOINTS.glob("*.ckpt") if not path.name[0].isdigit()])
    out = Path(loaded.config.out)
    story = _Story(log, loaded.config.batch.per_device or 1, _samples(loaded))
    line = guided.StepLine(write=story.step, every=1)
    code, run = guided.train(["train", *words], log, out=out, step_line=line, on_event=story.event)
    if run is not None:
        _leave_vocabulary(run)
    minutes = (time.monotonic() - story.began) / 60
    log.write(say("tfnet/guide-end", code=code, minutes=f"{minutes:.1f}"))
    return code


def _samples(loaded: LoadedConfig) -> int:
    """Return the clips of an epoch; the synthetic set, which the run may be about to make, has a known number."""
    return count_train_samples(loaded.config.task) or CLIPS["train"]


def _leave_vocabulary(run: RunDir) -> None:
    """Write the words and their numbers where the guide looks for them."""
    path = find_resumable(run.checkpoints).path
    if path is not None:
        OUT.mkdir(parents=True, exist_ok=True)
        write_json(OUT / "vocabulary.json", read_manifest(path).meta["export"]["vocabulary"])
