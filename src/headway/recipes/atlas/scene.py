"""A small world in which instructions matter: two coloured blocks on a table, and a gripper above them.

It gives the synthetic episodes their frames and the trial its environment. What to do is in no picture: the same
picture asks for two different actions under two instructions, so neither picture nor text alone is enough.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

Image = npt.NDArray[np.uint8]
Floats = npt.NDArray[np.float64]

COLOURS: dict[str, tuple[int, int, int]] = {"red": (230, 40, 40), "blue": (40, 70, 240)}
NAMES = tuple(COLOURS)
PHRASES = ("reach the {colour} block", "move to the {colour} block", "go to {colour}")
_TURNS = np.array([[0.2, 0.0, -0.2], [-0.2, 0.2, 0.0]])
"""Small rotation that goes with each colour."""

GAIN, REACH = 2.0, 0.2
"""Action for each unit of distance, and distance a full action moves."""
RADIUS, HEIGHT_SLACK = 0.12, 0.15
"""How near, across and in height, the gripper may close on a block."""
_APART = 0.35
"""Least distance between the blocks: the gripper cannot be at both."""
_WRIST_VIEW = 0.4
"""Width of the table the wrist camera sees."""
_TABLE, _GRIPPER = (60, 58, 56), (60, 230, 80)


@dataclass(frozen=True, slots=True)
class Scene:
    """Where everything is; the table is the unit square."""

    blocks: Floats
    """(2, 2), in the order of `NAMES`."""
    heights: Floats
    """(2,); higher blocks look larger."""
    gripper: Floats
    """(3,): across, along, height; a higher gripper looks larger."""
    target: int
    """Which block the instruction names."""


def draw_scene(rng: np.random.Generator, target: int) -> Scene:
    """Return a scene with blocks that do not touch each other."""
    while True:
        blocks = rng.uniform(0.12, 0.88, (len(NAMES), 2))
        if np.hypot(*(blocks[0] - blocks[1])) > _APART:
            break
    heights = rng.uniform(0.1, 0.4, len(NAMES))
    return Scene(blocks, heights, _start(rng, blocks, heights), target)


def _start(rng: np.random.Generator, blocks: Floats, heights: Floats) -> Floats:
    """Return where the gripper starts: anywhere, or about a block, named or not.

    From anywhere alone, the nearest block would nearly always be the named one, and a model that never reads its
    instruction would look as if it did.
    """
    if rng.random() < 0.3:
        return np.append(rng.uniform(0.1, 0.9, 2), rng.uniform(0.3, 1.0))
    near = int(rng.integers(len(NAMES)))
    away = np.append(rng.normal(0, 0.08, 2), rng.uniform(-0.05, 0.3))
    start: Floats = np.clip(np.append(blocks[near], heights[near]) + away, 0.0, 1.0)
    return start


def goal(scene: Scene, block: int) -> Floats:
    """Return where the gripper has to be to take a block."""
    return np.append(scene.blocks[block], scene.heights[block])


def is_at(scene: Scene, block: int, slack: float = 1.0) -> bool:
    """Tell whether the gripper may close on a block."""
    away = goal(scene, block) - scene.gripper
    return bool(np.hypot(*away[:2]) < slack * RADIUS and abs(away[2]) < slack * HEIGHT_SLACK)


def expert_action(scene: Scene) -> Floats:
    """Return what a teacher does: towards the named block, turned as its colour asks, closed once there."""
    move = np.clip(GAIN * (goal(scene, scene.target) - scene.gripper), -1, 1)
    return np.concatenate((move, _TURNS[scene.target], [1.0 if is_at(scene, scene.target) else -1.0]))


def move(scene: Scene, action: Floats) -> Scene:
    """Return the scene after an action; the gripper stays above the table."""
    there = scene.gripper + REACH * np.clip(action[:3], -1, 1)
    return replace(scene, gripper=np.clip(there, 0.0, 1.0))


def draw_workspace(scene: Scene, pixels: int) -> Image:
    """Return the table from above."""
    return _draw(scene, pixels, corner=np.zeros(2), view=1.0)


def draw_wrist(scene: Scene, pixels: int) -> Image:
    """Return what a camera on the gripper sees: the table around it."""
    return _draw(scene, pixels, corner=scene.gripper[:2] - _WRIST_VIEW / 2, view=_WRIST_VIEW)


def _draw(scene: Scene, pixels: int, *, corner: Floats, view: float) -> Image:
    places = (np.arange(pixels) + 0.5) / pixels * view
    x, y = corner[0] + places[None, :], corner[1] + places[:, None]
    image = np.empty((pixels, pixels, 3), np.uint8)
    image[:] = _TABLE
    image[((x < 0) | (x > 1) | (y < 0) | (y > 1))] = 0
    for block, height, colour in zip(scene.blocks, scene.heights, COLOURS.values(), strict=True):
        half = 0.08 + 0.05 * height
        image[(abs(x - block[0]) < half) & (abs(y - block[1]) < half)] = colour
    radius = 0.06 + 0.03 * scene.gripper[2]
    image[np.hypot(x - scene.gripper[0], y - scene.gripper[1]) < radius] = _GRIPPER
    return image


def play_episode(rng: np.random.Generator, target: int, frames: int) -> list[tuple[Scene, Floats]]:
    """Return the scenes and actions of one demonstration; the hand trembles, the teacher's answer does not."""
    scene, played = draw_scene(rng, target), []
    for _ in range(frames):
        action = expert_action(scene)
        played.append((scene, action))
        scene = move(scene, action + np.append(rng.normal(0, 0.25, 3), np.zeros(4)))
    return played
