"""The nanochat guide's three scripts, on Headway."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from headway.config import load_config
from headway.errors import UsageError
from headway.messages import say
from headway.recipes import guided
from headway.task import find_recipe
from headway.telemetry import Event, RunDir, run_state

OUT = Path("runs")
_SMALL = ("num_iterations", "eval_every", "save_every", "grad_clip", "weight_decay")
"""Keys that mean the same at every size; the rest of a guide's config describes the guide's machine."""


def main(entry: str, argv: Sequence[str]) -> int:
    """Run one of the guide's commands."""
    if entry == "monitor_training":
        return monitor(argv)
    is_full, words = guided.take_full_size(argv)
    config, words = _config_of(entry, words)
    log = guided.GuideLog.of_now(Path("logs"), "train_dual_gpu")
    try:
        return _train(log, config, words, is_full=is_full)
    finally:
        log.close()


def _config_of(entry: str, words: Sequence[str]) -> tuple[Path, list[str]]:
    """Return the config file, given as first word or as --config=…, and the other words."""
    named = [word.partition("=")[2] for word in words if word.startswith("--config=")]
    rest = [word for word in words if not word.startswith("--config=")]
    if not named and rest and not rest[0].startswith("-"):
        named, rest = [rest[0]], rest[1:]
    config = Path(named[-1] if named else "configs/dual_gpu/balanced.py")
    if not config.is_file():
        known = ", ".join(sorted(str(path) for path in Path("configs").rglob("[!_]*.py"))) or "n/a"
        raise UsageError("nanochat/guide-no-config", path=config, known=known)
    return config, rest


def _train(log: guided.GuideLog, config: Path, words: Sequence[str], *, is_full: bool) -> int:
    _say(log, "INFO", guided.size_line(is_full, "depth 4"))
    _say(log, "INFO", say("nanochat/guide-start", config=config, log=log.path))
    # The guide's numbers are checked on the guide's two devices even where a smaller model is trained.
    ranks = [] if guided.has_gpu() else ["cpus=2"]
    code = subprocess.call(guided.headway("plan", str(config), *words, *ranks), stdout=2)
    if code:
        return code
    _say(log, "SUCCESS", say("nanochat/guide-config-fine"))
    source, words = (str(config), words) if is_full else ("nanochat", _small_words(words))
    loaded = guided.load(source, words)
    steps = loaded.config.train.steps or 1
    tokens = loaded.config.task.max_seq_len * (loaded.config.batch.per_device or 1) * 2
    began = time.monotonic()

    def step_line(step: int, loss: float, lr: float, seconds: float) -> str:
        rate = f"{tokens / seconds:,.0f}" if seconds else "n/a"
        minutes = (time.monotonic() - began) / 60
        first = f"step {step:05d}/{steps:05d} ({100 * step / steps:.2f}%) | loss: {loss:.6f} | lr: {lr:.4g}"
        return f"{first} | dt: {seconds * 1000:.2f}ms | tok/sec: {rate} | mfu: n/a | total time: {minutes:.2f}m"

    line = guided.StepLine(write=step_line, every=max(1, min(10, steps // 20)))
    code, run = guided.train(["train", source, *words], log, out=OUT, step_line=line, on_event=_event_line)
    if code == 0 and run is not None:
        _export(log, run)
    _say(log, "SUCCESS" if code == 0 else "ERROR", say("nanochat/guide-end", code=code))
    return code


def _small_words(words: Sequence[str]) -> list[str]:
    """Return the part of the guide's settings that holds at any size."""
    return [word.lstrip("-") for word in words if word.lstrip("-").partition("=")[0] in _SMALL]


def _event_line(event: Event) -> str | None:
    if event["kind"] == "validation":
        return f"Step {event['step']:05d} | Validation bpb: {event['measures']['bpb']:.4f}"
    return None


def _export(log: guided.GuideLog, run: RunDir) -> None:
    """Write the weights under the names nanochat's own tools look for."""
    depth = load_config(run.config, recipe=find_recipe).config.task.depth
    folder = Path("base_checkpoints") / f"d{depth}"
    guided.set_aside([*folder.glob(f"[a-z]*_{run_state(run).step:06d}.*")])
    words = ["ckpt", "export", str(run.root), "--format", "pt", "--out", str(folder)]
    done = subprocess.run(guided.headway(*words), capture_output=True, text=True, check=False)
    _say(log, "INFO" if done.returncode == 0 else "WARN", (done.stdout or done.stderr).strip().splitlines()[0])
    best = run_state(run).best
    if best is not None:
        log.write(f"Minimum validation bpb: {best.value:.4f}")


def _say(log: guided.GuideLog, level: str, text: str) -> None:
    log.write(f"[{level}] {time.strftime('%Y-%m-%d %H:%M:%S')} {text}")


def monitor(argv: Sequence[str]) -> int:
    """Show the newest run and the end of a log again and again; `--once` shows them once."""
    options = dict(word.lstrip("-").partition("=")[::2] for word in argv)
    interval_s = float(options.get("interval") or 5)
    log = Path(options["log"]) if options.get("log") else None
    if log is not None and not log.is_file():
        log = _newest_log(log)
    while True:
        code = subprocess.call(guided.headway("watch", "--once"))
        if log is not None:
            for line in log.read_text(encoding="utf-8", errors="replace").splitlines()[-5:]:
                sys.stdout.write(f"{line}\n")
        sys.stdout.flush()
        if "once" in options or code:
            return code
        time.sleep(interval_s)


def _newest_log(named: Path) -> Path:
    """Return the newest log instead of one that is not there: the guide's own example has its author's date in it."""
    logs = sorted(named.parent.glob("*.log"))
    if not logs:
        raise UsageError("nanochat/guide-no-log", path=named)
    sys.stderr.write(say("nanochat/guide-other-log", path=named, other=logs[-1]) + "\n")
    return logs[-1]
