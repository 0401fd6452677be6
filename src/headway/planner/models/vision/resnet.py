"""ResNets and their kin: ResNeXt, ResNeSt, Res2Net and RegNet."""

from __future__ import annotations

from dataclasses import dataclass

from headway.planner.models.convnet import Map, Norm, Tape, fresh

_DEPTHS = {
    26: (2, 2, 2, 2),
    18: (2, 2, 2, 2),
    34: (3, 4, 6, 3),
    50: (3, 4, 6, 3),
    101: (3, 4, 23, 3),
    152: (3, 8, 36, 3),
    200: (3, 24, 36, 3),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ResNet:
    """A ResNet or one of its variants."""

    depth: int = 50
    groups: int = 1
    group_width: int = 64
    """Width of the grouped convolution for 64 planes: 64 for ResNet, 4 a group for ResNeXt 64x4d."""
    strides: tuple[int, int, int, int] = (1, 2, 2, 2)
    """Of the four stages; (1, 2, 1, 1) for the dilated networks of segmentation (D8)."""
    stride_first: bool = False
    """The stride sits on a block's first 1x1 (Caffe's weights), not on its 3x3."""
    frozen: int = 0
    """Parts that do not train: 1 is the stem and the first stage."""
    stages: int = 4
    """How many of them there are: SSD stops after the third."""
    stem: tuple[int, ...] = ()
    """Channels of the 3x3 convolutions that are in place of one 7x7."""
    norm: Norm = "batch"
    splits: int = 1
    """Radix of ResNeSt's split attention, or branches of Res2Net's 3x3."""
    res2: bool = False
    avg_down: bool = False
    """Shortcuts pool before their 1x1 (the variant `d`)."""
    deform: int = 0
    """First stage (of 1 to 4) with deformable 3x3s; 0: none."""
    masked: bool = False
    """Those have a third mask channel a place (version 2)."""
    squeeze: bool = False
    """Channels of every block's end are weighted by a small network, which keeps them."""
    context: int = 0
    """Ratio of the global-context block that ends every block from the second stage on; 0: none."""

    def walk(self, tape: Tape, height: int, width: int) -> list[Map]:
        """Walk the backbone on one image; return the map of each stage."""
        tape.frozen = self.frozen > 0
        x = Map(3, height, width)
        if self.stem:
            for place, out in enumerate(self.stem):
                x = tape.conv(x, out, stride=1 if place else 2, norm=self.norm)
        else:
            x = tape.conv(x, 64, 7, stride=2, norm=self.norm)
        x = tape.pool(x)
        outs = []
        for stage, blocks in enumerate(_DEPTHS[self.depth][: self.stages]):
            tape.frozen = self.frozen > stage
            for number in range(blocks):
                stride = self.strides[stage] if number == 0 else 1
                x = self._block(tape, x, stage=stage, stride=stride, first=number == 0)
            outs.append(x)
        tape.frozen = False
        return outs

    def _block(self, tape: Tape, x: Map, *, stage: int, stride: int, first: bool) -> Map:
        planes = 64 << stage
        out = planes if self.depth in (18, 34) else planes * 4
        short = x
        if self.depth in (18, 34):
            y = tape.conv(x, planes, stride=stride, norm=self.norm)
            y = tape.conv(y, planes, norm=self.norm, act="none")
        else:
            inner = planes * self.group_width * self.groups // 64
            if self.res2:
                inner = planes * self.group_width // 64 * self.splits
            y = tape.conv(x, inner, 1, stride=stride if self.stride_first else 1, norm=self.norm)
            after = 1 if self.stride_first else stride
            y = self._middle(tape, y, stride=after, deformed=0 < self.deform <= stage + 1)
            y = tape.conv(y, out, 1, norm=self.norm, act="none")
        if self.squeeze:
            tape.save(y)
            tape.weigh(2 * out * out / 16)
            y = fresh(y)
        if self.context and stage > 0:
            y = _context(tape, y, self.context)
        if first and (stride > 1 or short.channels != out):
            if self.avg_down and stride > 1:
                short = Map(short.channels, y.height, y.width)
            short = tape.conv(short, out, 1, stride=1 if self.avg_down else stride, norm=self.norm, act="none")
        return tape.act(fresh(y))

    def _middle(self, tape: Tape, x: Map, *, stride: int, deformed: bool) -> Map:
        """Walk the 3x3 of a bottleneck."""
        if self.res2 and self.splits > 1:
            return self._scales(tape, x, stride=stride)
        if self.splits > 1:
            return self._split_attention(tape, x, stride=stride)
        if deformed:
            places = tape.conv(x, 27 if self.masked else 18, stride=stride, norm="none", act="none")
            tape.save(places)
            return tape.deform(x, x.channels, stride=stride, groups=self.groups, norm=self.norm)
        return tape.conv(x, x.channels, stride=stride, groups=self.groups, norm=self.norm)

    def _split_attention(self, tape: Tape, x: Map, *, stride: int) -> Map:
        """Walk ResNeSt: twice the channels, weighted by a small network, pooled where it strides."""
        y = tape.conv(x, x.channels * self.splits, groups=self.groups * self.splits, norm=self.norm)
        inner = max(x.channels * self.splits // 4, 32)
        tape.weigh(x.channels * inner + inner * x.channels * self.splits)
        out = Map(x.channels, y.height, y.width)
        if stride == 1:
            return out
        tape.save(out)  # by the pool that strides
        return Map(out.channels, -(-out.height // stride), -(-out.width // stride))

    def _scales(self, tape: Tape, x: Map, *, stride: int) -> Map:
        """Walk Res2Net: all but one of the slices pass a 3x3, each beside the sum with the one before."""
        part = Map(x.channels // self.splits, x.height, x.width)
        y = part
        for _ in range(self.splits - 1):
            y = tape.conv(fresh(part), part.channels, stride=stride, norm=self.norm)
        return Map(x.channels, y.height, y.width)


def _context(tape: Tape, x: Map, ratio: int) -> Map:
    """Walk a global-context block: one attention map, a bottleneck over channels, a sum."""
    tape.save(x)
    tape.hold(2 * x.pixels)
    tape.weigh(x.channels + 2 * x.channels * x.channels / ratio)
    return fresh(x)
