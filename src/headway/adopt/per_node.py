"""A launcher that starts the ranks of its own node: the same line once per node, with each node's place in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from headway.adopt.record import Launch
from headway.errors import UsageError

_KNOWN: Final = ("accelerate",)


def spread_over_nodes(launch: Launch, words: Sequence[str], num_nodes: int) -> tuple[str, ...] | None:
    """Return the words of one node's launcher, with `${node}`, `${address}` and `${port}` in the place of its values.

    None: it is not known how this launcher is told of other nodes.

    Raises:
        UsageError: the line is for another number of nodes, or does not say how many processes it starts.
    """
    entry = launch.entry
    if launch.launcher not in _KNOWN or launch.wrappers or entry is None:
        return None
    at = len(words) - len(launch.args) - 1
    if at < 1 or words[at] != entry.name:
        return None
    there = launch.nnodes
    if there not in (None, 1, num_nodes):
        raise UsageError("nodes/line-nodes", there=there, here=num_nodes)
    if launch.world_size is None:
        raise UsageError("nodes/line-processes", launcher=launch.launcher)
    total = launch.world_size if there == num_nodes else launch.world_size * num_nodes
    # Behind the user's own: argparse takes the last of several values.
    placed = (
        f"--num_machines={num_nodes}",
        "--machine_rank=${node}",
        "--main_process_ip=${address}",
        "--main_process_port=${port}",
        f"--num_processes={total}",
    )
    escaped = [word.replace("$", "$$") for word in words]
    return (*escaped[:at], *placed, *escaped[at:])
