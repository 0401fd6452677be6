"""Vision transformers: plain (ViT, BEiT), in windows (Swin, Twins), with pooled keys (PVT, MiT), and ConvNeXt."""

from __future__ import annotations

from dataclasses import dataclass

from headway.planner.models.convnet import Map, Tape, fresh


def perceive(tape: Tape, x: Map, ratio: float, *, mixed: bool = False) -> Map:
    """Walk the second half of a block: norm, two linear layers with GELU, a sum.

    Args:
        mixed: a depthwise 3x3 is before the GELU (MiT, PVT v2).
    """
    y = tape.linear(tape.norm(x, "layer"), int(x.channels * ratio), act="none" if mixed else "gelu")
    if mixed:
        y = tape.conv(y, y.channels, groups=y.channels, norm="none", act="gelu")
    tape.linear(y, x.channels)
    return fresh(x)


def look(tape: Tape, x: Map, heads: int, *, reduce: int = 1, window: int = 0) -> Map:
    """Walk the first half of a block: norm, attention, a sum.

    Args:
        reduce: keys and values come from a map this much smaller on each side, made by a strided convolution.
        window: attention stays inside windows of this side; 0: it sees everything.
    """
    y = tape.norm(x, "layer")
    if window:
        y = Map(x.channels, -(-x.height // window) * window, -(-x.width // window) * window)
        tape.save(y)
        tape.weigh(4 * x.channels**2)
        for _ in range(3):
            tape.hold(y.size)
        tape.score(heads * y.pixels * window**2)
        tape.flops += 8 * y.pixels * x.channels**2 + 4 * y.pixels * window**2 * x.channels
        tape.hold(y.size)
        return fresh(x)
    keys = y
    if reduce > 1:
        seen = tape.conv(fresh(y), x.channels, reduce, stride=reduce, norm="none", act="none")
        keys = tape.norm(seen, "layer")
    q = tape.linear(y, x.channels)
    k, v = tape.linear(keys, x.channels), tape.linear(keys, x.channels)
    z = tape.attend(fresh(q), fresh(k), fresh(v), heads=heads)
    tape.linear(fresh(z), x.channels)
    return fresh(x)


@dataclass(frozen=True, slots=True, kw_only=True)
class ViT:
    """A plain vision transformer."""

    layers: int = 12
    hidden: int = 768
    heads: int = 12
    patch: int = 16
    outs: tuple[int, ...] = (11,)
    """Blocks whose output is used."""
    scaled: bool = False
    """Each half of a block is scaled by a trained vector, which keeps it (BEiT, DeiT III)."""

    def walk(self, tape: Tape, height: int, width: int) -> list[Map]:
        """Walk the backbone on one image; return the maps of the chosen blocks."""
        x = tape.conv(Map(3, height, width), self.hidden, self.patch, stride=self.patch, norm="none", act="none")
        tape.weigh(x.size)
        x, outs = fresh(x), []
        for layer in range(self.layers):
            x = perceive(tape, look(tape, x, self.heads), 4)
            if self.scaled:
                tape.hold(2 * x.size)
            if layer in self.outs:
                outs.append(x)
        return outs


@dataclass(frozen=True, slots=True, kw_only=True)
class Stages:
    """A transformer in four stages, each at half the size of the one before."""

    widths: tuple[int, ...]
    depths: tuple[int, ...]
    heads: tuple[int, ...]
    reduce: tuple[int, ...] = (1, 1, 1, 1)
    ratios: tuple[float, ...] = (4, 4, 4, 4)
    window: int = 0
    alternate: bool = False
    """Every second block sees everything, with reduced keys (Twins-SVT)."""
    mixed: bool = False
    overlap: bool = False
    """Patches overlap: 7x7 and 3x3 convolutions."""
    merge: bool = False
    """Stages are joined by merging four neighbours (Swin), not by a strided convolution."""
    positional: bool = False
    """A depthwise 3x3 after the first block of a stage tells places apart (Twins)."""

    def walk(self, tape: Tape, height: int, width: int) -> list[Map]:
        """Walk the backbone on one image; return the map of each stage."""
        x, outs = Map(3, height, width), []
        for stage, channels in enumerate(self.widths):
            x = self._enter(tape, x, stage, channels)
            for block in range(self.depths[stage]):
                local = self.window and not (self.alternate and block % 2)
                x = look(
                    tape,
                    x,
                    self.heads[stage],
                    reduce=1 if local else self.reduce[stage],
                    window=self.window if local else 0,
                )
                x = perceive(tape, x, self.ratios[stage], mixed=self.mixed)
                if self.positional and block == 0:
                    tape.conv(fresh(x), channels, groups=channels, norm="none", act="none")
                    x = fresh(x)
            outs.append(fresh(tape.norm(x, "layer")) if self.merge or self.mixed else x)
        return outs

    def _enter(self, tape: Tape, x: Map, stage: int, channels: int) -> Map:
        if stage and self.merge:
            y = Map(4 * x.channels, -(-x.height // 2), -(-x.width // 2))
            return tape.linear(tape.norm(y, "layer"), channels)
        stride = 2 if stage else 4
        kernel = (3 if stage else 7) if self.overlap else stride
        y = tape.conv(x if stage == 0 else fresh(x), channels, kernel, stride=stride, norm="none", act="none")
        return tape.norm(y, "layer")


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvNeXt:
    """A convolution network with the blocks of a transformer."""

    widths: tuple[int, int, int, int] = (96, 192, 384, 768)
    depths: tuple[int, int, int, int] = (3, 3, 9, 3)

    def walk(self, tape: Tape, height: int, width: int) -> list[Map]:
        """Walk the backbone on one image; return the map of each stage."""
        x, outs = Map(3, height, width), []
        for stage, channels in enumerate(self.widths):
            if stage:
                x = tape.conv(tape.norm(x, "layer"), channels, 2, stride=2, norm="none", act="none")
            else:
                x = tape.norm(tape.conv(x, channels, 4, stride=4, norm="none", act="none"), "layer")
            for _ in range(self.depths[stage]):
                y = tape.conv(fresh(x), channels, 7, groups=channels, norm="none", act="none")
                z = tape.linear(tape.norm(y, "layer"), 4 * channels, act="gelu")
                tape.save(tape.linear(z, channels))  # scaled by a trained vector
                x = fresh(x)
            outs.append(fresh(tape.norm(x, "layer")))
        return outs


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolFormer:
    """A transformer whose attention is an average over neighbours."""

    widths: tuple[int, int, int, int] = (64, 128, 320, 512)
    depths: tuple[int, int, int, int] = (2, 2, 6, 2)

    def walk(self, tape: Tape, height: int, width: int) -> list[Map]:
        """Walk the backbone on one image; return the map of each stage."""
        x, outs = Map(3, height, width), []
        for stage, channels in enumerate(self.widths):
            kernel, stride = (3, 2) if stage else (7, 4)
            x = fresh(tape.conv(fresh(x), channels, kernel, stride=stride, norm="none", act="none"))
            for _ in range(self.depths[stage]):
                y = tape.norm(x, "layer")
                tape.save(y)  # by the pool
                tape.save(fresh(y))  # scaled by a trained vector
                x = fresh(x)
                z = tape.linear(tape.norm(x, "layer"), 4 * channels, act="gelu")
                tape.save(tape.linear(z, channels))
                x = fresh(x)
            outs.append(fresh(tape.norm(x, "layer")))
        return outs


POOLFORMER = {
    "s12": PoolFormer(),
    "s24": PoolFormer(depths=(4, 4, 12, 4)),
    "s36": PoolFormer(depths=(6, 6, 18, 6)),
    "m36": PoolFormer(widths=(96, 192, 384, 768), depths=(6, 6, 18, 6)),
    "m48": PoolFormer(widths=(96, 192, 384, 768), depths=(8, 8, 24, 8)),
}
"""PoolFormers by size."""
SWIN = {
    "t": Stages(widths=(96, 192, 384, 768), depths=(2, 2, 6, 2), heads=(3, 6, 12, 24), window=7, merge=True),
    "s": Stages(widths=(96, 192, 384, 768), depths=(2, 2, 18, 2), heads=(3, 6, 12, 24), window=7, merge=True),
    "b": Stages(widths=(128, 256, 512, 1024), depths=(2, 2, 18, 2), heads=(4, 8, 16, 32), window=7, merge=True),
    "l": Stages(widths=(192, 384, 768, 1536), depths=(2, 2, 18, 2), heads=(6, 12, 24, 48), window=7, merge=True),
}
"""Swin Transformers by size."""
CONVNEXT = {
    "t": ConvNeXt(),
    "s": ConvNeXt(depths=(3, 3, 27, 3)),
    "b": ConvNeXt(widths=(128, 256, 512, 1024), depths=(3, 3, 27, 3)),
    "l": ConvNeXt(widths=(192, 384, 768, 1536), depths=(3, 3, 27, 3)),
    "xl": ConvNeXt(widths=(256, 512, 1024, 2048), depths=(3, 3, 27, 3)),
}
"""ConvNeXts by size."""
VITS = {
    "t": ViT(hidden=192, heads=3),
    "s": ViT(hidden=384, heads=6),
    "b": ViT(),
    "l": ViT(layers=24, hidden=1024, heads=16, outs=(23,)),
}
"""Vision transformers by size."""


def pooled_keys(depths: tuple[int, ...], *, narrow: bool = False) -> Stages:
    """Return a MiT (SegFormer's backbone) of these depths."""
    widths = (32, 64, 160, 256) if narrow else (64, 128, 320, 512)
    return Stages(widths=widths, depths=depths, heads=(1, 2, 5, 8), reduce=(8, 4, 2, 1), mixed=True, overlap=True)


MIT = {
    "b0": pooled_keys((2, 2, 2, 2), narrow=True),
    "b1": pooled_keys((2, 2, 2, 2)),
    "b2": pooled_keys((3, 4, 6, 3)),
    "b3": pooled_keys((3, 4, 18, 3)),
    "b4": pooled_keys((3, 8, 27, 3)),
    "b5": pooled_keys((3, 6, 40, 3)),
}
"""SegFormer's backbones by size."""
_PVT_RATIOS = (8.0, 8.0, 4.0, 4.0)


def pyramid(depths: tuple[int, ...], *, second: bool = False, narrow: bool = False, positional: bool = False) -> Stages:
    """Return a PVT of these depths: version 2 overlaps its patches and mixes."""
    return Stages(
        widths=(32, 64, 160, 256) if narrow else (64, 128, 320, 512),
        depths=depths,
        heads=(1, 2, 5, 8),
        reduce=(8, 4, 2, 1),
        ratios=_PVT_RATIOS,
        mixed=second,
        overlap=second,
        positional=positional,
    )


PVT = {
    "pvt-t": pyramid((2, 2, 2, 2)),
    "pvt-s": pyramid((3, 4, 6, 3)),
    "pvt-m": pyramid((3, 4, 18, 3)),
    "pvt-l": pyramid((3, 8, 27, 3)),
    "pvtv2-b0": pyramid((2, 2, 2, 2), second=True, narrow=True),
    "pvtv2-b1": pyramid((2, 2, 2, 2), second=True),
    "pvtv2-b2": pyramid((3, 4, 6, 3), second=True),
    "pvtv2-b3": pyramid((3, 4, 18, 3), second=True),
    "pvtv2-b4": pyramid((3, 8, 27, 3), second=True),
    "pvtv2-b5": pyramid((3, 6, 40, 3), second=True),
    "pcpvt-s": pyramid((3, 4, 6, 3), positional=True),
    "pcpvt-b": pyramid((3, 4, 18, 3), positional=True),
    "pcpvt-l": pyramid((3, 8, 27, 3), positional=True),
}
"""Pyramid vision transformers, and Twins of that kind, by name."""


def _twins(base: int, depths: tuple[int, ...], heads: int) -> Stages:
    return Stages(
        widths=tuple(base << stage for stage in range(4)),
        depths=depths,
        heads=tuple(heads << stage for stage in range(4)),
        reduce=(8, 4, 2, 1),
        window=7,
        alternate=True,
        positional=True,
    )


TWINS = {
    "svt-s": _twins(64, (2, 2, 10, 4), 2),
    "svt-b": _twins(96, (2, 2, 18, 2), 3),
    "svt-l": _twins(128, (2, 2, 18, 2), 4),
}
"""Twins with windows, by name."""
