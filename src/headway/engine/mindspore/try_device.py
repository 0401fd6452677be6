"""Whether MindSpore can compute on a device: `python -m headway.engine.mindspore.try_device CPU|GPU|Ascend`."""

from __future__ import annotations

import sys

import mindspore as ms
import numpy as np
from mindspore import Tensor, ops

from headway.engine.mindspore.context import first_line


def main(target: str) -> int:
    """Convolve something and take its gradient; say the device, or why not."""
    try:
        ms.set_device(target)
        image, kernel = (Tensor(np.ones(shape, np.float32)) for shape in ((1, 3, 8, 8), (4, 3, 3, 3)))
        found = ms.grad(lambda weight: ops.conv2d(image, weight).sum())(kernel)
        assert float(found.asnumpy()[0, 0, 0, 0]) == 36.0, "a sum over 36 places"
    except (RuntimeError, ValueError, AssertionError) as error:
        sys.stderr.write(f"\n{first_line(error)}\n")
        return 1
    sys.stdout.write(f"{target}\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1]))
