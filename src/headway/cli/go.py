"""What `train` and `resume` share: the nursery, supervision with its screen, the report and the next command."""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

import click

from headway.checkpoint import list_checkpoints
from headway.cli.cpu import cpu_settings
from headway.config import LoadedConfig, RunConfig, redact, redact_words
from headway.launch import Lease, Nursery, Outcome, detach, failure_text, launch_run, start_nursery
from headway.machine import MachineReport
from headway.messages import language, say
from headway.planner import Plan
from headway.task import find_recipe
from headway.telemetry import RunDir, read_beat, read_record, require_record, run_state
from headway.ui.console import RunConsole

_GIT_S = 5.0
_REPORT_S = 120.0
_ENTRIES = {"torch": "headway.engine.rank:main", "mindspore": "headway.engine.mindspore.rank:main"}
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
        return ["headway.engine.mindspore.rank", "headway.task", *([own] if own else [])]
    modules = ["headway.engine.rank", "headway.task", *loaded.recipe.preload]
    if loaded.recipe.task.startswith("headway."):  # a folder's own modules are known to the rank that opens it
        modules.append(loaded.recipe.task)
    if loaded.config.parallel.strategy == "fsdp":
        modules.append("headway.engine.fsdp")
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
    plan = require_record(run.plan, Plan.from_json)
    console = RunConsole(stream, plan, log=None if is_watched else run.log)
    try:
        outcome = launch_run(run, observer=console, nursery=nursery, lease=lease)
        console.tick([read_beat(run.heartbeat(rank)) for rank in range(plan.world_size)])
    finally:
        console.close()
    _conclude(run, outcome, stream)
    return outcome.exit_code


def _conclude(run: RunDir, outcome: Outcome, stream: TextIO) -> None:
    """Write the report and say the end. The run is over and its history is written: nothing here may change that."""
    try:
        gains = _report(run, stream)
        lines = _end_lines(run, outcome, gains)
    except Exception as err:  # border: clean-up; a full disk, a directory that was moved, a report that fails
        lines = ["", say("console/end-untold", run=run.root, why=f"{type(err).__name__}: {err}")]
        lines += failure_text(outcome) if outcome.state != "done" else []
    stream.write("\n".join(lines) + "\n")
    stream.flush()


def _report(run: RunDir, stream: TextIO) -> list[dict[str, Any]]:
    """Let a child learn from the run and write its report; return how the best measure compares with each baseline.

    A child: numpy, jinja2 and a million steps do not belong into a supervisor, and may not take it with them.
    """
    command = [sys.executable, "-P", "-m", "headway", "--lang", language(), "conclude", str(run.root)]
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_REPORT_S, check=False, text=True
        )
        gains: list[dict[str, Any]] = json.loads(done.stdout)["gains"] if done.returncode == 0 else []
        why = "" if done.returncode == 0 else done.stderr.strip() or f"exit code {done.returncode}"
    except (OSError, ValueError, subprocess.TimeoutExpired) as err:
        gains, why = [], str(err)
    if why:
        stream.write(say("console/end-no-report", command=typed("report", run), why=why) + "\n")
    return gains


def learn_from(run: RunDir) -> None:
    """Keep what the run's steps took, so that the next plan on this machine knows better."""
    config = require_record(run.job, lambda job: RunConfig.model_validate(job["config"]))
    machine = require_record(run.machine, MachineReport.from_json)
    # Read by nobody before this point, and a full disk or a home that cannot be written is no fault of the run.
    tune = importlib.import_module("headway.tune")
    with contextlib.suppress(OSError):
        tune.remember_run(run, config, machine)


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


def _end_lines(run: RunDir, outcome: Outcome, gains: Sequence[Mapping[str, Any]]) -> list[str]:
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
            code = "console/end-gain" if gain["share"] > 0 else "console/end-loss"
            base = {"baseline": gain["baseline"], "baseline_value": f"{gain['value']:.4f}"}
            value, share = f"{state.best.value:.4f}", f"{abs(gain['share']):.1%}"
            lines.append(say(code, name=state.best.name, value=value, share=share, **base))
    if run.report.exists():
        lines.append(say("console/end-report", path=run.report))
    if outcome.state == "done":
        can_predict = find_recipe(str(read_record(run.job)["recipe"])).predict is not None
        lines.append(say("cli/next", command=typed("predict" if can_predict else "eval", run)))
    else:
        lines += [say("cli/next", command=typed("resume", run)), "", *failure_text(outcome)]
    return lines


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
