"""The options of several nodes, for every command that starts a run."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import click

from headway.cli.bilingual import option
from headway.start.nodes import wish_nodes


def nodes_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of several nodes, all handed on as one `nodes` (a NodesWish or None)."""

    @functools.wraps(function)
    def with_nodes(
        *args: Any,
        nodes: str | None,
        nodes_min: int | None,
        nodes_address: str | None,
        nodes_public: bool,
        nodes_wait: float,
        meet: Path | None,
        **others: Any,
    ) -> Any:
        extra = {"meet": meet, "is_public": nodes_public, "wait_s": nodes_wait}
        wish = wish_nodes(nodes, least=nodes_min, address=nodes_address, **extra)
        return function(*args, nodes=wish, **others)

    for one in _NODES:
        with_nodes = one(with_nodes)
    return with_nodes


_NODES: Final = (
    option("--meet", type=click.Path(path_type=Path), help="nodes/option-lead-meet"),
    option("--nodes-wait", type=click.FloatRange(0), default=300.0, help="nodes/option-nodes-wait"),
    option("--nodes-public", is_flag=True, help="nodes/option-public"),
    option("--nodes-address", metavar="HOST[:PORT]", help="nodes/option-address"),
    option("--nodes-min", type=click.IntRange(1), help="nodes/option-min"),
    option("--nodes", metavar="NUM|HOSTS", help="nodes/option-nodes"),
)
