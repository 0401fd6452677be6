"""What was found while a run trains, in words: what it is, what it costs if ignored, what cures it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headway.messages import Language, find_text, hint, say
from headway.telemetry import number, section
from headway.ui.retype import paste_ready
from headway.ui.text import clean_text
from headway.units import duration


def finding_text(event: Mapping[str, Any], lang: Language | None = None) -> str:
    """Return a finding in words, with its cost; one of another version by its code. Any: plain JSON."""
    code, facts = str(event.get("code")), _facts(event)
    try:
        text = say(code, lang, **facts)
    except (KeyError, ModuleNotFoundError, ValueError, IndexError):
        return clean_text(code)
    ignored_s = number(event.get("ignored_s"))
    if ignored_s >= 1:
        text += f" ({say('live/ignored', lang, cost=duration(ignored_s))})"
    elif ignored_s >= 0:
        text += f" ({say('live/no-cost', lang)})"
    return clean_text(text)


def finding_hint(event: Mapping[str, Any], lang: Language | None = None) -> list[str]:
    """Return what to do about a finding, line by line; commands are indented. Any: plain JSON."""
    code = str(event.get("code"))
    try:
        text = hint(code, lang, **_facts(event)) if find_text(code).en_hint else ""
    except (KeyError, ModuleNotFoundError, ValueError, IndexError):
        return []
    return [clean_text(line) for line in paste_ready(text).splitlines()]


def finding_command(event: Mapping[str, Any]) -> str:
    """Return the commands that cure a finding, one per line; empty: there are none. Any: plain JSON."""
    lines = finding_hint(event, "en")
    commands = [line.strip() for line in lines if line.startswith("  ")]
    typed = [line.removeprefix("type: ") for line in lines if line.startswith("type: ")]
    return "\n".join(commands or typed)


def _facts(event: Mapping[str, Any]) -> dict[str, Any]:
    return {str(key): one for key, one in section(event.get("facts")).items() if key not in ("code", "lang")}
