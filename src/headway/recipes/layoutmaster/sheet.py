"""A contact sheet of predicted posters: before, after and target side by side, one row each."""

from __future__ import annotations

from pathlib import Path

from PIL import Image

_COLUMNS = ("before", "after", "target")
_WIDTH, _GAP, _MOST = 240, 8, 20
"""Pixels of a picture's width and between two of them; rows of a sheet."""


def write_sheet(folder: Path) -> Path | None:
    """Write `<folder>.png` from the pictures in a folder of predictions; none where there are none."""
    posters = sorted(path for path in folder.iterdir() if all((path / f"{name}.png").is_file() for name in _COLUMNS))
    rows = [[_open(poster / f"{name}.png") for name in _COLUMNS] for poster in posters[:_MOST]]
    if not rows:
        return None
    heights = [max(image.height for image in row) + _GAP for row in rows]
    sheet = Image.new("RGB", (len(_COLUMNS) * (_WIDTH + _GAP) - _GAP, sum(heights) - _GAP), (255, 255, 255))
    top = 0
    for row, height in zip(rows, heights, strict=True):
        for column, image in enumerate(row):
            sheet.paste(image, (column * (_WIDTH + _GAP), top))
        top += height
    out = folder.with_name(f"{folder.name}.png")
    sheet.save(out)
    return out


def _open(file: Path) -> Image.Image:
    with Image.open(file, formats=("PNG",)) as image:
        return image.convert("RGB").resize((_WIDTH, max(1, round(image.height * _WIDTH / image.width))))
