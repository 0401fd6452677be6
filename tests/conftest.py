"""The tests compute with what this processor really runs, as ranks do: set before anything imports a framework."""

from __future__ import annotations

import os

from headway.machine import find_cpu

found = find_cpu()
if found is not None:
    os.environ.update(found.settings)
