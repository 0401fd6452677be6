"""Where a value came from: the layer as a record, and the place as people read it."""

from __future__ import annotations

import re
from typing import Literal, Self, get_args

from headway.config.problems import RECIPE_LAYER, Place

Layer = Literal["default", "recipe", "preset", "machine", "file", "environment", "command line"]
"""Lowest first; `machine`: found here, written by nobody."""
LAYERS: tuple[Layer, ...] = get_args(Layer)
_IN_FILE = re.compile(r":\d+:\d+$")


class Origin(str):
    """The place a value was set at (`run.yaml:3:5`, `preset balanced`, `default`), and which layer that is.

    It reads and is stored as its text. The layer is kept beside it, because the text does not tell it: a file may be
    called `preset balanced.yaml`, `recipes/mine.yaml` or `environment.yaml`.
    """

    __slots__ = ("layer",)

    layer: Layer

    def __new__(cls, text: str, layer: Layer) -> Self:
        """Return the record of a place."""
        made = super().__new__(cls, text)
        made.layer = layer
        return made

    def __reduce__(self) -> tuple[type[Origin], tuple[str, Layer]]:
        """Return what a copy is made of."""
        return Origin, (str(self), self.layer)


def origin_at(place: Place) -> Origin:
    """Return the origin of what is at a place of the layers."""
    if place.layer == RECIPE_LAYER:
        return Origin(str(place), "preset" if place.source.startswith("preset ") else "recipe")
    layers: dict[int, Layer] = {0: "file", 1: "environment", 2: "command line"}
    return Origin(str(place), layers.get(place.layer, "default"))


def layer_of(origin: str) -> Layer:
    """Return the layer of an origin; text without a record of one is a file's place, or names its layer in full."""
    if isinstance(origin, Origin):
        return origin.layer
    if _IN_FILE.search(origin):  # a file may be called `preset a.yaml`
        return "file"
    named = next((layer for layer in LAYERS if origin == layer or origin.startswith(f"{layer} ")), None)
    return named or "file"
