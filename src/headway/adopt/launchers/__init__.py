"""One file a family of launchers: words of a command in, a `Launch` out."""

from headway.adopt.launchers.dispatch import recognise
from headway.adopt.launchers.parts import make

__all__ = ["make", "recognise"]
