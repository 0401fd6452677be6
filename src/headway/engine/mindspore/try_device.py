"""Whether MindSpore can compute on a device. Asked by module name, with the `target` (CPU, GPU, Ascend)."""

from __future__ import annotations

import mindspore as ms
import numpy as np
from mindspore import Tensor, ops

from headway.ask import take_question
from headway.engine.mindspore.context import first_line


def main() -> None:
    """Convolve something and take its gradient; say that it works, or why not."""
    question, send = take_question()
    try:
        ms.set_device(question["target"])
        image, kernel = (Tensor(np.ones(shape, np.float32)) for shape in ((1, 3, 8, 8), (4, 3, 3, 3)))
        found = ms.grad(lambda weight: ops.conv2d(image, weight).sum())(kernel)
        assert float(found.asnumpy()[0, 0, 0, 0]) == 36.0, "a sum over 36 places"
    except (RuntimeError, ValueError, AssertionError) as error:
        send({"why": first_line(error)})
    else:
        send({"works": True})


if __name__ == "__main__":
    main()
