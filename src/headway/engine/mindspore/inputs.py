"""A batch of a MindSpore task as its loss takes it."""

from __future__ import annotations

from typing import Any

import numpy as np
from mindspore import Tensor
from numpy.typing import NDArray

from headway.task.mindspore import Arrays, MindTask


def tensors_of(task: MindTask, batch: Arrays) -> list[Tensor]:
    """Return a batch as the loss takes it."""
    return [Tensor(value) for value in inputs_of(task, batch)]


def inputs_of(task: MindTask, batch: Arrays) -> list[NDArray[Any]]:
    """Return the arrays the loss takes, in its order; MindSpore's operators want 32-bit integers."""
    values = [batch[name] for name in task.inputs]
    return [value.astype(np.int32) if value.dtype == np.int64 else value for value in values]
