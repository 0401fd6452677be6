"""What click refuses, said by us: one error with a code, in both languages, with what to type instead."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any

import click

from headway.cli.os_error import find_folder
from headway.errors import UsageError
from headway.ui.retype import given_words, retype

__all__ = ["refuse", "refuse_command", "refuse_value", "refuse_words"]


def refuse(error: click.ClickException) -> UsageError:
    """Return our error for one of click's own."""
    context = error.ctx if isinstance(error, click.UsageError) else None
    command = context.command_path if context else "headway"
    if isinstance(error, click.NoSuchOption):
        return _no_option(error, context, command)
    if isinstance(error, click.MissingParameter) and error.param is not None:
        return _missing(error.param, command)
    if isinstance(error, click.BadOptionUsage):
        code = "cli/option-is-flag" if _is_flag(error.option_name, context) else "cli/option-needs-value"
        return UsageError(code, option=error.option_name, command=command, again=_bare(error.option_name))
    return UsageError("cli/not-understood", text=error.format_message(), command=command)


def refuse_command(context: click.Context, given: str, known: Sequence[str]) -> UsageError:
    """Return the error for a command that does not exist."""
    path = context.command_path
    near = _nearest(given, known)
    if near is None:
        return UsageError("cli/no-command", given=given, path=path, command=path)
    return UsageError("cli/no-command-near", given=given, path=path, near=near, again=retype(swap={given: near}))


def refuse_words(context: click.Context, words: Sequence[str]) -> UsageError:
    """Return the error for words that nothing asks for."""
    return UsageError("cli/extra-words", words=" ".join(words), command=context.command_path, again=retype(drop=words))


def refuse_value(param: click.Parameter, name: str, value: Any) -> UsageError:
    """Return the error for a value that is not of its parameter's type. Any: whatever click was given."""
    kind = param.type
    if isinstance(kind, click.Choice):
        choices = [str(choice) for choice in kind.choices]
        near = _nearest(str(value), choices) or choices[0]
        return UsageError(
            "cli/not-a-choice",
            name=name,
            value=value,
            choices=", ".join(choices),
            again=_swap_value(name, str(value), near),
        )
    if isinstance(kind, click.Path):
        return _bad_path(name, str(value))
    code = "cli/not-an-integer" if kind.name.startswith("integer") else "cli/not-a-number"
    return UsageError(code, name=name, value=value, bounds=_bounds(kind))


def _bad_path(name: str, path: str) -> UsageError:
    code = (
        "cli/path-is-folder" if os.path.isdir(path) else "cli/path-is-file" if os.path.exists(path) else "cli/no-path"
    )
    return UsageError(code, name=name, path=path, folder=find_folder(path))


def _bounds(kind: Any) -> str:
    """Return the range of a number as ` >= 1`. Any: click gives its range types no common public name."""
    if not isinstance(kind, click.IntRange | click.FloatRange):
        return ""
    bounds = [f"{sign} {bound}" for sign, bound in ((">=", kind.min), ("<=", kind.max)) if bound is not None]
    return " " + " ".join(bounds) if bounds else ""


def _missing(param: click.Parameter, command: str) -> UsageError:
    name = (param.name or "").upper() if isinstance(param, click.Argument) else param.opts[-1]
    if isinstance(param.type, click.Choice):
        choices = [str(choice) for choice in param.type.choices]
        return UsageError(
            "cli/missing-choice", name=name, command=command, choices=", ".join(choices), first=choices[0]
        )
    return UsageError("cli/missing", name=name, command=command)


def _no_option(error: click.NoSuchOption, context: click.Context | None, command: str) -> UsageError:
    known = [name for param in context.command.get_params(context) for name in param.opts] if context else []
    near = _nearest(error.option_name, known)
    if near is None:
        return UsageError("cli/no-option", option=error.option_name, command=command)
    again = retype(swap={given: given.replace(error.option_name, near, 1) for given in [_typed(error.option_name)]})
    return UsageError("cli/no-option-near", option=error.option_name, command=command, near=near, again=again)


def _typed(option: str) -> str:
    """Return the word of the command line that gives an option: `--jsn` or `--jsn=1`."""
    return next((word for word in given_words() if word.partition("=")[0] == option), option)


def _bare(option: str) -> str:
    """Return the command line with an option that takes no value, and without the value."""
    return retype(swap={_typed(option): option})


def _swap_value(name: str, value: str, near: str) -> str:
    """Return the command line with another value of an option or argument."""
    joined = f"{name}={value}"
    return retype(swap={joined: f"{name}={near}"} if joined in given_words() else {value: near})


def _is_flag(name: str, context: click.Context | None) -> bool:
    params = context.command.params if context else []
    return any(name in param.opts and isinstance(param, click.Option) and param.is_flag for param in params)


def _nearest(given: str, known: Iterable[str]) -> str | None:
    from difflib import get_close_matches  # only a mistake pays for it

    # Two dashes say nothing about which option was meant.
    names = {name.lstrip("-"): name for name in known}
    return next((names[near] for near in get_close_matches(given.lstrip("-"), names, n=1)), None)
