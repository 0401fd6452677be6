"""The command line: one file a command; parse, call one stage, print. Only this folder turns errors into words."""

from headway.cli.main import main

__all__ = ["main"]
