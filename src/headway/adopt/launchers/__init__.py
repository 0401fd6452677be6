"""One file a family of launchers: words of a command in, a `Launch` out."""

from headway.adopt.launchers.dispatch import recognise

__all__ = ["recognise"]
