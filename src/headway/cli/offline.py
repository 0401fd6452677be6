"""`headway eval` and `headway predict`: a child process loads the model; this side only asks and prints."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import click

from headway.cli.shape import command, option
from headway.errors import TrainError, UsageError
from headway.messages import language
from headway.telemetry import RunDir, find_run, read_json, run_state


@command("eval", help="cli/eval-help")
@click.argument("run", required=False)
@option("--step", default="latest", help="cli/option-step")
@option("--samples", type=click.IntRange(min=1), help="cli/option-samples")
@option("--out", default="runs", type=click.Path(path_type=Path), help="cli/option-out")
@option("--json", "as_json", is_flag=True, help="cli/option-json")
def eval(run: str | None, step: str, samples: int | None, out: Path, as_json: bool) -> None:
    """Measure a trained model."""
    place = find_run(run, out)
    answer = _ask(place, {"do": "eval", "step": _step(place, step), "samples": samples})
    if as_json:
        click.echo(json.dumps({"schema": "eval/1", "run": place.name, **answer}, ensure_ascii=False))
        return
    measures = "  ".join(f"{name} {value:.4f}" for name, value in answer["measures"].items())
    click.echo(f"{place.name}  step {answer['step']}  {measures}")


@command("predict", help="cli/predict-help")
@click.argument("run", required=False)
@option("--prompt", default="", help="cli/option-prompt")
@option("--max-tokens", default=64, type=click.IntRange(min=1), help="cli/option-max-tokens")
@option("--temperature", default=0.8, type=click.FloatRange(min=0), help="cli/option-temperature")
@option("--seed", default=0, type=click.IntRange(min=0), help="cli/option-seed")
@option("--step", default="latest", help="cli/option-step")
@option("--out", default="runs", type=click.Path(path_type=Path), help="cli/option-out")
@option("--json", "as_json", is_flag=True, help="cli/option-json")
def predict(run: str | None, step: str, out: Path, as_json: bool, **options: Any) -> None:
    """Let a trained model produce something."""
    place = find_run(run, out)
    answer = _ask(place, {"do": "predict", "step": _step(place, step), "options": options})
    if as_json:
        click.echo(json.dumps({"schema": "predict/1", "run": place.name, **answer}, ensure_ascii=False))
        return
    click.echo(f"{options['prompt']}{answer['output']}")


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
    python = read_json(place.job)["config"]["env"]["python"] or sys.executable
    request = {**request, "run_dir": str(place.root), "lang": language()}
    child = subprocess.run(
        [python, "-P", "-m", "headway.engine.offline", json.dumps(request)], stdout=subprocess.PIPE, check=False
    )
    lines = child.stdout.decode("utf-8", "replace").strip().splitlines()
    if child.returncode != 0 or not lines:
        raise TrainError("cli/child-failed", code=child.returncode)
    answer: dict[str, Any] = json.loads(lines[-1])
    if "error" in answer:
        raise TrainError(answer["error"]["code"], **answer["error"]["facts"])
    return answer
