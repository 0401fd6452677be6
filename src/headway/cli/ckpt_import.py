"""`headway ckpt import`: begin a run with weights from a file."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from headway.cli.bilingual import command, echo_json, option
from headway.cli.consent import ask_trust
from headway.cli.options import WORDS
from headway.cli.trained import ask_trained
from headway.config import LoadedConfig
from headway.errors import UsageError
from headway.launch import Claims, Lease
from headway.messages import say
from headway.start.decide import decide
from headway.start.source import load_words
from headway.start.write import write_run
from headway.telemetry import EventLog, RunDir, read_record
from headway.ui.console_safe import make_console
from headway.ui.terminal.deciding import DecisionScreen
from headway.units import size
from headway.weights import Weights, read_weights


@command(
    "import",
    help="checkpoint/help-import",
    context_settings=WORDS,
)
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="RECIPE FILE [KEY=VALUE]…")
@option("--to", type=click.Path(path_type=Path), help="checkpoint/option-import-to")
@option("--dry-run", is_flag=True, help="checkpoint/option-dry-run")
@option("--json", "as_json", is_flag=True, help="checkpoint/option-json")
def import_command(words: tuple[str, ...], to: Path | None, dry_run: bool, as_json: bool) -> None:
    """See the message `checkpoint/help-import`."""
    if len(words) < 2 or any("=" in word or word.startswith("-") for word in words[:2]):
        raise UsageError("checkpoint/import-words")
    if to is not None and (to.exists() or to.is_symlink()):
        raise UsageError("checkpoint/import-exists", path=to)
    recipe, file, *changed = words
    weights = read_weights(Path(file))
    if to is not None:
        changed.append(f"out={to.absolute().parent}")
    loaded = load_words((recipe, *changed), is_order=True, ask=ask_trust)
    told = _settings_of(loaded, weights, changed)
    if told:
        loaded = load_words((recipe, *told, *changed), is_order=True, ask=ask_trust)
    if loaded.framework == "mindspore":
        raise UsageError("checkpoint/import-framework", recipe=loaded.recipe.name)
    run, kept = _make(loaded, weights, to=to, dry_run=dry_run)
    facts: dict[str, object] = {"file": str(weights.path), "num_tensors": len(weights.spans), "bytes": weights.bytes}
    facts |= {"settings": told, "kept": kept}
    if as_json:
        echo_json({"schema": "import/1", "dry_run": dry_run, "run": run and str(run.root), **facts}, indent=2)
        return
    shown = {"file": weights.path, "num": len(weights.spans), "size": size(weights.bytes)}
    if told:
        click.echo(say("checkpoint/import-settings", settings=" ".join(told)), err=True)
    if run is None:
        click.echo(say("checkpoint/would-import", **shown))
        return
    click.echo(say("checkpoint/imported", run=run.root, **shown))
    if kept:
        click.echo(say("checkpoint/import-kept", num=len(kept), name=kept[0]), err=True)
    click.echo(say("checkpoint/next-resume", run=run.root), err=True)


def _settings_of(loaded: LoadedConfig, weights: Weights, changed: Sequence[str]) -> list[str]:
    """Return the settings that a file of the recipe's own system tells; what the user has set counts."""
    upstream = loaded.recipe.upstream
    if upstream is None:
        return []
    shapes = {name: span.shape for name, span in weights.spans.items()}
    told = upstream.settings(shapes, {**weights.facts, **_read_beside(weights.path)})
    asked = {word.lstrip("-").partition("=")[0] for word in changed}
    # A list as JSON writes it is a list in YAML too.
    return [f"{key}={json.dumps(value)}" for key, value in told.items() if not asked & {key, key.partition(".")[2]}]


def _read_beside(path: Path) -> Mapping[str, Any]:
    """Return what the file beside the weights says of them: `meta_000200.json`, or `config.json` of a folder."""
    folder = path if path.is_dir() else path.parent
    for name in (f"{path.stem.replace('model', 'meta', 1)}.json", "config.json"):
        found = read_record(folder / name)
        if found:
            return found
    return {}


def _make(loaded: LoadedConfig, weights: Weights, *, to: Path | None, dry_run: bool) -> tuple[RunDir | None, list[str]]:
    """Make a run whose step 0 holds the weights; one that they do not fit leaves nothing behind."""
    decision = decide(
        loaded, DecisionScreen(make_console(stderr=True)), Claims(loaded.recipe.name), is_dry=True, trace=False
    )
    if dry_run:
        return None, []
    run, _ = write_run(decision)
    try:
        if to is not None:
            run = RunDir(run.root.rename(to.absolute()))
        lease = Lease(run)
        try:
            answer = ask_trained(run, {"file": str(weights.path.absolute())}, program="take_weights")
            _record(run, weights, answer)
        finally:
            lease.release()
    except BaseException:
        shutil.rmtree(run.root)
        raise
    return run, answer["kept"]


def _record(run: RunDir, weights: Weights, answer: dict[str, Any]) -> None:  # Any: JSON of our own child
    """Write into the history where the run's first weights are from."""
    log = EventLog(run.events)
    for event in answer["events"]:
        log.append(event.pop("kind"), **event)
    log.append("weights_imported", file=str(weights.path.absolute()), tensors=answer["tensors"], bytes=answer["bytes"])
    log.append("run_ended", state="stopped", exit_code=0, why="checkpoint/import-ready", steps=0)
    log.close()
