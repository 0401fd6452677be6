"""The RDT guide's commands: its two scripts and `accelerate launch … main.py`; the evaluation is in `evaluate.py`."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from headway import guide
from headway.errors import UsageError
from headway.messages import say
from headway.recipes.rdt.evaluate import evaluate

CONFIG = "configs/base.yaml"
_FLAGS = ("num_processes", "output_dir", "config_path", "resume_from_checkpoint")
_SCRIPTS = {1: "train_single_task.sh", 2: "train_single_task_2gpu.sh"}
_RULE = "=" * 44
HELP = {
    "train": "rdt/help-train",
    "evaluate": "rdt/help-evaluate",
}
ADVICE = {"memory": "rdt/advice-memory", "port": "rdt/advice-port"}


def program(entry: str, argv: Sequence[str]) -> str:
    """Return the command as the guide writes it: what comes before `--` is in a script of its own."""
    if entry == "evaluate":
        return "python eval_sim/eval_rdt_libero.py"
    if "--" not in argv:
        return guide.launcher_of("main.py")
    is_one = "--num_processes=1" in argv[: list(argv).index("--")]
    return f"bash {_SCRIPTS[1 if is_one else 2]}"


def main(entry: str, argv: Sequence[str]) -> int:
    """Run one of the guide's commands."""
    if entry == "evaluate":
        return evaluate(argv)
    # `accelerate launch --mixed_precision` reaches the script in this way only.
    precision = os.environ.get("ACCELERATE_MIXED_PRECISION")
    return guide.lead_or_follow(lambda ranks: _train(argv, ranks, precision))


def _train(argv: Sequence[str], ranks: int | None, precision: str | None) -> int:
    end = list(argv).index("--") if "--" in argv else 0
    script, own = (guide.read_flags(part, _FLAGS, takes_settings=True) for part in (argv[:end], argv[end:]))
    flags = {**script.flags, **own.flags}
    launched = ranks or guide.read_count("--num_processes", flags.get("num_processes", "1"))
    folder = Path(flags.get("output_dir", "checkpoints"))
    is_full = own.is_full_wanted or guide.has_gpu()

    def train(log: guide.GuideLog) -> int:
        log.write(guide.size_line(is_full, guide.layers_text(64, 2)))
        config = guide.Asked(flags=flags).config(CONFIG, "config_path")
        settings = guide.settings_of([*script.words, *own.words])
        for line in banner(launched, settings.get("task.statistics", "libero_single_task")):
            log.write(line)
        if not is_full and not _data_words():
            log.write(say("rdt/guide-two-tasks"))
        choice = choose(config, script.words, own.words, launched=launched, is_full=is_full, precision=precision)
        training = guide.Training(
            choice=choice,
            voice=voice(folder),
            advice=ADVICE,
            writer=guide.FolderWriter(),
            folder=folder,
            words=[f"name={folder.name}"],
            typed=[*choice.typed, _devices(launched)],
            proceed=f"python main.py --num_processes={launched} --output_dir={folder} --resume_from_checkpoint={{run}}",
            **_resumed(flags.get("resume_from_checkpoint"), folder),
        )
        is_new = training.resume is None and training.continued is None
        code = _judge(log, choice, launched) if not is_full and is_new else 0
        if code:
            return code
        code, _ = guide.train(log, training)
        best = guide.best_of(guide.held_below(folder, guide.RUNS))
        if best is not None and code == 0:
            log.write(say("rdt/guide-next", folder=best.path))
        return code

    return guide.with_log(ADVICE, guide.GuideLog(folder / "training.log"), train)


def choose(
    config: Path, script: Sequence[str], own: Sequence[str], *, launched: int, is_full: bool, precision: str | None
) -> guide.Choice:
    """Return what is trained; what is in a script as the guide has it describes the guide's machine."""
    name = _SCRIPTS.get(launched, _SCRIPTS[2])
    template = Path(str(files("headway.recipes.rdt") / "project" / name))
    printed = set(re.findall(r"^ +--(\w+=\S+)", template.read_text(encoding="utf-8"), re.MULTILINE))
    printed |= {"image_aug=true"}
    unedited = [word for word in script if word in printed]
    edited = [word for word in script if word not in unedited]
    asked = {"mixed_precision": precision or "", **guide.settings_of([*script, *own])}.get("mixed_precision")
    precisions = [f"mixed_precision={'fp32' if asked == 'no' else asked}"] if asked else []
    typed = [*guide.words_of(name, *_without_precision(edited)), *_without_precision(own)]
    sized = guide.Sized(
        recipe="rdt",
        script="main.py",
        full=("preset=rdt-1b", *unedited, *precisions),
        of_size=lambda key: key.startswith(("task.", "ema.")),
        holds=lambda *_: False,
    )
    return guide.choose(sized, config, typed, is_full=is_full, own=[*_data_words(), _devices(launched)])


