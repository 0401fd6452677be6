"""A table, a cabinet with an open drawer, a bowl and a hand: two tasks in one scene, so that the sentence matters.

It speaks as LIBERO's simulator does: actions of seven numbers from -1 to 1, observations under LIBERO's names, success
as the only reward, an end after a number of steps. Physics is a few rules; nothing but the pictures tells where bowl
and drawer are. Distances are metres.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from headway.recipes.rdt.rotation import axis_angle_of_matrix, matrix_of_axis_angle
from headway.recipes.rdt.slots import FINGER_M

TASKS = ("close the top drawer of the cabinet", "put the black bowl on top of the cabinet")
NAMES = ("KITCHEN_close_the_top_drawer_of_the_cabinet", "KITCHEN_put_the_black_bowl_on_top_of_the_cabinet")
DEMO_SCENES, TRIAL_SCENES = 3_000_000, 2_000_000
"""Seeds of the scenes of demonstrations and of trials; predictions have small ones, so that none is met twice. The
recipe's settings were chosen on scenes of other seeds than any of these."""
PIXELS = 32
STEP_M = 0.012
"""Metres the hand moves for an action of 1, as in LIBERO."""
STEP_RAD = 0.5
_LOW, _HIGH = np.array([-0.2, -0.2, 0.0]), np.array([0.2, 0.2, 0.25])
CABINET_X, CABINET_HALF = -0.15, np.array([0.04, 0.05])
CABINET_TOP = 0.14
DRAWER_OPEN = 0.06
_SHUT = 0.006
_SLIP = 0.15
"""Share of a step by which the hand misses where it was sent: nobody's arm is exact, and demonstrations show repair."""
_DOWN = matrix_of_axis_angle([np.pi, 0.0, 0.0])
_JOINTS = np.random.default_rng(7).normal(size=(7, 4)) * [2.0, 2.0, 2.0, 0.5]

Array = npt.NDArray[np.float64]
Picture = npt.NDArray[np.uint8]
_Rgb = tuple[float, float, float]


@dataclass(frozen=True, slots=True)
class Scene:
    """Everything that can change."""

    hand: Array
    yaw: float
    opening: float
    """Of the gripper, 0 to 1."""
    cabinet_y: float
    drawer: float
    """How far the drawer is out."""
    bowl: Array
    is_held: bool = False

    @property
    def drawer_front(self) -> float:
        """X of the drawer's front."""
        return float(CABINET_X + CABINET_HALF[0] + self.drawer)

    @property
    def cabinet_top(self) -> Array:
        """Middle of the cabinet's top."""
        return np.array([CABINET_X, self.cabinet_y, CABINET_TOP])


