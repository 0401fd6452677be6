"""A film of an episode: what the cameras see, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from headway.recipes.atlas.rollout import Attempt, Policy, draw_views, roll_out

_SHOT, _FRAME_MS, _REST = 240, 200, 5
"""Pixels of a picture's height, time of a frame, and frames for which the last one rests."""
Shot = npt.NDArray[np.uint8]
"""(views, height, width, 3)"""


def film_attempt(attempt: Attempt, policy: Policy, *, pixels: int, views: int, max_steps: int) -> list[Shot]:
    """Let a policy act until the episode is over; return what both cameras see at every step, in large pictures."""
    shots = [draw_views(attempt.scene, _SHOT, 2)]
    while not attempt.is_over and attempt.steps < max_steps:
        roll_out([attempt], policy, pixels=pixels, views=views, max_steps=1)
        shots.append(draw_views(attempt.scene, _SHOT, 2))
    return shots


def write_film(file: Path, shots: Sequence[Shot]) -> None:
    """Write a GIF that repeats."""
    from PIL import Image  # only for those who want a film

    pictures = []
    for shot in shots:
        picture = Image.fromarray(np.concatenate(list(shot), axis=1))
        width = round(picture.width * _SHOT / picture.height)
        pictures.append(picture.resize((width, _SHOT), Image.Resampling.NEAREST))
    pictures += pictures[-1:] * _REST
    file.parent.mkdir(parents=True, exist_ok=True)
    pictures[0].save(file, save_all=True, append_images=pictures[1:], duration=_FRAME_MS, loop=0)
