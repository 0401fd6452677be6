"""Necks and heads of detectors."""

from __future__ import annotations

from collections.abc import Sequence

from headway.planner.models.convnet import Map, Norm, Tape, fresh

ROIS, POSITIVE = 512, 128
"""Regions a two-stage detector samples of an image, and how many of them get a mask."""
BOXES = 93
"""Most boxes of one image of COCO: the match of anchors to them is a moment of its own."""
_PAIR = 8
"""Elements alive for one pair of anchor and box: corners of the overlap, twice, its sides and areas."""


def add_pyramid(
    tape: Tape,
    outs: Sequence[Map],
    *,
    first: int = 0,
    levels: int = 5,
    width: int = 256,
    norm: Norm = "none",
    extra: bool = False,
) -> list[Map]:
    """Walk a feature pyramid over stages from `first` on; return its levels.

    Args:
        extra: levels beyond the stages are convolutions, not pools.
    """
    used = outs[first:]
    for one in used:
        tape.conv(one, width, 1, norm=norm, act="none")
    pyramid = [tape.conv(Map(width, one.height, one.width), width, norm=norm, act="none") for one in used]
    while len(pyramid) < levels:
        last = pyramid[-1]
        if extra:
            pyramid.append(tape.conv(last, width, stride=2, norm=norm, act="none"))
        else:
            pyramid.append(Map(width, -(-last.height // 2), -(-last.width // 2)))
    return pyramid


def add_bottom_up(tape: Tape, pyramid: list[Map]) -> list[Map]:
    """Walk PAFPN's second path, from the largest level down."""
    outs = [pyramid[0]]
    for one in pyramid[1:4]:
        tape.conv(fresh(outs[-1]), 256, stride=2, norm="none", act="none")
        outs.append(tape.conv(fresh(one), 256, norm="none", act="none"))
    return [*outs, *pyramid[4:]]


def add_wide_pyramid(tape: Tape, outs: Sequence[Map], *, levels: int = 5, stride: int = 1) -> list[Map]:
    """Walk HRNet's neck: all branches beside each other, one 1x1, then pooled to each level."""
    whole = Map(sum(one.channels for one in outs), outs[0].height, outs[0].width)
    y = tape.conv(whole, 256, 1, norm="none", act="none")
    pyramid = []
    for level in range(levels):
        scale = 1 << level
        pooled = Map(256, -(-y.height // scale), -(-y.width // scale)) if scale > 1 else y
        if scale > 1:
            tape.save(y)  # by the pool
        pyramid.append(tape.conv(pooled, 256, stride=stride, norm="none", act="none"))
    return pyramid


def match(tape: Tape, places: float, *, boxes: int = BOXES) -> None:
    """Note the moment when every anchor is compared with every box of one image."""
    tape.passing(0.0, once=_PAIR * places * boxes * tape.wide)


def add_proposals(
    tape: Tape, pyramid: Sequence[Map], *, boxes: int = BOXES, anchors: int = 3, guided: bool = False
) -> None:
    """Walk a region proposal head over all levels.

    Args:
        guided: shapes are predicted, features bent to them, and nine rough shapes a place are matched.
    """
    for level, x in enumerate(pyramid):
        y = tape.conv(x, 256, norm="none", shared=level > 0)
        if guided:
            y = add_guide(tape, y, shared=level > 0)
        for out in (anchors, 4 * anchors):
            tape.save(tape.conv(y, out, 1, norm="none", act="none", shared=level > 0))
    match(tape, (9 if guided else anchors) * sum(one.pixels for one in pyramid), boxes=boxes)


def add_guide(tape: Tape, x: Map, *, shared: bool = False) -> Map:
    """Walk guided anchoring: where and which shape, then a deformable convolution that follows it."""
    tape.save(tape.conv(x, 1, 1, norm="none", act="none", shared=shared))
    tape.conv(x, 2, 1, norm="none", act="none", shared=shared)
    return tape.deform(add_offsets(tape, x, 2, shared=shared), x.channels, norm="none", shared=shared)


def add_offsets(tape: Tape, x: Map, sides: int, *, shared: bool = False) -> Map:
    """Walk the 1x1 that makes offsets for four groups of nine places from a predicted shape; return the map to bend."""
    tape.save(tape.conv(Map(sides, x.height, x.width), 72, 1, norm="none", act="none", shared=shared))
    return x


def add_boxes(tape: Tape, *, classes: int = 80, convs: int = 0, norm: Norm = "none", shared: bool = False) -> None:
    """Walk a box head on the sampled regions: convolutions, then one or two linear layers."""
    x = Map(256, ROIS * 7, 7)
    for _ in range(convs):
        x = tape.conv(x, 256, norm=norm, shared=shared)
    tape.save(x)
    y = tape.linear(Map(256 * 49, ROIS, 1, saved=True), 1024, act="relu", shared=shared)
    if not convs:
        y = tape.linear(y, 1024, act="relu", shared=shared)
    for out in (classes + 1, 4 * classes):
        tape.save(tape.linear(y, out, shared=shared))


def cut_masks(tape: Tape, image: Map, *, boxes: int = BOXES, beside: float = 0.0) -> None:
    """Note the moment when targets are cut: true masks of the image's size, bytes of all, bytes and floats a region."""
    tape.passing(beside, once=image.pixels * (boxes / 4 + POSITIVE / 4 + POSITIVE) * tape.wide)


def add_masks(
    tape: Tape,
    *,
    classes: int = 80,
    norm: Norm = "none",
    image: Map | None = None,
    boxes: int = BOXES,
) -> Map:
    """Walk a mask head on the regions with an object; return its last map.

    Args:
        image: true masks of its size are on the GPU, one a region, when the targets are cut (bitmaps, not polygons).
    """
    x = Map(256, POSITIVE * 14, 14)
    for _ in range(4):
        x = tape.conv(x, 256, norm=norm)
    tape.save(x)
    tape.weigh(4 * 256 * 256)
    up = tape.act(Map(256, POSITIVE * 28, 28))
    tape.flops += 2 * 4 * 256 * 256 * x.pixels
    tape.passing(2 * up.size + x.size)
    logits = tape.conv(up, classes, 1, norm="none", act="none")
    tape.passing(2 * logits.size)
    if image is not None:
        cut_masks(tape, image, boxes=boxes, beside=logits.size)
    return up


def add_dense(
    tape: Tape,
    pyramid: Sequence[Map],
    *,
    anchors: int = 1,
    classes: int = 80,
    convs: int = 4,
    norm: Norm = "none",
    towers: int = 2,
    sides: int = 5,
    boxes: int = BOXES,
    guided: bool = False,
    aligned: bool = False,
    losses: float = 1.0,
    pair: float = _PAIR,
) -> None:
    """Walk a one-stage head: towers of convolutions over every level, logits and boxes.

    Args:
        sides: channels an anchor has beside its classes.
        guided: both towers end in features bent to a predicted shape (guided anchoring, RepPoints).
        aligned: the tower of classes is one bend to the predicted box and two wide convolutions (FoveaBox).
        losses: tensors of all logits that the loss keeps: one for the focal loss's own kernel.
        pair: elements alive for one pair of place and box while targets are made.
    """
    places = sum(one.pixels for one in pyramid)
    for level, x in enumerate(pyramid):
        ends = []
        for tower in range(towers):
            y = x
            if aligned and tower == 0:
                y = tape.deform(add_offsets(tape, x, 4, shared=level > 0), 256, norm="none", shared=level > 0)
                y = tape.conv(tape.conv(y, 1024, norm=norm, shared=level > 0), 1024, 1, norm=norm, shared=level > 0)
                ends.append(y)
                continue
            for _ in range(convs):
                y = tape.conv(y, 256, norm=norm, shared=level > 0)
            ends.append(add_guide(tape, y, shared=level > 0) if guided else y)
        tape.conv(ends[0], anchors * classes, norm="none", act="none", shared=level > 0)
        tape.conv(ends[-1], anchors * sides, norm="none", act="none", shared=level > 0)
    logits = anchors * (classes + sides) * places
    tape.hold(losses * logits)  # with classes last
    tape.passing(2.5 * logits)
    tape.passing(logits, once=pair * (9 if guided else anchors) * places * boxes * tape.wide)


def add_task_aligned(tape: Tape, pyramid: Sequence[Map], *, classes: int = 80, boxes: int = BOXES) -> None:
    """Walk TOOD's head: six convolutions beside each other, split into two tasks, each aligned by a small branch."""
    places = sum(one.pixels for one in pyramid)
    for level, x in enumerate(pyramid):
        shared, y = level > 0, x
        for _ in range(6):
            y = tape.conv(y, 256, norm="group", shared=shared)
        whole = Map(6 * 256, x.height, x.width)
        for out, side in ((classes, 1), (4, 8)):
            task = tape.conv(whole, 256, 1, norm="group", shared=shared)
            tape.save(tape.conv(task, out, norm="none", act="none", shared=shared))
            narrow = tape.conv(whole, 64, 1, norm="none", shared=shared)
            tape.save(tape.conv(narrow, side, norm="none", act="none", shared=shared))
    tape.hold(4 * classes * places)  # both scores, their mean, and the mean with classes last
    tape.passing(2.5 * classes * places, once=_PAIR * places * boxes * tape.wide)


def add_mask_score(tape: Tape) -> None:
    """Walk Mask Scoring's further head: how good a mask is, from its region and itself."""
    x = Map(257, POSITIVE * 14, 14)
    for place in range(4):
        x = tape.conv(x, 256, stride=2 if place == 3 else 1, norm="none")
    tape.save(x)
    y = tape.linear(Map(256 * 49, POSITIVE, 1, saved=True), 1024, act="relu")
    tape.linear(tape.linear(y, 1024, act="relu"), 80)


def add_points(tape: Tape, *, classes: int = 80, points: int = 196) -> None:
    """Walk PointRend: a coarse mask by linear layers, and 196 points of each refined by a small network."""
    x = tape.conv(Map(256, POSITIVE * 14, 14), 256, 2, stride=2, norm="none")
    tape.save(x)
    y = tape.linear(Map(256 * 49, POSITIVE, 1, saved=True), 1024, act="relu")
    tape.linear(tape.linear(y, 1024, act="relu"), classes * 49)
    z = Map(256 + classes, POSITIVE, points)
    for _ in range(3):
        z = tape.linear(z, 256, act="relu")
        z = Map(256 + classes, POSITIVE, points)
    tape.linear(z, classes)


def add_flow(tape: Tape, stages: int) -> None:
    """Walk the masks of earlier cascade stages once more, as HTC does to hand them on."""
    for _ in range(stages):
        x = Map(256, POSITIVE * 14, 14)
        for _ in range(4):
            x = tape.conv(x, 256, norm="none", shared=True)
        tape.conv(x, 256, 1, norm="none")


def add_semantic_regions(tape: Tape) -> None:
    """Keep the semantic map's regions: cut at fourteen places a side, pooled to seven."""
    tape.hold(ROIS * 256 * 14 * 14)


def add_semantic(tape: Tape, pyramid: Sequence[Map], *, classes: int = 183) -> None:
    """Walk HTC's semantic branch: all levels summed at an eighth, four convolutions, logits."""
    x = Map(256, pyramid[1].height, pyramid[1].width)
    for _ in pyramid:
        tape.conv(fresh(x), 256, 1, norm="none")
    for _ in range(4):
        x = tape.conv(x, 256, norm="none")
    logits = tape.conv(x, classes, 1, norm="none", act="none")
    tape.hold(2 * logits.size)
    tape.conv(x, 256, 1, norm="none")


def balance(tape: Tape, pyramid: Sequence[Map]) -> list[Map]:
    """Walk Libra's balanced pyramid: levels gathered at one size, a non-local block, spread again."""
    middle = Map(256, pyramid[2].height, pyramid[2].width)
    q, k, v = (tape.conv(middle, 256, 1, norm="none", act="none") for _ in range(3))
    y = tape.attend(fresh(q), k, fresh(v))
    tape.conv(fresh(y), 256, 1, act="none")
    return [fresh(one) for one in pyramid]


def add_ssd(tape: Tape, outs: Sequence[Map], *, classes: int = 81) -> None:
    """Walk SSD's further levels, each halved, and its heads on every level."""
    levels = [outs[-1]]
    for middle, out in ((256, 512), (256, 512), (128, 256), (128, 256), (128, 256)):
        levels.append(tape.conv(tape.conv(levels[-1], middle, 1), out, stride=2))
    for x, anchors in zip(levels, (4, 6, 6, 6, 4, 4), strict=True):
        tape.save(tape.conv(x, anchors * (4 + classes), norm="none", act="none"))
