"""The environment that puts the hook into every Python process of a run."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

from headway.process import JOB_NAMES

HOOK_SITE = Path(__file__).parent / "site"
DUMP_NAME = "nccl_trace_rank_"
"""NCCL's watchdog adds the rank; without our word it would leave the file in the temp folder."""
_DUMP_VARIABLES = ("TORCH_FR_DUMP_TEMP_FILE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE")

_OUTSIDE = (
    *("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "RANK_ID", "SLURM_PROCID", "LOCAL_RANK"),
    *("TORCHELASTIC_RUN_ID", "SLURM_STEP_ID", *JOB_NAMES),
)
"""What a batch system or a launcher around the whole run has set: no process of the run got its rank by it."""


def hook_environment(run_root: Path, attempt: int, environ: Mapping[str, str]) -> dict[str, str]:
    """Return what to set; the user's own PYTHONPATH stays behind ours."""
    own = environ.get("PYTHONPATH", "")
    outside = {name: environ[name] for name in _OUTSIDE if name in environ}
    dumps = {name: str(run_root.absolute() / "ranks" / DUMP_NAME) for name in _DUMP_VARIABLES if name not in environ}
    return {
        **dumps,
        "PYTHONPATH": f"{HOOK_SITE}{os.pathsep}{own}" if own else str(HOOK_SITE),
        "HEADWAY_HOOK_RUN": str(run_root.absolute()),
        "HEADWAY_HOOK_ATTEMPT": str(attempt),
        "HEADWAY_HOOK_OUTSIDE": json.dumps(outside),
    }
