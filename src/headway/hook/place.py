"""The environment that puts the hook into every Python process of a run."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

SITE = Path(__file__).parent / "site"
DUMP_NAME = "nccl_trace_rank_"
"""NCCL's watchdog adds the rank; without our word it would leave the file in the temp folder."""
_DUMP_VARIABLES = ("TORCH_FR_DUMP_TEMP_FILE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE")


def hook_environment(run_root: Path, attempt: int, environ: Mapping[str, str]) -> dict[str, str]:
    """Return what to set; the user's own PYTHONPATH stays behind ours."""
    own = environ.get("PYTHONPATH", "")
    dumps = {name: str(run_root.absolute() / "ranks" / DUMP_NAME) for name in _DUMP_VARIABLES if name not in environ}
    return {
        **dumps,
        "PYTHONPATH": f"{SITE}{os.pathsep}{own}" if own else str(SITE),
        "HEADWAY_HOOK_RUN": str(run_root.absolute()),
        "HEADWAY_HOOK_ATTEMPT": str(attempt),
    }
