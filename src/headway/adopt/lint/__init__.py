"""What in a launch has an effect, what has none, what harms, and what contradicts itself."""

from headway.adopt.lint.check import check
from headway.adopt.lint.context import Context, parse_version

__all__ = ["Context", "check", "parse_version"]
