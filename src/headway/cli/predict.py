"""`headway predict`: let a trained model produce something."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from headway.cli.bilingual import command, echo_json, option
from headway.cli.consent import ask_trust
from headway.cli.options import JSON, RUNS, STEP, WORDS
from headway.cli.trained import ask_trained, find_step, recipe_of
from headway.config import load_config
from headway.errors import UsageError
from headway.messages import say
from headway.start.consent import recipe_finder
from headway.telemetry import RunDir, find_run, refuse_links


@command(
    "predict",
    help="cli/predict-help",
    context_settings=WORDS,
)
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="[RUN] [KEY=VALUE]…")
@STEP
@option("--to", type=click.Path(path_type=Path), help="cli/option-to")
@RUNS
@JSON
def predict(words: tuple[str, ...], step: str, to: Path | None, out: Path, as_json: bool) -> None:
    """Let a trained model produce something."""
    given = bool(words) and "=" not in words[0] and not words[0].startswith("-")
    place = find_run(words[0] if given else None, out)
    options = _options(place, words[1:] if given else words)
    to = to or place.root / "predictions"
    refuse_links(place.root, to)
    answer = ask_trained(place, {"do": "predict", "step": find_step(place, step), "options": options, "to": str(to)})
    if as_json:
        echo_json({"schema": "predict/1", "run": place.name, **answer})
        return
    click.echo(say("cli/used-step", step=answer["step"]), err=True)
    for text in (answer["text"], *answer["files"]):
        click.echo(text)


def _options(place: RunDir, words: Sequence[str]) -> dict[str, Any]:
    """Return the recipe's own options, checked like a config: `prompt=…` and `--prompt …` mean the same."""
    recipe = recipe_finder((), ask=ask_trust)(recipe_of(place))
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
