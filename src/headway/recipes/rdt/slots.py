"""The unified vector: 128 slots that states and actions of every robot share. A single arm uses the right arm's.

    0-9 joints · 10-14 gripper · 15-24 joint speeds · 25-29 gripper speeds · 30-32 hand position · 33-38 hand rotation
    (6-D) · 39-41 hand speed · 42-44 turning speed · 50-99 the same for the left arm · 100-102 base speeds

LIBERO fills 17 of them as a state and 10 as an action. The one function that makes a state serves training and
rollouts: in the published code the two differ (first finger against the mean of both, which is always near zero).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from headway.recipes.rdt.rotation import (
    axis_angle_of_matrix,
    matrix_of_axis_angle,
    matrix_of_euler,
    matrix_of_six,
    six_of_matrix,
)

WIDTH = 128
GRIPPER = 10
POSITION = slice(30, 33)
ROTATION = slice(33, 39)
STATE_SLOTS = np.array([*range(7), GRIPPER, *range(30, 39)])
"""Slots of a LIBERO state: joints, gripper, position, rotation."""
ACTION_SLOTS = np.array([GRIPPER, *range(30, 39)])
"""Slots of a LIBERO action: gripper, change of position, change of rotation."""
FINGER_M = 0.04
"""How far one finger of the open gripper is from the middle."""

Rotation = Literal["axis_angle", "original"]
Array = npt.NDArray[np.float32]


def mask_of(slots: npt.NDArray[np.int64]) -> Array:
    """Return 128 zeros with ones in some slots."""
    mask = np.zeros(WIDTH, np.float32)
    mask[slots] = 1
    return mask


def spread(values: npt.ArrayLike, slots: npt.NDArray[np.int64]) -> Array:
    """Return 128-slot vectors (…, 128) that hold the values (…, n) in their slots."""
    v = np.asarray(values, np.float32)
    out = np.zeros((*v.shape[:-1], WIDTH), np.float32)
    out[..., slots] = v
    return out


def pack_state(obs: Mapping[str, Any], rotation: Rotation) -> Array:
    """Return the 17 numbers of a LIBERO state; `obs` holds arrays of one or many moments.

    Any: arrays, or what h5py gives for them.
    """
    fingers = np.asarray(obs["gripper_states"], np.float64)
    # Both fingers, which move against each other, as one opening from 0 to 1.
    opening = np.clip((fingers[..., :1] - fingers[..., 1:2]) / (2 * FINGER_M), 0, 1)
    turn = matrix_of_axis_angle if rotation == "axis_angle" else matrix_of_euler
    parts = [obs["joint_states"], opening, obs["ee_pos"], six_of_matrix(turn(obs["ee_ori"]))]
    return np.concatenate([np.asarray(part, np.float64) for part in parts], axis=-1).astype(np.float32)


def pack_action(actions: npt.ArrayLike, *, position_scale: float, rotation_scale: float, rotation: Rotation) -> Array:
    """Return the 10 numbers of LIBERO actions (…, 7): gripper 0 to 1, position in centimetres, rotation in 6-D."""
    a = np.asarray(actions, np.float64)
    turn = matrix_of_axis_angle if rotation == "axis_angle" else matrix_of_euler
    six = six_of_matrix(turn(a[..., 3:6] * rotation_scale))
    return np.concatenate([(a[..., 6:7] + 1) / 2, a[..., :3] * position_scale, six], axis=-1).astype(np.float32)


def unpack_action(packed: npt.ArrayLike, *, position_scale: float, rotation_scale: float) -> npt.NDArray[np.float64]:
    """Return LIBERO actions (…, 7) of the 10 numbers, kept within what the arm takes."""
    p = np.asarray(packed, np.float64)
    turn = axis_angle_of_matrix(matrix_of_six(p[..., 4:10])) / rotation_scale
    raw = np.concatenate([p[..., 1:4] / position_scale, turn, 2 * p[..., :1] - 1], axis=-1)
    return np.asarray(np.clip(raw, -1, 1))
