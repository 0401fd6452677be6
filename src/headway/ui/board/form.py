"""The form for a new run: it shows the exact command and starts nothing."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from typing import Any, Final

from headway.task import RECIPES

_MOST_LETTERS: Final = 1500
_KEY: Final = re.compile(r"[A-Za-z_][\w.-]*\Z")
_FIELDS: Final = ("steps", "batch.total", "lr.base", "gpus", "seed")
"""What is asked most; everything else goes into the field for more."""


def describe_form(query: Mapping[str, str]) -> dict[str, Any]:
    """Return what was filled in, the command it makes, and the words that are not settings."""
    recipe = query.get("recipe", "")
    recipe = recipe if recipe in RECIPES else next(iter(RECIPES))
    fields = [(name, query.get(name, "").strip()[:_MOST_LETTERS]) for name in _FIELDS]
    more = query.get("more", "")[:_MOST_LETTERS]
    words = [f"{name}={value}" for name, value in fields if value]
    strange = []
    for line in more.splitlines():
        key, equals, value = line.strip().partition("=")
        if equals and _KEY.match(key.strip()):
            words.append(f"{key.strip()}={value.strip()}")
        elif line.strip():
            strange.append(line.strip())
    words = ["".join(letter for letter in word if letter.isprintable()) for word in words]
    line = shlex.join(["headway", "train", recipe, *words])
    return {
        "recipes": list(RECIPES),
        "recipe": recipe,
        "fields": fields,
        "more": more,
        "strange": strange,
        "command": line,
        "plan": line.replace(" train ", " plan ", 1),
    }
