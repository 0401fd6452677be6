"""The noise: its schedules, the way there, and DDIM back. Also layouts in pixels and as the network sees them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from headway.recipes.layoutmaster.section import LayoutMasterSection

_COSINE_OFFSET = 0.008
_LARGEST_BETA = 0.999

Denoise = Callable[[Tensor, Tensor], Tensor]
"""From a noisy layout (B, N, D) and timesteps (B) to the clean layout it comes from."""


def keep_shares(section: LayoutMasterSection) -> Tensor:
    """Return how much of the signal's power is left after each timestep (alpha bar), (T) in fp64."""
    steps = section.num_timesteps
    if section.schedule_type == "linear":
        betas = torch.linspace(section.beta_start, section.beta_end, steps, dtype=torch.float64)
    else:
        times = torch.linspace(0, 1, steps + 1, dtype=torch.float64)
        curve = torch.cos((times + _COSINE_OFFSET) / (1 + _COSINE_OFFSET) * math.pi / 2) ** 2
        betas = (1 - curve[1:] / curve[:-1]).clamp(max=_LARGEST_BETA)
    return torch.cumprod(1 - betas, 0)


@dataclass(frozen=True, slots=True)
class Diffusion:
    """The forward process of one run, on one device."""

    kept: Tensor
    """Alpha bar by timestep, fp32."""

    def noised(self, clean: Tensor, noise: Tensor, timesteps_B: Tensor) -> Tensor:
        """Return the layout after so many steps of noise."""
        kept = self.kept[timesteps_B].view(-1, 1, 1)
        return kept.sqrt() * clean + (1 - kept).sqrt() * noise

    def clean_from_noise(self, noisy: Tensor, noise: Tensor, timesteps_B: Tensor) -> Tensor:
        """Return the clean layout that this noise would have made noisy."""
        kept = self.kept[timesteps_B].view(-1, 1, 1)
        return (noisy - (1 - kept).sqrt() * noise) / kept.sqrt()

    def sample(self, denoise: Denoise, noisy: Tensor, steps: int, *, first: int | None = None) -> Tensor:
        """Return the layout DDIM (eta 0) arrives at from a noisy one, in so many steps from timestep `first` down.

        The original re-noises at every step but the last and throws the prediction away; that is one step, not fifty.
        """
        last = len(self.kept) - 1 if first is None else first
        times = torch.linspace(last, 0, min(steps, last + 1)).round().long().tolist()
        for now, then in zip(times, [*times[1:], None], strict=True):
            clean = denoise(noisy, torch.full((len(noisy),), now, device=noisy.device)).clamp(-1, 1)
            if then is None:
                return clean
            kept, kept_then = self.kept[now], self.kept[then]
            noise = (noisy - kept.sqrt() * clean) / (1 - kept).sqrt()
            noisy = kept_then.sqrt() * clean + (1 - kept_then).sqrt() * noise
        raise AssertionError("there is at least one step")


def make_diffusion(section: LayoutMasterSection, device: torch.device) -> Diffusion:
    """Return the process of a section."""
    return Diffusion(keep_shares(section).float().to(device))


def _scale(section: LayoutMasterSection, like: Tensor) -> Tensor:
    width, height = section.canvas_size
    return numbers_like((width, height, width, height, section.layers, 1.0), like)


def numbers_like(values: Sequence[float], like: Tensor) -> Tensor:
    """Return a few numbers of the kind and on the device of a tensor, each filled in there: the host waits for none."""
    return torch.stack([like.new_full((), value) for value in values])


def normalized(layout_BND: Tensor, section: LayoutMasterSection) -> Tensor:
    """Return a layout in pixels as the network sees it, every number in -1 to 1."""
    return layout_BND / _scale(section, layout_BND) * 2 - 1


def as_published(layout_BND: Tensor, section: LayoutMasterSection) -> Tensor:
    """Return a layout in pixels as the original's losses see it: whole layers, which have no gradient, and a
    confidence from 0 to 1."""
    pixels = in_pixels(layout_BND, section)
    return torch.cat((pixels[..., :4], pixels[..., 4:5].round(), pixels[..., 5:].clamp(0, 1)), dim=-1)


def in_pixels(layout_BND: Tensor, section: LayoutMasterSection) -> Tensor:
    """Return a layout in pixels; layers are not rounded, so that gradients and orders survive."""
    return (layout_BND + 1) / 2 * _scale(section, layout_BND)
