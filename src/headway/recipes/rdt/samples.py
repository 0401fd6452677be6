"""Samples by index: the state and pictures of one step of one demonstration, and the chunk of actions from there on.

Everything random here, what is hidden, noise, colours, is drawn from (seed, epoch, index): the same sample in the
same epoch is the same on any rank, in any worker, after any resume.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from headway.recipes.rdt import slots
from headway.recipes.rdt.build import pack
from headway.recipes.rdt.data import Demo, Index, data_dir, starts_of
from headway.recipes.rdt.reader import CAMERAS, DemoFiles
from headway.recipes.rdt.section import RdtSection
from headway.task.order import mix

GREY = 127
"""Used where there is no picture: the mean of what the encoders expect."""
_JITTER = {"brightness": 0.3, "contrast": 0.4, "saturation": 0.5, "hue": 0.03}
_LUMA = np.array([0.299, 0.587, 0.114], np.float32)

Ids = npt.NDArray[np.int64]
Picture = npt.NDArray[np.uint8]


class ChunkData:
    """Samples of some demonstrations. Numbers are in memory, pictures stay on disk."""

    def __init__(
        self, section: RdtSection, index: Index, *, held_out: bool, statistics: Mapping[str, Any], seed: int | None
    ) -> None:
        """Open the demonstrations; `seed` none: nothing is hidden or changed, as for evaluation."""
        self._section, self._seed = section, seed
        self._demos = [demo for demo in index.demos if demo.is_held_out == held_out]
        self._files = DemoFiles(data_dir(section))
        names = list(index.instructions)
        self._lang = np.array([1 + names.index(demo.file) for demo in self._demos])
        low = [self._files.low(demo.file, demo.name) for demo in self._demos]
        for demo in self._demos:
            # Found once, here: worker processes that are forked from this one have them too.
            for camera in CAMERAS[: section.num_cameras]:
                self._files.pictures(demo.file, demo.name, camera)
        states = [slots.pack_state(one, section.rotation) for one in low]
        self._states = np.concatenate(states)
        self._actions = np.concatenate([pack(section, one["actions"]) for one in low])
        self._std = np.stack([one.std(0) for one in states])
        lengths = [demo.length for demo in self._demos]
        self._first = np.cumsum([0, *lengths[:-1]])
        self._last = np.cumsum(lengths) - 1
        starts = [starts_of(demo, section) for demo in self._demos]
        self._demo_of = np.repeat(np.arange(len(self._demos)), starts)
        self._step_of = np.concatenate([np.arange(num) for num in starts])
        self._mean_state = np.asarray(statistics["state_mean"], np.float32)[slots.STATE_SLOTS]

    def __len__(self) -> int:
        return len(self._demo_of)

    def demo(self, sample: int) -> Demo:
        """Return the demonstration a sample is from."""
        return self._demos[int(self._demo_of[sample])]

    def batch(self, ids: Ids, epochs: Ids) -> dict[str, Tensor]:
        """Return the samples `ids`."""
        section = self._section
        demos, steps = self._demo_of[ids], self._step_of[ids]
        rows = self._first[demos] + steps
        ahead = rows[:, None] + np.arange(section.action_chunk_size)
        chunks = self._actions[np.minimum(ahead, self._last[demos][:, None])]
        states, lang = self._states[rows], self._lang[demos]
        pictures = [self._pictures(self._demos[demo], int(step)) for demo, step in zip(demos, steps, strict=True)]
        tells, freqs = np.ones(len(ids), np.float32), np.full(len(ids), section.control_hz, np.float32)
        if self._seed is not None:
            width = states.shape[1]
            drawn = draw_uniform(self._seed, ids, epochs, 4 + 2 * width + 2 * len(pictures[0]))
            hide, noise, rest = (
                drawn[:, :4] < section.cond_mask_prob,
                drawn[:, 4 : 4 + 2 * width],
                drawn[:, 4 + 2 * width :],
            )
            if section.state_noise_snr is not None:
                sigma = self._std[demos] / np.sqrt(10 ** (section.state_noise_snr / 10))
                states = states + (_normal(noise) * sigma).astype(np.float32)
            states = np.where(hide[:, :1], self._mean_state, states)
            tells, freqs, lang = tells * ~hide[:, 1], freqs * ~hide[:, 2], lang * ~hide[:, 3]
            most = max(section.cond_mask_prob, section.cam_ext_mask_prob or 0.0)
            for row in range(len(ids)) if section.image_aug else np.flatnonzero((rest[:, ::2] < most).any(axis=1)):
                pictures[row] = self._disturb(pictures[row], rest[row])
        return make_batch(section, states=states, lang=lang, pictures=pictures, freqs=freqs, tells_mask=tells) | {
            "actions": torch.from_numpy(slots.spread(chunks, slots.ACTION_SLOTS))
        }

    def _pictures(self, demo: Demo, step: int) -> list[Picture | None]:
        """Return the pictures of a moment and those before it, camera by camera; none where there is none."""
        section = self._section
        shown: list[Picture | None] = []
        for back in reversed(range(section.img_history_size)):
            for number in range(section.num_cameras):
                if number < len(CAMERAS) and step >= back:
                    shown.append(np.asarray(self._files.pictures(demo.file, demo.name, CAMERAS[number])[step - back]))
                else:
                    shown.append(None)
        return shown

    def _disturb(self, shown: list[Picture | None], luck: npt.NDArray[np.float64]) -> list[Picture | None]:
        """Hide pictures or change their colours, by two drawn numbers each."""
        section = self._section
        chance, exterior = section.cond_mask_prob, section.cam_ext_mask_prob
        out = list(shown)
        for place, one in enumerate(shown):
            is_exterior = place % section.num_cameras == 0 and exterior is not None
            hidden, changed = luck[2 * place : 2 * place + 2]
            if hidden < (exterior if is_exterior and exterior is not None else chance):
                out[place] = None
            elif one is not None and section.image_aug and changed < 0.5:
                out[place] = jitter(one, np.random.default_rng(int(changed * 2**53)))
        return out


def draw_uniform(seed: int, ids: Ids, epochs: Ids, num: int) -> npt.NDArray[np.float64]:
    """Return numbers from 0 to 1 (samples, num) that depend on seed, epoch and index alone; all at once, for speed."""
    start = np.full(len(ids), seed, np.uint64)
    for part in (np.asarray(epochs), np.asarray(ids)):
        start = mix(start ^ part.astype(np.uint64))
    places = mix(np.arange(num, dtype=np.uint64))
    return np.asarray((mix(start[:, None] ^ places) >> np.uint64(11)) * 2.0**-53)


def _normal(uniform: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return normal numbers from pairs of uniform ones, after Box and Muller."""
    half = uniform.shape[1] // 2
    radius = np.sqrt(-2 * np.log1p(-uniform[:, :half]))
    return np.asarray(radius * np.cos(2 * np.pi * uniform[:, half:]))


