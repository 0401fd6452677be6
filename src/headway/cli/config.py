"""`headway config`: the resolved config, its JSON Schema, and what one key is."""

from __future__ import annotations

import dataclasses
import json
import os
from typing import Any

import click

from headway.cli.bilingual import command, echo_json, group, option
from headway.cli.consent import ask_trust
from headway.cli.options import WORDS
from headway.config import Explained, RunConfig, dump_yaml, explain, load_config, schema_json
from headway.messages import say
from headway.start.consent import recipe_finder
from headway.task import find_recipe


@group("config", help="config/help")
def config() -> None:
    """See the message `config/help`."""


@command("show", help="config/help-show", context_settings=WORDS)
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="[SOURCE] [KEY=VALUE]…")
@option("--json", "as_json", is_flag=True, help="config/help-json")
@option("--origins", "with_origins", is_flag=True, help="config/help-origins")
def show(words: tuple[str, ...], as_json: bool, with_origins: bool) -> None:
    """See the message `config/help-show`."""
    source = words[0] if words and "=" not in words[0] and not words[0].startswith("-") else None
    overrides = words[1:] if source is not None else words
    finder = recipe_finder(words, ask=ask_trust)
    loaded = load_config(source, recipe=finder, overrides=overrides, environ=os.environ)
    for code, facts in loaded.warnings:
        click.echo(say("config/warning", text=say(code, None, **facts)), err=True)
    if as_json:
        record = {
            "schema": "config/1",
            "config": loaded.config.model_dump(mode="json"),
            "origins": loaded.origins,
            "warnings": [{"code": code, "facts": facts} for code, facts in loaded.warnings],
        }
        echo_json(record, indent=2)
        return
    click.echo(dump_yaml(loaded.config, loaded.origins if with_origins else None), nl=False)


@command("schema", help="config/help-schema")
@click.argument("recipe", required=False)
@option("--json", "as_json", is_flag=True, help="config/help-json")
def schema(recipe: str | None, as_json: bool) -> None:
    """See the message `config/help-schema`."""
    # JSON either way; the option is there because every reading command takes it.
    echo_json(schema_json(find_recipe(recipe or _default_recipe())), indent=2)


@command("explain", help="config/help-explain")
@click.argument("key")
@option("--recipe", "recipe_name", help="config/help-recipe")
@option("--json", "as_json", is_flag=True, help="config/help-json")
def explain_command(key: str, recipe_name: str | None, as_json: bool) -> None:
    """See the message `config/help-explain`."""
    found = explain(key, find_recipe(recipe_name or _default_recipe()))
    if as_json:
        echo_json({"schema": "config-key/1", **dataclasses.asdict(found)}, indent=2)
        return
    click.echo("\n".join(_lines(found)))


def _lines(found: Explained) -> list[str]:
    """Return what a person reads about a key."""
    lines = [found.key, f"  {found.description}"]
    if found.keys:
        return [*lines, *(f"  {key}" for key in found.keys)]
    default = say("config/label-required") if found.is_required else _plain(found.default)
    if found.origin.startswith("recipe "):
        default = say("config/value-of-recipe", value=default, name=found.origin.removeprefix("recipe "))
    rows = [(say("config/label-type"), found.type.strip()), (say("config/label-default"), default)]
    if found.aliases:
        rows.append((say("config/label-aliases"), ", ".join(found.aliases)))
    rows += [(say("config/label-preset", name=name), _plain(value)) for name, value in found.presets.items()]
    rows.append((say("config/label-set"), f"{found.key}=…"))
    return [*lines, *(say("config/row", label=label, value=value) for label, value in rows)]


def _plain(value: Any) -> str:
    """Any: the value of any field."""
    return json.dumps(value, ensure_ascii=False)


def _default_recipe() -> str:
    return str(RunConfig.model_fields["recipe"].default)


config.add_command(show)
config.add_command(schema)
config.add_command(explain_command)
