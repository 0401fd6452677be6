"""Posters by index, from memory-mapped bytes. A sample is a pure function of (index, epoch)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.numpy import load_file
from torch import Tensor

from headway.recipes.layoutmaster.data import Index
from headway.recipes.layoutmaster.section import LEVELS, STATE_DIM, LayoutMasterSection
from headway.task import Ids
from headway.task.order import mix


@dataclass(frozen=True, slots=True)
class Range:
    """Which posters of the prepared set are meant."""

    first: int
    end: int


class PosterData:
    """Training or held-out posters: images as bytes, layouts in pixels.

    The original sorts slots by layer, so the slot number is the answer to "which layer"; with `is_shuffled` every
    sample deals the slots out again. Padded slots come last and have no images.
    """

    def __init__(self, folder: Path, index: Index, posters: Range, *, is_shuffled: bool) -> None:
        arrays = load_file(folder / "layouts.safetensors")
        rows = slice(posters.first, posters.end)
        self._target, self._start = arrays["target"][rows], arrays["start"][rows]
        self._counts, self._first = arrays["counts"][rows], arrays["first_image"][rows]
        self._backdrop = arrays["backdrop"][rows].astype(bool)
        shape = (index.num_images, 3, index.image_size, index.image_size)
        self._images = np.memmap(folder / "images.bin", dtype=np.uint8, mode="r", shape=shape)
        self._is_shuffled = is_shuffled

    def __len__(self) -> int:
        return len(self._target)

    def slots(self, ids: Ids, epochs: Ids) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return which element of its poster each slot holds, (B, N), and each poster's noise level."""
        seeds = mix(mix(np.asarray(epochs, np.uint64)) ^ np.asarray(ids, np.uint64))
        places = np.arange(self._target.shape[1], dtype=np.uint64)
        keys = mix(seeds[:, None] ^ mix(places)) if self._is_shuffled else np.tile(places, (len(seeds), 1))
        # Padded slots sort behind all others, so what is left of the order is one over the poster's elements.
        keys = np.where(places < self._counts[ids][:, None], keys >> np.uint64(1), np.uint64((1 << 64) - 1))
        levels = mix(seeds + np.uint64(1)) % np.uint64(len(LEVELS))
        return keys.argsort(axis=1, kind="stable"), levels.astype(np.int64)

    def batch(self, ids: Ids, epochs: Ids) -> dict[str, Tensor]:
        """Return the posters `ids`: images (M, 3, S, S) of all their elements, layouts (B, N, 6), masks (B, N)."""
        slots, levels = self.slots(ids, epochs)
        mask = np.arange(slots.shape[1]) < self._counts[ids][:, None]
        arrays = {
            "images": self._images[(self._first[ids][:, None] + slots)[mask]],
            "target": self._target[ids[:, None], slots],
            "start": self._start[ids[:, None], levels[:, None], slots],
            "mask": mask,
            "backdrop": self._backdrop[ids[:, None], slots],
        }
        return {name: torch.from_numpy(np.ascontiguousarray(array)) for name, array in arrays.items()}


def example_batch(section: LayoutMasterSection, samples: int) -> dict[str, Tensor]:
    """Return a batch of full posters, which is the most memory one can take; its values do not matter."""
    slots, side = section.max_elements, section.image_size
    layout, mask = torch.zeros(samples, slots, STATE_DIM), torch.ones(samples, slots, dtype=torch.bool)
    images = torch.zeros(samples * slots, 3, side, side, dtype=torch.uint8)
    return {"images": images, "target": layout, "start": layout, "mask": mask, "backdrop": ~mask}