def make_batch(
    section: RdtSection,
    *,
    states: npt.NDArray[np.float32],
    lang: npt.NDArray[np.int64],
    pictures: Sequence[Sequence[Picture | None]],
    freqs: npt.NDArray[np.float32] | None = None,
    tells_mask: npt.NDArray[np.float32] | None = None,
) -> dict[str, Tensor]:
    """Return the conditions of a batch; training and rollouts both make them here."""
    num = len(states)
    tells = np.ones(num, np.float32) if tells_mask is None else tells_mask
    freqs = np.full(num, section.control_hz, np.float32) if freqs is None else freqs
    # The published model is told the state's slots for actions too, joints among them, which no action ever fills.
    acts = slots.STATE_SLOTS if section.loss == "original" else slots.ACTION_SLOTS
    shapes = {one.shape[:2] for shown in pictures for one in shown if one is not None}
    side = max((max(shape) for shape in shapes), default=8)
    images = np.full((num, len(pictures[0]), side, side, 3), GREY, np.uint8)
    for row, shown in enumerate(pictures):
        for place, one in enumerate(shown):
            if one is not None:
                top, left = (side - one.shape[0]) // 2, (side - one.shape[1]) // 2
                images[row, place, top : top + one.shape[0], left : left + one.shape[1]] = one
    return {
        "state": torch.from_numpy(slots.spread(states, slots.STATE_SLOTS)),
        "state_mask": torch.from_numpy(tells[:, None] * slots.mask_of(slots.STATE_SLOTS)),
        "action_mask": torch.from_numpy(tells[:, None] * slots.mask_of(acts)),
        "freq": torch.from_numpy(freqs),
        "lang": torch.from_numpy(np.asarray(lang, np.int64)),
        "images": torch.from_numpy(images).permute(0, 1, 4, 2, 3),
    }


def jitter(picture: Picture, dice: np.random.Generator) -> Picture:
    """Return a picture with other brightness, contrast, saturation and hue."""
    bright, contrast, colour = (
        1 + dice.uniform(-_JITTER[k], _JITTER[k]) for k in ("brightness", "contrast", "saturation")
    )
    p = picture.astype(np.float32) * np.float32(bright)
    p = (p - (p @ _LUMA).mean()) * np.float32(contrast) + (p @ _LUMA).mean()
    grey = (p @ _LUMA)[..., None]
    # A turn of the colour plane about the grey axis is a turn of the hue.
    axis = np.full(3, 1 / np.sqrt(3))
    turn = 2 * np.pi * dice.uniform(-_JITTER["hue"], _JITTER["hue"])
    cross = np.cross(np.eye(3), axis)
    rotate = np.cos(turn) * np.eye(3) + np.sin(turn) * cross + (1 - np.cos(turn)) * np.outer(axis, axis)
    p = ((p - grey) * np.float32(colour)) @ rotate.astype(np.float32) + grey
    return np.asarray(np.clip(p, 0, 255), np.uint8)
