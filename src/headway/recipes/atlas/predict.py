"""A model's answers to a held-out episode beside the teacher's, as a table people can open, and a film."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from headway.errors import UsageError
from headway.messages import say
from headway.recipes.atlas.data import Index
from headway.recipes.atlas.episodes import COLUMNS
from headway.recipes.atlas.film import film_attempt, write_film
from headway.recipes.atlas.frames import Frames
from headway.recipes.atlas.rollout import start_attempts
from headway.recipes.atlas.section import AtlasSection, PredictOptions
from headway.task import Prediction

Act = Callable[[Tensor, Sequence[str]], Tensor]
"""Takes pictures (B, S, H, W, 3) and instructions, returns actions (B, 7)."""


def predict_episode(
    asked: PredictOptions, act: Act, section: AtlasSection, *, prepared: tuple[Path, Index], frames: Frames, out: Path
) -> Prediction:
    """Answer every frame of a held-out episode, under its own instruction or another one; film an episode."""
    folder, index = prepared
    if asked.episode >= len(index.val):
        raise UsageError("atlas/no-such-episode", episode=asked.episode, last=len(index.val) - 1)
    own = index.val[asked.episode]
    start = index.train_frames + sum(episode["frames"] for episode in index.val[: asked.episode])
    ids = np.arange(start, start + min(own["frames"], asked.frames or own["frames"]))
    actions = np.load(folder / "actions.npy", mmap_mode="r", allow_pickle=False)[ids]
    said = asked.instruction or own["instruction"]
    with torch.no_grad():
        answers = act(frames.look(ids), [said] * len(ids)).cpu().numpy()
    # Back to the data's own -1 (open) and 1 (closed).
    answers = np.concatenate((answers[:, :6], 2 * answers[:, 6:] - 1), axis=1)
    file = out / f"episode_{asked.episode:06d}.csv"
    _write_table(file, answers, actions)
    away = float(np.abs(answers[:, :6] - actions[:, :6]).mean())
    agreed = float(((answers[:, 6] > 0) == (actions[:, 6] > 0)).mean())
    text = say("atlas/predicted", frames=len(answers), said=said, l1=f"{away:.4f}", gripper=f"{agreed:.2f}")
    film = file.with_suffix(".gif")
    if index.is_synthetic:
        text = f"{text}\n{_film_attempt(asked, act, section, film)}"
    else:
        write_film(film, frames.look(ids).numpy())
        text = f"{text}\n{say('atlas/filmed-record')}"
    return Prediction(text=text, files=(file, film))


def _film_attempt(asked: PredictOptions, act: Act, section: AtlasSection, film: Path) -> str:
    """Film the model in the scripted world that the synthetic episodes come from; return how it went."""
    (attempt,) = start_attempts([asked.episode])
    attempt.instruction = asked.instruction or attempt.instruction

    def policy(pictures: np.ndarray, instructions: Sequence[str]) -> np.ndarray:
        with torch.no_grad():
            return act(torch.from_numpy(pictures), instructions).double().cpu().numpy()

    sizes = {"pixels": section.image_size, "views": section.num_views, "max_steps": section.trial_steps}
    write_film(film, film_attempt(attempt, policy, **sizes))
    how = "won" if attempt.is_success else "other" if attempt.is_over else "not-over"
    return say(f"atlas/filmed-{how}", said=attempt.instruction, steps=attempt.steps)


def _write_table(file: Path, answers: np.ndarray, actions: np.ndarray) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("w", newline="", encoding="utf-8") as opened:
        table = csv.writer(opened)
        table.writerow(("frame", *COLUMNS, *(f"teacher_{name}" for name in COLUMNS)))
        for frame, row in enumerate(np.concatenate((answers, actions), axis=1)):
            table.writerow((frame, *(f"{value:.5f}" for value in row)))
