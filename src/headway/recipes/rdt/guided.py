"""The RDT guide's commands, on Headway: its two scripts, `accelerate launch … main.py`, and the evaluation."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from headway.checkpoint import export_folder, list_checkpoints
from headway.errors import HeadwayError, UsageError
from headway.messages import say
from headway.recipes import guided
from headway.recipes.launched import lead_or_follow
from headway.recipes.rdt.guided_eval import evaluate
from headway.recipes.rdt.guided_flags import read_flags
from headway.telemetry import Event, RunDir, list_runs

OUT = Path("runs")
_SMALL = ("max_train_steps", "checkpointing_period", "sample_period", "train_batch_size", "gradient_accumulation_steps")
"""Settings that mean the same at every size; a guide script's own ones describe the guide's machine."""
_RULE = "=" * 44


def main(entry: str, argv: Sequence[str]) -> int:
    """Run one of the guide's commands."""
    if entry == "evaluate":
        return evaluate(argv)
    # `accelerate launch --mixed_precision` reaches the script in this way only.
    precision = os.environ.get("ACCELERATE_MIXED_PRECISION")
    return lead_or_follow(lambda ranks: _train(argv, ranks, precision))


def _train(argv: Sequence[str], ranks: int | None, precision: str | None) -> int:
    is_full, words = guided.take_full_size(argv)
    end = words.index("--") if "--" in words else 0
    own = read_flags(words[end:])
    settings = {**read_flags(words[:end]), **own}
    launched = ranks or int(settings.pop("num_processes", "1"))
    out_dir = Path(settings.pop("output_dir", "checkpoints"))
    config = Path(settings.pop("config_path", "configs/base.yaml"))
    is_resumed = settings.pop("resume_from_checkpoint", None) is not None
    if not config.is_file():
        raise UsageError("rdt/guide-no-config", path=config)
    log = guided.GuideLog(out_dir / "training.log")
    try:
        log.write(guided.size_line(is_full, "64 × 2"))
        for line in _banner(launched, settings.get("task.statistics", "libero_single_task")):
            log.write(line)
        kept = [f"{key}={value}" for key, value in own.items() if key in _SMALL]
        if is_resumed:
            return _go_on(log, out_dir, [*kept, _devices(launched)])
        whole = _full_words(settings, config, precision)
        if not is_full:
            # The guide's numbers are judged on the guide's two cards even where a smaller model is trained.
            code = subprocess.call(guided.headway("plan", "--no-trace", *whole, "--on", f"{launched}x4090"), stdout=2)
            if code:
                return code
            whole = ["rdt", *kept, *_data_words()]
        guided.set_aside(sorted(out_dir.glob("checkpoint-*")))
        teller = _Teller(log, out_dir)
        words = ["train", *whole, _devices(launched), f"name={out_dir.name}"]
        code, run = guided.train(words, log, out=OUT, step_line=teller.step_line(), on_event=teller.tell)
        return _finish(log, out_dir, code, run)
    finally:
        log.close()


def _full_words(settings: Mapping[str, str], config: Path, precision: str | None) -> list[str]:
    """Return what `headway train` is asked for at the guide's own size."""
    given = {"mixed_precision": precision, **settings} if precision else dict(settings)
    if given.get("mixed_precision") == "no":
        given["mixed_precision"] = "fp32"
    pairs = [f"{key}={value}" for key, value in given.items()]
    return [str(config), "recipe=rdt", "preset=rdt-1b", *pairs, *_data_words()]


def _data_words() -> list[str]:
    """Return the folder of the demonstrations where the published variable names one."""
    folder = os.environ.get("LIBERO_DATASET_DIR")
    return [f"task.data_dir={folder}", "task.synthetic=false"] if folder else []


def _devices(ranks: int) -> str:
    return f"gpus={ranks}" if guided.has_gpu() else f"cpus={ranks}"


