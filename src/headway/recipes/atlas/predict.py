"""A model's answers beside the teacher's, as a table people can open."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

from headway.engine.task import Prediction
from headway.messages import say

_COLUMNS = ("dx", "dy", "dz", "droll", "dpitch", "dyaw", "gripper")


def write_actions(file: Path, instruction: str, answers: np.ndarray, actions: np.ndarray) -> Prediction:
    """Write one row a frame; the gripper is back in the data's own -1 (open) to 1 (closed)."""
    answers = np.concatenate((answers[:, :6], 2 * answers[:, 6:] - 1), axis=1)
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("w", newline="", encoding="utf-8") as opened:
        table = csv.writer(opened)
        table.writerow(("frame", *_COLUMNS, *(f"teacher_{name}" for name in _COLUMNS)))
        for frame, row in enumerate(np.concatenate((answers, actions), axis=1)):
            table.writerow((frame, *(f"{value:.5f}" for value in row)))
    away = float(np.abs(answers[:, :6] - actions[:, :6]).mean())
    agreed = float(((answers[:, 6] > 0) == (actions[:, 6] > 0)).mean())
    text = say("atlas/predicted", frames=len(answers), said=instruction, l1=f"{away:.4f}", gripper=f"{agreed:.2f}")
    return Prediction(text=text, files=(file,))
