"""Rotations between axis-angle, matrices and the continuous 6-D form: the first two columns, one after the other."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]


def matrix_of_axis_angle(vectors: npt.ArrayLike) -> Array:
    """Return rotation matrices (…, 3, 3) of axis-angle vectors (…, 3), by Rodrigues' formula."""
    v = np.asarray(vectors, np.float64)
    angle = np.linalg.norm(v, axis=-1)[..., None, None]
    cross = np.zeros((*v.shape[:-1], 3, 3))
    cross[..., 0, 1], cross[..., 0, 2] = -v[..., 2], v[..., 1]
    cross[..., 1, 0], cross[..., 1, 2] = v[..., 2], -v[..., 0]
    cross[..., 2, 0], cross[..., 2, 1] = -v[..., 1], v[..., 0]
    # sin(a)/a and (1-cos a)/a², which stay whole at angle zero.
    first = np.sinc(angle / np.pi)
    second = 0.5 * np.sinc(angle / (2 * np.pi)) ** 2
    return np.asarray(np.eye(3) + first * cross + second * (cross @ cross))


def axis_angle_of_matrix(matrices: npt.ArrayLike) -> Array:
    """Return axis-angle vectors (…, 3) of rotation matrices, through quaternions, safe at every angle."""
    m = np.asarray(matrices, np.float64)
    # The row of the symmetric 4x4 form with the largest diagonal is a well-conditioned quaternion (w, x, y, z).
    trace = np.trace(m, axis1=-2, axis2=-1)
    K = np.zeros((*m.shape[:-2], 4, 4))
    K[..., 0, 0] = 1 + trace
    for i in range(3):
        j, k = (i + 1) % 3, (i + 2) % 3
        K[..., i + 1, i + 1] = 1 + 2 * m[..., i, i] - trace
        K[..., 0, i + 1] = K[..., i + 1, 0] = m[..., k, j] - m[..., j, k]
        K[..., i + 1, j + 1] = K[..., j + 1, i + 1] = m[..., i, j] + m[..., j, i]
    best = np.argmax(np.diagonal(K, axis1=-2, axis2=-1), axis=-1)
    q = np.take_along_axis(K, best[..., None, None], axis=-2)[..., 0, :]
    q = q / np.linalg.norm(q, axis=-1, keepdims=True)
    q = np.where(q[..., :1] < 0, -q, q)
    sine = np.linalg.norm(q[..., 1:], axis=-1, keepdims=True)
    angle = 2 * np.arctan2(sine, q[..., :1])
    return np.asarray(q[..., 1:] * np.where(sine > 1e-12, angle / np.maximum(sine, 1e-12), 2.0))


def matrix_of_euler(angles: npt.ArrayLike) -> Array:
    """Return matrices of extrinsic x-y-z Euler angles: what the published loader takes axis-angle vectors for."""
    a = np.asarray(angles, np.float64)
    zero = np.zeros_like(a[..., 0])
    turns = [matrix_of_axis_angle(np.stack([a[..., i] if j == i else zero for j in range(3)], -1)) for i in range(3)]
    return np.asarray(turns[2] @ turns[1] @ turns[0])


def six_of_matrix(matrices: npt.ArrayLike) -> Array:
    """Return the 6-D form (…, 6): column 0, then column 1."""
    m = np.asarray(matrices, np.float64)
    return np.concatenate([m[..., :, 0], m[..., :, 1]], axis=-1)


def matrix_of_six(six: npt.ArrayLike) -> Array:
    """Return the rotation nearest in the sense of Gram and Schmidt. Numbers that name none, as zeros, give no turn."""
    s = np.asarray(six, np.float64)
    x = _unit(s[..., :3], [1.0, 0.0, 0.0])
    across = s[..., 3:] - (x * s[..., 3:]).sum(-1, keepdims=True) * x
    # Any direction across x is right where the second column has none.
    spare = np.where(np.abs(x[..., 1:2]) < 0.9, [0.0, 1.0, 0.0], [0.0, 0.0, 1.0])
    spare = spare - (x * spare).sum(-1, keepdims=True) * x
    y = _unit(across, spare / np.linalg.norm(spare, axis=-1, keepdims=True))
    return np.stack([x, y, np.cross(x, y)], axis=-1)


def _unit(vectors: Array, spare: npt.ArrayLike) -> Array:
    length = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.where(length > 1e-6, vectors / np.maximum(length, 1e-6), spare)
