"""TFNet's own names for the weights, as its `.pth` files and ImageNet's ResNet-34 have them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from headway.task import Shape, Theirs, Upstream, fresh_optimizer

_BRANCHES = {"time": "", "frequency": "1"}
_LAYERS = {"conv1": 0, "bn1": 1, "conv2": 4, "bn2": 5}
_HEADS = {
    "time": ("classifier1", "classifier2"),
    "frequency": ("classifier3", "classifier4"),
    "fused": ("classifier5",),
}


def rename(name: str, shape: Shape) -> Theirs | None:
    """Return the published name and shape: frames are the depth of their 3-D convolutions."""
    kind, _, rest = name.partition(".")
    if kind == "frames":
        return _rename_frames(rest, shape)
    if kind == "heads":
        first, *others = _HEADS[rest]
        return Theirs(name=f"{first}.weight", copies=tuple(f"{other}.weight" for other in others))
    layer, _, leaf = rest.partition(".")
    if layer == "lstm":
        return Theirs(name=f"temporal_model{_BRANCHES[kind]}.rnn.{leaf}")
    return Theirs(name=f"conv1d{_BRANCHES[kind]}.temporal_conv.{_LAYERS[layer]}.{leaf}")


def _rename_frames(rest: str, shape: Shape) -> Theirs:
    if match := re.fullmatch(r"attention\.(\d+)\.convs\.(\d+)\.(\w+)", rest):
        stage, conv, leaf = match.groups()
        deep = (*shape, 1) if leaf == "weight" else None
        return Theirs(name=f"conv2d.motorAttention{int(stage) + 1}.conv3d{int(conv) + 1}.{leaf}", shape=deep)
    deep = (*shape[:2], 1, *shape[2:]) if len(shape) == 4 else None
    return Theirs(name=f"conv2d.{resnet_name(rest)}", shape=deep)


def resnet_name(rest: str) -> str:
    """Return torchvision's name of a tensor of the frame network: `layer2.0.downsample.0.weight`."""
    match = re.fullmatch(r"stages\.(\d+)\.(\d+)\.(.+)", rest)
    if match is None:
        return rest
    stage, block, leaf = match.groups()
    return f"layer{int(stage) + 1}.{block}.{leaf.replace('down.', 'downsample.')}"


def settings(shapes: Mapping[str, Shape], _: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the widths that a file tells."""
    head, first = shapes.get("classifier5.weight"), shapes.get("conv2d.conv1.weight")
    if head is None or first is None:
        return {}
    stages = range(1, 5)
    blocks = [len({name.split(".")[2] for name in shapes if name.startswith(f"conv2d.layer{s}.")}) for s in stages]
    channels = [shapes[f"conv2d.layer{s}.0.conv1.weight"][0] for s in stages]
    attention = [shapes[f"conv2d.motorAttention{s}.conv3d1.weight"][0] for s in stages]
    return {
        "task.hidden_size": head[0],
        "task.channels": channels,
        "task.blocks": blocks,
        "task.attention": attention,
        "task.frequency": True,
    }


def extras(names: Sequence[str]) -> Mapping[str, tuple[str, Shape]]:
    """Return the counters of batches that their norms keep."""
    norms = [name.removesuffix(".running_mean") for name in names if name.endswith(".running_mean")]
    return {f"{norm}.num_batches_tracked": ("I64", ()) for norm in norms}


def facts(described: Mapping[str, Any], names: Sequence[str]) -> Mapping[str, Any]:
    """Return what Train.py reads beside the weights; a started optimizer's averages are not carried over."""
    params = [name for name in names if not re.search(r"running_(mean|var)$|num_batches_tracked$", name)]
    params = [name for name in params if name not in ("classifier2.weight", "classifier4.weight")]
    measures = described.get("measures", {})
    rates = {"lr": 1e-4, "initial_lr": 1e-4, "weight_decay": 1e-4}
    return {
        "optimizer_state_dict": fresh_optimizer(len(params), is_adamw=False, **rates),
        "bestLoss": measures.get("loss") or 65535.0,
        "bestLossEpoch": 0,
        "bestWerScore": measures.get("wer") or 65535.0,
        "bestWerScoreEpoch": 0,
        "epoch": 0,
    }


UPSTREAM = Upstream(
    rename=rename,
    unused=r".*\.num_batches_tracked",
    settings=settings,
    part="moduleNet_state_dict",
    file="bestMoudleNet.pth",
    extras=extras,
    facts=facts,
)
