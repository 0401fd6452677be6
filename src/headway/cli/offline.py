"""`headway eval` and `headway predict`: a child process loads the model; this side only asks and prints."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

import click

from headway.cli.bilingual import command, echo_json, option
from headway.cli.consent import recipe_finder, require_python
from headway.config import Recipe, RunConfig, load_config, redact
from headway.errors import TrainError, UsageError
from headway.machine import cpu_environment
from headway.messages import language, say
from headway.planner import Plan
from headway.telemetry import RunDir, find_run, refuse_links, require_record, run_state, section
from headway.telemetry import words as text_of


@command("eval", help="cli/eval-help")
@click.argument("run", required=False)
@option("--step", default="latest", help="cli/option-step")
@option("--samples", type=click.IntRange(min=1), help="cli/option-samples")
@option("--runs", "--out", "out", default="runs", type=click.Path(path_type=Path), help="cli/option-out")
@option("--json", "as_json", is_flag=True, help="cli/option-json")
def eval(run: str | None, step: str, samples: int | None, out: Path, as_json: bool) -> None:
    """Measure a trained model."""
    place = find_run(run, out)
    answer = _ask(place, {"do": "eval", "step": _step(place, step), "samples": samples})
    if as_json:
        echo_json({"schema": "eval/1", "run": place.name, **answer})
        return
    measures = "  ".join(f"{name} {value:.4f}" for name, value in answer["measures"].items())
    trial = "  ".join(f"{name} {value:.4f}" for name, value in answer["trial"].items())
    click.echo(say("cli/measured", run=place.name, step=answer["step"], measures=f"{measures}  {trial}".rstrip()))


@command(
    "predict",
    help="cli/predict-help",
    context_settings={"ignore_unknown_options": True, "help_option_names": ["-h", "--help"]},
)
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="[RUN] [KEY=VALUE]…")
@option("--step", default="latest", help="cli/option-step")
@option("--to", type=click.Path(path_type=Path), help="cli/option-to")
@option("--runs", "--out", "out", default="runs", type=click.Path(path_type=Path), help="cli/option-out")
@option("--json", "as_json", is_flag=True, help="cli/option-json")
def predict(words: tuple[str, ...], step: str, to: Path | None, out: Path, as_json: bool) -> None:
    """Let a trained model produce something."""
    given = bool(words) and "=" not in words[0] and not words[0].startswith("-")
    place = find_run(words[0] if given else None, out)
    options = _options(place, words[1:] if given else words)
    to = to or place.root / "predictions"
    refuse_links(place.root, to)
    answer = _ask(place, {"do": "predict", "step": _step(place, step), "options": options, "to": str(to)})
    if as_json:
        echo_json({"schema": "predict/1", "run": place.name, **answer})
        return
    click.echo(say("cli/used-step", step=answer["step"]), err=True)
    for text in (answer["text"], *answer["files"]):
        click.echo(text)


def _options(place: RunDir, words: Sequence[str]) -> dict[str, Any]:
    """Return the recipe's own options, checked like a config: `prompt=…` and `--prompt …` mean the same."""
    recipe = recipe_finder(())(_recipe_of(place))
    if recipe.predict is None:
        raise UsageError("engine/cannot-predict", task=recipe.name)
    texts = {name for name, info in recipe.predict.model_fields.items() if info.annotation is str}
    pairs = []
    waiting = list(words)
    while waiting:
        key, is_pair, value = waiting.pop(0).partition("=")
        key = key.lstrip("-").replace("-", "_")
        if not is_pair and waiting:
            value = waiting.pop(0)
        pairs.append(f"{key}={json.dumps(value) if key in texts else value}")
    asked = replace(recipe, section=recipe.predict, defaults={}, presets={}, aliases={}, implied={}, ignored={})
    loaded = load_config(None, recipe=asked, overrides=pairs)
    values: dict[str, Any] = loaded.config.task.model_dump(mode="json")
    return values


def _step(place: RunDir, text: str) -> int | None:
    """Return the step of a checkpoint; None is the newest that verifies."""
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


def _run(line: list[str], environ: dict[str, str]) -> subprocess.CompletedProcess[bytes]:
    """Run the child; what it says on the way passes our own border, for a name in it may steer a terminal."""
    child = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environ)
    assert child.stdout is not None and child.stderr is not None
    told = threading.Thread(target=_pass_on, args=(child.stderr,), daemon=True)
    told.start()
    try:
        out = child.stdout.read()
        told.join()
        child.wait()
    finally:
        child.kill()  # of a child that has ended, nothing
        child.wait()
    return subprocess.CompletedProcess(line, child.returncode, out)


def _pass_on(stream: IO[bytes]) -> None:
    for text in stream:
        with contextlib.suppress(OSError):
            sys.stderr.write(redact(text.decode("utf-8", "replace")))
            sys.stderr.flush()


def _recipe_of(place: RunDir) -> str:
    """Return the name or folder of the run's recipe; a line of `headway run` has none."""
    name = require_record(place.job, lambda job: job["recipe"])
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


def _ask(place: RunDir, request: dict[str, Any]) -> dict[str, Any]:
    """Let a child with the framework answer; its own error comes back as ours."""
    python, is_mindspore = require_record(place.job, _interpreter)
    # The child imports the run's recipe with the run's interpreter; a run may have come from anybody.
    recipe = recipe_finder(())(_recipe_of(place))
    require_record(place.job, lambda job: _check_job(job, recipe))
    if python is not None:
        require_python(python)
    python = python or sys.executable
    module = "headway.engine.mindspore.trained" if is_mindspore else "headway.engine.trained"
    request = {**request, "run_dir": str(place.root), "lang": language()}
    line = [python, "-P", "-m", module, json.dumps(request)]
    environ = cpu_environment(python, "mindspore" if is_mindspore else "torch")
    child = _run(line, environ)
    if child.returncode == -signal.SIGILL:
        raise TrainError("diagnose/illegal-instruction")
    lines = child.stdout.decode("utf-8", "replace").strip().splitlines()
    if child.returncode != 0 or not lines:
        raise TrainError("cli/child-failed", code=child.returncode)
    answer: dict[str, Any] = json.loads(lines[-1])
    if "error" in answer:
        raise TrainError(answer["error"]["code"], **answer["error"]["facts"])
    for bad in answer["skipped"]:
        name = Path(bad["checkpoint"]).name
        click.echo(say("cli/older-checkpoint", step=answer["step"], name=name, why=bad["why"]), err=True)
    return answer
