"""Nested sections as dotted keys, and a value as a word of the command line."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


def flatten(data: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return nested sections as dotted keys. Any: values of many types."""
    flat: dict[str, Any] = {}
    for key, value in data.items():
        if isinstance(value, dict) and value:
            flat.update(flatten(value, f"{prefix}{key}."))
        else:
            flat[f"{prefix}{key}"] = value
    return flat


def write_word(key: str, value: Any) -> str:
    """Return a value as it is typed: `a.b=c`."""
    return f"{key}={value if isinstance(value, str) else json.dumps(value)}"
