"""Data sink: batches go to a queue on the device, and the step takes them from there. GPU and Ascend only."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any  # MindSpore's functions are untyped

import mindspore as ms
import mindspore.dataset as ds
from numpy.typing import NDArray

from headway.engine.mindspore.inputs import inputs_of
from headway.engine.mindspore.rank_state import MindRun


class _Source:
    """The run's batches in their order, from where it is; MindSpore reads the first one twice, to learn shapes."""

    def __init__(self, run: MindRun) -> None:
        self._run, self._position, self._skips = run, run.progress.position, list(run.progress.skips)
        steps = run.plan.total_steps - run.progress.step
        self._num = max(1, steps * run.plan.accumulation)

    def __len__(self) -> int:
        return self._num

    def __iter__(self) -> Iterator[tuple[NDArray[Any], ...]]:
        keys = self._run.keys(self._position, self._skips)
        for _ in range(self._num):
            yield tuple(inputs_of(self._run.task, self._run.data.arrays(*next(keys))))


def open_sink(gradient: Callable[..., Any], run: MindRun) -> Callable[[], Any]:
    """Return the gradient as a call without arguments: each takes the next batch from the device."""
    ds.config.set_prefetch_size(max(1, run.task.settings.prefetch))
    batches = ds.GeneratorDataset(
        _Source(run),
        list(run.task.inputs),
        shuffle=False,
        num_parallel_workers=1,
        python_multiprocessing=False,
    )
    sunk: Callable[[], Any] = ms.data_sink(gradient, batches, sink_size=1)
    return sunk
