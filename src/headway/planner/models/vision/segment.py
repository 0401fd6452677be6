"""Heads of segmenters, each as its forward pass, and the full-size logits their loss keeps."""

from __future__ import annotations

from collections.abc import Sequence

from headway.planner.models.convnet import Map, Tape, concat, fresh, resize

_LOSS = 2.0
"""Full-size tensors of classes beside the kept ones: gradients of the picked and of all log-probabilities."""


def classify(tape: Tape, x: Map, classes: int, image: Map, *, dropped: bool = True) -> None:
    """Walk dropout, the last 1x1, its resize to the image, and cross-entropy, which keeps log-probabilities."""
    tape.conv(fresh(x) if dropped else x, classes, 1, norm="none", act="none")
    full = classes * image.pixels * tape.wide
    tape.hold(tape.softmax * full)
    tape.passing(_LOSS * full)


def fcn(tape: Tape, x: Map, *, width: int = 512, convs: int = 2, beside: bool = True) -> Map:
    """Walk a row of 3x3s, and one over them beside their input."""
    y = x
    for _ in range(convs):
        y = tape.conv(y, width)
    return tape.conv(concat((x, y)), width) if beside else y


def auxiliary(tape: Tape, x: Map, *, width: int, classes: int, image: Map) -> None:
    """Walk the small head on an earlier stage that only training has."""
    classify(tape, tape.conv(x, width), classes, image)


def pyramid_pool(tape: Tape, x: Map, *, width: int = 512) -> Map:
    """Walk PSPNet: pooled maps through 1x1s, resized and beside the input."""
    for _ in range(4):
        tape.conv(Map(x.channels, 3, 4), width, 1)
    return tape.conv(Map(x.channels + 4 * width, x.height, x.width), width)


def dilated(tape: Tape, x: Map, *, width: int = 512, separable: bool = False) -> Map:
    """Walk DeepLab's four dilated branches and the pooled one."""
    for place in range(4):
        if separable and place:
            tape.conv(tape.conv(x, x.channels, groups=x.channels), width, 1)
        else:
            tape.conv(x, width, 3 if place else 1)
    tape.conv(Map(x.channels, 1, 1), width, 1)
    return tape.conv(Map(5 * width, x.height, x.width), width)


def dilated_plus(tape: Tape, outs: Sequence[Map], *, width: int = 512, low: int = 48) -> Map:
    """Walk DeepLab v3+: separable branches, then two separable 3x3s at the size of the first stage."""
    y = dilated(tape, outs[-1], width=width, separable=True)
    side = tape.conv(outs[0], low, 1)
    y = concat((resize(y, side), side))
    for _ in range(2):
        y = tape.conv(tape.conv(y, y.channels, groups=y.channels), width, 1)
    return y


def relate(tape: Tape, query: Map, key: Map, *, width: int, out: int, pooled: int = 0, normed: int = 1) -> Map:
    """Walk the self-attention block that many heads share: projections, all pairs, an output projection.

    Args:
        pooled: places the keys are pooled to; 0: all of them.
        normed: convolutions of queries and keys.
    """
    q, k = query, key
    for _ in range(normed):
        q, k = tape.conv(q, width, 1), tape.conv(k, width, 1)
    v = tape.conv(key, width, 1, norm="batch" if normed > 1 else "none", act="relu" if normed > 1 else "none")
    if pooled:
        k, v = Map(width, 1, pooled), Map(width, 1, pooled)
    y = tape.attend(fresh(q), fresh(k), fresh(v))
    return tape.conv(fresh(y), out, 1, norm="batch" if normed > 1 else "none", act="relu" if normed > 1 else "none")


def non_local(tape: Tape, x: Map, *, halved: int = 2) -> Map:
    """Walk a non-local block: three projections, all pairs, a projection back, a sum."""
    width = x.channels // halved
    q, k, v = (tape.conv(x, width, 1, norm="none", act="none") for _ in range(3))
    y = tape.attend(fresh(q), k, fresh(v))
    return fresh(tape.conv(fresh(y), x.channels, 1, act="none"))


