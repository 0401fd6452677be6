"""Initial weights by name and shape, from the seed alone: both frameworks start from the same numbers.

Names are PyTorch's (`frames.stages.0.0.conv1.weight`, `…running_mean`); checkpoints use them whatever trained.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from headway.errors import CheckError
from headway.recipes.tfnet.upstream import resnet_name
from headway.task import Shape, open_weights, read_weights
from headway.task.order import mix_one

_NUMBERS = {"F32": "<f4", "F16": "<f2", "F64": "<f8"}


def initial_weights(shapes: Mapping[str, Shape], *, seed: int) -> dict[str, NDArray[np.float32]]:
    """Return every parameter and running statistic; each is drawn by its own name, so none moves another."""
    return {
        name: _draw(name, shape, shapes, np.random.default_rng(mix_one(seed, zlib.crc32(name.encode()))))
        for name, shape in shapes.items()
    }


def start_weights(
    shapes: Mapping[str, Shape], *, seed: int, frames_file: str | None = None
) -> dict[str, NDArray[np.float32]]:
    """Return the initial weights, with ImageNet's in the frame network where a file of them is given."""
    start = initial_weights(shapes, seed=seed)
    if frames_file is not None:
        start |= read_frames(Path(frames_file).expanduser(), shapes)
    return start


def read_frames(path: Path, shapes: Mapping[str, Shape]) -> dict[str, NDArray[np.float32]]:
    """Return the frame network's weights out of a torchvision ResNet-34; its last layer is not needed."""
    held = read_weights(path)
    names = {name: resnet_name(name.removeprefix("frames.")) for name in shapes if name.startswith("frames.")}
    names = {name: theirs for name, theirs in names.items() if not theirs.startswith("attention.")}
    found: dict[str, NDArray[np.float32]] = {}
    with open_weights(held) as fill:
        for name, theirs in names.items():
            span = held.spans.get(theirs)
            if span is None or span.shape != shapes[name] or span.dtype not in _NUMBERS:
                have = "n/a" if span is None else f"{span.dtype} {list(span.shape)}"
                raise CheckError("tfnet/other-frames", file=path, name=theirs, have=have, want=list(shapes[name]))
            fill(theirs, memoryview(data := bytearray(span.end - span.start)))
            found[name] = np.frombuffer(data, _NUMBERS[span.dtype]).reshape(span.shape).astype(np.float32)
    return found


def _draw(name: str, shape: Shape, shapes: Mapping[str, Shape], dice: np.random.Generator) -> NDArray[np.float32]:
    kind = name.rpartition(".")[2]
    if kind in ("running_mean", "running_var") or f"{name.rpartition('.')[0]}.running_mean" in shapes:
        return np.full(shape, kind in ("weight", "running_var"), np.float32)
    if name.startswith("heads."):
        return _uniform(dice, shape, math.sqrt(2) * math.sqrt(6 / (shape[0] + shape[1])))
    if ".lstm." in name:
        return _uniform(dice, shape, 1 / math.sqrt(shape[0] // 4))
    if name.startswith("frames.") and ".attention." not in name:
        fan_out = shape[0] * math.prod(shape[2:])
        return (dice.standard_normal(shape, np.float32) * math.sqrt(2 / fan_out)).astype(np.float32)
    fan_in = math.prod(shapes[name.rpartition(".")[0] + ".weight"][1:])
    return _uniform(dice, shape, 1 / math.sqrt(fan_in))


def _uniform(dice: np.random.Generator, shape: Shape, limit: float) -> NDArray[np.float32]:
    return (dice.random(shape, np.float32) * 2 * limit - limit).astype(np.float32)
