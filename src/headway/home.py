"""The user's own folder: decisions of theirs, rules of theirs."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path


def user_folder(environ: Mapping[str, str] | None = None) -> Path:
    """Return the user's own folder of ours."""
    environ = os.environ if environ is None else environ
    given = environ.get("XDG_CONFIG_HOME", "")
    base = Path(given) if os.path.isabs(given) else Path(os.path.expanduser("~")) / ".config"
    return base / "headway"