def asymmetric(tape: Tape, outs: Sequence[Map], *, width: int = 512) -> Map:
    """Walk ANN: two attentions whose keys are pooled to 110 places, one across stages."""
    low, high = outs[-2], outs[-1]
    y = relate(tape, high, low, width=256, out=high.channels, pooled=110)
    y = tape.conv(concat((y, high)), high.channels, 1, act="none")
    x = tape.conv(fresh(y), width)
    y = relate(tape, x, x, width=256, out=width, pooled=110)
    return tape.conv(concat((y, x)), width, 1)


def crossed(tape: Tape, x: Map, *, width: int = 512) -> Map:
    """Walk CCNet: attention along rows and columns, twice, inside an FCN head."""
    y = tape.conv(x, width)
    for turn in range(2):
        q, k = (tape.conv(y, width // 8, 1, norm="none", act="none", shared=turn > 0) for _ in range(2))
        v = tape.conv(y, width, 1, norm="none", act="none", shared=turn > 0)
        for one in (q, k, v):
            tape.save(one)
        tape.score(y.pixels * (y.height + y.width))
        y = fresh(y)
        tape.save(y)
    y = tape.conv(y, width)
    return tape.conv(concat((x, y)), width)


def dual(tape: Tape, x: Map, *, width: int = 512, classes: int, image: Map) -> Map:
    """Walk DANet: attention over places and over channels, each with logits of its own."""
    y = tape.conv(x, width)
    q, k = (tape.conv(y, 64, 1, norm="none", act="none") for _ in range(2))
    v = tape.conv(y, width, 1, norm="none", act="none")
    y = tape.attend(fresh(q), k, fresh(v))
    places = tape.conv(fresh(y), width)
    classify(tape, places, classes, image)
    y = tape.conv(x, width)
    tape.hold(width * width)
    channels = tape.conv(fresh(y), width)
    classify(tape, channels, classes, image)
    return fresh(places)


def encoded(tape: Tape, x: Map, *, width: int = 512, codes: int = 32) -> Map:
    """Walk EncNet: distances to 32 code words, which scale the channels."""
    y = tape.conv(x, width)
    z = tape.conv(y, width, 1)
    # The input and the code words, expanded over each other; their distance, and what its sum over places keeps.
    tape.hold(2 * codes * z.size)
    tape.passing(2 * codes * z.size)
    tape.save(y)
    out = fresh(y)
    tape.save(out)
    return out


def adaptive(tape: Tape, x: Map, *, width: int = 512) -> Map:
    """Walk APCNet: for each of four pooled sizes, an affinity of places to pooled ones."""
    for size in (1, 2, 3, 6):
        y = tape.conv(x, width, 1)
        tape.conv(Map(x.channels, size, size), width, 1)
        affinity = tape.conv(fresh(y), size * size, 1, norm="none", act="none")
        tape.save(fresh(affinity))
        z = tape.conv(fresh(y), width, 1)
        z = tape.act(fresh(z))
        tape.conv(z, width, 1)
    return tape.conv(Map(x.channels + 4 * width, x.height, x.width), width)


def dynamic(tape: Tape, x: Map, *, width: int = 512) -> Map:
    """Walk DMNet: four filters made from the image, of 1 to 7 places."""
    for size in (1, 3, 5, 7):
        tape.conv(Map(x.channels, size, size), width, 1, norm="none", act="none")
        y = tape.conv(x, width, 1)
        tape.save(fresh(y))  # padded
        z = tape.act(tape.norm(fresh(y)))
        tape.conv(z, width, 1)
    return tape.conv(Map(x.channels + 4 * width, x.height, x.width), width)


def interlaced(tape: Tape, x: Map, *, width: int = 512) -> Map:
    """Walk ISANet: attention among places far apart, then among near ones."""
    y = tape.conv(x, width)
    z = y
    for near in (False, True):
        group = 64 if near else y.pixels / 64
        z = fresh(z)
        q, k = z, z
        for _ in range(2):
            q, k = tape.conv(q, 256, 1), tape.conv(k, 256, 1)
        v = tape.conv(z, 256, 1)
        for one in (fresh(q), k, fresh(v)):
            tape.save(one)
        tape.score(y.pixels * group)
        z = tape.conv(Map(256, y.height, y.width), width, 1)
    return tape.conv(concat((z, y)), width, 1)


def point_wise(tape: Tape, x: Map, *, width: int = 512, mask: int = 97) -> Map:
    """Walk PSANet: two masks of all pairs of places at half size, cut out of larger ones."""
    half = Map(x.channels, -(-x.height // 2), -(-x.width // 2))
    for _ in range(2):
        y = resize(tape.conv(x, width, 1), half)
        z = tape.conv(y, width, 1)
        z = tape.conv(z, mask * mask, 1, norm="none", act="none")
        tape.score(half.pixels**2)
        tape.passing(2 * z.size + half.pixels**2)
    y = tape.conv(Map(2 * width, half.height, half.width), x.channels, 1)
    return tape.conv(Map(2 * x.channels, x.height, x.width), width)


def united(tape: Tape, outs: Sequence[Map], *, width: int = 512) -> Map:
    """Walk UPerNet: a pyramid with a pooled top, its levels beside each other at the largest size."""
    laterals = [tape.conv(one, width, 1) for one in outs[:-1]]
    laterals.append(pyramid_pool(tape, outs[-1], width=width))
    levels = [tape.conv(fresh(one), width) for one in laterals[:-1]]
    return tape.conv(Map(width * len(outs), outs[0].height, outs[0].width), width) if levels else laterals[-1]


def object_context(tape: Tape, x: Map, rough: Map, *, width: int = 512, classes: int) -> Map:
    """Walk OCRNet's second head: regions of the rough logits, and attention of places to them."""
    y = tape.conv(x, width)
    tape.save(fresh(rough))  # its softmax
    q, k, v = y, Map(width, 1, classes), Map(width, 1, classes)
    for _ in range(2):
        q, k = tape.conv(q, 256, 1), tape.conv(k, 256, 1)
    v = tape.conv(v, 256, 1)
    z = tape.attend(fresh(q), k, v)
    z = tape.conv(fresh(z), width, 1)
    return tape.conv(concat((z, y)), width, 1)


def summed(tape: Tape, outs: Sequence[Map], *, width: int = 128) -> Map:
    """Walk a semantic FPN: each level brought up to the first one's size, a convolution a doubling."""
    for place, x in enumerate(outs):
        y = x
        for step in range(max(1, place)):
            y = tape.conv(y if step == 0 else fresh(y), width)
            if place:
                y = Map(width, y.height * 2, y.width * 2)
    return Map(width, outs[0].height, outs[0].width)


def joint(tape: Tape, outs: Sequence[Map], *, width: int = 512) -> Map:
    """Walk FastFCN's joint upsampling: three stages beside each other at an eighth, four dilations."""
    for x in outs[1:]:
        tape.conv(x, width)
    y = Map(3 * width, outs[1].height, outs[1].width)
    for _ in range(4):
        tape.conv(tape.conv(y, y.channels, groups=y.channels, act="none"), width, 1)
    return Map(4 * width, y.height, y.width)


def updated(tape: Tape, x: Map, *, classes: int, image: Map, stages: int = 3) -> None:
    """Walk K-Net: kernels, one a class, updated by what they see; each stage has logits of its own."""
    for _ in range(stages):
        tape.hold(2 * classes * x.pixels)
        y = tape.conv(x, x.channels, 1, norm="none", act="none")
        tape.weigh(6 * 512 * 512 + 4 * 512 * 512 + 2 * 512 * 2048)
        classify(tape, fresh(y), classes, image, dropped=False)


def mixed(tape: Tape, outs: Sequence[Map], *, width: int = 256) -> Map:
    """Walk SegFormer's head: a 1x1 a stage, all at the first one's size, one 1x1 over them."""
    for x in outs:
        tape.conv(fresh(x), width, 1)
    return tape.conv(Map(4 * width, outs[0].height, outs[0].width), width, 1)


def levelled(tape: Tape, outs: Sequence[Map], *, width: int = 768) -> list[Map]:
    """Walk the neck that gives a plain transformer four sizes: 4, 2, 1 and a half."""
    levels = []
    for x, scale in zip(outs, (4, 2, 1, 0.5), strict=True):
        y = tape.conv(fresh(x), width, 1, norm="none", act="none")
        y = Map(width, int(x.height * scale), int(x.width * scale))
        levels.append(tape.conv(y, width, norm="none", act="none"))
    return levels


def raised(tape: Tape, x: Map, *, convs: int, scale: int, kernel: int = 3, width: int = 256) -> Map:
    """Walk SETR's head: a norm, then convolutions, each followed by an upsampling."""
    y = fresh(tape.norm(x, "layer"))
    for _ in range(convs):
        y = tape.conv(y, width, kernel)
        y = Map(width, y.height * scale, y.width * scale)
    return y


def stretched(tape: Tape, outs: Sequence[Map]) -> list[Map]:
    """Walk BEiT's neck: transposed convolutions to four and two times the size, a pool to half."""
    first, second, third, last = outs
    wide = Map(first.channels, 2 * first.height, 2 * first.width)
    tape.weigh(3 * 4 * first.channels**2)
    tape.save(fresh(first))
    y = tape.act(tape.norm(wide), "gelu")
    tape.save(y)
    tape.save(fresh(second))
    return [
        Map(first.channels, 4 * first.height, 4 * first.width),
        Map(second.channels, 2 * second.height, 2 * second.width),
        fresh(third),
        tape.pool(fresh(last)),
    ]


def gathered(tape: Tape, outs: Sequence[Map], *, classes: int, image: Map) -> None:
    """Walk SETR's multi-level head: each level through 1x1 and 3x3s, brought to a quarter, beside each other."""
    levels = [tape.conv(fresh(tape.conv(fresh(x), 256, 1)), 256) for x in outs]
    for x in levels:
        tape.conv(tape.conv(x, 128), 128)
    wide = Map(512, 4 * outs[0].height, 4 * outs[0].width)
    classify(tape, wide, classes, image, dropped=False)
    for x in levels:
        classify(tape, x, classes, image, dropped=False)


def bilateral(tape: Tape, outs: Sequence[Map], *, classes: int, image: Map, wide: bool) -> None:
    """Walk BiSeNet v1 on a ResNet's stages: a path of its own for places, attention over two stages, their sum.

    Args:
        wide: on bottlenecks all widths are four times those on basic blocks.
    """
    scale = 4 if wide else 1
    x = image
    for width, kernel, stride in ((64, 7, 2), (64, 3, 2), (64, 3, 2), (128, 1, 1)):
        x = tape.conv(x, width * scale, kernel, stride=stride)
    tops = []
    for place in (3, 2):
        y = tape.conv(outs[place], 128 * scale)
        tape.save(y)  # times its attention
        up = Map(y.channels, outs[place - 1].height, outs[place - 1].width)
        tops.append(tape.conv(up, 128 * scale))
    fused = tape.conv(concat((x, resize(tops[1], x))), 256 * scale, 1)
    tape.save(fused)
    classify(tape, tape.conv(fresh(fused), 256 * scale), classes, image)
    for y in reversed(tops):
        classify(tape, tape.conv(y, 64 * scale), classes, image)
