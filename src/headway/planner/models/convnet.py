"""What a vision network keeps for its backward pass, counted layer by layer without torch.

A network is written as its forward function: each call of a `Tape` method is one layer, takes and returns the `Map` it
works on, and adds what autograd saves for it, each tensor once. The peak is the largest of the moments of the backward
pass: what is still kept when it reaches a layer, and the gradients and workspace of that layer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from headway.planner.memory import MemoryForecast, peak_of
from headway.planner.step import Work

Act = Literal["relu", "swish", "silu", "gelu", "none"]
Norm = Literal["batch", "group", "layer", "none", "frozen"]

_WORKSPACE = 2.0
"""Scratch of a dense convolution's backward in tensors of its input and output: tiles of cuDNN's Winograd transforms,
36 numbers for 16 places (calibrated; 2.25 by the count)."""
_TILES = 4.0
"""The same for its weights: 36 numbers for nine, once a batch."""
_NARROW, _SMALL = 128, 256
"""Channels and places below which that scratch is not taken (calibrated on UNet): direct algorithms win there."""


CUDNN_CONTEXT_BYTES = 1.1e9
"""What a process takes before its first tensor once cuDNN's kernels are loaded (published series over batches)."""


class NoFormulaError(LookupError):
    """No formula is known for a network, or for a part of it."""


@dataclass(slots=True, eq=False)
class Map:
    """A tensor of one image on its way through the network."""

    channels: int
    height: int
    width: int
    saved: bool = False
    """Some layer keeps it already: the next one that needs it keeps nothing more."""

    @property
    def pixels(self) -> int:
        """Places of the map (tokens, of a transformer)."""
        return self.height * self.width

    @property
    def size(self) -> int:
        """Elements."""
        return self.channels * self.height * self.width


