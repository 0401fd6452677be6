"""What `train` and `resume` share: the nursery, supervision with its screen, the report and the next command."""

from __future__ import annotations

import contextlib
import importlib
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TextIO

import click

from headway.checkpoint import list_checkpoints
from headway.cli.cpu import cpu_settings
from headway.config import LoadedConfig, RunConfig, redact, redact_words
from headway.launch import Lease, Nursery, Outcome, detach, failure_text, launch_run, start_nursery
from headway.machine import MachineReport
from headway.messages import language, say
from headway.plan import Plan
from headway.recipes import find_recipe
from headway.telemetry import RunDir, read_beat, read_json, run_state
from headway.ui.console import RunConsole

_GIT_S = 5.0
_ENTRIES = {"torch": "headway.engine.worker:main", "mindspore": "headway.engine.mindspore.worker:main"}
"""What a rank of each framework is started with."""


def nursery_for(loaded: LoadedConfig) -> Nursery:
    """Start importing what the ranks of this config need."""
    python, framework = loaded.config.env.python, loaded.framework
    return start_nursery(python, preload_of(loaded), _ENTRIES[framework], env=cpu_settings(loaded))


def framework_of(loaded: LoadedConfig) -> str:
    """Return what the ranks of this config train with."""
    return loaded.framework


def preload_of(loaded: LoadedConfig) -> list[str]:
    """Return the modules worth importing once, with what a first step would import lazily."""
    if loaded.framework == "mindspore":
        own = loaded.recipe.task_mindspore
        return ["headway.engine.mindspore.worker", "headway.recipes", *([own] if own else [])]
    modules = ["headway.engine.worker", "headway.recipes", *loaded.recipe.preload]
    if loaded.recipe.task.startswith("headway."):  # a folder's own modules are known to the rank that opens it
        modules.append(loaded.recipe.task)
    if loaded.config.parallel.strategy == "fsdp":
        modules.append("headway.engine.sharded")
    if loaded.config.train.compile:
        modules.append("torch._dynamo")
    return modules


def supervise(
    run: RunDir, nursery: Nursery, stream: TextIO, *, is_watched: bool = True, lease: Lease | None = None
) -> int:
    """Run to the end on this terminal, or in the background into supervisor.log; return the exit code.

    Args:
        lease: the run's, where it is held already.
    """
    plan = Plan.from_json(read_json(run.plan))
    console = RunConsole(stream, plan, log=None if is_watched else run.log)
    try:
        outcome = launch_run(run, observer=console, nursery=nursery, lease=lease)
        console.tick([read_beat(run.heartbeat(rank)) for rank in range(plan.world_size)])
    finally:
        console.close()
    learn_from(run)
    # The report's libraries (numpy, jinja2) take longer to import than all the rest; nobody waits for them at the end.
    report = importlib.import_module("headway.ui.report")
    report.write_report(run)
    _say_end(run, outcome, report.find_gains(report.gather(run)), stream)
    return outcome.exit_code


def learn_from(run: RunDir) -> None:
    """Keep what the run's steps took, so that the next plan on this machine knows better."""
    job, machine = read_json(run.job), MachineReport.from_json(read_json(run.machine))
    # Read by nobody before this point, and a full disk or a home that cannot be written is no fault of the run.
    tune = importlib.import_module("headway.tune")
    with contextlib.suppress(OSError):
        tune.remember_run(run, RunConfig.model_validate(job["config"]), machine)


def detach_run(run: RunDir, lease: Lease | None = None) -> int:
    """Let a supervisor of its own session run it, with the lease where it is held already; return once it trains."""
    words = ["--lang", language(), "supervise", str(run.root)]
    started = detach(run, [sys.executable, "-P", "-m", "headway", *words], lease=lease)
    if started.state == "ended" and started.exit_code:
        click.echo((run.root / "supervisor.log").read_text(encoding="utf-8", errors="replace").rstrip(), err=True)
        return started.exit_code
    click.echo(say("cli/detached", run=run.name))
    click.echo(say("cli/next", command=typed("watch", run)))
    return 0


def _say_end(run: RunDir, outcome: Outcome, gains: Sequence[Any], stream: TextIO) -> None:
    """Say how it ended, where things are and what to type next; after a failure the traceback comes last."""
    state = run_state(run)
    lines = [""]
    if outcome.state == "done":
        lines.append(say("console/end-done", steps=outcome.steps, total=state.total_steps))
    if state.best is not None:
        paths = [info.path for info in list_checkpoints(run.checkpoints) if info.step == state.best.step]
        path = paths[-1] if paths else "n/a"
        lines.append(say("console/end-best", name=state.best.name, value=f"{state.best.value:.4f}", path=path))
    for gain in gains:
        share = f"{abs(gain.share):.1%}"
        code = "console/end-gain" if gain.share > 0 else "console/end-loss"
        base = {"baseline": gain.name, "baseline_value": f"{gain.baseline.value:.4f}"}
        lines.append(say(code, name=gain.best.name, value=f"{gain.best.value:.4f}", share=share, **base))
    lines.append(say("console/end-report", path=run.report))
    if outcome.state == "done":
        can_predict = find_recipe(read_json(run.job)["recipe"]).predict is not None
        lines.append(say("cli/next", command=typed("predict" if can_predict else "eval", run)))
    else:
        lines += [say("cli/next", command=typed("resume", run)), "", *failure_text(outcome)]
    stream.write("\n".join(lines) + "\n")
    stream.flush()


def typed(command: str, run: RunDir) -> str:
    """Return a command ready to type: by its path where `headway` alone would not be found."""
    program = "headway"
    if not shutil.which(program):
        place = Path(sys.executable).parent / program
        program = str(place.relative_to(Path.cwd()) if place.is_relative_to(Path.cwd()) else place)
    is_usual = run.root.parent.resolve() == Path("runs").resolve()
    return f"{program} {command} {run.name if is_usual else run.root}"


def describe_command() -> dict[str, Any]:
    """Return what was typed, where, with which code; of the environment only the names."""
    return {
        "schema": "command/1",
        "argv": redact_words(["headway", *sys.argv[1:]]),
        "cwd": os.getcwd(),
        "env": sorted(os.environ),
        "git": _git(Path.cwd()),
    }


def _git(place: Path) -> dict[str, str] | None:
    """Return commit and uncommitted diff of the folder, or None outside of a checkout or without git."""
    answers = {}
    for name, words in (("commit", ["rev-parse", "HEAD"]), ("diff", ["diff", "HEAD"])):
        try:
            done = subprocess.run(
                ["git", "-C", str(place), *words],
                capture_output=True,
                timeout=_GIT_S,
                check=False,
                encoding="utf-8",
                errors="replace",  # a diff holds the files' own bytes: GBK, Latin-1, whatever they are written in
            )
        except (FileNotFoundError, subprocess.TimeoutExpired):
            return None
        if done.returncode != 0:
            return None
        answers[name] = redact(done.stdout.strip()[:1_000_000])
    return answers
