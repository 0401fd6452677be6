"""One poster's folder: what its JSON says, and which PNG belongs to which element.

    <data_dir>/<poster>/json/<name>_parse_data.json    where every layer belongs
    <data_dir>/<poster>/parse/*.png                    one image an element
    <data_dir>/<poster>/trajectories.safetensors       disturbed layouts and the ways back

A trajectories.pkl goes through `convert` first. The JSON comes from other people's tools: its numbers are checked, and
its paths are only ever used as names inside parse/.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headway.errors import CheckError
from headway.messages import say
from headway.recipes.layoutmaster.section import LayoutMasterSection

DEFAULT_CANVAS = (2480, 3508)
"""A4 at 300 dpi: what the original takes where a JSON names no canvas."""
SMALLEST_SIDE = 10.0
_JSON_BYTES = 8 << 20
_BACKDROPS = frozenset({"background", "underlay"})
_BACKDROP_SHARE = 0.9

Box = tuple[float, float, float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Element:
    """One layer of a poster, scaled to the canvas of the run."""

    id: str
    """The input's own: its `id`, or its place in the input's list."""
    box: Box
    """x, y, w, h."""
    order: float
    """Layer as the JSON says; only its rank counts."""
    category: str
    image: Path | None
    """Its PNG; None when there is none."""
    is_backdrop: bool
    """Background or underlay: everything lies on it, so it is left out of the overlap metric."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Poster:
    """A poster's elements, lowest layer first, and the canvas its JSON was written for."""

    name: str
    folder: Path
    canvas: tuple[float, float]
    elements: tuple[Element, ...]


def list_posters(data_dir: Path) -> list[Path]:
    """Return the poster folders by name: the order of a directory listing differs between file systems."""
    if not data_dir.is_dir():
        return []
    return sorted(folder for folder in data_dir.iterdir() if (folder / "json").is_dir() and (folder / "parse").is_dir())


def json_of(folder: Path) -> Path:
    """Return the ground truth of a poster."""
    found = sorted((folder / "json").glob("*_parse_data.json")) or sorted((folder / "json").glob("*.json"))
    if not found:
        raise CheckError("layoutmaster/no-json", folder=folder / "json")
    return found[0]


def read_poster(folder: Path, section: LayoutMasterSection) -> Poster:
    """Return a poster scaled to the run's canvas, its lowest layers if there are too many."""
    file = json_of(folder)
    data = _read_json(file)
    canvas = _canvas(data, file)
    layers = data.get("layers")
    if not isinstance(layers, list) or not all(isinstance(layer, dict) for layer in layers):
        raise CheckError("layoutmaster/bad-json", file=file, why=say("layoutmaster/why-layers"))
    scale = section.canvas_size[0] / canvas[0], section.canvas_size[1] / canvas[1]
    elements = [_element(layer, place, folder, scale, section, file) for place, layer in _with_files(layers)]
    if not elements:
        raise CheckError("layoutmaster/bad-json", file=file, why=say("layoutmaster/why-no-layers"))
    if len({element.id for element in elements}) < len(elements):
        raise CheckError("layoutmaster/bad-json", file=file, why=say("layoutmaster/why-same-id"))
    elements.sort(key=lambda element: element.order)
    return Poster(name=folder.name, folder=folder, canvas=canvas, elements=tuple(elements[: section.max_elements]))


def _with_files(layers: list[dict[str, Any]]) -> list[tuple[int, dict[str, Any]]]:
    """Return the layers with their places, without those that have no file where others have one. Any: JSON.

    The original drops them, so that its trajectories have no row for them.
    """
    known = [(place, layer) for place, layer in enumerate(layers) if _has_file(layer)]
    return known or list(enumerate(layers))


def _has_file(layer: dict[str, Any]) -> bool:
    files = layer.get("files")
    return isinstance(files, dict) and "layer" in files


def _read_json(file: Path) -> dict[str, Any]:
    """Any: what JSON can hold."""
    try:
        if file.stat().st_size > _JSON_BYTES:
            raise ValueError(say("layoutmaster/why-large", have=file.stat().st_size, cap=_JSON_BYTES))
        data = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as err:
        raise CheckError("layoutmaster/bad-json", file=file, why=err) from err
    if not isinstance(data, dict):
        raise CheckError("layoutmaster/bad-json", file=file, why=say("layoutmaster/why-no-object"))
    return data


def _canvas(data: dict[str, Any], file: Path) -> tuple[float, float]:
    """Any: what JSON can hold."""
    size = data.get("canvas_size")
    if size is None:
        return DEFAULT_CANVAS
    if not isinstance(size, dict):
        raise CheckError("layoutmaster/bad-json", file=file, why=say("layoutmaster/why-canvas"))
    width, height = (_number(size, key, "canvas_size", file) for key in ("width", "height"))
    if min(width, height) <= 0:
        raise CheckError(
            "layoutmaster/bad-json",
            file=file,
            why=say("layoutmaster/why-value", key="canvas_size", value=f"{width:g} × {height:g}"),
        )
    return width, height


def _number(table: dict[str, Any], key: str, where: str, file: Path) -> float:
    """Any: what JSON can hold."""
    value = table.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or abs(value) > 1e9:
        raise CheckError(
            "layoutmaster/bad-json",
            file=file,
            why=say("layoutmaster/why-value", key=f"{where}.{key}", value=str(value)[:40]),
        )
    return float(value)


def _element(
    layer: dict[str, Any],
    place: int,
    folder: Path,
    scale: tuple[float, float],
    section: LayoutMasterSection,
    file: Path,
) -> Element:
    """Any: what JSON can hold."""
    x, y, w, h, order = (_number(layer, key, f"layers[{place}]", file) for key in ("x", "y", "w", "h", "order"))
    box = clamp_box((x * scale[0], y * scale[1], w * scale[0], h * scale[1]), section.canvas_size)
    category = str(layer.get("category", ""))
    share = box[2] * box[3] / (section.canvas_size[0] * section.canvas_size[1])
    return Element(
        id=str(layer.get("id", f"element_{place}")),
        box=box,
        order=order,
        category=category,
        image=_find_image(folder / "parse", layer, place),
        is_backdrop=category.lower() in _BACKDROPS or share >= _BACKDROP_SHARE,
    )


def clamp_box(box: Box, canvas: tuple[int, int]) -> Box:
    """Return the part of a box on the canvas, at least 10 pixels each way."""
    width, height = canvas
    x, y = min(max(0.0, box[0]), width - SMALLEST_SIDE), min(max(0.0, box[1]), height - SMALLEST_SIDE)
    w, h = max(SMALLEST_SIDE, box[2]), max(SMALLEST_SIDE, box[3])
    return x, y, min(w, width - x), min(h, height - y)


def _find_image(parse: Path, layer: dict[str, Any], place: int) -> Path | None:
    """Return the element's PNG, looked for by the names the original knows. Any: what JSON can hold."""
    files = layer.get("files")
    named = [files.get("layer") if isinstance(files, dict) else None, layer.get("src")]
    names = [Path(name).name for name in named if isinstance(name, str) and "\0" not in name]
    names += [f"{name}.png" for name in names if not name.endswith(".png")]
    names += [name.replace(" ", "_") for name in names]
    for name in (*names, f"{place}.png", f"layer_{place}.png"):
        if name.endswith(".png") and (parse / name).is_file():
            return parse / name
    return None
