"""The LayoutMaster guide's commands: three ways to start, predict, and the data check."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from headway import guide
from headway.errors import UsageError
from headway.messages import say
from headway.recipes.layoutmaster.data import base_dir, open_index, prepare
from headway.recipes.layoutmaster.poster import list_posters
from headway.recipes.layoutmaster.preset import RECIPE
from headway.recipes.layoutmaster.sheet import write_sheet
from headway.task import RunConfig
from headway.units import size

CONFIG, BEST = "config_data_action_head.json", "best_model.pth"
_FLAGS = ("config", "mode", "resume", "checkpoint", "num_samples", "output_dir", "poster_dir")
_RISEN = 1.25
"""A loss that ends so many times above its lowest has risen again."""
_OF_SIZE = tuple(
    f"task.{key}"
    for key in (
        *("hidden_dim", "num_layers", "num_heads", "dropout", "image_size", "trajectory_steps", "visual_backbone"),
        *("visual_dim", "backbone_path", "freeze_visual"),
    )
)
HELP = {
    "start_training": "layoutmaster/help-start-training",
    "train_multi_gpu": "layoutmaster/help-train-multi-gpu",
    "train": "layoutmaster/help-train",
    "test_data_loading": "layoutmaster/help-test-data-loading",
}
ADVICE = {"memory": "layoutmaster/advice-memory"}


def program(entry: str, _: Sequence[str]) -> str:
    """Return the command as the guide writes it."""
    return f"./{entry}.sh" if entry == "start_training" else f"python {entry}.py"


def main(entry: str, argv: Sequence[str]) -> int:
    """Run one of the guide's commands."""
    asked = guide.read_flags(argv, _FLAGS)
    is_full = asked.is_full_wanted or guide.has_gpu()
    if entry == "test_data_loading":
        return test_data(asked, is_full=is_full)
    if (entry == "train" or "mode" in asked.flags) and _mode(asked) == "predict":
        return predict(asked)
    if entry == "train_multi_gpu" and not _is_wanted(asked):
        return 0
    log = guide.GuideLog.of_now(Path("logs"), "training")
    return guide.with_log(ADVICE, log, lambda log: train(log, asked, is_full=is_full))


def _mode(asked: guide.Asked) -> str:
    """Return what train.py is to do; the original predicts where nothing is said, and its start script said nothing."""
    mode = asked.flags.get("mode")
    if mode not in ("train", "predict"):
        code = "layoutmaster/guide-no-mode" if mode is None else "layoutmaster/guide-odd-mode"
        raise UsageError(code, mode=mode)
    return mode


def _is_wanted(asked: guide.Asked) -> bool:
    """Ask before the start, where somebody can answer."""
    if not sys.stdin.isatty():
        return True
    file = asked.config(CONFIG)
    config = guide.load(file, ["recipe=layoutmaster", *asked.words]).config
    epochs = f"{config.train.epochs or 0:g}"
    question = say("layoutmaster/guide-ask", config=file, batch=config.batch.total, epochs=epochs)
    return click.confirm(question, default=True, err=True)


def train(log: guide.GuideLog, asked: guide.Asked, *, is_full: bool) -> int:
    """Train, or continue from a checkpoint; the guide's lines, log and files appear as the guide promises."""
    log.write(guide.size_line(is_full, guide.layers_text(64, 2)))
    file = asked.config(CONFIG)
    choice = choose(file, asked.words, is_full=is_full)
    log.write(say("layoutmaster/guide-start", config=file, log=log.path))
    counts = prepare(choice.config.task, log.write)
    parts = {"model_state_dict": "layout.", "visual_state_dict": "visual."}
    training = guide.Training(
        choice=choice,
        voice=voice(choice.config, counts["train_samples"], counts["val_samples"]),
        advice=ADVICE,
        writer=guide.TorchWriter(_describe, parts=parts, has_sidecar=True),
        folder=Path(_save_dir(file, asked.words)),
        resume=Path(asked.flags["resume"]) if "resume" in asked.flags else None,
        may_change=("",),
        proceed=f"python train.py --config {file} --mode train --resume {{file}}",
    )
    code, _ = guide.train(log, training)
    log.write(say("layoutmaster/guide-end", code=code))
    return code


def choose(file: Path, words: Sequence[str], *, is_full: bool) -> guide.Choice:
    """Return what is trained: the guide's file as it is, or the recipe's small size with its numbers."""
    sized = guide.Sized(recipe="layoutmaster", script="train.py", full=(), of_size=_OF_SIZE.__contains__, holds=_holds)
    config = guide.load(file, ["recipe=layoutmaster", *words]).config
    # Every checkpoint of the guide can be continued from, so none is thrown away; the best is looked for as often.
    own = ["save.keep_last=1000000"]
    if config.eval.every_epochs is None and config.save.every_epochs is not None:
        own += ["eval.every=0", f"eval.every_epochs={config.save.every_epochs:g}"]
    return guide.choose(sized, file, words, is_full=is_full, own=own)


def _holds(key: str, loaded: guide.LoadedConfig) -> bool:
    """Say whether a number of the guide's file holds at the small size, too, with what is here."""
    if key == "task.data_dir":
        return bool(list_posters(base_dir(loaded.config.task)))
    return key not in _OF_SIZE and key != "parallel.all_workers"


