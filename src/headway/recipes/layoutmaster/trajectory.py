"""Disturbed layouts and the ways back, in a format that cannot run code.

`trajectories.safetensors` holds, for each noise level, `noise_0.1/start_layout (N,6)`, `…/target_layout (N,6)`,
`…/element_mask (N)`, `…/linear_trajectory (T,N,6)` and `…/smooth_trajectory (T,N,6)`, with the metadata of the
original's pickle as JSON in its header. Layouts are in pixels of the canvas.

Run as a program it writes the file for every poster that has none:
`python -m headway.recipes.layoutmaster.trajectory --data_root DIR`.
"""

from __future__ import annotations

import json
import os
import sys
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import click
import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from headway.errors import CheckError
from headway.messages import say
from headway.recipes.layoutmaster.poster import SMALLEST_SIDE, Poster, list_posters, read_poster
from headway.recipes.layoutmaster.section import LEVELS, STATE_DIM, LayoutMasterSection

FILE = "trajectories.safetensors"
PICKLE = "trajectories.pkl"
PARTS = ("start_layout", "target_layout", "element_mask", "linear_trajectory", "smooth_trajectory")

Floats = NDArray[np.float32]
_SAME_PX = 1.0
"""A box that is farther from the poster's own is another element's."""


def level_name(level: float) -> str:
    """Return the key of a noise level."""
    return f"noise_{level:.1f}"


def target_layout(poster: Poster, max_elements: int) -> tuple[Floats, Floats]:
    """Return where the elements belong, (N, 6) in pixels, and the mask (N); layers count from 0, confidence is 1."""
    target, mask = np.zeros((max_elements, STATE_DIM), np.float32), np.zeros(max_elements, np.float32)
    for place, element in enumerate(poster.elements):
        target[place] = (*element.box, place, 1.0)
        mask[place] = 1.0
    return target, mask


def disturb(
    target: Floats, mask: Floats, level: float, section: LayoutMasterSection, dice: np.random.Generator
) -> Floats:
    """Return a layout disturbed by a noise level: places by 10% of the canvas a unit, sizes by 5%."""
    width, height = section.canvas_size
    side = np.array([width, height, width, height], np.float32)
    sigma = level * side * np.array([0.1, 0.1, 0.05, 0.05], np.float32)
    start = target.copy()
    start[:, :4] += dice.normal(size=(len(target), 4)).astype(np.float32) * sigma
    start[:, 2:4] = np.clip(start[:, 2:4], SMALLEST_SIDE, side[2:])
    start[:, :2] = np.clip(start[:, :2], 0, side[:2] - SMALLEST_SIDE)
    start[:, 4] = np.clip(start[:, 4] + dice.normal(size=len(target)) * 3 * level, 0, section.layers)
    start[:, 5] = np.clip(start[:, 5] + dice.normal(size=len(target)) * 0.2 * level, 0, 1)
    return start * mask[:, None]


def make_trajectories(poster: Poster, section: LayoutMasterSection) -> dict[str, Floats]:
    """Return the tensors of the file, the same for the same poster name on any machine."""
    target, mask = target_layout(poster, section.max_elements)
    dice = np.random.default_rng(zlib.crc32(poster.name.encode()))
    time = np.linspace(0, 1, section.trajectory_steps, dtype=np.float32)[:, None, None]
    made: dict[str, Floats] = {}
    for level in LEVELS:
        start = disturb(target, mask, level, section, dice)
        middle = (start + target) / 2
        middle[:, :4] += dice.normal(size=(len(target), 4)) * level * 0.02 * section.canvas_size[0]
        middle *= mask[:, None]
        smooth = (1 - time) ** 2 * start + 2 * time * (1 - time) * middle + time**2 * target
        parts = (start, target, mask, (1 - time) * start + time * target, smooth)
        made |= {f"{level_name(level)}/{name}": part for name, part in zip(PARTS, parts, strict=True)}
    return {name: np.ascontiguousarray(part, np.float32) for name, part in made.items()}


def metadata_of(poster: Poster, section: LayoutMasterSection) -> dict[str, str]:
    """Return the header: the original's metadata of each level, as JSON."""
    told = {
        "poster_name": poster.name,
        "num_elements": len(poster.elements),
        "canvas_size": list(section.canvas_size),
        "trajectory_steps": section.trajectory_steps,
    }
    return {level_name(level): json.dumps({**told, "noise_level": level}, ensure_ascii=False) for level in LEVELS}


