"""The Atlas guide's commands: `atlas/train.py` under every launcher, and `atlas/eval.py`."""

from __future__ import annotations

import math
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from headway import guide
from headway.errors import UsageError
from headway.messages import say
from headway.recipes.atlas.data import data_dir, splits_of
from headway.recipes.atlas.model_size import start_count
from headway.recipes.atlas.section import AtlasSection
from headway.task import RunConfig

CONFIG = "atlas/configs/train_config.yaml"
_OF_SIZE = (
    *("task.image_size", "task.geom_output_dim", "task.fusion_hidden_dim", "task.vggt_checkpoint"),
    "task.lang_encoder_name",
)
_LINES, _MOST_STEPS = 20, 100
"""Lines of steps in a run at most; the original writes one every so many steps."""
HELP = {
    "train": "atlas/help-train",
    "eval": "atlas/help-eval",
}
ADVICE = {"memory": "atlas/advice-memory"}


def program(entry: str, _: Sequence[str]) -> str:
    """Return the command as the guide writes it."""
    return guide.launcher_of("atlas/train.py") if entry == "train" else f"python atlas/{entry}.py"


def main(entry: str, argv: Sequence[str]) -> int:
    """Run one of the guide's commands."""
    if entry == "eval":
        return evaluate(argv)
    if guide.is_by_hand(os.environ):
        told = dict(os.environ)
        for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
            os.environ.pop(name, None)
        return guide.call_roll(told, lambda ranks: _train(argv, ranks))
    if os.environ.get("OMP_NUM_THREADS") == "1" and "TORCHELASTIC_RUN_ID" in os.environ:
        del os.environ["OMP_NUM_THREADS"]  # torchrun's own, and nobody's wish
    return guide.lead_or_follow(lambda ranks: _train(argv, ranks or 1))


def _train(argv: Sequence[str], ranks: int) -> int:
    return guide.with_log(ADVICE, guide.GuideLog.of_now(Path("logs"), "train"), lambda log: train(argv, ranks, log))


def train(argv: Sequence[str], ranks: int, log: guide.GuideLog) -> int:
    """Train, or continue from a checkpoint; lines, log and files appear as the guide promises."""
    asked = guide.read_flags(argv, ("config", "resume"), hidden=("local_rank", "lr_factor"))
    is_full = asked.is_full_wanted or guide.has_gpu()
    log.write(guide.size_line(is_full, guide.layers_text(64, 2)))
    choice, folder = choose(asked, ranks=ranks, is_full=is_full, has_gpu=guide.has_gpu())
    training = guide.Training(
        choice=choice,
        voice=_voice(choice.config),
        advice=ADVICE,
        writer=guide.TorchWriter(_describe, parts={"model_state_dict": ""}),
        folder=folder,
        proceed=f"torchrun --nproc_per_node={ranks} atlas/train.py --config {choice.source} --resume {{file}}",
        resume=Path(asked.flags["resume"]) if "resume" in asked.flags else None,
    )
    code, run = guide.train(log, training)
    if run is not None and code == 0:
        guide.show_best(log, run, "--to", "episodes")
    log.write(say("atlas/guide-end", code=code, log=log.path))
    return code


def choose(asked: guide.Asked, *, ranks: int, is_full: bool, has_gpu: bool) -> tuple[guide.Choice, Path]:
    """Return what is trained, with the rate of `atlas/train.py`, and the folder of the guide's checkpoints."""
    sized = guide.Sized(
        recipe="atlas", script="atlas/train.py", full=("preset=published",), of_size=_OF_SIZE.__contains__, holds=_holds
    )
    # Every checkpoint of the guide can be continued from, so none is thrown away.
    own = ["save.every_epochs=1", "save.keep_last=1000000", f"parallel.{'gpus' if has_gpu else 'cpus'}={ranks}"]
    config = asked.config(CONFIG)
    first = guide.choose(sized, config, asked.words, is_full=is_full, own=own)
    task: AtlasSection = first.config.task
    own += ["task.whiten=false"] if not is_full and not task.freeze_vggt else []
    # Headway's own checkpoints stay in the run directory; the file's folder is for those of the guide's names.
    folder = Path(first.config.out if "out" in first.loaded.guide_names else "checkpoints")
    own += ["out=runs", *_rate_words(first.loaded, float(asked.flags.get("lr_factor", "1")), ranks)]
    return guide.choose(sized, config, asked.words, is_full=is_full, own=own), folder


