"""The RDT guide's commands: its two scripts, `accelerate launch … main.py`, and the evaluation."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

from headway import guide
from headway.errors import TrainError, UsageError
from headway.messages import language, say
from headway.recipes.rdt.section import RdtSection
from headway.task import find_recipe
from headway.units import count

CONFIG = "configs/base.yaml"
_FLAGS = ("num_processes", "output_dir", "config_path", "resume_from_checkpoint")
_SCRIPTS = {1: "train_single_task.sh", 2: "train_single_task_2gpu.sh"}
_RULE = "=" * 44
_WEIGHTS = "model.safetensors"
_DEFAULTS = {"num_tasks": "5", "max_steps": "100", "exec_horizon": "1", "unit": "rounds", "record_video": "false"}
"""What the published evaluation does when it is not told; it counts chunks drawn, not steps."""
HELP = {
    "train": "rdt/help-train",
    "evaluate": "rdt/help-evaluate",
}
ADVICE = {"memory": "rdt/advice-memory", "port": "rdt/advice-port"}


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
    launched = ranks or int(flags.get("num_processes", "1"))
    folder = Path(flags.get("output_dir", "checkpoints"))
    is_full = own.is_full_wanted or guide.has_gpu()
    config = guide.Asked(flags=flags).config(CONFIG, "config_path")

    def train(log: guide.GuideLog) -> int:
        log.write(guide.size_line(is_full, "64 × 2"))
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
            proceed=f"python main.py --num_processes={launched} --output_dir={folder} --resume_from_checkpoint=latest",
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
    """Return what is trained; what stands in a script as the guide has it describes the guide's machine."""
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
    if asked not in ("latest", "true"):
        return {"resume": Path(asked) if "/" in asked else folder / asked}
    runs = [run for run in guide.list_runs(guide.RUNS) if f"_{folder.name}_" in run.root.name]
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
        lines = [say("rdt/sign-cpus", ranks=ranks), say("rdt/sign-no-devices")]
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


def evaluate(argv: Sequence[str]) -> int:
    """Drive the arm with the weights of a file, in the scripted world; videos where they are asked for."""
    given = guide.read_flags(argv, (), takes_settings=True)
    is_full = given.is_full_wanted or guide.has_gpu()
    asked = {**_DEFAULTS, **guide.settings_of(given.words)}
    named = Path(asked.pop("pretrained", "checkpoints"))
    weights = find_weights(named, is_full=is_full)
    section = section_of(weights, asked)
    guide.write(guide.size_line(is_full, f"{section.hidden_size} × {section.depth}"))
    guide.write(say("rdt/guide-evaluates", weights=weights, params=count(section.num_params)))
    if weights not in (named, *_inside(named)):
        guide.write(say("rdt/guide-other-step", asked=named, weights=weights))
    for flag, trained in (("text_encoder", section.text_encoder), ("vision_encoder", section.vision_encoder)):
        other = asked.pop(flag, trained)
        if other != trained:
            guide.write(say("rdt/guide-encoder", flag=flag, asked=other, trained=trained))
    benchmark = asked.pop("benchmark", None)
    if benchmark is not None:
        guide.write(say("rdt/guide-benchmark", benchmark=benchmark))
    out = Path(asked.get("video_output_dir", "eval_results"))
    options = check_options({key: value for key, value in asked.items() if key != "config"})
    request = {"section": section.model_dump(mode="json"), "options": options, "to": str(out), "lang": language()}
    answer = _ask(request)
    for line in (answer["text"], *answer["files"]):
        guide.write(line)
    return 0


def _ask(request: Mapping[str, Any]) -> dict[str, Any]:
    """Let a child with the framework answer; its own error comes back as ours. Any: JSON."""
    command = [sys.executable, "-P", "-m", "headway.recipes.rdt.drive", json.dumps(request)]
    child = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    lines = child.stdout.strip().splitlines()
    if child.returncode != 0 or not lines:
        raise TrainError("cli/child-failed", code=child.returncode)
    answer: dict[str, Any] = json.loads(lines[-1])
    if "error" in answer:
        raise TrainError(answer["error"]["code"], **answer["error"]["facts"])
    return answer


def find_weights(named: Path, *, is_full: bool) -> Path:
    """Return the weights of a file or folder; at small size, where the guide's step was never reached, the best."""
    for path in (named, *_inside(named)):
        if path.is_file() and path.suffix == ".safetensors":
            return path
    # checkpoints/NAME/checkpoint-19000/ema/model.safetensors: look among its neighbours, earlier runs' too.
    home = next((one.parent for one in (named, *named.parents) if one.name.startswith("checkpoint-")), named)
    best = guide.best_of(guide.held_below(home, guide.RUNS))
    found = [*home.glob(f"checkpoint-*/ema/{_WEIGHTS}"), *home.glob(f"*/checkpoint-*/ema/{_WEIGHTS}")]
    known = sorted(found, key=lambda path: _step(path.parents[1]))
    if known and not is_full:
        return next((path for path in _inside(best.path) if path.is_file()), known[-1]) if best else known[-1]
    raise UsageError("rdt/guide-no-weights", path=named, known=", ".join(map(str, known)) or "n/a")


def _inside(folder: Path) -> tuple[Path, ...]:
    return folder / "ema" / _WEIGHTS, folder / _WEIGHTS


def _step(folder: Path) -> int:
    text = folder.name.removeprefix("checkpoint-")
    return int(text) if text.isdigit() else -1


def section_of(weights: Path, asked: Mapping[str, str]) -> RdtSection:
    """Return what the model was trained as: from the record beside the weights, else from the config file."""
    for folder in (weights.parent, weights.parents[1]):
        file = folder / "config.json"
        if file.is_file():
            kept = json.loads(file.read_text(encoding="utf-8")).get("headway")
            if kept is not None:
                return RdtSection.model_validate({**kept, "pretrained": str(weights)})
    words = ["recipe=rdt", "preset=rdt-1b", f"task.pretrained={weights}"]
    section: RdtSection = guide.load_config(asked.get("config"), recipe=find_recipe, overrides=words).config.task
    return section


def check_options(asked: Mapping[str, str]) -> dict[str, Any]:
    """Return the options of `headway predict`, checked like a config. Any: plain values."""
    recipe = find_recipe("rdt")
    assert recipe.predict is not None
    only = replace(recipe, section=recipe.predict, defaults={}, presets={}, aliases={}, implied={}, ignored={})
    loaded = guide.load_config(None, recipe=only, overrides=[f"{key}={value}" for key, value in asked.items()])
    options: dict[str, Any] = loaded.config.task.model_dump(mode="json")
    return options
