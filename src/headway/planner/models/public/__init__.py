"""Public models by name: a name, the words of a step and a machine come in, a `NamedForecast` goes out.

A folder of its own, so that only who asks pays for the networks it knows.
"""

from headway.planner.models.public.model import (
    NamedForecast,
    find_named,
    foresee_named,
    largest_batch,
    list_models,
    list_words,
    other_ways,
    read_settings,
    read_words,
)
from headway.planner.models.public.step import BITSANDBYTES, NF4, Settings

__all__ = [
    "BITSANDBYTES",
    "NF4",
    "NamedForecast",
    "Settings",
    "find_named",
    "foresee_named",
    "largest_batch",
    "list_models",
    "list_words",
    "other_ways",
    "read_settings",
    "read_words",
]
