"""How the published scripts are given their settings."""

from __future__ import annotations

from collections.abc import Sequence


def read_flags(words: Sequence[str]) -> dict[str, str]:
    """Return `--key=value`, `--key value`, `key=value` and bare `--key` as pairs; a bare one is true."""
    found, waiting = {}, [word for word in words if word != "--"]
    while waiting:
        key, is_pair, value = waiting.pop(0).partition("=")
        if not is_pair:
            is_value = bool(waiting) and not waiting[0].startswith("--") and "=" not in waiting[0]
            value = waiting.pop(0) if is_value else "true"
        found[key.removeprefix("--")] = value
    return found
