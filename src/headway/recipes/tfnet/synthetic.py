"""A small set in CE-CSL's own layout: each gloss is a coloured square on its own path over a signer's background."""

from __future__ import annotations

import csv
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from headway.recipes.tfnet.labels import HEADER

MARK: Final = "synthetic.json"
FOLDERS: Final = ("video", "label")
"""In the order in which they appear: with the labels the set is complete."""
CLIPS: Final = {"train": 120, "dev": 20, "test": 20}
SIDE: Final = 64
_SIGNERS: Final = "ABCD"
_WORDS: Final = ("我", "你", "这", "可以", "后2", "称赞（我）", "哈", "学习", "老师", "朋友", "喜欢", "明天")
_ONLY_DEV: Final = "罕见"
_STOP: Final = "。"
_COLOURS: Final = ((230, 40, 40), (40, 210, 60), (60, 90, 250), (240, 220, 40))
_PATHS: Final = ("right", "down", "circle")
_SQUARE: Final = 18
_WORD_FRAMES: Final = (7, 10)
"""Fewest and most frames of one gloss."""


def write_synthetic(folder: Path, *, seed: int = 7) -> None:
    """Write clips and labels in place of an unfinished set; a folder appears whole or not at all."""
    temp = folder / "making.tmp"
    shutil.rmtree(temp, ignore_errors=True)
    dice = np.random.default_rng(seed)
    scenes = {signer: _background(dice) for signer in _SIGNERS}
    for split, clips in CLIPS.items():
        rows = []
        for index in range(clips):
            words = _sentence(dice, split, index)
            signer = _SIGNERS[index % len(_SIGNERS)]
            number = f"{split}-{index + 1:05d}"
            _write_frames(temp / "video" / split / signer / number, _play(dice, words, scenes[signer]))
            rows.append((number, signer, "".join(words), "/".join(words), ""))
        _write_labels(temp / "label" / f"{split}.csv", rows, is_cut=split == "train")
    for name in FOLDERS:
        shutil.rmtree(folder / name, ignore_errors=True)
        (temp / name).rename(folder / name)
    temp.rmdir()


def _sentence(dice: Generator, split: str, index: int) -> list[str]:
    if split == "train" and index % 40 == 0:
        return ["哈", "哈", _STOP]
    words: list[str] = []
    while len(words) < int(dice.integers(2, 4)):
        word = _WORDS[int(dice.integers(len(_WORDS)))]
        if not words or word != words[-1]:
            words.append(word)
    if split == "dev" and index == 0:
        words[0] = _ONLY_DEV
    return [*words, _STOP]


def _background(dice: Generator) -> NDArray[np.float32]:
    """Return a blurred, dark scene."""
    from PIL import Image  # only to make pictures, not to plan

    coarse = dice.uniform(20, 90, size=(8, 8, 3)).astype(np.uint8)
    smooth = Image.fromarray(coarse).resize((SIDE, SIDE), Image.Resampling.BICUBIC)
    return np.asarray(smooth, dtype=np.float32)


def _play(dice: Generator, words: list[str], scene: NDArray[np.float32]) -> Iterator[NDArray[np.uint8]]:
    for word in words:
        frames = int(dice.integers(_WORD_FRAMES[0], _WORD_FRAMES[1] + 1))
        for at in range(frames):
            picture = scene + dice.normal(0, 6, scene.shape)
            place = _place(word, at / (frames - 1))
            if place is not None:
                x, y = (round(part) for part in place)
                picture[y : y + _SQUARE, x : x + _SQUARE] = _colour(word)
            yield picture.clip(0, 255).astype(np.uint8)


def _colour(word: str) -> tuple[int, int, int]:
    if word == _ONLY_DEV:
        return (250, 250, 250)
    if word == _STOP:
        return (160, 160, 160)
    return _COLOURS[_WORDS.index(word) % len(_COLOURS)]


def _place(word: str, t: float) -> tuple[float, float] | None:
    """Return the square's corner at a share of its gloss; it rests out of sight at both ends, as hands do."""
    if t < 0.1 or t > 0.9:
        return None
    room = SIDE - _SQUARE
    if word in (_STOP, _ONLY_DEV):
        return room / 2, room * 0.9
    path = _PATHS[_WORDS.index(word) // len(_COLOURS)]
    if path == "right":
        return room * t, room * 0.3
    if path == "down":
        return room * 0.5, room * t
    return room * (0.5 + 0.45 * np.cos(2 * np.pi * t)), room * (0.5 + 0.45 * np.sin(2 * np.pi * t))


def _write_frames(folder: Path, frames: Iterator[NDArray[np.uint8]]) -> None:
    from PIL import Image

    folder.mkdir(parents=True)
    for number, frame in enumerate(frames, 1):
        Image.fromarray(frame).save(folder / f"{number:05d}.jpg", quality=90)


def _write_labels(path: Path, rows: Sequence[tuple[str, ...]], *, is_cut: bool) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(HEADER)
        writer.writerows(rows)
        if is_cut:  # as the published file is
            file.write("train-99999,A,我")
