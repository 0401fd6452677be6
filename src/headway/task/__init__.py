"""The contract of recipes: what a recipe may import, and what it gives.

In: a built-in name, or a folder of one's own. Out: its `Recipe`, and in the ranks its `Task`. A recipe imports this
package, `headway.guide`, errors, units and messages, and nothing else of Headway; nothing here imports a framework.
`task/order.py` (numpy) is the order of samples, `task/mindspore.py` the contract of tasks made of MindSpore cells.
"""

from headway.config import (
    Count,
    Finite,
    Forecast,
    PathText,
    Positive,
    Recipe,
    RunConfig,
    Section,
    Share,
    Situation,
    Whole,
)
from headway.task.build import build_on_cpu
from headway.task.contract import Batch, Data, Ids, Loss, ParamGroup, Prediction, Task, to_device
from headway.task.new_recipe import make_recipe, plan_recipe
from headway.task.parameters import hash_frozen, make_groups, refuse_other_optimizer
from headway.task.prepared_data import hold, install, lock, sync, sync_tree
from headway.task.registry import RECIPES, find_recipe, locate_in_recipe
from headway.task.samples import Samples
from headway.task.seal import is_sealed, look_at_all, look_quickly
from headway.weights import (
    Shape,
    Theirs,
    Upstream,
    Weights,
    adopt_names,
    fresh_optimizer,
    open_weights,
    read_pickle,
    read_weights,
)

__all__ = [
    "RECIPES",
    "Batch",
    "Count",
    "Data",
    "Finite",
    "Forecast",
    "Ids",
    "Loss",
    "ParamGroup",
    "PathText",
    "Positive",
    "Prediction",
    "Recipe",
    "RunConfig",
    "Samples",
    "Section",
    "Shape",
    "Share",
    "Situation",
    "Task",
    "Theirs",
    "Upstream",
    "Weights",
    "Whole",
    "adopt_names",
    "build_on_cpu",
    "find_recipe",
    "fresh_optimizer",
    "hash_frozen",
    "hold",
    "install",
    "is_sealed",
    "locate_in_recipe",
    "lock",
    "look_at_all",
    "look_quickly",
    "make_groups",
    "make_recipe",
    "open_weights",
    "plan_recipe",
    "read_pickle",
    "read_weights",
    "refuse_other_optimizer",
    "sync",
    "sync_tree",
    "to_device",
]