def write_trajectories(folder: Path, tensors: Mapping[str, Floats], metadata: Mapping[str, str]) -> Path:
    """Write the file in one step: it is there whole or not at all."""
    temp = folder / f".{FILE}.tmp-{os.getpid()}"
    try:
        save_file(dict(tensors), temp, metadata=dict(metadata))
        temp.replace(folder / FILE)
    finally:
        temp.unlink(missing_ok=True)
    return folder / FILE


def check_trajectories(tensors: Mapping[str, NDArray[np.generic]], elements: int | None, source: Path) -> None:
    """Refuse tensors that are not what the format says: names, shapes, finite numbers."""
    for level in LEVELS:
        for part in PARTS:
            name = f"{level_name(level)}/{part}"
            if name not in tensors:
                raise CheckError(
                    "layoutmaster/bad-trajectories", file=source, why=say("layoutmaster/why-missing", name=name)
                )
    num = tensors[f"{level_name(LEVELS[0])}/element_mask"].shape[-1] if elements is None else elements
    for name, tensor in tensors.items():
        shape = (num,) if name.endswith("element_mask") else (num, STATE_DIM)
        if tensor.dtype != np.float32 or tensor.shape[-len(shape) :] != shape or not np.isfinite(tensor).all():
            why = say("layoutmaster/why-tensor", name=name, dtype=tensor.dtype, shape=tensor.shape, num=num)
            raise CheckError("layoutmaster/bad-trajectories", file=source, why=why)


def read_starts(folder: Path, target: Floats) -> Floats:
    """Return the start layouts of all levels, (levels, N, 6); the long trajectories are not read.

    The file's own target is compared with the poster's: with another order, each start would be another element's.
    """
    file = folder / FILE
    if not file.is_file():
        code = "layoutmaster/only-pickle" if (folder / PICKLE).is_file() else "layoutmaster/no-trajectories"
        raise CheckError(code, folder=folder, root=folder.parent)
    try:
        with safe_open(str(file), framework="np") as opened:
            starts: Sequence[Floats] = [opened.get_tensor(f"{level_name(level)}/start_layout") for level in LEVELS]
            held: Floats = opened.get_tensor(f"{level_name(LEVELS[0])}/target_layout")
    except (SafetensorError, OSError) as err:
        raise CheckError("layoutmaster/bad-trajectories", file=file, why=err) from err
    elements = len(target)
    known = min(len(held), elements)
    away = np.abs(held[:known, :4] - target[:known, :4]).max(axis=1, initial=0.0)
    if (away > _SAME_PX).any():
        at = int(away.argmax())
        why = say("layoutmaster/why-other-target", num=int((away > _SAME_PX).sum()), place=at, away=f"{away[at]:.1f}")
        raise CheckError("layoutmaster/bad-trajectories", file=file, why=why)
    out = np.zeros((len(LEVELS), elements, STATE_DIM), np.float32)
    for row, start in zip(out, starts, strict=True):
        if start.ndim != 2 or start.shape[1] != STATE_DIM or not np.isfinite(start).all():
            why = f"start_layout is {start.shape}, or not finite; it should be (N, {STATE_DIM})"
            raise CheckError("layoutmaster/bad-trajectories", file=file, why=why)
        row[: len(start)] = start[:elements]
    return out


@click.command(name="trajectory")
@click.option("--data_root", required=True, type=click.Path(path_type=Path, file_okay=False))
@click.option("--limit", type=click.IntRange(min=1))
@click.option("--steps", default=50, type=click.IntRange(min=2))
def main(data_root: Path, limit: int | None, steps: int) -> None:
    """Write trajectories for the posters of a folder that have none."""
    section = LayoutMasterSection(data_dir=str(data_root), trajectory_steps=steps)
    folders = [folder for folder in list_posters(data_root) if not (folder / FILE).exists()][:limit]
    try:
        for folder in folders:
            poster = read_poster(folder, section)
            write_trajectories(folder, make_trajectories(poster, section), metadata_of(poster, section))
    except CheckError as err:
        click.echo(str(err), err=True)
        sys.exit(err.exit_code)
    click.echo(say("layoutmaster/made-trajectories", num=len(folders), folder=data_root))


if __name__ == "__main__":
    main()
