"""The TFNet guide's commands: the set-up test, the quick start, and training by its config file."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from headway import guide
from headway.errors import CheckError
from headway.messages import hint, say

CONFIG = "configs/gpu_config.json"
DATA = Path("data/CE-CSL")
CHECKPOINTS, LOGS, OUT = Path("checkpoints_gpu"), Path("logs_gpu"), Path("output_gpu")
BEST = "best_model.ckpt"
_OF_SIZE = ("task.hidden_size", "task.crop_size", "task.max_frames")
_HOLDS = (
    *("task.graph_mode", "task.force_pynative", "task.profiling", "task.dump", "task.kd_temperature"),
    *("task.kd_weight", "eval.patience", "out"),
)
"""Keys of the guide's file that mean the same at every size; the rest describes the guide's machine."""
_MEMORY_BYTES, _DISK_BYTES = 16 << 30, 20 << 30
"""What the guide asks of a machine."""
_PRINT_EVERY, _PRINT_S = 10, 5.0
"""Batches, and seconds, between lines of the guide's log."""
_SHOWN = 10
"""Validation clips in the table at the end."""
HELP = {
    "test_gpu_setup": "tfnet/help-test-gpu-setup",
    "quick_start_gpu": "tfnet/help-quick-start-gpu",
    "start_training_gpu": "tfnet/help-start-training-gpu",
    "train_tfnet_gpu": "tfnet/help-train-tfnet-gpu",
}
ADVICE = {"memory": "tfnet/advice-memory", "device": "tfnet/advice-device", "environment": "tfnet/advice-environment"}


def program(entry: str, _: Sequence[str]) -> str:
    """Return the command as the guide writes it."""
    return f"python {entry}.py"


def main(entry: str, argv: Sequence[str]) -> int:
    """Run one of the guide's commands."""
    if entry == "where_mindspore":
        return _where_mindspore()
    asked = guide.read_flags(argv, ("config", "resume"), hidden=("python",))
    if entry == "test_gpu_setup":
        return check(choose(asked), guide.write)

    def begin(log: guide.GuideLog) -> int:
        # Read before anything is started: a file that cannot be read is an error, never a silent default.
        log.write(guide.size_line(is_full(asked), "hidden_size 64, crop_size 32"))
        choice = choose(asked)
        code = check(choice, log.write) if entry == "quick_start_gpu" else 0
        return code or train(log, asked, choice)

    return guide.with_log(ADVICE, guide.GuideLog.of_now(LOGS, "gpu_training"), begin)


def is_full(asked: guide.Asked) -> bool:
    """Say whether the guide's own size is trained: it is asked for, or there is a GPU or NPU that can be used."""
    return asked.is_full_wanted or guide.has_gpu() or bool(guide.inspect_machine(Path.cwd()).npus)


def choose(asked: guide.Asked) -> guide.Choice:
    """Return what is trained: the guide's file and size, or a small model that learns on CPU."""
    has_data = (DATA / "label" / "train.csv").exists()
    sized = guide.Sized(
        recipe="tfnet",
        script="train_tfnet_gpu.py",
        full=("preset=gpu",),
        of_size=_OF_SIZE.__contains__,
        holds=lambda key, _: key in _HOLDS or (has_data and key.endswith(("_data_path", "_label_path"))),
    )
    file = asked.config(CONFIG)
    given = guide.load(file, ["recipe=tfnet", *sized.full, *asked.words])
    python = _interpreter(asked.flags.get("python"), given)
    own = [f"env.python={python}"] if python else []
    full = is_full(asked)
    if not full and has_data and given.origins["task.data_dir"].layer == "default":
        own += [f"task.data_dir={DATA}", "task.synthetic=false"]
    return guide.choose(sized, file, asked.words, is_full=full, own=own)


def _interpreter(python: str | None, given: guide.LoadedConfig) -> str | None:
    """Return the interpreter that was typed, where it has MindSpore; where none is named, Headway looks itself."""
    if given.framework != "mindspore" or given.config.env.python or not python or not Path(python).exists():
        return None
    return python if python != sys.executable and guide.read_mindspore(python).mindspore else None


def _where_mindspore() -> int:
    """Print the folder of an interpreter that has MindSpore, for `enter_mindspore.sh`."""
    python = guide.other_python() or sys.executable
    if not guide.read_mindspore(python).mindspore:
        raise CheckError("tfnet/guide-no-mindspore", python=python)
    guide.write(str(Path(python).parent))
    return 0


