"""The recipe mytask: its settings and presets. Read before any framework is loaded, so do not import torch here."""

from headway.task import Count, Recipe, Section


class MytaskSection(Section):
    """The `task` section of the config. The string below a field is its help: headway config explain task"""

    width: Count = 32
    """Units of each hidden layer."""
    depth: Count = 2
    """Hidden layers."""
    samples: Count = 1000
    """Training samples."""


RECIPE = Recipe(
    name="mytask",
    section=MytaskSection,
    task="task",  # the file beside this one
    # Settings of a run that nobody has set: headway config explain lists all keys.
    defaults={"batch.per_device": 32, "train.epochs": 20, "lr.base": 0.01},
    # headway train … preset=large
    presets={"large": {"task.width": 256, "task.depth": 4}},
    # With the number of samples, epochs can be turned into steps before the data is opened.
    train_samples=lambda section: section.samples,
)
