"""The YOLO family: Darknet-53 with YOLOv3's heads, CSP networks with YOLOX's; and VGG."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headway.planner.models.convnet import Act, Map, Tape, concat, fresh


def walk_darknet(tape: Tape, height: int, width: int) -> list[Map]:
    """Walk Darknet-53; return its last three stages."""
    x, outs = tape.conv(Map(3, height, width), 32), []
    for stage, blocks in enumerate((1, 2, 8, 8, 4)):
        x = tape.conv(x, 64 << stage, stride=2)
        for _ in range(blocks):
            tape.conv(tape.conv(x, x.channels // 2, 1), x.channels)
            x = fresh(x)
        outs.append(x)
    return outs[-3:]


def add_yolo_v3(tape: Tape, outs: Sequence[Map], *, classes: int = 80, widths: Sequence[int] = (512, 256, 128)) -> None:
    """Walk YOLOv3's neck and heads, from the smallest map up."""
    before: Map | None = None
    for x, width in zip(reversed(outs), widths, strict=True):
        if before is not None:
            up = tape.conv(before, width, 1)
            x = concat((Map(up.channels, x.height, x.width), x))
        y = x
        for out, kernel in ((width, 1), (2 * width, 3), (width, 1), (2 * width, 3), (width, 1)):
            y = tape.conv(y, out, kernel)
        before = y
        logits = tape.conv(tape.conv(y, 2 * width), 3 * (5 + classes), 1, norm="none", act="none")
        tape.hold(3 * logits.size)  # with classes last, its sigmoid, and the loss


@dataclass(frozen=True, slots=True, kw_only=True)
class Csp:
    """CSP Darknet with YOLOX's pyramid and head."""

    deep: float = 1.0
    wide: float = 1.0
    act: Act = "swish"

    def walk(self, tape: Tape, height: int, width: int, *, classes: int = 80) -> None:
        """Walk the whole detector on one image."""
        base = int(64 * self.wide)
        x = tape.conv(Map(12, height // 2, width // 2), base, act=self.act)
        outs = []
        for stage, blocks in enumerate((3, 9, 9, 3)):
            x = tape.conv(x, base << (stage + 1), stride=2, act=self.act)
            if stage == 3:
                x = self._pools(tape, x)
            x = self._layer(tape, x, x.channels, round(blocks * self.deep), add=stage < 3)
            outs.append(x)
        for x in self._pyramid(tape, outs[1:]):
            self._head(tape, x, classes)

    def _layer(self, tape: Tape, x: Map, out: int, blocks: int, *, add: bool) -> Map:
        """Walk one CSP layer: half of it passes the blocks."""
        side = tape.conv(x, out // 2, 1, act=self.act)
        y = tape.conv(x, out // 2, 1, act=self.act)
        for _ in range(blocks):
            z = tape.conv(tape.conv(y, y.channels, 1, act=self.act), y.channels, act=self.act)
            y = fresh(y) if add else z
        return tape.conv(concat((y, side)), out, 1, act=self.act)

    def _pools(self, tape: Tape, x: Map) -> Map:
        """Walk pyramid pooling with three sizes and no stride."""
        y = tape.conv(x, x.channels // 2, 1, act=self.act)
        for _ in range(3):
            tape.pool(y, stride=1)
        return tape.conv(Map(4 * y.channels, y.height, y.width), x.channels, 1, act=self.act)

    def _pyramid(self, tape: Tape, outs: Sequence[Map]) -> list[Map]:
        """Walk the paths down and up again; all levels end with the smallest width."""
        blocks = round(3 * self.deep)
        inner, ups = [outs[-1]], []
        for x in reversed(outs[:-1]):
            top = tape.conv(inner[0], x.channels, 1, act=self.act)
            ups.append(top)
            inner.insert(0, self._layer(tape, Map(2 * x.channels, x.height, x.width), x.channels, blocks, add=False))
        levels = [inner[0]]
        for top in reversed(ups):
            down = tape.conv(levels[-1], levels[-1].channels, stride=2, act=self.act)
            levels.append(self._layer(tape, concat((down, top)), 2 * top.channels, blocks, add=False))
        narrow = int(256 * self.wide)
        return [tape.conv(one, narrow, 1, act=self.act) for one in levels]

    def _head(self, tape: Tape, x: Map, classes: int) -> None:
        for outs in ((classes,), (4, 1)):
            y = x
            for _ in range(2):
                y = tape.conv(y, x.channels, act=self.act)
            for out in outs:
                tape.save(tape.conv(y, out, 1, norm="none", act="none"))


YOLOX = {
    "tiny": Csp(deep=0.33, wide=0.375),
    "s": Csp(deep=0.33, wide=0.5),
    "m": Csp(deep=0.67, wide=0.75),
    "l": Csp(),
    "x": Csp(deep=1.33, wide=1.25),
}
"""YOLOX by size."""
VGG = {
    11: (1, 1, 2, 2, 2),
    13: (2, 2, 2, 2, 2),
    16: (2, 2, 3, 3, 3),
    19: (2, 2, 4, 4, 4),
}
"""Convolutions of VGG's five stages, by depth."""


def walk_vgg(tape: Tape, height: int, width: int, *, depth: int = 16, normed: bool = False) -> list[Map]:
    """Walk VGG's convolutions; return the map of each stage, before its pool."""
    x, outs = Map(3, height, width), []
    for stage, convs in enumerate(VGG[depth]):
        for _ in range(convs):
            x = tape.conv(x, min(64 << stage, 512), norm="batch" if normed else "none")
        outs.append(x)
        x = tape.pool(x)
    return outs
