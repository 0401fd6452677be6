"""What is wanted.

In: a file (YAML 1.2, JSON with comments, TOML, literal .py), a recipe, variables, words `a.b=c`.
Out: `LoadedConfig`: a frozen, checked `RunConfig` and the origin of every value; or `ConfigErrors`, all at once.
"""

from headway.config.dump import dump_yaml
from headway.config.explain import Explained, explain, schema_json
from headway.config.load import LoadedConfig, load_config
from headway.config.problems import ConfigErrors, Place, Problem
from headway.config.recipe import Recipe
from headway.config.schema import (
    BatchConfig,
    Count,
    EmaConfig,
    EnvConfig,
    EvalConfig,
    Finite,
    GuardConfig,
    LaunchConfig,
    LrConfig,
    OptimizerConfig,
    ParallelConfig,
    Positive,
    RunConfig,
    SaveConfig,
    Section,
    Share,
    TrainConfig,
    Whole,
)

__all__ = [
    "BatchConfig",
    "ConfigErrors",
    "Count",
    "EmaConfig",
    "EnvConfig",
    "EvalConfig",
    "Explained",
    "Finite",
    "GuardConfig",
    "LaunchConfig",
    "LoadedConfig",
    "LrConfig",
    "OptimizerConfig",
    "ParallelConfig",
    "Place",
    "Positive",
    "Problem",
    "Recipe",
    "RunConfig",
    "SaveConfig",
    "Section",
    "Share",
    "TrainConfig",
    "Whole",
    "dump_yaml",
    "explain",
    "load_config",
    "schema_json",
]
