"""`headway eval`: measure a trained model."""

from __future__ import annotations

from pathlib import Path

import click

from headway.cli.bilingual import command, echo_json, option
from headway.cli.options import JSON, RUN, RUNS, STEP
from headway.cli.trained import ask_trained, find_step
from headway.messages import say
from headway.telemetry import find_run


@command("eval", help="cli/eval-help")
@RUN
@STEP
@option("--samples", type=click.IntRange(min=1), help="cli/option-samples")
@RUNS
@JSON
def eval(run: str | None, step: str, samples: int | None, out: Path, as_json: bool) -> None:
    """Measure a trained model."""
    place = find_run(run, out)
    answer = ask_trained(place, {"do": "eval", "step": find_step(place, step), "samples": samples})
    if as_json:
        echo_json({"schema": "eval/1", "run": place.name, **answer})
        return
    measures = "  ".join(f"{name} {value:.4f}" for name, value in answer["measures"].items())
    trial = "  ".join(f"{name} {value:.4f}" for name, value in answer["trial"].items())
    click.echo(say("cli/measured", run=place.name, step=answer["step"], measures=f"{measures}  {trial}".rstrip()))
