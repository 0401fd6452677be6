"""Pictures: reading the PNG of an element, and drawing a poster as a layout says."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from headway.errors import CheckError
from headway.recipes.layoutmaster.poster import Poster

_MOST_PIXELS = 200_000_000
"""Of one PNG: an A0 page at 150 dpi has 35 million."""
_WIDTH = 512
"""Of a drawn poster, in pixels."""
_TALLEST = 2048
_PAPER, _NO_IMAGE, _OUTLINE = (255, 255, 255, 255), (200, 200, 200, 255), (255, 0, 90, 255)


def open_png(file: Path) -> Image.Image:
    """Return an element's image with its alpha, or refuse what is not a PNG or far too large."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(file, formats=("PNG",)) as image:
                if image.width * image.height > _MOST_PIXELS:
                    raise ValueError(f"{image.width} x {image.height} pixels")
                return image.convert("RGBA")
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError, Image.DecompressionBombWarning) as err:
        raise CheckError("layoutmaster/bad-image", file=file, why=err) from err


def load_pixels(file: Path | None, side: int) -> NDArray[np.uint8]:
    """Return an element's image as (3, side, side) bytes; alpha is dropped, a missing image is black."""
    if file is None:
        return np.zeros((3, side, side), np.uint8)
    small = open_png(file).convert("RGB").resize((side, side), Image.Resampling.BILINEAR)
    return np.asarray(small, np.uint8).transpose(2, 0, 1)


def draw_poster(poster: Poster, layout_N6: Sequence[Sequence[float]], canvas: tuple[int, int]) -> Image.Image:
    """Return the poster with each element in its box, low layers first; boxes are in pixels of `canvas`."""
    height = min(_TALLEST, max(1, round(_WIDTH * poster.canvas[1] / poster.canvas[0])))
    page = Image.new("RGBA", (_WIDTH, height), _PAPER)
    pen = ImageDraw.Draw(page)
    for place in sorted(range(len(poster.elements)), key=lambda place: layout_N6[place][4]):
        x, y, w, h = layout_N6[place][:4]
        left, top = round(x / canvas[0] * _WIDTH), round(y / canvas[1] * height)
        size = max(1, round(w / canvas[0] * _WIDTH)), max(1, round(h / canvas[1] * height))
        size = min(size[0], 2 * _WIDTH), min(size[1], 2 * height)
        file = poster.elements[place].image
        if file is None:
            pen.rectangle((left, top, left + size[0], top + size[1]), fill=_NO_IMAGE)
        else:
            image = open_png(file).resize(size, Image.Resampling.BILINEAR)
            page.paste(image, (left, top), image)
        if not poster.elements[place].is_backdrop:
            pen.rectangle((left, top, left + size[0] - 1, top + size[1] - 1), outline=_OUTLINE)
    return page.convert("RGB")
