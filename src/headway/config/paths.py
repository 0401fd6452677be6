"""Paths in a config: `~` and `$HOME` mean what they mean in a shell, wherever the path was written."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import Annotated, Final

_VARIABLE: Final = re.compile(r"\$(?:\{(\w+)\}|([A-Za-z_]\w*))")


@dataclass(frozen=True, slots=True)
class IsPath:
    """Marks a field that names a file or a folder."""


PathText = Annotated[str, IsPath()]
"""A path; `~` and `$HOME` are replaced when the config is read."""


def expand_path(text: str) -> str | None:
    """Return the path with `~`, `~user` and `$HOME` replaced, or None when a part of it would be taken literally.

    Only a shell replaces the rest, and a folder named `~` or `$SCRATCH` is hardly what anybody wants; one that is
    there already is.
    """
    home = os.path.expanduser("~")
    expanded = _VARIABLE.sub(lambda found: home if "HOME" in found.groups() else found.group(), text)
    expanded = os.path.expanduser(expanded)
    first, *rest = expanded.split("/")
    is_literal = first.startswith("~") or "~" in rest or _VARIABLE.search(expanded) is not None
    return None if is_literal and not os.path.lexists(expanded) else expanded
