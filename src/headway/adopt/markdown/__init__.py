"""A Markdown guide: the launches in its blocks, and what in its numbers and advice does not hold."""

from headway.adopt.markdown.read import Guide, is_guide, read_guide

__all__ = ["Guide", "is_guide", "read_guide"]
