"""One file a family of launchers: words of a command in, a `Launch` out."""

from headway.adopt.launchers.dispatch import is_launcher, recognise
from headway.adopt.launchers.parts import is_python, make
from headway.adopt.launchers.tools import TOOLS

__all__ = ["TOOLS", "is_launcher", "is_python", "make", "recognise"]