@dataclass(slots=True)
class Tape:
    """Adds up what a network keeps: elements of activations of one image, and weights."""

    kept: float = 0.0
    params: float = 0.0
    trained: float = 0.0
    flops: float = 0.0
    """Of the forward pass of one image."""
    frozen: bool = False
    """The layers being walked do not train: they keep nothing."""
    standardised: bool = False
    """Weights are standardised in every forward: three further copies of them stay."""
    softmax: float = 2.0
    """Tensors a softmax keeps: its output, and before PyTorch 1.11 its input."""
    wide: float = 1.0
    """Size of an element that autocast leaves in fp32 (norms over channels, losses) against the others."""
    once: float = 0.0
    """Kept elements that come once a batch."""
    moments: list[tuple[float, float, float]] = field(default_factory=list)
    """Kept elements of an image, passing ones of an image, passing ones of a whole batch; one a layer."""

    def weigh(self, params: float) -> None:
        """Count weights."""
        self.params += params
        self.trained += 0 if self.frozen else params

    def save(self, one: Map) -> None:
        """Keep a tensor for the backward pass, once."""
        if not one.saved and not self.frozen:
            one.saved = True
            self.kept += one.size

    def hold(self, elements: float) -> None:
        """Keep a further tensor of no map."""
        self.kept += 0 if self.frozen else elements

    def passing(self, elements: float, *, once: float = 0.0) -> None:
        """Note a moment with this many elements beside the kept ones.

        Args:
            once: elements that come once a batch, not once an image.
        """
        if not self.frozen:
            self.moments.append((self.kept, elements, self.once + once))

    def conv(
        self,
        x: Map,
        out: int,
        kernel: int = 3,
        *,
        stride: int = 1,
        groups: int = 1,
        norm: Norm = "batch",
        act: Act = "relu",
        shared: bool = False,
    ) -> Map:
        """Walk a convolution with its norm and activation.

        Args:
            shared: the weights were counted before (one head over several levels).
        """
        weights = kernel * kernel * x.channels * out / groups
        if not shared:
            self.weigh(weights + (out if norm == "none" else 0))
            self.once += 3 * weights if self.standardised and not self.frozen else 0
        self.save(x)
        y = Map(out, -(-x.height // stride), -(-x.width // stride))
        self.flops += 2 * weights * y.pixels
        z = self.act(self.norm(y, norm, shared=shared), act)
        dense = groups == 1 and kernel > 1 and min(x.channels, out) >= _NARROW and y.pixels >= _SMALL
        scratch = _WORKSPACE if dense else 0.0
        self.passing((2 + scratch) * y.size + (1 + scratch) * x.size, once=_TILES * weights if dense else 0.0)
        return z

    def deform(
        self, x: Map, out: int, *, stride: int = 1, groups: int = 1, norm: Norm = "batch", shared: bool = False
    ) -> Map:
        """Walk a deformable 3x3 whose offsets are known: beside a plain one, columns of nine shifted copies pass."""
        columns = 9 * x.size / stride**2
        self.passing(2 * columns)
        return self.conv(x, out, stride=stride, groups=groups, norm=norm, shared=shared)

    def norm(self, x: Map, kind: Norm = "batch", *, shared: bool = False) -> Map:
        """Walk a normalisation: it keeps its input, and group norm (then made of batch norm and a product) twice.

        A frozen one is a product with a constant and a sum, which keep nothing.
        """
        if kind == "none":
            return x
        if kind == "frozen":
            return Map(x.channels, x.height, x.width)
        if not shared:
            self.weigh(2 * x.channels)
        self.save(x)
        if kind == "group":
            self.hold(x.size)
        if kind == "layer":
            self.hold((self.wide - 1) * x.size)
        return Map(x.channels, x.height, x.width)

    def act(self, x: Map, kind: Act = "relu") -> Map:
        """Walk an activation: in place for ReLU, which keeps its output; the others keep their input."""
        if kind == "none":
            return x
        self.save(x)
        if kind == "relu":
            return x
        if kind == "swish":  # its sigmoid is a tensor of its own
            self.hold(x.size)
        return Map(x.channels, x.height, x.width)

    def linear(self, x: Map, out: int, *, act: Act = "none", shared: bool = False) -> Map:
        """Walk a fully connected layer over the places of a map."""
        if not shared:
            self.weigh(x.channels * out + out)
        self.save(x)
        self.flops += 2.0 * x.channels * out * x.pixels
        y = Map(out, x.height, x.width)
        self.passing(y.size + x.size)
        return self.act(y, act)

    def pool(self, x: Map, *, stride: int = 2) -> Map:
        """Walk a max-pool: it keeps its input and the int64 places of the largest."""
        self.save(x)
        y = Map(x.channels, -(-x.height // stride), -(-x.width // stride))
        self.hold(2 * y.size)
        return y

    def attend(self, q: Map, k: Map, v: Map, *, heads: int = 1) -> Map:
        """Walk attention without a fused kernel: queries, keys, values and the matrix of all pairs stay."""
        for one in (q, k, v):
            self.save(one)
        pairs = heads * q.pixels * k.pixels
        self.score(pairs)
        self.flops += 2.0 * q.pixels * k.pixels * (q.channels + v.channels)
        self.passing(2.0 * v.size)
        return Map(v.channels, q.height, q.width)

    def score(self, pairs: float) -> None:
        """Keep a softmax over so many pairs, in fp32 under autocast; old releases pass a product in its backward."""
        self.hold(pairs * (self.softmax * self.wide + (1 if self.wide > 1 else 0)))
        self.passing((1.0 + self.softmax) * pairs * self.wide)


def resize(x: Map, like: Map) -> Map:
    """Return the map at the size of another: a new tensor."""
    return x if (x.height, x.width) == (like.height, like.width) else Map(x.channels, like.height, like.width)


def concat(maps: Sequence[Map]) -> Map:
    """Return the maps beside each other: a new tensor."""
    return Map(sum(one.channels for one in maps), maps[0].height, maps[0].width)


def fresh(x: Map) -> Map:
    """Return a new tensor of the same size: a sum, a product."""
    return Map(x.channels, x.height, x.width)


def weigh_convnet(tape: Tape, work: Work, *, ranks: int = 1) -> MemoryForecast:
    """Return the peak of one rank that trains the network on its tape."""
    batch, size = work.micro_batch, work.compute_bytes
    moments = [*tape.moments, (tape.kept, 0.0, tape.once)]
    kept, passing, once = max(moments, key=lambda one: (one[0] + one[1]) * batch + one[2])
    parts = {"activations": kept * batch * size, "temporaries": (passing * batch + once) * size}
    found = peak_of(work, weights=tape.params * work.weight_bytes, trained=tape.trained, kept=parts, ranks=ranks)
    return replace(found, context_bytes=CUDNN_CONTEXT_BYTES)
