"""How long the ranks of a run may take to save and exit when they are asked to stop."""

from __future__ import annotations

from typing import Final

from headway.config import LaunchConfig
from headway.planner.record import Plan

_SAVE_BYTES_S: Final = 0.3e9
"""A checkpoint is written and read back at least so fast on the disks that runs are kept on."""
_SAVES: Final = 2
"""One may be in flight when the signal comes, and its own follows."""


def grace_s(launch: LaunchConfig, plan: Plan) -> float:
    """Return the config's seconds; where nobody has changed them, at least what two checkpoints of this size take."""
    if launch.grace_s != LaunchConfig.model_fields["grace_s"].default:
        return launch.grace_s
    num_bytes = float((plan.forecast or {}).get("checkpoint_bytes", 0.0))
    return max(launch.grace_s, round(_SAVES * num_bytes / _SAVE_BYTES_S))
