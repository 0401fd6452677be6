"""Small synthetic posters in the real format, whose images determine their boxes.

A category has its own shape and colours and its own place; the texts in the middle share one column, and each shows by
its bars which one it is, so its box depends on how many there are: one image alone does not tell it. A little jitter
stays that no image tells. File and element names say nothing about a place.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

from headway.recipes.layoutmaster.poster import Box, read_poster
from headway.recipes.layoutmaster.section import LayoutMasterSection
from headway.recipes.layoutmaster.trajectory import make_trajectories, metadata_of, write_trajectories

NUM_POSTERS = 240
CANVAS = (1240, 1754)
_PIXELS = 48
_JITTER = 0.008
"""Standard deviation of places and sizes that nothing tells, as a share of the canvas."""

Color = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class _Part:
    category: str
    box: Box
    """Shares of the canvas."""
    number: int = 0
    """Which of its kind it is."""


def write_posters(folder: Path, section: LayoutMasterSection, *, num: int = NUM_POSTERS, seed: int = 0) -> None:
    """Write posters with their images, JSON and trajectories into a folder."""
    for number in range(num):
        dice = np.random.default_rng([seed, number])
        poster = folder / f"Poster {number:04d}"
        _write_poster(poster, _compose(dice), dice)
        made = read_poster(poster, section)
        write_trajectories(poster, make_trajectories(made, section), metadata_of(made, section))


def _compose(dice: np.random.Generator) -> list[_Part]:
    """Return the parts of a poster, lowest layer first."""
    texts = int(dice.integers(1, 5))
    top, bottom = 0.30, 0.84
    height = (bottom - top) / texts
    parts = [_Part("background", (0.0, 0.0, 1.0, 1.0))]
    parts += [_Part("body", (0.12, top + i * height, 0.76, height * 0.85), i) for i in range(texts)]
    parts.append(_Part("title", (0.10, 0.13, 0.80, 0.13)))
    if dice.random() < 0.8:
        parts.append(_Part("footer", (0.05, 0.88, 0.90, 0.09)))
    if dice.random() < 0.8:
        parts.append(_Part("logo", (0.76, 0.02, 0.18, 0.09)))
    return parts


def _write_poster(folder: Path, parts: list[_Part], dice: np.random.Generator) -> None:
    (folder / "json").mkdir(parents=True)
    (folder / "parse").mkdir()
    tint = dice.integers(0, 60, 3)
    layers = []
    # Names and the order in the JSON are dealt out by chance, so neither tells a layer or a place.
    labels = dice.permutation(len(parts))
    for order, part in enumerate(parts):
        src = f"image_{labels[order]:02d}.png"
        _draw(part, tint, dice).save(folder / "parse" / src)
        x, y, w, h = (share + (0 if order == 0 else float(dice.normal()) * _JITTER) for share in part.box)
        layers.append(
            {
                "id": f"layer-{labels[order]:02d}",
                "x": round(x * CANVAS[0], 2),
                "y": round(y * CANVAS[1], 2),
                "w": round(w * CANVAS[0], 2),
                "h": round(h * CANVAS[1], 2),
                "order": order,
                "category": part.category,
                "src": src,
                "files": {"layer": f"parse/{src}"},
            }
        )
    layers.sort(key=lambda layer: str(layer["id"]))
    text = json.dumps({"canvas_size": {"width": CANVAS[0], "height": CANVAS[1]}, "layers": layers}, indent=1)
    (folder / "json" / f"{folder.name}_parse_data.json").write_text(text, encoding="utf-8")


def _draw(part: _Part, tint: np.ndarray, dice: np.random.Generator) -> Image.Image:
    """Return the picture of a part: a shape of its category, in colours that differ from poster to poster."""
    image = Image.new("RGBA", (_PIXELS, _PIXELS), (0, 0, 0, 0))
    draw = ImageDraw.Draw(image)
    base = {"background": (150, 170, 190), "title": (190, 40, 40), "body": (50, 60, 70), "footer": (30, 120, 60)}
    wobble = tint + dice.integers(0, 20, 3)
    color: Color = tuple(
        int(min(255, c + w)) for c, w in zip(base.get(part.category, (200, 160, 20)), wobble, strict=True)
    )  # type: ignore[assignment]  # three numbers in, three out
    side = _PIXELS
    if part.category == "background":
        draw.rectangle((0, 0, side, side), fill=color)
    elif part.category == "logo":
        draw.ellipse((6, 6, side - 6, side - 6), fill=color)
    elif part.category == "title":
        draw.rectangle((2, side // 3, side - 2, 2 * side // 3), fill=color)
    elif part.category == "footer":
        draw.polygon((0, side, side, side, side // 2, side // 2), fill=color)
    else:
        for bar in range(part.number + 1):
            draw.rectangle((4, 3 + 11 * bar, side - 4, 9 + 11 * bar), fill=color)
    return image
