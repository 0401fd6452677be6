"""RegNets: widths and depths that follow one line, quantised."""

from __future__ import annotations

import math
from dataclasses import dataclass

from headway.planner.models.convnet import Map, Tape, fresh


@dataclass(frozen=True, slots=True, kw_only=True)
class RegNet:
    """A RegNetX or, with squeeze and excitation, a RegNetY."""

    start: float
    slope: float
    ratio: float
    group: int
    depth: int
    squeeze: bool = False
    frozen: int = 0
    """Parts that do not train: 1 is the stem and the first stage."""

    def stages(self) -> list[tuple[int, int]]:
        """Return width and number of blocks of each stage."""
        widths = []
        for place in range(self.depth):
            power = round(math.log((self.start + self.slope * place) / self.start) / math.log(self.ratio))
            width = int(round(self.start * self.ratio**power / 8) * 8)
            group = min(self.group, width)
            widths.append(int(round(width / group) * group))
        return [(width, widths.count(width)) for width in sorted(set(widths))]

    def walk(self, tape: Tape, height: int, width: int) -> list[Map]:
        """Walk the backbone on one image; return the map of each stage."""
        tape.frozen = self.frozen > 0
        x = tape.conv(Map(3, height, width), 32, stride=2)
        outs = []
        for stage, (out, blocks) in enumerate(self.stages()):
            tape.frozen = self.frozen > stage
            for number in range(blocks):
                stride = 2 if number == 0 else 1
                before = x.channels
                y = tape.conv(x, out, 1)
                y = tape.conv(y, out, stride=stride, groups=out // min(self.group, out))
                if self.squeeze:
                    tape.save(y)
                    tape.weigh(2 * out * before / 4)
                    y = fresh(y)
                y = tape.conv(y, out, 1, act="none")
                if number == 0:
                    tape.conv(x, out, 1, stride=stride, act="none")
                x = tape.act(fresh(y))
            outs.append(x)
        tape.frozen = False
        return outs


_X = {
    "200MF": (24, 36.44, 2.49, 8, 13),
    "400MF": (24, 24.48, 2.54, 16, 22),
    "600MF": (48, 36.97, 2.24, 24, 16),
    "800MF": (56, 35.73, 2.28, 16, 16),
    "1.6GF": (80, 34.01, 2.25, 24, 18),
    "3.2GF": (88, 26.31, 2.25, 48, 25),
    "4GF": (96, 38.65, 2.43, 40, 23),
    "6.4GF": (184, 60.83, 2.07, 56, 17),
    "8GF": (80, 49.56, 2.88, 120, 23),
    "12GF": (168, 73.36, 2.37, 112, 19),
    "16GF": (216, 55.59, 2.1, 128, 22),
    "32GF": (320, 69.86, 2.0, 168, 23),
}
_Y = {
    "200MF": (24, 36.44, 2.49, 8, 13),
    "400MF": (48, 27.89, 2.09, 8, 16),
    "600MF": (48, 32.54, 2.32, 16, 15),
    "800MF": (56, 38.84, 2.4, 16, 14),
    "1.6GF": (48, 20.71, 2.65, 24, 27),
    "3.2GF": (80, 42.63, 2.66, 24, 21),
    "4GF": (96, 31.41, 2.24, 64, 22),
    "6.4GF": (112, 33.22, 2.27, 72, 25),
    "8GF": (192, 76.82, 2.19, 56, 17),
    "12GF": (168, 73.36, 2.37, 112, 19),
    "16GF": (200, 106.23, 2.48, 112, 18),
    "32GF": (232, 115.89, 2.53, 232, 20),
}


def _regnets(rows: dict[str, tuple[int, float, float, int, int]], *, squeeze: bool) -> dict[str, RegNet]:
    return {
        name: RegNet(start=start, slope=slope, ratio=ratio, group=group, depth=depth, squeeze=squeeze)
        for name, (start, slope, ratio, group, depth) in rows.items()
    }


REGNETX, REGNETY = _regnets(_X, squeeze=False), _regnets(_Y, squeeze=True)
"""RegNets by their arithmetic, as their paper gives the line of their widths."""
