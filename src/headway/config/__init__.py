"""What is wanted.

In: a file (YAML 1.2, JSON with comments, TOML, literal .py), a recipe, variables, words `a.b=c`.
Out: `LoadedConfig`: a frozen, checked `RunConfig` and the origin of every value; or `ConfigErrors`, all at once.
"""

from headway.config.alert_values import has_secret, read_quiet
from headway.config.condition import Condition, ConditionError, read_condition
from headway.config.dump import dump_yaml
from headway.config.edit import edit_config
from headway.config.env import name_variable
from headway.config.explain import Explained, explain, schema_json
from headway.config.flat import flatten, write_word
from headway.config.load import LoadedConfig, load_config
from headway.config.mirror_address import MirrorAddress, parse_mirror
from headway.config.origin import LAYERS, Layer, Origin, layer_of
from headway.config.overrides import FROM_RECIPE, WORDS_OF
from headway.config.paths import PathText
from headway.config.problems import ConfigErrors, Place, Problem
from headway.config.recipe import Forecast, Recipe, Situation
from headway.config.schema import (
    AlertConfig,
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
    TrackConfig,
    TrainConfig,
    Whole,
)
from headway.config.source import FORMS
from headway.config.trust import forget, is_of_the_system, is_trusted, read_trusted, trust
from headway.redact import redact, redact_words
from headway.secret import Secret, find_secret, mask_secrets

__all__ = [
    "FORMS",
    "FROM_RECIPE",
    "LAYERS",
    "WORDS_OF",
    "AlertConfig",
    "BatchConfig",
    "Condition",
    "ConditionError",
    "ConfigErrors",
    "Count",
    "EmaConfig",
    "EnvConfig",
    "EvalConfig",
    "Explained",
    "Finite",
    "Forecast",
    "GuardConfig",
    "LaunchConfig",
    "Layer",
    "LoadedConfig",
    "LrConfig",
    "MirrorAddress",
    "OptimizerConfig",
    "Origin",
    "ParallelConfig",
    "PathText",
    "Place",
    "Positive",
    "Problem",
    "Recipe",
    "RunConfig",
    "SaveConfig",
    "Secret",
    "Section",
    "Share",
    "Situation",
    "TrackConfig",
    "TrainConfig",
    "Whole",
    "dump_yaml",
    "edit_config",
    "explain",
    "find_secret",
    "flatten",
    "forget",
    "has_secret",
    "is_of_the_system",
    "is_trusted",
    "layer_of",
    "load_config",
    "mask_secrets",
    "name_variable",
    "parse_mirror",
    "read_condition",
    "read_quiet",
    "read_trusted",
    "redact",
    "redact_words",
    "schema_json",
    "trust",
    "write_word",
]
