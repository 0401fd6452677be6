"""The convolution family: ResNets, and the pyramids and heads that detectors and segmenters put on them.

Counts tensors as eager PyTorch keeps them: a convolution's output (for its norm) and what the in-place activation
leaves (for the next convolution). Frozen layers keep nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from headway.plan.memory import MemoryForecast, peak_of
from headway.plan.work import Work

_DEPTHS = {18: (2, 2, 2, 2), 34: (3, 4, 6, 3), 50: (3, 4, 6, 3), 101: (3, 4, 23, 3), 152: (3, 8, 36, 3)}
_TRANSIENTS = 5
"""Backward of one convolution holds the gradients of its output, input and norm, and cuDNN's workspace, beside what was
kept: about this many of its tensors (calibrated)."""
_ROIS, _POSITIVE = 512, 128
"""Regions a two-stage detector samples of an image, and how many of them get a mask."""


@dataclass(slots=True)
class Tape:
    """Adds up what a network keeps: elements of activations of one image, and weights."""

    kept: float = 0.0
    params: float = 0.0
    trained: float = 0.0
    largest: float = 0.0
    flops: float = 0.0
    """Of the forward pass of one image."""

    def conv(
        self,
        channels: tuple[int, int],
        pixels: float,
        *,
        kernel: int = 3,
        groups: int = 1,
        copies: float = 2,
        grad: bool = True,
        shared: bool = False,
    ) -> None:
        """Count a convolution; `copies` of its output stay: 2 with norm and activation, 1 without a norm.

        Args:
            shared: the weights were counted before (one head over several levels).
        """
        into, out = channels
        weights = kernel * kernel * into * out / groups
        self.flops += 2 * weights * pixels
        if not shared:
            self.params += weights
            self.trained += weights if grad else 0
        if grad:
            self.kept += out * pixels * copies
            self.largest = max(self.largest, out * pixels)

    def linear(self, into: float, out: float, rows: float) -> None:
        """Count a fully connected layer over some rows."""
        self.params += into * out
        self.trained += into * out
        self.kept += out * rows
        self.flops += 2 * into * out * rows

    def hold(self, elements: float) -> None:
        """Count a further tensor that stays."""
        self.kept += elements


@dataclass(frozen=True, slots=True, kw_only=True)
class ResNet:
    """A ResNet or ResNeXt backbone."""

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
    deep_stem: bool = False
    """Three 3x3 convolutions in place of one 7x7."""

    def walk(self, tape: Tape, height: int, width: int) -> list[tuple[int, float]]:
        """Count the backbone on one image; return channels and pixels of each stage."""
        trains = self.frozen == 0
        pixels = height * width / 4
        if self.deep_stem:
            for into, out in ((3, 32), (32, 32), (32, 64)):
                tape.conv((into, out), pixels, grad=trains)
        else:
            tape.conv((3, 64), pixels, kernel=7, grad=trains)
        pixels /= 4
        tape.hold(64 * pixels * 3 if trains else 0)  # pooled, and its int64 indices
        channels, outs = 64, []
        for stage, blocks in enumerate(_DEPTHS[self.depth][: self.stages]):
            planes, trains = 64 << stage, self.frozen < stage + 1
            for number in range(blocks):
                stride = self.strides[stage] if number == 0 else 1
                first = number == 0
                channels, pixels = self._block(tape, channels, planes, pixels, stride=stride, grad=trains, first=first)
            outs.append((channels, pixels))
        return outs

    def _block(
        self, tape: Tape, channels: int, planes: int, pixels: float, *, stride: int, grad: bool, first: bool
    ) -> tuple[int, float]:
        after = pixels / stride**2
        if self.depth < 50:
            tape.conv((channels, planes), after, grad=grad)
            tape.conv((planes, planes), after, grad=grad)
            if first and (stride > 1 or channels != planes):
                tape.conv((channels, planes), after, kernel=1, copies=1, grad=grad)
            return planes, after
        inner = planes * self.group_width * self.groups // 64 if self.groups > 1 else planes
        tape.conv((channels, inner), after if self.stride_first else pixels, kernel=1, grad=grad)
        tape.conv((inner, inner), after, groups=self.groups, grad=grad)
        tape.conv((inner, planes * 4), after, kernel=1, grad=grad)
        if first:
            tape.conv((channels, planes * 4), after, kernel=1, copies=1, grad=grad)
        return planes * 4, after


def add_pyramid(
    tape: Tape, outs: list[tuple[int, float]], *, first: int = 0, levels: int = 5, paths: int = 1
) -> list[float]:
    """Count a feature pyramid of 256 channels over stages from `first` on; return the pixels of its levels."""
    used = outs[first:]
    for channels, area in used:
        tape.conv((channels, 256), area, kernel=1, copies=1)
        tape.conv((256, 256), area, copies=1)
        for _ in range(paths - 1):
            tape.conv((256, 256), area, copies=2)
    pixels = [size for _, size in used]
    while len(pixels) < levels:
        pixels.append(pixels[-1] / 4)
        if first:  # dense detectors make the extra levels by convolutions
            tape.conv((256, 256), pixels[-1], copies=1)
    return pixels


def add_proposals(tape: Tape, pixels: list[float]) -> None:
    """Count a region proposal head over all levels."""
    for level, size in enumerate(pixels):
        tape.conv((256, 256), size, copies=1, shared=level > 0)
        tape.conv((256, 15), size, kernel=1, copies=3, shared=level > 0)


def add_regions(tape: Tape, *, stages: int = 1, masks: bool = False, classes: int = 80) -> None:
    """Count box heads, one a cascade stage, and mask heads, for the sampled regions of one image."""
    for _ in range(stages):
        tape.hold(_ROIS * 256 * 49)
        tape.linear(256 * 49, 1024, _ROIS)
        tape.linear(1024, 1024, _ROIS)
        tape.linear(1024, classes * 5 + 1, _ROIS)
        if masks:
            pixels = _POSITIVE * 14 * 14
            tape.hold(256 * pixels)
            for _ in range(4):
                tape.conv((256, 256), pixels, copies=1)
            tape.conv((256, 256), pixels * 4, kernel=2, copies=1)
            tape.conv((256, classes), pixels * 4, kernel=1, copies=2)


def add_dense(tape: Tape, pixels: list[float], *, anchors: int = 1, normed: bool = False, classes: int = 80) -> None:
    """Count a one-stage head: two towers of four convolutions over every level."""
    for level, size in enumerate(pixels):
        for _ in range(8):
            tape.conv((256, 256), size, copies=2 if normed else 1, shared=level > 0)
        # logits, their sigmoid, targets and the focal weight
        tape.conv((256, anchors * classes), size, copies=4, shared=level > 0)
        tape.conv((256, anchors * 5), size, copies=3, shared=level > 0)


def add_ssd(tape: Tape, outs: list[tuple[int, float]], *, classes: int = 81) -> None:
    """Count SSD's further levels, each halved, and its heads on every level."""
    channels, pixels = outs[-1]
    levels = [(channels, pixels)]
    side = pixels**0.5
    for middle, out in ((256, 512), (256, 512), (128, 256), (128, 256), (128, 256)):
        tape.conv((levels[-1][0], middle), levels[-1][1], kernel=1)
        side = max(1.0, side / 2)
        tape.conv((middle, out), side * side)
        levels.append((out, side * side))
    for (into, area), anchors in zip(levels, (4, 6, 6, 6, 4, 4), strict=True):
        tape.conv((into, anchors * (4 + classes)), area)


