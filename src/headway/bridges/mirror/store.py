"""What a place for copies can do: four operations, each complete or raised."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol


class Store(Protocol):
    """A folder somewhere. Names are relative, with `/` between their parts.

    Every operation raises CheckpointError where the place refuses or cannot be reached.
    """

    @property
    def address(self) -> str:
        """Where it is, as people write it."""
        ...

    def sizes(self, folder: str = "") -> dict[str, int]:
        """Return name and bytes of every file below a folder of it."""
        ...

    def put(self, source: Path, name: str) -> None:
        """Copy a file there; its name appears only with all bytes, compared with ours."""
        ...

    def get(self, name: str, target: Path) -> None:
        """Copy a file from there."""
        ...

    def remove(self, names: Sequence[str]) -> None:
        """Delete files in this order; a file that is already gone is not an error."""
        ...
