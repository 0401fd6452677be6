"""Reads episodes into an index, holds some out, and writes the synthetic set; imported only when one has to be made."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
import numpy.typing as npt
from blake3 import blake3

from headway.errors import CheckError
from headway.recipes.atlas.data import SYNTHETIC_MARK, Index, data_dir, index_json, splits_of
from headway.recipes.atlas.episodes import COLUMNS, Camera, Episode, read_episodes
from headway.recipes.atlas.scene import NAMES, PHRASES, draw_workspace, draw_wrist, play_episode
from headway.recipes.atlas.section import AtlasSection

EPISODES, FRAMES, PIXELS = 600, 6, 48
SCENES = 1
"""Version of the synthetic world."""
Actions = npt.NDArray[np.float32]


def write_index(section: AtlasSection, files: Sequence[Path], folder: Path) -> None:
    """Look through all episodes, hold some out, and write `actions.npy` and `index.json`."""
    base = data_dir(section)
    cameras: list[Camera] = ["workspace", "wrist"] if section.use_wrist_camera else ["workspace"]
    found = list(read_episodes(base, splits_of(section), cameras))
    held_out = _held_out(section, [episode for episode, _ in found])
    train = [pair for pair in found if pair[0].name not in held_out]
    val = [pair for pair in found if pair[0].name in held_out]
    if not train or not val:
        raise CheckError("atlas/few-episodes", folder=base, have=len(found), held=len(val))
    actions = [np.concatenate([rows for _, rows in part]) for part in (train, val)]
    np.save(folder / "actions.npy", np.concatenate(actions), allow_pickle=False)
    index = Index(
        train=[asdict(episode) for episode, _ in train],
        val=[asdict(episode) for episode, _ in val],
        content=_hash(base, files),
        baselines=score_mean(*actions),
        is_synthetic=(base / SYNTHETIC_MARK).exists(),
    )
    (folder / "index.json").write_text(index_json(index), encoding="utf-8")


def _held_out(section: AtlasSection, episodes: Sequence[Episode]) -> set[str]:
    """Return the names of held-out episodes: a folder's, or a share of each task's, whole episodes always.

    Frames of one episode look alike; with some of them in training, validation would measure memory.
    """
    if section.val_split is not None and any(episode.split for episode in episodes):
        return {episode.name for episode in episodes if episode.split == section.val_split}
    by_task: dict[str, list[str]] = defaultdict(list)
    for episode in episodes:
        by_task[episode.instruction].append(episode.name)
    out: set[str] = set()
    for names in by_task.values():
        # By a hash of the name: an episode stays on its side when others are added. One of a kind is trained on.
        drawn = sorted(names, key=lambda name: hashlib.sha256(name.encode()).digest())
        out.update(drawn[: max(1, round(section.val_share * len(names)))] if len(names) > 1 else ())
    return out


def score_mean(train: Actions, val: Actions) -> dict[str, float]:
    """Return what the training set's mean pose and commoner gripper score on held-out frames."""
    away = np.abs(val[:, :6] - train[:, :6].mean(0))
    mostly_closed = (train[:, 6] > 0).mean() > 0.5
    return {
        "mean_pose_l1": float(away.mean()),
        "mean_pose_l2": float(np.linalg.norm(away, axis=1).mean()),
        "majority_gripper_accuracy": float(((val[:, 6] > 0) == mostly_closed).mean()),
    }


def _hash(base: Path, files: Sequence[Path]) -> str:
    """Return a hash of names and bytes of all files."""
    digest = blake3(max_threads=blake3.AUTO)
    for file in files:
        digest.update(f"{file.relative_to(base).as_posix()}\0{file.stat().st_size}\0".encode())
        digest.update_mmap(file)
    return digest.hexdigest()


def write_synthetic(folder: Path, *, episodes: int = EPISODES, frames: int = FRAMES, seed: int = 0) -> None:
    """Write scripted demonstrations in the format of the real ones."""
    for number in range(episodes):
        rng = np.random.default_rng((seed, number))
        target, phrase = number % len(NAMES), PHRASES[number // len(NAMES) % len(PHRASES)]
        place = folder / "train" / f"episode_{number:06d}"
        played = play_episode(rng, target, frames)
        pictures = {
            "workspace": [draw_workspace(scene, PIXELS) for scene, _ in played],
            "wrist": [draw_wrist(scene, PIXELS) for scene, _ in played],
        }
        write_episode(place, pictures, np.stack([action for _, action in played]), phrase.format(colour=NAMES[target]))
    mark = {"scenes": SCENES, "episodes": episodes, "frames": frames, "seed": seed}
    (folder / SYNTHETIC_MARK).write_text(json.dumps(mark) + "\n", encoding="utf-8")


def write_episode(
    place: Path,
    pictures: Mapping[str, Sequence[npt.NDArray[np.uint8]]],
    actions: npt.NDArray[np.floating],
    instruction: str,
) -> None:
    """Write one episode folder."""
    import pyarrow as pa
    import pyarrow.parquet as pq
    from PIL import Image

    (place / "images").mkdir(parents=True)
    for camera, frames in pictures.items():
        for number, pixels in enumerate(frames):
            Image.fromarray(pixels).save(place / "images" / f"{camera}_{number:06d}.png", compress_level=1)
    columns = {name: pa.array(actions[:, index].astype(np.float32)) for index, name in enumerate(COLUMNS)}
    pq.write_table(pa.table(columns), place / "actions.parquet")
    (place / "language_task.txt").write_text(instruction + "\n", encoding="utf-8")