def _banner(ranks: int, statistics: str) -> list[str]:
    """Return the lines the guide tells its reader to look for, in its own words; on CPU those that are true there."""
    if guided.has_gpu():
        devices = os.environ.get("CUDA_VISIBLE_DEVICES", ",".join(map(str, range(ranks))))
        lines = [f"使用{ranks}张GPU进行分布式训练", f"GPU设备: {devices}"]
        lines += ["预期加速: 约1.8-1.9x (2张GPU, 考虑通信开销)"] if ranks == 2 else []
    else:
        lines = [f"使用{ranks}个CPU进程进行分布式训练", "GPU设备: 无"]
    is_single = statistics == "libero_single_task"
    named = [f"🔍 {'检测到单任务训练，' if is_single else ''}使用 {statistics} 统计信息"]
    named += ["✅ 使用正确的单任务统计（Position std修复）"] if is_single else []
    return [_RULE, *lines, _RULE, "", *named, ""]


class _Teller:
    """Says what happens in the guide's own lines, and keeps its `checkpoint-N` folders beside the run's own."""

    def __init__(self, log: guided.GuideLog, out_dir: Path) -> None:
        self._log, self._out_dir = log, out_dir
        self._steps, self._began = 0, time.monotonic()

    def step_line(self) -> guided.StepLine:
        """Return the progress bar of the guide."""
        return guided.StepLine(write=self._bar, every=10)

    def tell(self, event: Event) -> str | None:
        """Return a line for an event, or none."""
        match event["kind"]:
            case "planned":
                self._steps = event["steps"]
            case "attempt_started":
                ranks = event["world_size"]
                return "\n".join(f"Distributed training: world_size={ranks}, rank={rank}" for rank in range(ranks))
            case "training_started":
                self._began = time.monotonic()
                return f"Steps:   0%|{'':10}| {event['step']}/{self._steps} [00:00<?, ?it/s]"
            case "trial":
                return "  ".join(f"{name}: {value:.4f}" for name, value in event["measures"].items())
            case "checkpoint_committed":
                return export_checkpoint(Path(event["path"]), self._out_dir)
            case "checkpoint_pruned":
                shutil.rmtree(self._out_dir / f"checkpoint-{event['step']}", ignore_errors=True)
        return None

    def _bar(self, step: int, loss: float, lr: float, seconds: float) -> str:
        done = step / max(1, self._steps)
        took = time.monotonic() - self._began
        left = took / done - took if done else 0.0
        bar = "█" * round(10 * done)
        rate = f"{1 / seconds:.2f}it/s" if seconds else "?it/s"
        numbers = f"{step}/{self._steps} [{_clock(took)}<{_clock(left)}, {rate}, loss={loss:.4f}, lr={lr:.4g}]"
        return f"Steps: {100 * done:3.0f}%|{bar:10}| {numbers}"


def _clock(seconds: float) -> str:
    hours, rest = divmod(int(seconds), 3600)
    text = f"{rest // 60:02d}:{rest % 60:02d}"
    return f"{hours}:{text}" if hours else text


def export_checkpoint(path: Path, out_dir: Path) -> str:
    """Write one checkpoint as `checkpoint-N/ema/model.safetensors`; return the line about it."""
    try:
        made = export_folder(path, out_dir)
    except HeadwayError as error:
        return str(error)
    return say("rdt/guide-exported", folder=out_dir / f"checkpoint-{made.step}")


def _go_on(log: guided.GuideLog, out_dir: Path, words: Sequence[str]) -> int:
    """Resume the newest run that wrote to this folder."""
    runs = [run for run in list_runs(OUT) if f"_{out_dir.name}_" in run.root.name]
    if not runs:
        raise UsageError("rdt/guide-nothing-to-resume", folder=out_dir)
    code, _ = guided.train(["resume", str(runs[0].root), *words], log, out=OUT)
    return _finish(log, out_dir, code, runs[0])


def _finish(log: guided.GuideLog, out_dir: Path, code: int, run: RunDir | None) -> int:
    """Export what the events did not, and say how to evaluate."""
    kept = list_checkpoints(run.checkpoints) if run is not None else []
    for one in kept:
        if not (out_dir / f"checkpoint-{one.step}").exists():
            log.write(export_checkpoint(one.path, out_dir))
    if kept and code == 0:
        log.write(say("rdt/guide-next", folder=out_dir / f"checkpoint-{kept[-1].step}"))
    return code