def _without_precision(words: Sequence[str]) -> list[str]:
    return [word for word in words if not word.startswith("mixed_precision=")]


def _data_words() -> list[str]:
    """Return the folder of the demonstrations where the published variable names one."""
    folder = os.environ.get("LIBERO_DATASET_DIR")
    return [f"task.data_dir={folder}", "task.synthetic=false"] if folder else []


def _devices(ranks: int) -> str:
    return f"parallel.gpus={ranks}" if guide.has_gpu() else f"parallel.cpus={ranks}"


def _judge(log: guide.GuideLog, choice: guide.Choice, launched: int) -> int:
    """Judge the guide's numbers on the guide's own cards, even where a smaller model is trained."""
    log.write(say("rdt/guide-judges", cards=f"{launched} × RTX 4090"))
    words = [word for word in choice.full_words if not word.startswith("parallel.cpus=")]
    code, plan = guide.judge(log, ADVICE, choice.source, words, "--no-trace", "--on", f"{launched}x4090")
    if not code:
        facts = {"each": plan["micro_batch"], "ranks": plan["world_size"], "turns": plan["accumulation"]}
        log.write(say("rdt/guide-judged", total=plan["batch_samples"], **facts))
    return code


def _resumed(asked: str | None, folder: Path) -> dict[str, Any]:
    """Return how a run is continued: the newest that wrote to this folder, or one checkpoint by its name."""
    if asked is None:
        return {}
    known = guide.list_runs(guide.RUNS)
    if asked in [run.name for run in known]:
        return {"continued": guide.newest_run(guide.RUNS, asked)}
    if asked not in ("latest", "true"):
        return {"resume": Path(asked) if "/" in asked else folder / asked}
    runs = [run for run in known if f"_{folder.name}_" in run.root.name]
    if not runs:
        raise UsageError("rdt/guide-nothing-to-resume", folder=folder)
    return {"continued": runs[0]}


def banner(ranks: int, statistics: str) -> list[str]:
    """Return the lines the guide tells its reader to look for; on CPU those that are true there."""
    if guide.has_gpu():
        devices = os.environ.get("CUDA_VISIBLE_DEVICES", ",".join(map(str, range(ranks))))
        lines = [say("rdt/sign-gpus", ranks=ranks), say("rdt/sign-devices", devices=devices)]
        lines += [say("rdt/sign-speedup")] if ranks == 2 else []
    else:
        first = say("rdt/sign-cpus", ranks=ranks) if ranks > 1 else say("rdt/sign-cpu")
        lines = [first, say("rdt/sign-no-devices")]
    if statistics == "libero_single_task":
        named = [say("rdt/sign-one-task", statistics=statistics), say("rdt/sign-corrected")]
    else:
        named = [say("rdt/sign-statistics", statistics=statistics)]
    return [_RULE, *lines, _RULE, "", *named, ""]


def voice(folder: Path) -> guide.Voice:
    """Return the guide's progress bar, its other lines and its names."""
    began = [time.monotonic()]

    def training(shape: guide.Shape, step: int) -> str:
        began[0] = time.monotonic()
        return f"Steps:   0%|{'':10}| {step}/{shape.steps} [00:00<?, ?it/s]"

    def bar(shape: guide.Shape, at: guide.Step) -> str | None:
        if at.step % 10:
            return None
        done = at.step / max(1, shape.steps)
        took = time.monotonic() - began[0]
        left = took / done - took if done else 0.0
        rate = f"{1 / at.seconds:.2f}it/s" if at.seconds else "?it/s"
        numbers = f"[{_clock(took)}<{_clock(left)}, {rate}, loss={at.loss:.4f}, lr={at.lr:.4g}]"
        return f"Steps: {100 * done:3.0f}%|{'█' * round(10 * done):10}| {at.step}/{shape.steps} {numbers}"

    return guide.Voice(
        start=lambda shape: [
            f"Distributed training: world_size={shape.ranks}, rank={rank}" for rank in range(shape.ranks)
        ],
        training=training,
        step=bar,
        trial=lambda _, found: "  ".join(f"{name}: {value:.4f}" for name, value in found.items()),
        name=lambda _, step, __: f"checkpoint-{step}",
        saved=lambda path, _: say("rdt/guide-exported", folder=path),
    )


def _clock(seconds: float) -> str:
    hours, rest = divmod(int(seconds), 3600)
    text = f"{rest // 60:02d}:{rest % 60:02d}"
    return f"{hours}:{text}" if hours else text
