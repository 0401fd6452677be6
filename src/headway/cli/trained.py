"""What `eval`, `predict` and `ckpt import` share: a child process loads the model; this side only asks."""

from __future__ import annotations

import contextlib
import signal
import sys
from pathlib import Path
from typing import Any

import click

from headway.ask import ask
from headway.cli.consent import ask_trust
from headway.config import Recipe, RunConfig, redact
from headway.errors import TrainError, UsageError
from headway.launch import Claims
from headway.machine import cpu_environment
from headway.messages import language, say
from headway.planner import Plan
from headway.start.consent import recipe_finder, require_python
from headway.start.devices import claim_one
from headway.telemetry import RunDir, require_record, run_state, section
from headway.telemetry import words as text_of


def find_step(place: RunDir, text: str) -> int | None:
    """Return the step of a checkpoint; None is the newest that passes verification."""
    if text == "latest":
        return None
    if text == "best":
        best = run_state(place).best
        if best is None:
            raise UsageError("cli/no-best", run=place.name)
        return best.step
    if not text.isdigit():
        raise UsageError("cli/step-not-understood", step=text, run=place.name)
    return int(text)


def _pass_on(line: bytes) -> None:
    """Show what the child says on the way; it passes our own border, for a name in it may steer a terminal."""
    with contextlib.suppress(OSError):
        sys.stderr.write(redact(line.decode("utf-8", "replace")))
        sys.stderr.flush()


def recipe_of(place: RunDir) -> str:
    """Return the name or folder of the run's recipe; a line of `headway run` has none."""
    name = require_record(place.job, lambda job: None if job.get("kind") == "foreign" else job["recipe"])
    if not isinstance(name, str):
        raise UsageError("cli/no-recipe", run=place.name)
    return name


def _check_job(job: Any, recipe: Recipe) -> None:
    """Find out here whether the child can read it; Any: JSON, not yet checked."""
    config = dict(job["config"])
    recipe.section.model_validate(config.pop("task"))
    RunConfig.model_validate(config)
    Plan.from_json(job["plan"])


def _interpreter(job: Any) -> tuple[str | None, bool]:
    """Return the ranks' own interpreter, if they have one, and whether it has MindSpore; Any: JSON, not yet checked."""
    config = job["config"]
    return text_of(section(config.get("env")).get("python")), section(config.get("task")).get(
        "framework"
    ) == "mindspore"


def ask_trained(place: RunDir, request: dict[str, Any], *, program: str = "trained") -> dict[str, Any]:
    """Let a child with the framework answer; its own error comes back as ours."""
    name = recipe_of(place)
    python, is_mindspore = require_record(place.job, _interpreter)
    # The child imports the run's recipe with the run's interpreter; a run may have come from anybody.
    recipe = recipe_finder((), ask=ask_trust)(name)
    require_record(place.job, lambda job: _check_job(job, recipe))
    if python is not None:
        require_python(python, ask_trust)
    python = python or sys.executable
    module = f"headway.engine.mindspore.{program}" if is_mindspore else f"headway.engine.{program}"
    request = {**request, "run_dir": str(place.root), "lang": language()}
    environ = cpu_environment(python, "mindspore" if is_mindspore else "torch")
    claims = Claims(place.name)
    try:
        if program == "trained":
            shown, holders = claim_one(claims)
            environ = {**environ, **shown}
            if holders:
                click.echo(say("cli/all-gpus-held", holders=holders), err=True)
        told = ask(python, request, module=module, env=environ, hear=_pass_on)
    finally:
        claims.release()
    if told.exit_code == -signal.SIGILL:
        raise TrainError("diagnose/illegal-instruction")
    if told.exit_code != 0 or told.value is None:
        raise TrainError("cli/child-failed", code=told.exit_code)
    answer: dict[str, Any] = told.value
    if "error" in answer:
        raise TrainError(answer["error"]["code"], **answer["error"]["facts"])
    for bad in answer["skipped"]:
        name = Path(bad["checkpoint"]).name
        click.echo(say("cli/older-checkpoint", step=answer["step"], name=name, why=bad["why"]), err=True)
    return answer
