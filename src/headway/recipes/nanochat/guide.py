"""The nanochat guide's three scripts."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from headway import guide
from headway.errors import UsageError
from headway.messages import say
from headway.recipes.nanochat.preset import RECIPE

CONFIG = "configs/dual_gpu/balanced.py"
LOGS = Path("logs")
_OF_SIZE = ("task.depth", "task.max_seq_len", "task.aspect", "task.vocab_size")
VARIABLES = {"USE_LIBUV": "0", "TORCHELASTIC_USE_AGENT_STORE": "0"}
"""What the guide sets against a PyTorch that was built without libuv."""
HELP = {
    "train_dual_gpu": "nanochat/help-train-dual-gpu",
    "train_dual_gpu_enhanced": "nanochat/help-train-dual-gpu-enhanced",
    "monitor_training": "nanochat/help-monitor-training",
}
ADVICE = {"memory": "nanochat/advice-memory", "wandb": "nanochat/advice-wandb", "libuv": "nanochat/advice-libuv"}


def program(entry: str, _: Sequence[str]) -> str:
    """Return the command as the guide writes it."""
    return f"./{entry}.sh"


def main(entry: str, argv: Sequence[str]) -> int:
    """Run one of the guide's commands."""
    if entry == "monitor_training":
        return monitor(argv)
    asked = guide.read_flags(argv, ("config", "resume"), takes_settings=True, takes_first="config")
    log = guide.GuideLog.of_now(LOGS, "train_dual_gpu", is_levelled=True)
    return guide.with_log(ADVICE, log, lambda log: train(log, asked, asked.config(CONFIG)))


def train(log: guide.GuideLog, asked: guide.Asked, config: Path) -> int:
    """Check the guide's numbers, then train."""
    is_full = asked.is_full_wanted or guide.has_gpu()
    log.write(guide.size_line(is_full, "depth 4"))
    if "config" not in asked.flags:
        known = ", ".join(sorted(str(path) for path in config.parent.glob("[!_]*.py")))
        log.write(say("nanochat/guide-usual", config=config, known=known))
    log.write(say("nanochat/guide-start", config=config, log=log.path))
    framework = guide.inspect_machine(Path.cwd()).framework
    log.write(say("nanochat/guide-torch", version=framework.torch or "n/a", python=framework.python))
    guide.check_devices(log, want=2, want_bytes=20 * 10**9)
    guide.check_port(log)
    guide.check_variables(log, VARIABLES)
    code = _check_config(log, asked, config, is_full=is_full)
    if code:
        return code
    choice = choose(asked, config, is_full=is_full)
    resumed = guide.Resumed.of(asked.flags.get("resume"), guide.RUNS)
    training = guide.Training(
        choice=choice,
        voice=voice(choice),
        advice=ADVICE,
        writer=guide.StepWriter(),
        folder=Path("base_checkpoints") / f"d{choice.config.task.depth}",
        proceed=f"./train_dual_gpu.sh {config} --resume={{run}}",
        typed=asked.words,
        resume=resumed.resume,
        continued=resumed.continued,
    )
    code, run = guide.train(log, training)
    best = guide.run_state(run).best if run is not None else None
    if best is not None:
        log.write(f"Minimum validation bpb: {best.value:.4f}")
    log.write(say("nanochat/guide-end", code=code), guide.level_of(code))
    return code


def choose(asked: guide.Asked, config: Path, *, is_full: bool) -> guide.Choice:
    """Return what is trained. Tokens of a step follow the length of a sample: as many samples as were asked for."""
    sized = guide.Sized(
        recipe="nanochat",
        script="train_dual_gpu.sh",
        full=full_words(config) if is_full else (),
        of_size=_OF_SIZE.__contains__,
        holds=lambda *_: False,
    )
    choice = guide.choose(sized, config, asked.words, is_full=is_full)
    said, used = choice.guide.config, choice.config
    if is_full or said.batch.total is None or used.batch.total != said.batch.total:
        return choice
    tokens = said.batch.total // said.task.max_seq_len * used.task.max_seq_len
    sized = replace(sized, why={"batch.total": "nanochat/guide-samples"})
    return guide.choose(sized, config, asked.words, is_full=False, adapted=[f"total_batch_size={tokens}"])


def full_words(config: Path) -> tuple[str, ...]:
    """Return what follows the numbers of a guide's file: nanochat's own width, vocabulary and length of a run.

    Shards that are there are used; without any the built-in text is, at the full size too.
    """
    preset = config.stem if config.stem in RECIPE.presets else Path(CONFIG).stem
    return f"preset={preset}", "task.synthetic=true"


def voice(choice: guide.Choice) -> guide.Voice:
    """Return the original's own lines and names."""
    began, length = time.monotonic(), choice.config.task.max_seq_len

    def step(shape: guide.Shape, at: guide.Step) -> str | None:
        if at.step % max(1, min(10, shape.steps // 20)):
            return None
        rate = f"{shape.batch * length / at.seconds:,.0f}" if at.seconds else "n/a"
        minutes = (time.monotonic() - began) / 60
        share = 100 * at.step / max(1, shape.steps)
        first = f"step {at.step:05d}/{shape.steps:05d} ({share:.2f}%) | loss: {at.loss:.6f} | lr: {at.lr:.4g}"
        return f"{first} | dt: {at.seconds * 1000:.2f}ms | tok/sec: {rate} | mfu: n/a | total time: {minutes:.2f}m"

    def validation(_: guide.Shape, step: int, __: int, found: Mapping[str, float]) -> str:
        return f"Step {step:05d} | Validation bpb: {found['bpb']:.4f}"

    return guide.Voice(
        step=step, validation=validation, last_name=lambda step: f"model_{step:06d}.pt", is_end_named=True
    )


def _check_config(log: guide.GuideLog, asked: guide.Asked, config: Path, *, is_full: bool) -> int:
    """Judge the guide's numbers on two cards: the guide's own where there are none here."""
    cards = [] if guide.has_gpu() else ["--on", "2x5090"]
    words = ["recipe=nanochat", *(full_words(config) if is_full else ()), *asked.words]
    code, plan = guide.judge(log, ADVICE, str(config), words, *cards)
    if code:
        return code
    each, length, turns = plan["micro_batch"], plan["tokens_per_sample"], plan["accumulation"]
    facts = {"each": each, "length": length, "ranks": plan["world_size"], "turns": turns}
    log.write(say("nanochat/guide-divides", total=f"{plan['batch_samples'] * length:,}", **facts))
    if not plan["warnings"]:
        log.write(say("nanochat/guide-config-fine"), "SUCCESS")
    return 0


def monitor(argv: Sequence[str]) -> int:
    """Show the newest run, the machine and the end of a log again and again; `--once` shows them once."""
    asked = guide.read_flags([word for word in argv if word != "--once"], ("interval", "log"))
    if asked.words:
        raise UsageError("guide/odd-word", word=asked.words[0])
    interval_s = guide.read_seconds("--interval", asked.flags.get("interval", "5"))
    named = Path(asked.flags["log"]) if "log" in asked.flags else None
    folder = named.parent if named is not None else LOGS
    if named is not None and not named.is_file():
        # The guide's own example has its author's date in it.
        sys.stderr.write(say("nanochat/guide-other-log", path=named) + "\n")

    def find_log() -> Path | None:
        if named is not None and named.is_file():
            return named
        return max(folder.glob("*.log"), default=None)

    return guide.monitor(guide.RUNS, find_log=find_log, interval_s=interval_s, is_once="--once" in argv)