def _save_dir(config: Path, words: Sequence[str]) -> str:
    """Return where the guide's file, or what was typed, wants the checkpoints; Headway's own stay in the run."""
    loaded = guide.load_config(config, recipe=RECIPE, overrides=words)
    told = [facts for _, facts in loaded.warnings if facts.get("key") == "training.save_dir"]
    return str(told[-1].get("value") or "checkpoints") if told else "checkpoints"


def _describe(made: guide.Made, kept: Mapping[str, object]) -> dict[str, object]:
    # The original counts epochs from 0 inside the file and from 1 in its name.
    facts = {"epoch": made.epoch - 1, "global_step": made.step, "best_loss": made.best}
    return {**kept, **facts, "mean_iou": made.measures.get("mean_iou")}


def count_lines(train: int, held: int) -> list[str]:
    """Return the guide's own two lines; in Chinese they are word for word what its reader looks for."""
    return [say("layoutmaster/sign-train", num=train), say("layoutmaster/sign-held", num=held)]


def voice(config: RunConfig, train: int, held: int) -> guide.Voice:
    """Return what the guide calls signs of a healthy run, and its names."""
    has_gpu = guide.has_gpu() and config.parallel.gpus != 0

    def start(shape: guide.Shape) -> list[str]:
        code = "layoutmaster/sign-gpus" if has_gpu else "layoutmaster/sign-cpus"
        return [say(code, ranks=shape.ranks), *count_lines(train, held)]

    def validation(shape: guide.Shape, _: int, samples: int, found: Mapping[str, float]) -> str:
        epoch = max(1, samples // shape.in_epoch)
        line = f"Epoch {epoch} - Val Loss: {found['loss']:.4f}, mean IoU: {found['mean_iou']:.4f}"
        return "\n".join([line, *(_use_lines() if has_gpu else [])])

    def name(shape: guide.Shape, _: int, samples: int) -> str | None:
        is_due = shape.passed(samples, config.save.every_epochs or 0)
        return f"checkpoint_epoch_{samples // shape.in_epoch}.pth" if is_due else None

    return guide.Voice(
        start=start,
        epoch=lambda epoch, loss, at: f"Epoch {epoch + 1} - Train Loss: {loss:.4f}, LR: {at.lr:.3g}",
        validation=validation,
        end=loss_lines,
        name=name,
        last_name=lambda step: f"checkpoint_step_{step}.pth",
        best=BEST,
        epoch_base=1,
    )


def _use_lines() -> list[str]:
    """Return how busy the GPUs are, measured now; the guide wants 90%."""
    used = [gpu.utilisation for gpu in guide.inspect_machine(Path.cwd()).gpus if gpu.utilisation is not None]
    mean = sum(used) / len(used) if used else 0.0
    mark = "✅" if mean >= 50 else "❌"
    return [say("layoutmaster/sign-busy", mark=mark, share=f"{mean:.0f}")] if used else []


def loss_lines(means: Mapping[int, float]) -> list[str]:
    """Say what became of the loss, by the means of the first and the last quarter of the epochs, and the lowest."""
    if len(means) < 2:
        return []
    losses, size = [means[epoch] for epoch in sorted(means)], max(1, len(means) // 4)
    quarters = [sum(part) / len(part) for at in range(0, len(losses), size) if (part := losses[at : at + size])]
    first, last, lowest = quarters[0], sum(losses[-size:]) / size, min(quarters)
    numbers = f"{first:.4f} → {last:.4f}"
    if last >= first:
        return [say("layoutmaster/sign-not-falling", numbers=numbers)]
    if last > _RISEN * lowest:
        return [say("layoutmaster/sign-rising", numbers=f"{first:.4f} → {lowest:.4f} → {last:.4f}")]
    return [say("layoutmaster/sign-falling", numbers=numbers)]


def predict(asked: guide.Asked) -> int:
    """Lay out posters with the model of a checkpoint."""
    source = guide.find_source(Path(asked.flags.get("checkpoint", f"checkpoints/{BEST}")), guide.RUNS, guide.write)
    to = asked.flags.get("output_dir", "predictions")
    words = [f"{key}={asked.flags[key]}" for key in ("num_samples", "poster_dir") if key in asked.flags]
    line = ["predict", str(source.run.root), "--step", str(source.step), "--to", to, *words, *asked.words]
    code = subprocess.call(guide.headway(*line))
    sheet = write_sheet(Path(to)) if code == 0 else None
    if sheet is not None:
        guide.write(say("layoutmaster/guide-sheet", path=sheet))
    return code


def test_data(asked: guide.Asked, *, is_full: bool) -> int:
    """Prepare the posters as a run would, read all of them once, and say what there is."""
    guide.write(guide.size_line(is_full, guide.layers_text(64, 2)))
    config = choose(asked.config(CONFIG), asked.words, is_full=is_full).config
    counts = prepare(config.task, guide.write)
    for text in count_lines(counts["train_samples"], counts["val_samples"]):
        guide.write(text)
    folder, index = open_index(config.task)
    began, taken = time.perf_counter(), 0
    for file in ("images.bin", "layouts.safetensors"):
        with (folder / file).open("rb", buffering=0) as opened:
            while part := opened.read(1 << 20):
                taken += len(part)
    seconds = max(time.perf_counter() - began, 1e-6)
    rate = f"{len(index.names) / seconds:,.0f}"
    facts = {"images": index.num_images, "missing": index.missing_images, "size": size(taken), "rate": rate}
    guide.write(say("layoutmaster/guide-data-fine", posters=len(index.names), **facts))
    return 0
