"""Makes what ranks read: images as bytes, layouts as arrays, and what answers without a model score."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import numpy as np
from blake3 import blake3
from numpy.typing import NDArray
from safetensors.numpy import save_file

from headway.errors import CheckError
from headway.recipes.layoutmaster.data import SYNTHETIC_MARK, Index, index_json
from headway.recipes.layoutmaster.picture import load_pixels
from headway.recipes.layoutmaster.poster import Poster, read_poster
from headway.recipes.layoutmaster.section import LayoutMasterSection
from headway.recipes.layoutmaster.synthetic import NUM_POSTERS, write_posters
from headway.recipes.layoutmaster.trajectory import read_starts, target_layout

_RANDOM_DRAWS = 20


def install_synthetic(section: LayoutMasterSection, base: Path) -> None:
    """Put synthetic posters into a data folder; those that are there already stay."""
    temp = base / f".synthetic.tmp-{os.getpid()}"
    shutil.rmtree(temp, ignore_errors=True)
    temp.mkdir(parents=True)
    try:
        write_posters(temp, section)
        # Before the first poster has its name: a set that was cut short is known as one and completed later.
        (base / SYNTHETIC_MARK).write_text(json.dumps({"posters": NUM_POSTERS}) + "\n", encoding="utf-8")
        for poster in sorted(temp.iterdir()):
            if not (base / poster.name).exists():
                poster.rename(base / poster.name)
    finally:
        shutil.rmtree(temp, ignore_errors=True)


def write_arrays(section: LayoutMasterSection, folders: list[Path], out: Path, *, mark: str) -> None:
    """Write images.bin, layouts.safetensors and index.json of some posters into a folder."""
    num_train = int(len(folders) * section.train_ratio)
    if not 0 < num_train < len(folders):
        raise CheckError("layoutmaster/few-posters", have=len(folders), ratio=section.train_ratio)
    posters = [read_poster(folder, section) for folder in folders]
    missing, num_images = 0, 0
    with (out / "images.bin").open("wb") as file:
        for poster in posters:
            for element in poster.elements:
                missing += element.image is None
                num_images += 1
                file.write(load_pixels(element.image, section.image_size).tobytes())
    arrays = stack_layouts(posters, section)
    save_file(arrays, out / "layouts.safetensors")
    index = Index(
        fingerprint=mark,
        names=[poster.name for poster in posters],
        num_train=num_train,
        num_images=num_images,
        image_size=section.image_size,
        missing_images=missing,
        baselines=score_baselines(arrays, num_train, section),
        content={name: _hash(out / name) for name in ("images.bin", "layouts.safetensors")},
    )
    (out / "index.json").write_text(index_json(index), encoding="utf-8")


def stack_layouts(posters: list[Poster], section: LayoutMasterSection) -> dict[str, NDArray[np.generic]]:
    """Return targets, starts, masks and the place of each poster's first image, one row per poster."""
    layouts = [target_layout(poster, section.max_elements) for poster in posters]
    counts = np.array([len(poster.elements) for poster in posters], np.int64)
    backdrop = np.zeros((len(posters), section.max_elements), np.uint8)
    for row, poster in zip(backdrop, posters, strict=True):
        row[: len(poster.elements)] = [element.is_backdrop for element in poster.elements]
    return {
        "target": np.stack([target for target, _ in layouts]),
        "start": np.stack(
            [read_starts(poster.folder, target) for poster, (target, _) in zip(posters, layouts, strict=True)]
        ),
        "counts": counts,
        "first_image": np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)[:-1]]),
        "backdrop": backdrop,
    }


def score_baselines(
    arrays: dict[str, NDArray[np.generic]], num_train: int, section: LayoutMasterSection
) -> dict[str, float]:
    """Return the mean IoU on the held-out posters of random boxes and of the mean training box."""
    target, counts = arrays["target"].astype(np.float64), arrays["counts"].astype(np.int64)
    mask = np.arange(target.shape[1]) < counts[:, None]
    train, held = target[:num_train][mask[:num_train]][:, :4], target[num_train:][mask[num_train:]][:, :4]
    dice = np.random.default_rng(0)
    corners = np.sort(dice.random((_RANDOM_DRAWS, len(held), 2, 2)), axis=2) * np.array(section.canvas_size)
    random = np.concatenate([corners[:, :, 0], corners[:, :, 1] - corners[:, :, 0]], axis=-1)
    return {
        "random_mean_iou": float(paired_iou(random, held).mean()),
        "constant_mean_iou": float(paired_iou(train.mean(0), held).mean()),
    }


def paired_iou(one: NDArray[np.float64], other: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the IoU of boxes x, y, w, h, pair by pair."""
    low = np.maximum(one[..., :2], other[..., :2])
    high = np.minimum(one[..., :2] + one[..., 2:4], other[..., :2] + other[..., 2:4])
    both = np.prod(np.clip(high - low, 0, None), axis=-1)
    union = np.prod(one[..., 2:4], axis=-1) + np.prod(other[..., 2:4], axis=-1) - both
    answer: NDArray[np.float64] = both / np.maximum(union, 1e-9)
    return answer


def _hash(file: Path) -> str:
    return str(blake3().update_mmap(file).hexdigest())
