"""Rollouts: a policy drives episodes of the scripted world in step; how often it succeeds, and how sure that is."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from headway.errors import CheckError
from headway.recipes.rdt import slots
from headway.recipes.rdt.section import RdtSection
from headway.recipes.rdt.world import TASKS, TRIAL_SCENES, TableWorld

Observation = Mapping[str, npt.NDArray[Any]]
Act = Callable[[Sequence[Sequence[Observation]], Sequence[int], Sequence[int]], npt.NDArray[np.float64]]
"""From the last observations, the tasks and seeds to chunks of actions."""
_ZOOM, _FRAME_MS = 10, 60
_WILSON_Z = 1.959964
"""95 in 100."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How an episode is run."""

    env_steps: int
    exec_horizon: int
    env_horizon: int
    history: int


@dataclass(slots=True)
class Episode:
    """One episode and how it went."""

    task: int
    seed: int
    is_solved: bool = False
    steps: int = 0
    frames: list[npt.NDArray[np.uint8]] = field(default_factory=list)


def run_episodes(act: Act, episodes: Sequence[Episode], limits: Limits, *, filmed: Sequence[Episode] = ()) -> None:
    """Run episodes side by side: each round draws one chunk for all that still continue, and carries out its start."""
    worlds = [TableWorld(one.task, one.seed, limits.env_horizon) for one in episodes]
    seen: list[list[Observation]] = [[world.observe()] for world in worlds]
    film = [any(one is wanted for wanted in filmed) for one in episodes]
    for number, one in enumerate(episodes):
        if film[number]:
            one.frames.append(_frame(seen[number][-1]))
    going, turn = list(range(len(episodes))), 0
    while going:
        tasks = [episodes[i].task for i in going]
        seeds = [_seed(episodes[i], turn) for i in going]
        chunks = act([seen[i] for i in going], tasks, seeds)
        for i, chunk in zip(going, chunks, strict=True):
            for place, action in enumerate(chunk[: limits.exec_horizon], 1):
                one, world = episodes[i], worlds[i]
                one.is_solved, one.steps = world.step(action), one.steps + 1
                # Drawing a scene costs more than all else: only what the next chunk or the film shows is looked at.
                if film[i] or place > limits.exec_horizon - limits.history:
                    seen[i] = [*seen[i], world.observe()][-limits.history :]
                if film[i]:
                    one.frames.append(_frame(seen[i][-1]))
                if one.is_solved or one.steps >= limits.env_steps:
                    break
        going = [i for i in going if not episodes[i].is_solved and episodes[i].steps < limits.env_steps]
        turn += 1


def _seed(episode: Episode, turn: int) -> int:
    return (episode.seed * 1009 + episode.task) * 1009 + turn


def try_constant(section: RdtSection, mean: npt.ArrayLike, sentences: Collection[str]) -> float | None:
    """Return how often the mean action, done all the time, solves a task in the scenes of a trial; none without any."""
    tasks = [task for task, sentence in enumerate(TASKS) if sentence in sentences]
    asked = section.rollout
    if not tasks or not asked.episodes:
        return None
    packed = np.asarray(mean)[slots.ACTION_SLOTS]
    action = slots.unpack_action(packed, position_scale=section.position_scale, rotation_scale=section.rotation_scale)
    solved = 0
    for number in range(asked.episodes):
        episode = TableWorld(tasks[number % len(tasks)], TRIAL_SCENES + number, asked.env_horizon)
        solved += any(episode.step(action) for _ in range(asked.env_steps))
    return solved / asked.episodes


def wilson(solved: float, num: float) -> tuple[float, float]:
    """Return the interval that holds the true rate with 95% confidence, after Wilson: right for few episodes too."""
    if num <= 0:
        return 0.0, 1.0
    rate, z = solved / num, _WILSON_Z
    middle = (rate + z * z / (2 * num)) / (1 + z * z / num)
    half = z / (1 + z * z / num) * math.sqrt(rate * (1 - rate) / num + z * z / (4 * num * num))
    return max(0.0, middle - half), min(1.0, middle + half)


def write_video(episode: Episode, folder: Path) -> Path:
    """Write an episode's pictures, exterior and wrist side by side, as a GIF that bears how it went in its name."""
    try:
        from PIL import Image
    except ImportError as err:
        raise CheckError("rdt/missing-library", package="pillow") from err
    folder.mkdir(parents=True, exist_ok=True)
    how = "success" if episode.is_solved else "failure"
    path = folder / f"task{episode.task}_seed{episode.seed}_{how}.gif"
    height, width = (side * _ZOOM for side in episode.frames[0].shape[:2])
    # One palette for the whole film: finding one per frame takes longer than the rollout.
    palette = Image.fromarray(np.concatenate(episode.frames[:: max(1, len(episode.frames) // 8)])).quantize(256)
    frames = [
        Image.fromarray(frame).quantize(palette=palette, dither=Image.Dither.NONE).resize((width, height))
        for frame in episode.frames
    ]
    frames[0].save(path, save_all=True, append_images=frames[1:], duration=_FRAME_MS, loop=0)
    return path


def _frame(seen: Observation) -> npt.NDArray[np.uint8]:
    views = [np.asarray(seen[name], np.uint8) for name in ("agentview_rgb", "eye_in_hand_rgb")]
    return np.concatenate(views, axis=1)
