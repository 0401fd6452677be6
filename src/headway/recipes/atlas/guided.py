"""The Atlas guide's commands, on Headway: `atlas/train.py` under every launcher, and `atlas/eval.py`."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from headway.config import RunConfig, load_config
from headway.errors import UsageError
from headway.messages import say
from headway.recipes import guided
from headway.recipes.atlas.guide_files import BEST, Source, find_source, read_note
from headway.recipes.atlas.guide_lines import GuideLines
from headway.recipes.atlas.guide_options import OF_RUN, choose_words, read_flags
from headway.recipes.atlas.rollcall import call_roll, is_by_hand
from headway.recipes.launched import lead_or_follow
from headway.task import find_recipe

OUT = Path("runs")
_SMALL = "fusion of 64, 2 layers"
_TRAIN_FLAGS = ("config", "resume", "local_rank", "lr_factor")
_EVAL_FLAGS = ("config", "checkpoint", "split")


def main(entry: str, argv: Sequence[str]) -> int:
    """Run one of the guide's commands."""
    if entry == "eval":
        return evaluate(argv)
    if is_by_hand(os.environ):
        told = dict(os.environ)
        for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
            os.environ.pop(name, None)
        return call_roll(told, lambda ranks: _train(argv, ranks))
    if os.environ.get("OMP_NUM_THREADS") == "1" and "TORCHELASTIC_RUN_ID" in os.environ:
        del os.environ["OMP_NUM_THREADS"]  # torchrun's own, and nobody's wish
    return lead_or_follow(lambda ranks: _train(argv, ranks or 1))


def _train(argv: Sequence[str], ranks: int) -> int:
    log = guided.GuideLog.of_now(Path("logs"), "train")
    try:
        return train(argv, ranks, log)
    finally:
        log.close()


def train(argv: Sequence[str], ranks: int, log: guided.GuideLog) -> int:
    """Train, or go on from a checkpoint; lines, log and files appear as the guide promises."""
    has_gpu = guided.has_gpu()
    is_full, rest = guided.FULL_SIZE in argv or has_gpu, [word for word in argv if word != guided.FULL_SIZE]
    log.write(guided.size_line(is_full, _SMALL))
    asked = read_flags(rest, _TRAIN_FLAGS)
    choice = choose_words(asked, ranks=ranks, is_full=is_full, has_gpu=has_gpu)
    config, line, source = choice.load(), ["train", *choice.words], None
    if "resume" in asked.flags:
        source = find_source(Path(asked.flags["resume"]), OUT)
        line = ["resume", str(source.run.root), "--step", str(source.step), *_changes(source, config)]
    _set_aside(choice.folder, source)
    lines = GuideLines(config, choice.folder, log.write)
    try:
        steps = guided.StepLine(write=lines.on_step, every=1)
        code, _ = guided.train(line, log, out=OUT, step_line=steps, on_event=lines.on_event, on_run=lines.on_run)
    finally:
        lines.close()
    log.write(say("atlas/guide-end", code=code, log=log.path))
    return code


def _changes(source: Source, config: RunConfig) -> list[str]:
    return guided.changed_words(load_config(source.run.config, recipe=find_recipe).config, config, OF_RUN)


def _set_aside(folder: Path, source: Source | None) -> None:
    """Free the names of files that another run left: all of them, or those from after the step that is gone on from."""
    found = [*folder.glob("checkpoint_*.pt"), *folder.glob(BEST)]
    if source is not None:
        notes = {path: read_note(path) for path in found}
        found = [path for path, note in notes.items() if note is not None and int(note["step"]) > source.step]
    guided.set_aside(found)


def evaluate(argv: Sequence[str]) -> int:
    """Measure the model of a checkpoint on the held-out episodes."""
    asked = read_flags([word for word in argv if word != guided.FULL_SIZE], _EVAL_FLAGS)
    if "checkpoint" not in asked.flags:
        raise UsageError("atlas/guide-no-value", flag="--checkpoint")
    if asked.flags.get("split", "val") != "val":
        raise UsageError("atlas/guide-split", split=asked.flags["split"])
    source = find_source(Path(asked.flags["checkpoint"]), OUT)
    sys.stdout.write(say("atlas/guide-evaluates", path=asked.flags["checkpoint"], run=source.run.name) + "\n")
    sys.stdout.flush()
    return subprocess.call(guided.headway("eval", str(source.run.root), "--step", str(source.step)))
