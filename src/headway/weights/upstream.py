"""How a recipe's tensors are called in the files of the system it comes from, both ways.

A recipe says one function, from our name to theirs. That is enough to read their files (a model knows which tensors it
wants) and to write them. No framework here, and nothing of theirs but names and shapes.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from headway.errors import CheckpointError
from headway.weights.files import Weights
from headway.weights.layout import Span

Shape = tuple[int, ...]
Entry = tuple[str, Shape]
"""Type and shape of a tensor."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Theirs:
    """Where one of our tensors is in their files."""

    name: str
    shape: Shape | None = None
    """Its shape there, as many numbers in the same order; none: as here."""
    copies: tuple[str, ...] = ()
    """Other names under which the file holds it once more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Upstream:
    """What a recipe knows of the files of the system it comes from."""

    rename: Callable[[str, Shape], Theirs | None]
    """From our name and shape; none: their files do not hold it."""
    unused: str = r"(?!)"
    """Pattern of their names that nothing here reads."""
    settings: Callable[[Mapping[str, Shape], Mapping[str, Any]], Mapping[str, Any]] = lambda shapes, facts: {}
    """Keys of the config that a file tells, from its shapes and what it says beside them. Any: a stranger's JSON."""
    part: str = ""
    """Dict that holds the weights in a file written for them; empty: the file is that dict."""
    file: str = ""
    """Name of that file; empty: there is no such file."""
    extras: Callable[[Sequence[str]], Mapping[str, Entry]] = lambda names: {}
    """Tensors that only they count with, from the names of the rest; written as zeros."""
    facts: Callable[[Mapping[str, Any], Sequence[str]], Mapping[str, Any]] = lambda described, names: {}
    """What their file holds beside the weights, from what the task said of itself and their names of the weights."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Adopted:
    """Their weights under our names."""

    weights: Weights
    kept: tuple[str, ...] = ()
    """Tensors of ours that their files do not hold: they stay as they are."""
    ignored: tuple[str, ...] = field(default=())
    """Tensors of theirs that nothing here reads."""


def fresh_optimizer(
    num_params: int, *, lr: float, weight_decay: float, is_adamw: bool = True, **more: float
) -> dict[str, Any]:
    """Return the state of one that has not stepped yet, as torch's Adam and AdamW load it."""
    group = {
        "lr": lr,
        "betas": [0.9, 0.999],
        "eps": 1e-8,
        "weight_decay": weight_decay,
        "amsgrad": False,
        "maximize": False,
        "foreach": None,
        "capturable": False,
        "differentiable": False,
        "fused": None,
        "decoupled_weight_decay": is_adamw,
        **more,
        "params": list(range(num_params)),
    }
    return {"state": {}, "param_groups": [group]}


def adopt_names(weights: Weights, wanted: Mapping[str, Shape], upstream: Upstream | None) -> Adopted:
    """Return weights under our names, whoever wrote them; what is missing is refused under their name."""
    if upstream is None:
        return Adopted(weights=weights)
    theirs = {name: upstream.rename(name, shape) for name, shape in wanted.items()}
    known = {found.name for found in theirs.values() if found is not None}
    unread = re.compile(upstream.unused)
    ignored = tuple(name for name in weights.spans if name not in wanted and unread.fullmatch(name))
    if len(known & weights.spans.keys()) <= len(wanted.keys() & weights.spans.keys()):
        if not ignored or wanted.keys() - weights.spans.keys():
            return Adopted(weights=weights)
        spans = {name: span for name, span in weights.spans.items() if name not in ignored}
        return Adopted(weights=replace(weights, spans=spans), ignored=ignored)
    missing = sorted(known - weights.spans.keys())
    if missing:
        near = difflib.get_close_matches(missing[0], list(weights.spans), n=1, cutoff=0.0)
        facts = {"path": weights.path, "name": missing[0], "num": len(missing), "near": near[0] if near else "n/a"}
        raise CheckpointError("checkpoint/import-missing", **facts)
    spans = {name: _reshape(weights.spans[at.name], wanted[name], at) for name, at in theirs.items() if at is not None}
    copies = {copy for at in theirs.values() if at is not None for copy in at.copies}
    left = {name: span for name, span in weights.spans.items() if name not in known | copies and name not in ignored}
    return Adopted(
        weights=replace(weights, spans={**left, **spans}, aliases={}),
        kept=tuple(name for name, at in theirs.items() if at is None),
        ignored=ignored,
    )


def _reshape(span: Span, wanted: Shape, at: Theirs) -> Span:
    """Return a span in our shape where it has the one that they should have; else as it is, to be refused by name."""
    if at.shape is None or span.shape != at.shape or math.prod(span.shape) != math.prod(wanted):
        return span
    return replace(span, shape=wanted)