def add_segment_head(
    tape: Tape,
    outs: list[tuple[int, float]],
    *,
    kind: Literal["fcn", "psp", "aspp", "aspp+", "attention", "cross"],
    classes: int,
    image: float,
    width: int = 512,
) -> None:
    """Count a head on the last stage, the auxiliary one on the third, and full-size logits of both."""
    channels, pixels = outs[-1]
    if kind == "psp":
        tape.hold((channels + 4 * width) * pixels)
        tape.conv((channels + 4 * width, width), pixels)
    elif kind in ("aspp", "aspp+"):
        for _ in range(4):
            tape.conv((channels, width), pixels)
        tape.hold(5 * width * pixels)
        tape.conv((5 * width, width), pixels)
        if kind == "aspp+":
            low, wide = outs[0]
            tape.conv((low, 48), wide, kernel=1)
            tape.hold((width + 48) * wide)
            for into in (width + 48, width):
                tape.conv((into, into), wide, groups=into)
                tape.conv((into, width), wide, kernel=1)
    else:
        tape.conv((channels, width), pixels)
        tape.conv((width, width), pixels)
        tape.hold((channels + width) * pixels)
        tape.conv((channels + width, width), pixels)
        if kind == "attention":  # a matrix of pixels squared, before and after its softmax
            tape.hold(2 * pixels * pixels)
            tape.hold(3 * width / 2 * pixels)
        elif kind == "cross":  # rows and columns only, twice
            tape.hold(2 * (2 * pixels * 2 * pixels**0.5 + 2 * width * pixels))
    tape.conv((outs[-2][0], width // 2), outs[-2][1])
    # upsampled logits, log-softmax and its gradient, for head and auxiliary head
    tape.hold(classes * image * (3 + 2))


def weigh_convnet(tape: Tape, work: Work, *, ranks: int = 1) -> MemoryForecast:
    """Return the peak of one rank that trains the network on its tape."""
    images = work.micro_batch * work.compute_bytes
    kept = {"activations": tape.kept * images, "one layer's backward": tape.largest * _TRANSIENTS * images}
    return peak_of(work, weights=tape.params * work.weight_bytes, trained=tape.trained, kept=kept, ranks=ranks)