@dataclass
class TableWorld:
    """One episode of one task."""

    task: int
    seed: int
    horizon: int = 200
    is_midway: bool = False
    """Begin anywhere, also with the bowl in hand: demonstrations then show how to come back from any mistake."""
    scene: Scene = field(init=False)
    steps: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        self._rng = np.random.default_rng([self.seed, self.task])
        # Its own: looking more often must not change what happens.
        self._sensor = np.random.default_rng([self.seed, self.task, 1])
        draw = self._rng.uniform
        self.scene = Scene(
            hand=np.array([draw(-0.02, 0.12), draw(-0.12, 0.12), draw(0.14, 0.2)]),
            yaw=draw(-0.1, 0.1),
            opening=1.0,
            cabinet_y=draw(-0.12, 0.12),
            drawer=draw(0.8, 1.0) * DRAWER_OPEN,
            bowl=np.array([draw(0.02, 0.16), draw(-0.16, 0.16), 0.02]),
        )
        if self.is_midway:
            hand = draw(_LOW, _HIGH)
            self.scene = replace(self.scene, hand=hand)
            if self.task == 1 and draw() < 0.5:
                self.scene = replace(self.scene, opening=0.0, is_held=True, bowl=hand.copy())

    @property
    def instruction(self) -> str:
        """The sentence of this task."""
        return TASKS[self.task]

    def step(self, action: npt.ArrayLike) -> bool:
        """Carry out one action; return whether the task is solved. Past the horizon this is an error, as in LIBERO."""
        if self.steps >= self.horizon:
            raise RuntimeError("executing action in terminated episode")
        self.steps += 1
        a = np.minimum(np.maximum(np.asarray(action, np.float64), -1), 1)
        slip = self._rng.normal(size=3) * _SLIP * np.abs(a[:3]).max()
        self.scene = advance(self.scene, a, slip)
        return self.is_solved

    @property
    def is_solved(self) -> bool:
        """Whether the drawer is shut, or the bowl is on the cabinet and nothing holds it."""
        now = self.scene
        if self.task == 0:
            return now.drawer < _SHUT
        return not now.is_held and bool(now.bowl[2] >= CABINET_TOP)

    def observe(self) -> dict[str, Array | Picture]:
        """Return what LIBERO's observation holds at one moment."""
        return {name: part[0] for name, part in self.describe([self.scene]).items()}

    def describe(self, scenes: Sequence[Scene]) -> dict[str, Array | Picture]:
        """Return the observations of several moments, stacked; drawing many at once is far cheaper."""
        hands, yaws = np.stack([now.hand for now in scenes]), np.array([now.yaw for now in scenes])
        openings = np.array([now.opening for now in scenes])
        turn = _DOWN @ matrix_of_axis_angle(np.stack([0 * yaws, 0 * yaws, yaws], axis=1))
        ori = axis_angle_of_matrix(turn)
        joints = np.concatenate([hands, yaws[:, None]], axis=1) @ _JOINTS.T
        return {
            # From above, a little aslant: height moves a thing up in the picture.
            "agentview_rgb": draw(scenes, centres=np.zeros((len(scenes), 2)), half=0.22, tilt=0.25),
            # The same seen from the hand, which is always in the middle.
            "eye_in_hand_rgb": draw(scenes, centres=hands[:, :2], half=0.18, tilt=0.0),
            "joint_states": joints + self._sensor.normal(size=joints.shape) * 0.002,
            "gripper_states": np.stack([openings, -openings], axis=1) * FINGER_M,
            "ee_pos": hands,
            "ee_ori": ori,
            "ee_states": np.concatenate([hands, ori], axis=1),
        }


def advance(now: Scene, action: Array, slip: Array) -> Scene:
    """Return the scene one action later."""
    hand = np.minimum(np.maximum(now.hand + STEP_M * (action[:3] + slip), _LOW), _HIGH)
    yaw = min(1.5, max(-1.5, now.yaw + STEP_RAD * float(action[5])))  # this wrist turns about the vertical only
    opening = min(1.0, max(0.0, now.opening + (0.25 if action[6] < 0 else -0.25)))
    drawer = now.drawer
    is_before = abs(hand[1] - now.cabinet_y) < 0.045 and hand[2] < 0.09
    if is_before and now.drawer_front - DRAWER_OPEN - 0.02 < hand[0] < now.drawer_front:
        # Where the drawer is, no hand can be: it is pushed in.
        drawer = max(0.0, now.drawer - (now.drawer_front - float(hand[0])))
    near = bool(np.linalg.norm(hand - now.bowl) < 0.045)
    is_held = opening < 0.6 if now.is_held else (opening < 0.4 and now.opening > opening and near)
    bowl = hand.copy() if is_held else now.bowl
    if now.is_held and not is_held:
        over = np.abs(bowl[:2] - now.cabinet_top[:2]) < CABINET_HALF
        bowl = np.array([bowl[0], bowl[1], CABINET_TOP if over.all() and bowl[2] > CABINET_TOP - 0.02 else 0.02])
    return replace(now, hand=hand, yaw=yaw, opening=opening, drawer=drawer, bowl=bowl, is_held=is_held)


