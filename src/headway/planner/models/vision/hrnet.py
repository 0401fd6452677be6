"""HRNet (parallel branches that exchange maps) and UNet (down and up again)."""

from __future__ import annotations

from dataclasses import dataclass

from headway.planner.models.convnet import Map, Tape, fresh


@dataclass(frozen=True, slots=True, kw_only=True)
class HRNet:
    """A high-resolution network: up to four branches, each at half the size of the one before."""

    width: int = 18
    blocks: int = 4
    modules: tuple[int, int, int] = (1, 4, 3)
    """Of the stages with two, three and four branches."""

    def walk(self, tape: Tape, height: int, width: int) -> list[Map]:
        """Walk the backbone on one image; return the map of each branch."""
        x = tape.conv(tape.conv(Map(3, height, width), 64, stride=2), 64, stride=2)
        for number in range(self.blocks):
            short = x
            y = tape.conv(tape.conv(x, 64, 1), 64)
            y = tape.conv(y, 256, 1, act="none")
            if number == 0:
                tape.conv(short, 256, 1, act="none")
            x = tape.act(fresh(y))
        maps = [x]
        for stage, modules in enumerate(self.modules):
            maps = self._spread(tape, maps, stage + 2)
            for _ in range(modules):
                maps = [self._branch(tape, one) for one in maps]
                maps = [self._fuse(tape, maps, place) for place in range(len(maps))]
        return maps

    def _spread(self, tape: Tape, maps: list[Map], branches: int) -> list[Map]:
        """Walk the start of a stage: one more branch, made from the last."""
        outs = []
        for place in range(branches):
            channels = self.width << place
            if place < len(maps):
                same = maps[place].channels == channels
                outs.append(maps[place] if same else tape.conv(maps[place], channels))
            else:
                outs.append(tape.conv(maps[-1], channels, stride=2))
        return outs

    def _branch(self, tape: Tape, x: Map) -> Map:
        for _ in range(self.blocks):
            y = tape.conv(tape.conv(x, x.channels), x.channels, act="none")
            x = tape.act(fresh(y))
        return x

    def _fuse(self, tape: Tape, maps: list[Map], place: int) -> Map:
        """Walk the sum of all branches at the size of one."""
        out = maps[place]
        for other, x in enumerate(maps):
            if other > place:
                tape.conv(x, out.channels, 1, act="none")
            for step in range(place - other):
                last = step == place - other - 1
                x = tape.conv(x, out.channels if last else x.channels, stride=2, act="none" if last else "relu")
        return tape.act(fresh(out))


def walk_unet(tape: Tape, height: int, width: int, *, base: int = 64, levels: int = 5) -> list[Map]:
    """Walk UNet-S5-D16: two convolutions a level down and up; return the maps of the way up, smallest first."""
    x, skips = Map(3, height, width), []
    for level in range(levels):
        if level:
            x = tape.pool(x)
        x = tape.conv(tape.conv(x, base << level), base << level)
        skips.append(x)
    outs = [x]
    for skip in reversed(skips[:-1]):
        up = Map(x.channels, skip.height, skip.width)
        up = tape.conv(up, skip.channels, 1)
        x = tape.conv(Map(2 * skip.channels, skip.height, skip.width), skip.channels)
        x = tape.conv(x, skip.channels)
        outs.append(x)
    return outs
