"""The scripted reach environment: does the trained model take the block it is told to?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from headway.recipes.atlas.scene import NAMES, PHRASES, Scene, draw_scene, draw_workspace, draw_wrist, is_at, move

_SEED = 0x5EED
"""Scenes of trials: no episode of the synthetic set is drawn from it."""
CLOSED = 0.5

Policy = Callable[[npt.NDArray[np.uint8], Sequence[str]], npt.NDArray[np.float64]]
"""Takes pictures (B, S, H, W, 3) and instructions, returns actions (B, 7)."""


@dataclass(slots=True)
class Attempt:
    """One episode on its way."""

    scene: Scene
    instruction: str
    is_success: bool = False
    is_over: bool = False
    steps: int = 0


def start_attempts(numbers: Sequence[int]) -> list[Attempt]:
    """Return episodes at their start, the same for the same numbers."""
    attempts = []
    for number in numbers:
        target = number % len(NAMES)
        phrase = PHRASES[number // len(NAMES) % len(PHRASES)]
        rng = np.random.default_rng((_SEED, number))
        scene = draw_scene(rng, target)
        # Whoever closes at once and always must not win by the place it starts from.
        while any(is_at(scene, block) for block in range(len(NAMES))):
            scene = draw_scene(rng, target)
        attempts.append(Attempt(scene, phrase.format(colour=NAMES[target])))
    return attempts


def roll_out(attempts: Sequence[Attempt], policy: Policy, *, pixels: int, views: int, max_steps: int) -> None:
    """Drive all episodes side by side until they are over or out of steps."""
    for _ in range(max_steps):
        going = [attempt for attempt in attempts if not attempt.is_over]
        if not going:
            return
        pictures = np.stack([draw_views(attempt.scene, pixels, views) for attempt in going])
        actions = policy(pictures, [attempt.instruction for attempt in going])
        for attempt, action in zip(going, actions, strict=True):
            _act(attempt, action)


def draw_views(scene: Scene, pixels: int, views: int) -> npt.NDArray[np.uint8]:
    """Return what the cameras see."""
    return np.stack([draw(scene, pixels) for draw in (draw_workspace, draw_wrist)[:views]])


def _act(attempt: Attempt, action: npt.NDArray[np.float64]) -> None:
    """Close on the named block and win, close on another and lose, else move; closing on nothing does nothing."""
    attempt.steps += 1
    if action[6] > CLOSED:
        touched = [block for block in range(len(NAMES)) if is_at(attempt.scene, block)]
        attempt.is_success = attempt.scene.target in touched
        attempt.is_over = bool(touched)
    attempt.scene = move(attempt.scene, action)
