"""Networks of inverted residuals: MobileNet v2 and v3, EfficientNet."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from headway.planner.models.convnet import Act, Map, Tape, fresh


@dataclass(frozen=True, slots=True, kw_only=True)
class Inverted:
    """Blocks of one kind: widened by a 1x1, a depthwise convolution, narrowed by a 1x1."""

    inner: int
    out: int
    stride: int = 1
    kernel: int = 3
    squeeze: int = 0
    """Inner channels of the small network that weighs the channels, which keeps them; 0: none."""
    act: Act = "relu"
    fused: bool = False
    """The first two are one dense 3x3 (EfficientNet v2)."""


def walk_block(tape: Tape, x: Map, block: Inverted) -> Map:
    """Walk one inverted residual."""
    y = x
    if block.fused:
        y = tape.conv(y, block.inner, block.kernel, stride=block.stride, act=block.act)
        if block.inner == block.out:
            return fresh(y)
    else:
        if block.inner != x.channels:
            y = tape.conv(y, block.inner, 1, act=block.act)
        y = tape.conv(y, block.inner, block.kernel, stride=block.stride, groups=block.inner, act=block.act)
    if block.squeeze:
        tape.save(y)
        tape.weigh(2 * block.inner * block.squeeze)
        y = fresh(y)
    y = tape.conv(y, block.out, 1, act="none")
    return fresh(y) if block.stride == 1 and x.channels == block.out else y


def walk_blocks(tape: Tape, x: Map, blocks: Sequence[Inverted], *, least: int = 0) -> list[Map]:
    """Walk a row of blocks; return every output.

    Args:
        least: the smallest height of a map: strides beyond it become dilations.
    """
    outs = []
    for block in blocks:
        small = least and block.stride > 1 and x.height <= least
        x = walk_block(tape, x, replace(block, stride=1) if small else block)
        outs.append(x)
    return outs


def walk_mobile_v2(tape: Tape, height: int, width: int) -> list[Map]:
    """Walk MobileNet v2 at an eighth of the image (D8); return the maps that heads use."""
    x = tape.conv(Map(3, height, width), 32, stride=2)
    outs = []
    rows = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 1), (6, 96, 3, 1), (6, 160, 3, 1), (6, 320, 1, 1))
    for ratio, out, number, stride in rows:
        for place in range(number):
            block = Inverted(inner=x.channels * ratio, out=out, stride=stride if place == 0 else 1)
            x = walk_block(tape, x, block)
        if out in (24, 32, 96, 320):
            outs.append(x)
    return outs


_V3 = {
    "large": (
        (3, 16, 16, False, False, 1),
        (3, 64, 24, False, False, 2),
        (3, 72, 24, False, False, 1),
        (5, 72, 40, True, False, 2),
        (5, 120, 40, True, False, 1),
        (5, 120, 40, True, False, 1),
        (3, 240, 80, False, True, 2),
        (3, 200, 80, False, True, 1),
        (3, 184, 80, False, True, 1),
        (3, 184, 80, False, True, 1),
        (3, 480, 112, True, True, 1),
        (3, 672, 112, True, True, 1),
        (5, 672, 160, True, True, 2),
        (5, 960, 160, True, True, 1),
        (5, 960, 160, True, True, 1),
    ),
    "small": (
        (3, 16, 16, True, False, 2),
        (3, 72, 24, False, False, 2),
        (3, 88, 24, False, False, 1),
        (5, 96, 40, True, True, 2),
        (5, 240, 40, True, True, 1),
        (5, 240, 40, True, True, 1),
        (5, 120, 48, True, True, 1),
        (5, 144, 48, True, True, 1),
        (5, 288, 96, True, True, 2),
        (5, 576, 96, True, True, 1),
        (5, 576, 96, True, True, 1),
    ),
}
"""Rows of MobileNet v3: kernel, inner and outer channels, squeeze, hard swish or ReLU, stride."""


def _rounded(channels: float) -> int:
    """Return the nearest multiple of eight, never a tenth below."""
    near = max(8, int(channels + 4) // 8 * 8)
    return near + 8 if near < 0.9 * channels else near


def walk_mobile_v3(tape: Tape, height: int, width: int, *, size: str = "large", least: int = 0) -> list[Map]:
    """Walk MobileNet v3; return the maps of stem, every block and the last 1x1."""
    x = tape.conv(Map(3, height, width), 16, stride=2, act="swish")
    blocks = [
        Inverted(
            kernel=kernel,
            inner=inner,
            out=out,
            squeeze=_rounded(inner / 4) if squeeze else 0,
            act="swish" if hard else "relu",
            stride=stride,
        )
        for kernel, inner, out, squeeze, hard, stride in _V3[size]
    ]
    outs = [x, *walk_blocks(tape, x, blocks, least=least)]
    last = 960 if size == "large" else 576
    return [*outs, tape.conv(outs[-1], last, 1, act="swish")]


_EFFICIENT = (
    (1, 16, 1, 1, 3),
    (6, 24, 2, 2, 3),
    (6, 40, 2, 2, 5),
    (6, 80, 3, 2, 3),
    (6, 112, 3, 1, 5),
    (6, 192, 4, 2, 5),
    (6, 320, 1, 1, 3),
)
"""Rows of EfficientNet b0: ratio, channels, blocks, stride, kernel."""


_EFFICIENT_V2 = {
    "b0": (32, ((1, 16, 1), (4, 32, 2), (4, 48, 2)), ((4, 96, 3), (6, 112, 5), (6, 192, 8))),
    "s": (24, ((1, 24, 2), (4, 48, 4), (4, 64, 4)), ((4, 128, 6), (6, 160, 9), (6, 256, 15))),
    "m": (24, ((1, 24, 3), (4, 48, 5), (4, 80, 5)), ((4, 160, 7), (6, 176, 14), (6, 304, 18), (6, 512, 5))),
    "l": (32, ((1, 32, 4), (4, 64, 7), (4, 96, 7)), ((4, 192, 10), (6, 224, 19), (6, 384, 25), (6, 640, 7))),
    "xl": (32, ((1, 32, 4), (4, 64, 8), (4, 96, 8)), ((4, 192, 16), (6, 256, 24), (6, 512, 32), (6, 640, 8))),
}
"""EfficientNet v2 by size: the stem, then ratio, channels and blocks of the fused stages and of the others."""


def walk_efficient_v2(tape: Tape, height: int, width: int, *, size: str, wide: float = 1.0, deep: float = 1.0) -> Map:
    """Walk an EfficientNet v2; return its last map."""
    stem, fused, plain = _EFFICIENT_V2[size]
    x = tape.conv(Map(3, height, width), _rounded(stem * wide), stride=2, act="silu")
    for stage, (ratio, out, number) in enumerate((*fused, *plain)):
        later = stage >= len(fused)
        halves = stage not in (0, 4, 6)  # the first, the fifth and the last keep their size
        for place in range(math.ceil(number * deep)):
            block = Inverted(
                inner=x.channels * ratio if ratio > 1 else _rounded(out * wide),
                out=_rounded(out * wide),
                stride=2 if place == 0 and halves else 1,
                squeeze=x.channels // 4 if later else 0,
                act="silu",
                fused=not later,
            )
            x = walk_block(tape, x, block)
    return tape.conv(x, _rounded(1280 * wide), 1, act="silu")


def walk_efficient(tape: Tape, height: int, width: int, *, wide: float = 1.0, deep: float = 1.0) -> Map:
    """Walk an EfficientNet; return its last map."""
    x = tape.conv(Map(3, height, width), _rounded(32 * wide), stride=2, act="silu")
    for ratio, out, number, stride, kernel in _EFFICIENT:
        for place in range(math.ceil(number * deep)):
            block = Inverted(
                inner=x.channels * ratio,
                out=_rounded(out * wide),
                stride=stride if place == 0 else 1,
                kernel=kernel,
                squeeze=x.channels // 4,
                act="silu",
            )
            x = walk_block(tape, x, block)
    return tape.conv(x, _rounded(1280 * wide), 1, act="silu")