def _holds(key: str, loaded: guide.LoadedConfig) -> bool:
    """Say whether a number of the guide's file holds at the small size, too, with what is here."""
    if key == "task.data_dir":
        task: AtlasSection = loaded.config.task
        place = data_dir(task)
        is_split = any((place / split).is_dir() for split in splits_of(task))
        return is_split or next(place.rglob("*.hdf5"), None) is not None
    return key not in _OF_SIZE and key != "parallel.workers"


def _rate_words(loaded: guide.LoadedConfig, factor: float, ranks: int) -> list[str]:
    """Return the guide's rule: by GPUs alone, so the base batch is what one GPU takes in a step.

    A rule of the file comes before that of `atlas/train.py`.
    """
    config = loaded.config
    base = (config.batch.per_device or 1) * (config.batch.accumulation or 1)
    rules = {"linear": float(ranks), "sqrt": math.sqrt(ranks), "none": 1.0}
    fits = [rule for rule, value in rules.items() if math.isclose(value, factor)]
    if loaded.guide_names.get("lr.scaling") is not None:
        fits = [config.lr.scaling]
    if not fits:
        return ["lr.scaling=none", f"lr.base={config.lr.base * factor!r}"]
    return [f"lr.base_batch={base}", f"lr.scaling={fits[0]}"]


def _describe(made: guide.Made, _: Mapping[str, object]) -> dict[str, object]:
    return {"epoch": made.epoch, "global_step": made.step, "best_val_loss": made.best}


def _voice(config: RunConfig) -> guide.Voice:
    counted = start_count(config.task)  # while the run starts

    def step(shape: guide.Shape, at: guide.Step) -> str | None:
        if at.step % max(1, min(_MOST_STEPS, shape.steps // _LINES)):
            return None
        numbers = f"loss {at.loss:.4f} | lr {at.lr:.3g} | {1000 * at.seconds:.0f} ms"
        return f"Epoch {shape.epoch_of(at.samples)} | Step {at.step}/{shape.steps} | {numbers}"

    def name(shape: guide.Shape, step: int, samples: int) -> str | None:
        ended, every = shape.ended_epoch(samples), config.save.every
        if ended is not None:
            return f"checkpoint_epoch_{ended}.pt"
        return _step_file(step) if every and step % every == 0 else None

    return guide.Voice(
        start=lambda shape: setup_lines(shape, config.lr.base, counted()),
        step=step,
        validation=_validation,
        trial=_trial,
        name=name,
        last_name=_step_file,
        best="best_model.pt",
    )


def _step_file(step: int) -> str:
    return f"checkpoint_step_{step}.pt"


def setup_lines(shape: guide.Shape, base: float, counted: tuple[int, int] | None = None) -> list[str]:
    """Return what the guide tells its reader to check; looked for word for word, so not translated."""
    ranks, batch, turns = shape.ranks, shape.plan["micro_batch"], shape.plan["accumulation"]
    lines = [
        "Training setup:",
        f"  Distributed: {ranks > 1}",
        f"  World size: {ranks}",
        "  Rank: 0, Local rank: 0",
        f"  Batch size per GPU: {batch}, effective batch size: {batch} × {ranks} × {turns} = {shape.batch}",
        f"  Base learning rate: {base:.3g}, effective learning rate: {base * shape.plan['lr_factor']:.3g}",
    ]
    if counted is not None:
        lines.append(f"  Total parameters: {counted[0]:,}, trainable parameters: {counted[1]:,}")
    return lines


def _validation(_: guide.Shape, step: int, __: int, found: Mapping[str, float]) -> str:
    errors = f"val/pose_l1_error {found['pose_l1']:.4f} | val/pose_l2_error {found['pose_l2']:.4f}"
    return (
        f"Step {step} | val/loss {found['loss']:.4f} | {errors} | val/gripper_accuracy {found['gripper_accuracy']:.4f}"
    )


def _trial(step: int, found: Mapping[str, float]) -> str:
    return f"Step {step} | success rate {found['success_rate']:.2f} of {found['episodes']:.0f} episodes"


def evaluate(argv: Sequence[str]) -> int:
    """Measure the model of a checkpoint on the held-out episodes."""
    asked = guide.read_flags(argv, ("config", "checkpoint", "split"))
    if "checkpoint" not in asked.flags:
        raise UsageError("guide/no-value", flag="--checkpoint")
    if asked.flags.get("split", "val") != "val":
        raise UsageError("atlas/guide-split", split=asked.flags["split"])
    source = guide.find_source(Path(asked.flags["checkpoint"]), guide.RUNS, guide.write)
    guide.write(say("atlas/guide-evaluates", path=source.path, run=source.run.name))
    return subprocess.call(guide.headway("eval", str(source.run.root), "--step", str(source.step)))
