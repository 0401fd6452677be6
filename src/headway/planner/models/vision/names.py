"""Classifiers by the names people know them by, most of them timm's."""

from __future__ import annotations

import re
from dataclasses import replace

from headway.planner.models.convnet import Map, Tape
from headway.planner.models.vision.darknet import walk_vgg
from headway.planner.models.vision.mobile import walk_efficient, walk_efficient_v2, walk_mobile_v3
from headway.planner.models.vision.regnet import REGNETX, REGNETY
from headway.planner.models.vision.resnet import ResNet
from headway.planner.models.vision.transformer import CONVNEXT, SWIN

EXAMPLES = ("resnet50", "resnext101_32x8d", "convnext_base", "swin_tiny_patch4_window7_224", "efficientnet_b4")
"""Names that show what is understood."""
_RESNET = re.compile(
    r"(?:tv_|gluon_|ssl_|swsl_|ig_)?(wide_|se)?resne(t|xt)-?(26|18|34|50|101|152|200)(d?)(?:[-_ ]?(\d+)x(\d+)d)?(?:_2)?"
    r"(?:_v1([bcds]))?(?: v1(?:\.5)?)?"
)
_STEMS = {"c": (32, 32, 64), "d": (32, 32, 64), "s": (64, 64, 64)}
"""First convolutions of the ResNets named after a letter."""
_EFFICIENT = {
    "b0": (1.0, 1.0),
    "b1": (1.0, 1.1),
    "b2": (1.1, 1.2),
    "b3": (1.2, 1.4),
    "b4": (1.4, 1.8),
    "b5": (1.6, 2.2),
    "b6": (1.8, 2.6),
    "b7": (2.0, 3.1),
    "b8": (2.2, 3.6),
}
"""Width and depth of EfficientNets against the smallest."""


def walk_classifier(name: str, tape: Tape, height: int, width: int) -> bool | None:
    """Walk the network of that name and its linear layer over 1000 classes.

    Returns:
        Whether the roofline was measured on networks of its kind; none: the name says nothing here.
    """
    found = _walk(name, tape, height, width)
    if found is None:
        return None
    x, timed = found
    tape.linear(Map(x.channels, 1, 1), 1000)
    return timed


def _walk(name: str, tape: Tape, height: int, width: int) -> tuple[Map, bool] | None:
    """Return the last map of the network, and whether the roofline was measured on its kind."""
    if found := _RESNET.fullmatch(name):
        return _resnet(found).walk(tape, height, width)[-1], found[1] != "se"
    if found := re.match(r"convnext_(tiny|small|base|large|xlarge)(?:_|$)(?!hnf)", name):
        size = "xl" if found[1] == "xlarge" else found[1][0]
        return CONVNEXT[size].walk(tape, height, width)[-1], True
    if found := re.match(r"swin_(tiny|small|base|large)_patch4_window(\d+)_", name):
        return replace(SWIN[found[1][0]], window=int(found[2])).walk(tape, height, width)[-1], True
    if found := re.fullmatch(r"vgg(\d+)(_bn)?", name):
        x = walk_vgg(tape, height, width, depth=int(found[1]), normed=bool(found[2]))[-1]
        y = tape.linear(Map(x.size // 4, 1, 1), 4096, act="relu")
        return tape.linear(y, 4096, act="relu"), True
    if found := re.fullmatch(r"(?:tf_)?efficientnet[-_](b\d)(?:_ap|_ns)?", name):
        wide, deep = _EFFICIENT[found[1]]
        return walk_efficient(tape, height, width, wide=wide, deep=deep), True
    if found := re.match(r"(?:tf_)?efficientnetv2_(?:b([0-3])|(s|m|l|xl))(?:_in21ft1k)?$", name):
        wide, deep = _EFFICIENT[f"b{found[1]}"] if found[1] else (1.0, 1.0)
        return walk_efficient_v2(tape, height, width, size=found[2] or "b0", wide=wide, deep=deep), True
    if found := re.fullmatch(r"(?:tf_)?mobilenetv3_(large|small)_100(?:_\w+)?", name):
        x = walk_mobile_v3(tape, height, width, size=found[1])[-1]
        return tape.linear(Map(x.channels, 1, 1), 1280 if found[1] == "large" else 1024, act="swish"), False
    if found := re.fullmatch(r"regnet([xy])_(\d{3})", name):
        flops = int(found[2]) / 10  # in billions
        size = f"{flops:g}GF" if flops >= 1 else f"{int(flops * 1000)}MF"
        return (REGNETX if found[1] == "x" else REGNETY)[size].walk(tape, height, width)[-1], False
    return None


def _resnet(found: re.Match[str]) -> ResNet:
    """Return the ResNet a name says."""
    groups, of_group = (int(found[5]), int(found[6])) if found[5] else (32, 4) if found[2] == "xt" else (1, 64)
    letter = found[4] or found[7] or ""
    return ResNet(
        depth=int(found[3]),
        groups=groups,
        group_width=128 if found[1] == "wide_" else of_group,
        squeeze=found[1] == "se",
        stem=_STEMS.get(letter, ()),
        avg_down=letter == "d",
    )
