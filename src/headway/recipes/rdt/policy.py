"""The model in use: chunks drawn for held-out steps or for rollouts, within a memory budget of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from headway.errors import CheckError
from headway.recipes.rdt import slots
from headway.recipes.rdt.diffusion import alphas_cumprod, solve
from headway.recipes.rdt.model import RdtRunner
from headway.recipes.rdt.reader import CAMERAS
from headway.recipes.rdt.rollout import Observation
from headway.recipes.rdt.samples import make_batch
from headway.recipes.rdt.section import RdtSection
from headway.units import size

_GIB = 1 << 30


@dataclass(frozen=True)
class Policy:
    """Draws chunks with a trained model."""

    section: RdtSection
    model: RdtRunner
    give: Callable[[Mapping[str, Tensor]], dict[str, Tensor | tuple[Tensor, Tensor]]]
    """From a batch to the model's conditions."""
    sentences: Mapping[int, int]
    """Task of the scripted world to its sentence's place in the run's table; empty for other data."""

    def draw(self, batch: Mapping[str, Tensor], seeds: Sequence[int]) -> Tensor:
        """Return chunks (B, T, 128), one a seed. A chunk depends on its own seed only, not on its neighbours."""
        section = self.section
        device = next(self.model.parameters()).device
        most = fitting_batch(section)
        parts = []
        with torch.no_grad(), own_memory(device, section.sample.memory_gib):
            start = 0
            while start < len(seeds):
                try:
                    part = {name: value[start : start + most].to(device) for name, value in batch.items()}
                    parts.append(self._solve(part, seeds[start : start + most], device))
                except torch.cuda.OutOfMemoryError:
                    if most == 1:
                        raise
                    most = max(1, most // 2)
                    continue
                start += most
        return torch.cat(parts)

    def _solve(self, batch: Mapping[str, Tensor], seeds: Sequence[int], device: torch.device) -> Tensor:
        section, model = self.section, self.model
        kept = alphas_cumprod(section.num_train_timesteps)
        shape = (section.action_chunk_size, slots.WIDTH)
        noise = torch.stack([torch.randn(shape, generator=_dice(seed), device="cpu") for seed in seeds]).to(device)
        live = live_slots(section, device)
        on = model.adapt(**self.give(batch))

        def denoise(x: Tensor, level: int) -> Tensor:
            return model.denoise(x * live, torch.full((len(x),), level, device=device), on)

        return solve(denoise, noise, kept=kept, steps=section.sample.steps) * action_slots(device)

    def act(
        self, moments: Sequence[Sequence[Observation]], tasks: Sequence[int], seeds: Sequence[int]
    ) -> npt.NDArray[np.float64]:
        """Return LIBERO actions (B, T, 7) for episodes, of each of which the last observations are given."""
        section = self.section
        states = np.stack([slots.pack_state(seen[-1], section.rotation) for seen in moments])
        pictures = [_pictures(section, seen) for seen in moments]
        batch = make_batch(
            section, states=states, lang=np.array([self.sentences[task] for task in tasks]), pictures=pictures
        )
        chunks = self.draw(batch, seeds)[..., torch.from_numpy(slots.ACTION_SLOTS)].float().cpu().numpy()
        return slots.unpack_action(chunks, position_scale=section.position_scale, rotation_scale=section.rotation_scale)


def live_slots(section: RdtSection, device: torch.device) -> Tensor:
    """Return the slots that carry noise: those an action fills; in the original all 128."""
    return torch.ones(slots.WIDTH, device=device) if section.loss == "original" else action_slots(device)


def action_slots(device: torch.device) -> Tensor:
    """Return 1 for the slots an action fills."""
    return torch.from_numpy(slots.mask_of(slots.ACTION_SLOTS)).to(device)


def sample_bytes(section: RdtSection) -> int:
    """Return about what one chunk takes while it is drawn: picture tokens, adapted and not, keys and values."""
    H = section.hidden_size
    pictures = section.img_cond_len * (2 * section.img_token_dim + 5 * H)
    rest = section.tokenizer_max_length * (section.lang_token_dim + 5 * H) + (section.action_chunk_size + 3) * 12 * H
    return 4 * (pictures + rest)


def fitting_batch(section: RdtSection) -> int:
    """Return how many chunks are drawn at once: what was asked for, or what the budget holds."""
    budget, one = int(section.sample.memory_gib * _GIB), sample_bytes(section)
    if one > budget:
        raise CheckError("rdt/sample-budget", need=size(one), have=size(budget))
    return min(section.sample.batch, budget // one)


@contextmanager
def own_memory(device: torch.device, gib: float) -> Iterator[None]:
    """Let the block take no more than a budget beside what is held already; what it took is given back.

    Past the budget the allocator refuses, inside the trial, where that costs one trial. Without it a sampling batch
    that just fits leaves the next training step nothing.
    """
    if device.type != "cuda":
        yield
        return
    total = torch.cuda.get_device_properties(device).total_memory
    torch.cuda.empty_cache()
    limit = torch.cuda.memory_reserved(device) + gib * _GIB
    torch.cuda.set_per_process_memory_fraction(min(1.0, limit / total), device)
    try:
        yield
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0, device)
        torch.cuda.empty_cache()


def _dice(seed: int) -> torch.Generator:
    return torch.Generator("cpu").manual_seed(seed)


def _pictures(section: RdtSection, seen: Sequence[Observation]) -> list[npt.NDArray[np.uint8] | None]:
    shown: list[npt.NDArray[np.uint8] | None] = []
    for back in reversed(range(section.img_history_size)):
        for number in range(section.num_cameras):
            is_there = number < len(CAMERAS) and back < len(seen)
            shown.append(np.asarray(seen[-1 - back][CAMERAS[number]]) if is_there else None)
    return shown
