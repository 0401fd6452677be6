"""Click's command, group and option with help texts given as message codes, translated when they are printed."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

import click

from headway.messages import find_text, language, say

__all__ = ["Command", "Group", "LazyGroup", "Option", "command", "group", "option"]


def _translated(text: str | None) -> str | None:
    """Return the text of a message code; anything else stays as it is."""
    if not text or "/" not in text or " " in text:
        return text
    found = find_text(text)
    return found.zh if language() == "zh" else found.en


class Option(click.Option):
    """An option whose help may be a message code."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """Return the option's two columns in the language in use."""
        code, self.help = self.help, _translated(self.help)
        try:
            return super().get_help_record(ctx)
        finally:
            self.help = code


class Command(click.Command):
    """A command whose help may be a message code; the part after a blank line is shown as it is written."""

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the help and its example in the language in use."""
        formatter.write("\n")
        with formatter.indentation():
            for line in (_translated(self.help) or "").splitlines():
                formatter.write(f"{' ' * formatter.current_indent}{line}\n" if line else "\n")

    def get_short_help_str(self, limit: int = 45) -> str:
        """Return the first line of the help."""
        return (_translated(self.help) or "").partition("\n")[0]


class Group(Command, click.Group):
    """A group of commands; its own help is a message code too."""

    command_class = Command
    group_class = type


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
        with formatter.section(say("cli/commands")):
            formatter.write_dl([(name, say(code)) for name, (_, code) in self._lazy.items()])


def command(name: str, *, help: str, **settings: Any) -> Any:
    """Make a command whose help is a message code."""
    settings.setdefault("context_settings", {"help_option_names": ["-h", "--help"]})
    return click.command(name, cls=Command, help=help, **settings)


def group(name: str, *, help: str, **settings: Any) -> Any:
    """Make a group whose help is a message code."""
    settings.setdefault("context_settings", {"help_option_names": ["-h", "--help"]})
    return click.group(name, cls=Group, help=help, **settings)


def option(*names: str, help: str, **settings: Any) -> Any:
    """Make an option whose help is a message code."""
    return click.option(*names, cls=Option, help=help, **settings)
