"""MindSpore's convolution on a CPU beside two other ways to compute it: forward and backward, seconds.

    .venv-mindspore/bin/python bench/mindspore_conv.py [--rounds 5]

`conv` is nn.Conv2d; `unfold` stacks the nine shifted inputs and does one product; `shift` adds nine products with
channels last. The last line is JSON: seconds of each, by shape.
"""

from __future__ import annotations

import argparse
import json
import time

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn, ops

SHAPES = ((256, 16, 32), (256, 32, 16), (256, 64, 8))
"""Images, channels, height and width: the stages of the recipe's CPU model."""


class Unfold(nn.Cell):
    """One product over stacked windows."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.weight = ms.Parameter(Tensor(np.random.randn(channels, channels * 9).astype(np.float32) * 0.1))

    def construct(self, x):
        images, channels, height, width = x.shape
        padded = ops.pad(x, (1, 1, 1, 1))
        windows = [padded[:, :, i : i + height, j : j + width] for i in range(3) for j in range(3)]
        columns = ops.stack(windows, 2).reshape(images, channels * 9, height * width)
        return ops.matmul(self.weight, columns).reshape(images, channels, height, width)


class Shift(nn.Cell):
    """Nine products of shifted inputs, channels last."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.weight = ms.Parameter(Tensor(np.random.randn(9, channels, channels).astype(np.float32) * 0.1))

    def construct(self, x):
        height, width = x.shape[2:]
        padded = ops.pad(x, (1, 1, 1, 1)).transpose(0, 2, 3, 1)
        out = ops.matmul(padded[:, 0:height, 0:width, :], self.weight[0])
        for k in range(1, 9):
            i, j = k // 3, k % 3
            out = out + ops.matmul(padded[:, i : i + height, j : j + width, :], self.weight[k])
        return out.transpose(0, 3, 1, 2)


def measure(net: nn.Cell, x: Tensor, rounds: int) -> float:
    """Return the best of some rounds, after one that compiles."""
    step = ms.value_and_grad(lambda value: ops.square(net(value)).sum(), 0, net.trainable_params())
    times = []
    for _ in range(rounds + 1):
        began = time.perf_counter()
        total, (grad, _) = step(x)
        total.asnumpy(), grad.asnumpy()
        times.append(time.perf_counter() - began)
    return min(times[1:])


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    asked = parser.parse_args()
    ms.set_context(mode=ms.PYNATIVE_MODE)  # the kernels of GRAPH mode are the same
    ms.set_device("CPU")
    found = {}
    print(f"{'images x channels x size':<26}{'conv':>9}{'unfold':>9}{'shift':>9}")
    for images, channels, size in SHAPES:
        x = Tensor(np.random.randn(images, channels, size, size).astype(np.float32))
        ways = {
            "conv": nn.Conv2d(channels, channels, 3, pad_mode="pad", padding=1),
            "unfold": Unfold(channels),
            "shift": Shift(channels),
        }
        row = found[f"{images}x{channels}x{size}"] = {
            name: round(measure(net, x, asked.rounds), 4) for name, net in ways.items()
        }
        print(f"{images:>6} x {channels:>4} x {size:>4}        " + "".join(f"{one:>9.3f}" for one in row.values()))
    print(json.dumps({"schema": "mindspore-conv/1", "seconds": found}))


if __name__ == "__main__":
    main()
