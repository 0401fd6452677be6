"""Click's command, group, option and argument in both languages: help is a message code, and so is every refusal."""

from __future__ import annotations

import copy
import importlib
import json
from collections.abc import Mapping
from typing import Any

import click

from headway.cli.help_page import HelpFormatter
from headway.cli.refusals import refuse_command, refuse_value, refuse_words
from headway.messages import say

__all__ = ["Argument", "Command", "Group", "LazyGroup", "Option", "argument", "command", "echo_json", "group", "option"]

_METAVARS = {
    "text": "text",
    "integer": "integer",
    "integer range": "integer",
    "float": "number",
    "float range": "number",
    "path": "path",
    "file": "path",
    "directory": "folder",
}
"""Click's names of types, and the word we have for each."""


def echo_json(data: object, indent: int | None = None) -> None:
    """Print one JSON value that every reader takes: NaN and Inf by name, bytes that are not text as escapes."""
    from headway.telemetry import plain  # help and completion do not pay for it

    text = json.dumps(plain(data), ensure_ascii=False, allow_nan=False, indent=indent)
    click.echo(text.encode("utf-8", "backslashreplace"))


def _translated(text: str | None) -> str:
    """Return the text of a message code; anything else stays as it is."""
    if not text or "/" not in text or " " in text:
        return text or ""
    return say(text)


class Context(click.Context):
    """A context whose help is laid out by us."""

    formatter_class = HelpFormatter


class Option(click.Option):
    """An option whose help is a message code."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """Return the option's two columns in the language in use."""
        shown = copy.copy(self)
        shown.help, shown.show_default = _translated(self.help), False
        record = super(Option, shown).get_help_record(ctx)
        if record is None or not self.show_default:
            return record
        return record[0], f"{record[1]} {say('cli/default', value=self.default)}"

    def make_metavar(self, *args: Any, **kwargs: Any) -> str:
        """Return the word that stands for the value; click hands over the context since 8.2."""
        word = None if self.metavar else _METAVARS.get(self.type.name)
        return say(f"cli/metavar-{word}") if word else super().make_metavar(*args, **kwargs)

    def type_cast_value(self, ctx: click.Context, value: Any) -> Any:
        """Return the value in its type, or refuse it in our words."""
        try:
            return super().type_cast_value(ctx, value)
        except click.BadParameter as error:
            raise refuse_value(self, self.opts[-1], value) from error


class Argument(click.Argument):
    """An argument whose value is refused in our words."""

    def type_cast_value(self, ctx: click.Context, value: Any) -> Any:
        """Return the value in its type, or refuse it."""
        try:
            return super().type_cast_value(ctx, value)
        except click.BadParameter as error:
            raise refuse_value(self, (self.name or "").upper(), value) from error


class _Worded(click.Command):
    """What commands and groups share: everything that help shows comes from the messages."""

    context_class = Context

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the words; click's parser does not say which command a mistake belongs to, so it is said here."""
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            error.ctx = error.ctx or ctx
            raise

    def get_help_option(self, ctx: click.Context) -> click.Option | None:
        """Return click's own help option with our words."""
        found = super().get_help_option(ctx)
        if found is not None:
            found.help = say("cli/option-help")
        return found

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        """Return what follows the command's name in the usage line."""
        words = {"[OPTIONS]": "cli/usage-options", "COMMAND [ARGS]...": "cli/usage-command"}
        return [say(words[piece]) if piece in words else piece for piece in super().collect_usage_pieces(ctx)]

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write what the command does; its example comes last, after the options."""
        assert isinstance(formatter, HelpFormatter)
        formatter.write("\n")
        with formatter.indentation():
            formatter.write_prose(_split_example(_translated(self.help))[0])

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options."""
        options = [param for param in self.get_params(ctx) if isinstance(param, click.Option)]
        records = [record for one in options if (record := one.get_help_record(ctx)) is not None]
        with formatter.section(say("cli/head-options")):
            formatter.write_dl(records)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """End with the example."""
        assert isinstance(formatter, HelpFormatter)
        formatter.write("\n")
        formatter.write_prose(_split_example(_translated(self.help))[1])

    def get_short_help_str(self, limit: int = 45) -> str:
        """Return the first line of the help, as one line of a list."""
        line = _translated(self.help).partition("\n")[0].rstrip(".。")
        return line[:1].lower() + line[1:]


class Command(_Worded):
    """A command."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the words; what is left over is refused by us."""
        ctx.allow_extra_args = True
        rest = super().parse_args(ctx, args)
        if rest and not ctx.resilient_parsing:
            raise refuse_words(ctx, rest)
        return rest


class Group(_Worded, click.Group):
    """A group of commands."""

    command_class = Command
    group_class = type

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the words; without any, show what there is."""
        if not args and not ctx.resilient_parsing and not self.invoke_without_command:
            click.echo(ctx.get_help(), err=True)
            ctx.exit(2)
        return super().parse_args(ctx, args)

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """Find the command, or name the nearest."""
        if not ctx.resilient_parsing and self.get_command(ctx, args[0]) is None:
            raise refuse_command(ctx, args[0], self.list_commands(ctx))
        return super().resolve_command(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands, then the options."""
        self.format_commands(ctx, formatter)
        super().format_options(ctx, formatter)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write one line a command."""
        with formatter.section(say("cli/head-commands")):
            formatter.write_dl([(name, found.get_short_help_str()) for name, found in self.commands.items()])


class LazyGroup(Group):
    """A group that imports a command's module only when that command is used, so that help stays quick.

    `lazy` maps a command's name to its module, which holds a click command of that name, and to the code of its one
    line in the list; `hidden_lazy` holds commands that no list shows.
    """

    def __init__(
        self, *args: Any, lazy: Mapping[str, tuple[str, str]], hidden_lazy: Mapping[str, str], **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self._lazy = lazy
        self._modules = {**{name: module for name, (module, _) in lazy.items()}, **hidden_lazy}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order of a run, not of the alphabet."""
        return list(self._lazy)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return a command."""
        if cmd_name not in self._modules:
            return None
        found: click.Command = getattr(importlib.import_module(self._modules[cmd_name]), cmd_name)
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write one line a command without importing any of them."""
        with formatter.section(say("cli/head-commands")):
            formatter.write_dl([(name, say(code)) for name, (_, code) in self._lazy.items()])


def _split_example(text: str) -> tuple[str, str]:
    """Return a help's description and its last paragraph, the example."""
    description, _, example = text.rpartition("\n\n")
    return description, example


def command(name: str, *, help: str, **settings: Any) -> Any:
    """Make a command whose help is a message code."""
    settings.setdefault("context_settings", {"help_option_names": ["-h", "--help"]})
    return click.command(name, cls=Command, help=help, **settings)


def group(name: str, *, help: str, **settings: Any) -> Any:
    """Make a group whose help is a message code."""
    settings.setdefault("context_settings", {"help_option_names": ["-h", "--help"]})
    return click.group(name, cls=Group, help=help, **settings)


def option(*names: str, help: str, **settings: Any) -> Any:
    """Make an option whose help is a message code; a default is shown unless there is nothing to show."""
    settings.setdefault("show_default", settings.get("default") not in (None, "") and not settings.get("is_flag"))
    return click.option(*names, cls=Option, help=help, **settings)


def argument(*names: str, **settings: Any) -> Any:
    """Make an argument."""
    return click.argument(*names, cls=Argument, **settings)