def check(choice: guide.Choice, write: Callable[[str], None]) -> int:
    """Tell what this machine can train with: by what is there, not by the name of an environment."""
    report = guide.inspect_machine(Path.cwd())
    devices = [gpu.name or "GPU" for gpu in report.gpus if not gpu.lost] + [npu.name or "NPU" for npu in report.npus]
    write(_line("ok" if devices else "note", "tfnet/guide-device", names=", ".join(devices) or "CPU"))
    memory, disk = report.memory_bytes or 0, report.disk_free_bytes or 0
    sizes = (("tfnet/guide-memory", memory, _MEMORY_BYTES), ("tfnet/guide-disk", disk, _DISK_BYTES))
    for code, have, want in sizes:
        facts = {"have": f"{have / 2**30:.1f}", "want": f"{want / 2**30:.0f}"}
        write(_line("ok" if have >= want else "warn", code, **facts))
    write(_line("note", "tfnet/guide-conda", name=os.environ.get("CONDA_DEFAULT_ENV") or "n/a"))
    write(_line("ok", "tfnet/guide-config", path=choice.source))
    smoke = ["--smoke"] if choice.loaded.framework == "mindspore" else []
    return guide.copy_output(guide.headway("check", choice.source, *choice.words, *smoke), write)


def _line(level: str, code: str, **facts: Any) -> str:
    """Return one finding. Any: facts of many types."""
    mark = {"ok": "✓", "note": "·", "warn": "!"}[level]
    advice = hint(code, **facts) if level == "warn" else None
    return f"{mark} {say(code, **facts)}" + (f"\n  → {advice}" if advice else "")


def train(log: guide.GuideLog, asked: guide.Asked, choice: guide.Choice) -> int:
    """Train; the guide's lines, log and files appear as the guide promises."""
    began = time.monotonic()
    log.write(say("tfnet/guide-start", config=choice.source, log=log.path))
    out = Path(choice.config.out)
    resumed = guide.Resumed.of(asked.flags.get("resume"), out)
    training = guide.Training(
        choice=choice,
        voice=voice(),
        advice=ADVICE,
        writer=guide.CkptWriter(),
        folder=CHECKPOINTS,
        out=out,
        proceed=f"python train_tfnet_gpu.py --config {choice.source} --resume {{run}}",
        typed=asked.words,
        resume=resumed.resume,
        continued=resumed.continued,
    )
    code, run = guide.train(log, training)
    if run is not None:
        _leave_vocabulary(run)
    if run is not None and code == 0:
        guide.show_best(log, run, "split=dev", f"samples={_SHOWN}")
    minutes = (time.monotonic() - began) / 60
    log.write(say("tfnet/guide-end", code=code, minutes=f"{minutes:.1f}"))
    return code


def voice() -> guide.Voice:
    """Return the guide's lines and names."""
    said = [0.0]

    def step(shape: guide.Shape, at: guide.Step) -> str | None:
        if not shape.in_epoch:
            return None
        epoch, batches = shape.began_in(at.samples), -(-shape.in_epoch // shape.batch)
        batch = min(batches, -(-(at.samples - epoch * shape.in_epoch) // shape.batch))
        is_due = batch % _PRINT_EVERY == 0 or batch == batches or time.monotonic() - said[0] > _PRINT_S
        if not is_due:
            return None
        said[0] = time.monotonic()
        return f"Epoch {epoch + 1} - Batch {batch}/{batches}, Loss: {at.loss:.4f}"

    def validation(_: guide.Shape, __: int, ___: int, found: Mapping[str, float]) -> str:
        return f"Validation WER: {found['wer']:.2f}%"

    return guide.Voice(
        step=step,
        epoch=lambda epoch, loss, _: f"Epoch {epoch + 1} completed - Training loss: {loss:.4f}",
        validation=validation,
        saved=lambda path, _: f"Best model saved: {path}" if path.name == BEST else None,
        current="current_model.ckpt",
        best=BEST,
    )


def _leave_vocabulary(run: guide.RunDir) -> None:
    """Write the words and their numbers where the guide looks for them."""
    path = guide.find_resumable(run.checkpoints).path
    if path is not None:
        OUT.mkdir(parents=True, exist_ok=True)
        guide.write_json(OUT / "vocabulary.json", guide.read_manifest(path).meta["export"]["vocabulary"])
