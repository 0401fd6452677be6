"""Mask2Former: a pixel decoder with deformable attention, and queries that become masks."""

from __future__ import annotations

from collections.abc import Sequence

from headway.planner.models.convnet import Map, Tape, fresh

WIDTH, HEADS, POINTS = 256, 8, 4


def deform_attend(tape: Tape, x: Map, *, levels: int = 3) -> Map:
    """Walk one encoder layer: each place looks at a few points of every level, then two linear layers."""
    tape.save(x)  # the values' input
    query = fresh(x)
    value = tape.linear(x, WIDTH)
    offsets = tape.linear(query, HEADS * levels * POINTS * 2)
    weights = tape.linear(query, HEADS * levels * POINTS)
    tape.hold(offsets.size + 2 * weights.size)  # where it looks; the softmax with its input
    tape.save(value)
    out = tape.linear(Map(WIDTH, x.height, x.width), WIDTH)
    y = tape.norm(out)
    z = tape.linear(tape.linear(y, 4 * WIDTH, act="relu"), WIDTH)
    return tape.norm(z)


def decode(tape: Tape, memory: Map, queries: int) -> None:
    """Walk one decoder layer: masked attention to a level, attention among queries, two linear layers."""
    q = Map(WIDTH, 1, queries)
    for keys in (memory, q):
        a, b = tape.linear(fresh(q), WIDTH), tape.linear(fresh(keys), WIDTH)
        v = tape.linear(fresh(keys), WIDTH)
        y = tape.attend(fresh(a), fresh(b), fresh(v), heads=HEADS)
        tape.norm(tape.linear(fresh(y), WIDTH))
    tape.norm(tape.linear(tape.linear(fresh(q), 8 * WIDTH, act="relu"), WIDTH))


def add_mask_queries(
    tape: Tape, outs: Sequence[Map], image: Map, *, objects: int, queries: int = 100, layers: int = 9
) -> None:
    """Walk pixel decoder, query decoder, and the masks and losses of every layer.

    Args:
        objects: true masks of the fullest image.
    """
    levels = [tape.conv(one, WIDTH, 1, norm="group", act="none") for one in reversed(outs[1:])]
    x = Map(WIDTH, 1, sum(one.pixels for one in levels))
    for _ in range(6):
        x = deform_attend(tape, x)
    tape.conv(outs[0], WIDTH, 1, norm="group", act="none")
    pixels = tape.conv(Map(WIDTH, outs[0].height, outs[0].width), WIDTH, norm="group")
    pixels = tape.conv(pixels, WIDTH, 1, norm="none", act="none")
    tape.save(pixels)
    for layer in range(layers + 1):
        if layer:
            decode(tape, levels[(layer - 1) % 3], queries)
        masks = Map(queries, pixels.height, pixels.width)
        tape.hold(objects * pixels.pixels)  # those matched to an object, for sampling points
        tape.hold(masks.size)
    tape.hold(objects * image.pixels * 2)  # true masks as int64
    tape.passing(2 * queries * 3 * 12544)
