"""The LayoutMaster guide's commands, on Headway."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import click

from headway.config import load_config
from headway.errors import UsageError
from headway.messages import say
from headway.recipes import guided
from headway.recipes.layoutmaster.data import open_index, prepare
from headway.recipes.layoutmaster.guide_files import BEST, find_source
from headway.recipes.layoutmaster.guide_lines import GuideLines, Setup
from headway.recipes.layoutmaster.guide_options import Asked, choose_words, read_flags
from headway.recipes.layoutmaster.preset import RECIPE
from headway.task import find_recipe
from headway.telemetry import RunDir
from headway.units import size

OUT = Path("runs")
_SMALL = "width 64, 2 blocks"


def main(entry: str, argv: Sequence[str]) -> int:
    """Run one of the guide's commands."""
    is_full, rest = guided.take_full_size(argv)
    asked = read_flags(rest)
    if entry == "test_data_loading":
        return test_data(asked, is_full=is_full)
    if (entry == "train" or "mode" in asked.flags) and _mode(asked) == "predict":
        return predict(asked)
    if entry == "train_multi_gpu" and not _is_wanted(asked):
        return 0
    log = guided.GuideLog.of_now(Path("logs"), "training")
    try:
        return train(log, asked, is_full=is_full)
    finally:
        log.close()


def _mode(asked: Asked) -> str:
    """Return what train.py is to do; the original predicts where nothing is said, and its start script said nothing."""
    mode = asked.flags.get("mode")
    if mode not in ("train", "predict"):
        code = "layoutmaster/guide-no-mode" if mode is None else "layoutmaster/guide-odd-mode"
        raise UsageError(code, mode=mode)
    return mode


def _is_wanted(asked: Asked) -> bool:
    """Ask before the start, where somebody can answer."""
    if not sys.stdin.isatty():
        return True
    config = guided.load(asked.config, ["recipe=layoutmaster", *asked.words]).config
    question = say(
        "layoutmaster/guide-ask", config=asked.config, batch=config.batch.total, epochs=f"{config.train.epochs or 0:g}"
    )
    return click.confirm(question, default=True, err=True)


def train(log: guided.GuideLog, asked: Asked, *, is_full: bool) -> int:
    """Train, or go on from a checkpoint; the guide's lines, log and files appear as the guide promises."""
    log.write(guided.size_line(is_full, _SMALL))
    words = choose_words(asked.config, asked.words, is_full=is_full)
    config = guided.load(words[0], words[1:]).config
    line = ["train", *words]
    if "resume" in asked.flags:
        source = find_source(Path(asked.flags["resume"]))
        before = load_config(RunDir(Path(source.run)).config, recipe=find_recipe).config
        line = ["resume", source.run, "--step", str(source.step), *guided.changed_words(before, config)]
    log.write(say("layoutmaster/guide-start", config=asked.config, log=log.path))
    counts = prepare(config.task, log.write)
    has_gpu = guided.has_gpu() and config.parallel.gpus != 0
    setup = Setup(
        train=counts["train_samples"], held=counts["val_samples"], device="GPU" if has_gpu else "CPU", save=config.save
    )
    lines = GuideLines(setup, Path(_save_dir(asked.config)), log.write)
    try:
        steps = guided.StepLine(write=lines.on_step, every=1)
        code, _ = guided.train(line, log, out=OUT, step_line=steps, on_event=lines.on_event, on_run=lines.on_run)
    finally:
        lines.close()
    lines.finish()
    log.write(say("layoutmaster/guide-end", code=code))
    return code


def _save_dir(config: Path) -> str:
    """Return where the guide's file wants its checkpoints; Headway's own stay in the run directory."""
    loaded = load_config(config, recipe=RECIPE)
    told = [facts for _, facts in loaded.warnings if facts.get("key") == "training.save_dir"]
    return str(told[0].get("value") or "checkpoints") if told else "checkpoints"


def predict(asked: Asked) -> int:
    """Lay out posters with the model of a checkpoint."""
    source = find_source(Path(asked.flags.get("checkpoint", f"checkpoints/{BEST}")))
    to = asked.flags.get("output_dir", "predictions")
    words = [f"{key}={asked.flags[key]}" for key in ("num_samples", "poster_dir") if key in asked.flags]
    line = ["predict", source.run, "--step", str(source.step), "--to", to, *words, *asked.words]
    return subprocess.call(guided.headway(*line))


def test_data(asked: Asked, *, is_full: bool) -> int:
    """Prepare the posters as a run would, read all of them once, and say what there is."""
    _write(guided.size_line(is_full, _SMALL))
    words = choose_words(asked.config, asked.words, is_full=is_full)
    config = guided.load(words[0], words[1:]).config
    counts = prepare(config.task, _write)
    for text in Setup(train=counts["train_samples"], held=counts["val_samples"]).count_lines():
        _write(text)
    folder, index = open_index(config.task)
    began, taken = time.perf_counter(), 0
    for file in ("images.bin", "layouts.safetensors"):
        with (folder / file).open("rb", buffering=0) as opened:
            while part := opened.read(1 << 20):
                taken += len(part)
    seconds = max(time.perf_counter() - began, 1e-6)
    rate = f"{len(index.names) / seconds:,.0f}"
    facts = {"images": index.num_images, "missing": index.missing_images, "size": size(taken), "rate": rate}
    _write(say("layoutmaster/guide-data-fine", posters=len(index.names), **facts))
    return 0


def _write(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