def draw(scenes: Sequence[Scene], *, centres: Array, half: float, tilt: float) -> Picture:
    """Return pictures (T, pixels, pixels, 3): rectangles over each other, `half` metres to each side of a centre."""
    fronts = np.array([now.drawer_front for now in scenes])
    cabinets = np.stack([now.cabinet_top for now in scenes])
    bowls, hands = np.stack([now.bowl for now in scenes]), np.stack([now.hand for now in scenes])
    drawers = np.stack([(fronts + CABINET_X) / 2, cabinets[:, 1], np.full(len(scenes), 0.05)], axis=1)
    drawer_halves = np.stack([(fronts - CABINET_X) / 2, np.full(len(scenes), 0.035)], axis=1)
    things: list[tuple[Array, Array, _Rgb]] = [
        (drawers, drawer_halves, (0.9, 0.8, 0.1)),
        (cabinets, CABINET_HALF[None], (0.2, 0.3, 0.85)),
        (bowls, np.array([[0.028, 0.028]]), (0.05, 0.05, 0.05)),
    ]
    apart = 0.008 + 0.014 * np.array([now.opening for now in scenes])
    for side in (-1, 1):
        fingers = hands.copy()
        fingers[:, 1] += side * apart
        things.append((fingers, np.array([[0.012, 0.006]]), (0.1, 0.8, 0.25)))
    pictures = np.full((len(scenes), PIXELS, PIXELS, 3), 0.72, np.float32)
    for places, halves, colour in things:
        seen = places[:, :2] - centres
        seen[:, 1] += tilt * places[:, 2]
        across, along = (_cover(seen[:, axis], halves[:, axis], half) for axis in (0, 1))
        cover = (along[:, :, None] * across[:, None, :])[..., None]
        pictures += cover * (np.asarray(colour, np.float32) - pictures)
    return (pictures * 255 + 0.5).astype(np.uint8)


def _cover(middles: Array, halves: Array, view: float) -> npt.NDArray[np.float32]:
    """Return how much of each pixel (T, pixels) a thing covers; part-covered pixels tell its place finely."""
    scale = PIXELS / (2 * view)
    first, last = ((middles + sign * halves + view)[:, None] * scale for sign in (-1, 1))
    edges = np.arange(PIXELS)
    return np.asarray(np.clip(np.minimum(edges + 1, last) - np.maximum(edges, first), 0, 1), np.float32)


def show_way(world: TableWorld) -> Array:
    """Return what the demonstrator does now: it sees the scene itself and has no memory."""
    now = world.scene
    goal, yaw, grip = _aim_drawer(now) if world.task == 0 else _aim_bowl(now)
    move = np.minimum(np.maximum((goal - now.hand) / (4 * STEP_M), -1), 1)
    turn = min(0.2, max(-0.2, (yaw - now.yaw) / (4 * STEP_RAD)))
    return np.array([*move, 0.0, 0.0, turn, grip])


def _aim_drawer(now: Scene) -> tuple[Array, float, float]:
    front = np.array([now.drawer_front + 0.02, now.cabinet_y, 0.05])
    off = np.abs(front - now.hand)
    if (off[1] < 0.015 and off[2] < 0.02 and now.hand[0] < front[0] + 0.02) or now.drawer < _SHUT:
        # Push on until well inside, then hold still.
        goal = np.array([CABINET_X + CABINET_HALF[0] - 0.008, now.cabinet_y, 0.05])
        return (goal if now.drawer >= _SHUT / 2 else now.hand), 0.0, 1.0
    return front, 0.0, 1.0


def _aim_bowl(now: Scene) -> tuple[Array, float, float]:
    if now.is_held:
        over = now.cabinet_top + np.array([0.0, 0.0, 0.03])
        is_there = np.linalg.norm(over - now.hand) < 0.025
        # Rise first: the way over the cabinet's edge is not through it.
        goal = over if now.hand[2] > 0.1 else np.array([*(0.5 * (now.hand[:2] + over[:2])), over[2]])
        return goal, 0.0, -1.0 if is_there else 1.0
    if now.bowl[2] >= CABINET_TOP:
        return now.hand, 0.0, -1.0
    is_there = np.linalg.norm(now.bowl - now.hand) < 0.02
    return now.bowl, 0.3, 1.0 if is_there else -1.0
