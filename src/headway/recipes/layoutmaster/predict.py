"""Laying out posters with a trained model: prediction.json under the input's own ids, and three pictures."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from headway.messages import say
from headway.recipes.layoutmaster.data import base_dir, open_index
from headway.recipes.layoutmaster.losses import iou
from headway.recipes.layoutmaster.picture import draw_poster, load_pixels
from headway.recipes.layoutmaster.poster import Poster, read_poster
from headway.recipes.layoutmaster.section import LayoutMasterSection, PredictOptions
from headway.recipes.layoutmaster.trajectory import FILE, read_starts, target_layout
from headway.task import Prediction, to_device

if TYPE_CHECKING:
    from headway.recipes.layoutmaster.task import LayoutMasterTask

_AT_ONCE = 16

Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class _Work:
    """A poster with its layouts before, and as it should be; rows in the order of its elements."""

    poster: Poster
    start: Floats
    target: Floats
    slots: NDArray[np.int64]
    """Which element each slot holds: by chance, because the elements are in the order of the answer."""


def predict_posters(task: LayoutMasterTask, model: nn.Module, asked: PredictOptions, out: Path) -> Prediction:
    """Lay out the posters asked for; return one line and the files."""
    section = task.section
    works = [_load(folder, section, asked.seed) for folder in _folders(section, asked)]
    files: list[Path] = []
    ious: list[Tensor] = []
    dice = torch.Generator().manual_seed(asked.seed)
    for first in range(0, len(works), _AT_ONCE):
        some = works[first : first + _AT_ONCE]
        for work, layout in zip(some, _lay_out(task, model, some, asked, dice), strict=True):
            boxes = torch.from_numpy(layout[:, :4]).clamp(min=0), torch.from_numpy(work.target[: len(layout), :4])
            ious.append(iou(*boxes))
            files += _write(work, layout, section, out / work.poster.name)
    mean = float(torch.cat(ious).mean())
    return Prediction(text=say("layoutmaster/predicted", num=len(works), iou=f"{mean:.3f}"), files=tuple(files))


def _folders(section: LayoutMasterSection, asked: PredictOptions) -> list[Path]:
    if asked.poster_dir:
        return [Path(asked.poster_dir).expanduser().absolute()]
    _, index = open_index(section)
    return [base_dir(section) / name for name in index.names[index.num_train :][: asked.num_samples]]


def _load(folder: Path, section: LayoutMasterSection, seed: int) -> _Work:
    poster = read_poster(folder, section)
    target, _ = target_layout(poster, section.max_elements)
    # A poster of one's own has no disturbed layouts: what its JSON says is where it starts.
    start = read_starts(folder, target)[-1] if (folder / FILE).is_file() else target
    slots = np.random.default_rng(seed).permutation(len(poster.elements))
    return _Work(poster, start, target, slots if section.head_mode == "fixed" else np.sort(slots))


def _lay_out(
    task: LayoutMasterTask, model: nn.Module, works: Sequence[_Work], asked: PredictOptions, dice: torch.Generator
) -> list[Floats]:
    """Return each poster's layout (n, 6) in pixels, rows in the order of its elements."""
    section, device = task.section, next(model.parameters()).device
    start = np.zeros((len(works), *works[0].target.shape), np.float32)
    mask = np.zeros(start.shape[:2], bool)
    for row, work in enumerate(works):
        num = len(work.slots)
        start[row, :num], mask[row, :num] = work.start[work.slots], True
    images = [load_pixels(work.poster.elements[i].image, section.image_size) for work in works for i in work.slots]
    arrays = {"images": np.stack(images), "start": start, "mask": mask}
    batch = to_device({name: torch.from_numpy(array) for name, array in arrays.items()}, device)
    noise = torch.randn(start.shape, generator=dice).to(device)
    strength = asked.strength if asked.start == "given" else None
    with torch.no_grad():
        made = task.sample(model, batch, noise, asked.steps or section.num_steps, strength=strength).cpu().numpy()
    layouts = []
    for row, work in enumerate(works):
        layout = np.empty((len(work.slots), made.shape[2]), np.float32)
        layout[work.slots] = made[row, : len(work.slots)]
        layouts.append(layout)
    return layouts


def _write(work: _Work, layout: Floats, section: LayoutMasterSection, folder: Path) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    told = prediction_json(work.poster, layout, section.canvas_size)
    file = folder / "prediction.json"
    file.write_text(json.dumps(told, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    files = [file]
    for name, rows in (("before", work.start), ("after", layout), ("target", work.target)):
        files.append(folder / f"{name}.png")
        draw_poster(work.poster, rows.tolist(), section.canvas_size).save(files[-1])
    return files


def prediction_json(poster: Poster, layout_N6: Floats, canvas: tuple[int, int]) -> dict[str, object]:
    """Return the original's format, lowest layer first; an id is the input's own, whatever layer it lands on."""
    elements = []
    for layer, place in enumerate(np.argsort(layout_N6[:, 4], kind="stable").tolist()):
        x, y, w, h, _, confidence = layout_N6[place].tolist()
        box = {"x": round(x, 2), "y": round(y, 2), "width": round(max(0.0, w), 2), "height": round(max(0.0, h), 2)}
        elements.append(
            {
                "id": poster.elements[place].id,
                "bounding_box": box,
                "layer_order": layer,
                "confidence": round(min(1.0, max(0.0, confidence)), 4),
            }
        )
    return {
        "elements": elements,
        "canvas_size": {"width": canvas[0], "height": canvas[1]},
        "total_elements": len(elements),
        "prediction_info": {
            "model": "LayoutMaster",
            "poster_name": poster.name,
            "prediction_time": datetime.now().astimezone().isoformat(timespec="seconds"),
            "total_elements": len(elements),
        },
    }
