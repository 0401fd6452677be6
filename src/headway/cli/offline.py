"""`headway eval` and `headway predict`: a child process loads the model; this side only asks and prints."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from headway.cli.shape import command, echo_json, option
from headway.config import load_config
from headway.errors import TrainError, UsageError
from headway.machine import cpu_environment
from headway.messages import language, say
from headway.recipes import find_recipe
from headway.telemetry import RunDir, find_run, read_json, run_state


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
    answer = _ask(place, {"do": "predict", "step": _step(place, step), "options": options, "to": str(to)})
    if as_json:
        echo_json({"schema": "predict/1", "run": place.name, **answer})
        return
    click.echo(say("cli/used-step", step=answer["step"]), err=True)
    for text in (answer["text"], *answer["files"]):
        click.echo(text)


def _options(place: RunDir, words: Sequence[str]) -> dict[str, Any]:
    """Return the recipe's own options, checked like a config: `prompt=…` and `--prompt …` mean the same."""
    recipe = find_recipe(read_json(place.job)["recipe"])
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


def _ask(place: RunDir, request: dict[str, Any]) -> dict[str, Any]:
    """Let a child with the framework answer; its own error comes back as ours."""
    stored = read_json(place.job)
    python = stored["config"]["env"]["python"] or sys.executable
    is_mindspore = (stored["config"].get("task") or {}).get("framework") == "mindspore"
    module = "headway.engine.mindspore.offline" if is_mindspore else "headway.engine.offline"
    request = {**request, "run_dir": str(place.root), "lang": language()}
    line = [python, "-P", "-m", module, json.dumps(request)]
    environ = cpu_environment(python, "mindspore" if is_mindspore else "torch")
    child = subprocess.run(line, stdout=subprocess.PIPE, check=False, env=environ)
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
