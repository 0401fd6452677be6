"""A command that Slurm has started once on every node of a step: task 0 leads, the others follow it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from headway.errors import UsageError
from headway.process import TAG_NAME
from headway.start.follow import FollowWish
from headway.start.nodes import NodesWish


def place_in_step(
    wish: NodesWish | None, out: Path, environ: Mapping[str, str] = os.environ
) -> NodesWish | FollowWish | None:
    """Return what this process is to do in a step of several nodes; outside of one what was asked for.

    Args:
        wish: of `--nodes`, whose address and minimum stay.
        out: folder of runs, on a disk that the nodes share: the leader's address is written there.

    Raises:
        UsageError: the step has another number of tasks than of nodes.
    """
    step, num_nodes = environ.get("SLURM_STEP_ID", ""), environ.get("SLURM_STEP_NUM_NODES", "")
    if not (step.isdigit() and num_nodes.isdigit()) or int(num_nodes) < 2 or TAG_NAME in environ:
        return wish
    tasks, task = environ.get("SLURM_STEP_NUM_TASKS", num_nodes), environ.get("SLURM_PROCID", "0")
    if tasks != num_nodes:
        raise UsageError("nodes/slurm-tasks", tasks=tasks, nodes=num_nodes)
    names = (environ.get("SLURM_JOB_ID", "0"), step, environ.get("SLURM_RESTART_COUNT", "0"))
    meet = out / f".nodes-slurm-{'-'.join(names)}.json"
    if int(task) > 0:
        return FollowWish(meet=meet, index=int(task))
    if wish is None:
        return NodesWish(most=int(num_nodes), least=int(num_nodes), meet=meet)
    return replace(wish, most=int(num_nodes), hosts=(), meet=meet)
