"""An ordinary `torch.utils.data.Dataset` as the samples of a task."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor

    from headway.task.contract import Ids


class Samples:
    """The samples of a data set that has `__len__` and `__getitem__`, as the loop takes them.

    torch, numpy and random are seeded by (seed, epoch, index) before each sample is read, so an augmentation that draws
    from them gives the same sample whatever the number of ranks and workers, and wherever a run was resumed.
    """

    def __init__(self, dataset: Any, *, seed: int) -> None:  # Any: torch's Dataset promises no __len__
        self._dataset, self._seed = dataset, seed

    def __len__(self) -> int:
        """Return how many samples there are."""
        return len(self._dataset)

    def batch(self, ids: Ids, epochs: Ids) -> dict[str, Tensor]:
        """Return the samples `ids`, put together by torch's own rule; parts without a name are called `0`, `1`, …"""
        # Here and not above: a recipe's preset imports this package on the control side, where no framework is loaded.
        import numpy as np
        import torch
        from torch.utils.data import default_collate

        from headway.task.order import mix_one

        read = []
        # The generators of the loop (dropout) stay as they are: without workers, samples are read in the rank itself.
        before = torch.get_rng_state(), np.random.get_state(), random.getstate()
        try:
            for index, epoch in zip(ids.tolist(), epochs.tolist(), strict=True):
                seed = mix_one(self._seed, epoch, index)
                random.seed(seed)
                np.random.seed(seed & 0xFFFFFFFF)
                # Not torch.manual_seed, which seeds the GPUs too; nothing would put those back.
                torch.default_generator.manual_seed(seed)
                read.append(_named(self._dataset[index]))
        finally:
            torch.set_rng_state(before[0])
            np.random.set_state(before[1])
            random.setstate(before[2])
        return dict(default_collate(read))


def _named(sample: Any) -> dict[str, Any]:
    """Return a sample's parts by name. Any: a data set may give anything that torch can put together."""
    if isinstance(sample, dict):
        return sample
    parts = sample if isinstance(sample, tuple | list) else (sample,)
    return {str(place): part for place, part in enumerate(parts)}
