"""The environment that puts the hook into every Python process of a run."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

SITE = Path(__file__).parent / "site"


def hook_environment(run_root: Path, attempt: int, environ: Mapping[str, str]) -> dict[str, str]:
    """Return what to set; the user's own PYTHONPATH stays behind ours."""
    own = environ.get("PYTHONPATH", "")
    return {
        "PYTHONPATH": f"{SITE}{os.pathsep}{own}" if own else str(SITE),
        "HEADWAY_HOOK_RUN": str(run_root.absolute()),
        "HEADWAY_HOOK_ATTEMPT": str(attempt),
    }
