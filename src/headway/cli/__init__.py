"""The command line: one file a command; parse, call one stage, print. Only this folder turns errors into words."""

try:
    from headway.cli.main import main
except KeyboardInterrupt:  # Ctrl-C in the first tenths of a second: an end like any other, not a list of our imports
    raise SystemExit(130) from None

__all__ = ["main"]
