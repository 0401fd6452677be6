"""From the layers to one checked config that remembers where each value came from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from headway.config.check import check_settings
from headway.config.env import read_settings
from headway.config.keys import Keys
from headway.config.layers import Layers, Setting
from headway.config.origin import Origin, layer_of, origin_at
from headway.config.overrides import Word, split_words
from headway.config.problems import COMMAND_LINE, DEFAULT, RECIPE_LAYER, Place, Problems
from headway.config.read import read_config
from headway.config.recipe import SIZED_PRESETS, Recipe
from headway.config.schema import RunConfig
from headway.config.source import FORMS
from headway.config.tree import Entry, Node
from headway.errors import HeadwayError


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedConfig:
    """A checked config and how it came about."""

    config: RunConfig
    """`config.task` is an instance of the recipe's own section."""
    recipe: Recipe
    origins: dict[str, Origin]
    """Every dotted key to the layer that set it: `run.yaml:3:5`, `preset balanced`, `command line`, `default`."""
    warnings: tuple[tuple[str, dict[str, object]], ...] = ()
    """Message codes and facts of settings that have no effect."""
    guide_names: Mapping[str, str] = field(default_factory=dict)
    """Dotted key to the guide's own name, for values that were written with it."""

    @property
    def framework(self) -> str:
        """What the ranks train with: `torch` or `mindspore`."""
        choose = self.recipe.framework
        return choose(self.config.task) if choose is not None else "torch"


def load_config(
    source: str | Path | None = None,
    *,
    recipe: Recipe | Callable[[str], Recipe],
    overrides: Sequence[str] = (),
    environ: Mapping[str, str] | None = None,
    stored: Mapping[str, str] | None = None,
) -> LoadedConfig:
    """Return the config of default < recipe < preset < file < environment < overrides, or raise all its problems.

    Args:
        source: the config file, or the name or folder of a recipe (what `headway train` takes first).
        recipe: the recipe, or how to find one by the name that the layers give in `recipe`.
        overrides: `a.b=c`, `--a.b=c`, `--set a.b=c`; of two for one key the last counts.
        environ: the environment; none is read when it is not given.
        stored: for a resolved config, which layer had set each of its values: with them the layers are what they
            were, and whatever is decided between two keys is decided as it was.
    """
    problems = Problems()
    path, words = _split_source(source)
    words += split_words(overrides, problems)
    variables = [
        Word(key, text, Place(1, f"environment {variable}", form="variable"))
        for variable, key, text in read_settings(environ or {})
    ]
    tree = read_config(path, problems) if path else Node({})
    found = _find_recipe(recipe, tree, path, [*variables, *words], problems)
    keys = Keys(found)
    layers = Layers(keys, problems)
    if isinstance(recipe, Recipe):
        layers.add_recipe({"recipe": found.name}, Place(3, f"recipe {found.name}"))
    layers.add_recipe(found.defaults, Place(3, f"recipe {found.name}"))
    _add_preset(layers, found, tree, path, [*variables, *words], problems)
    of_recipe = dict(layers.settings)
    if path:
        layers.add_file(tree, Place(0, str(path), form=FORMS[path.suffix.lower()]))
    layers.take_back([word for word in words if word.is_reset], of_recipe)
    before = _restore_layers(layers, stored) if stored is not None else {}
    layers.add_words(variables)
    layers.add_words([word for word in words if not word.is_reset])
    config = check_settings(layers, keys, problems)
    problems.raise_if_any()
    assert config is not None, "a config that does not pass has problems"
    return LoadedConfig(
        config=config,
        recipe=found,
        origins={key: _origin(layers.settings.get(key), before.get(key)) for key in keys.values},
        warnings=(*_tell_notes(problems), *layers.warnings),
        guide_names={key: setting.alias for key, setting in layers.settings.items() if setting.alias},
    )


def _restore_layers(layers: Layers, stored: Mapping[str, str]) -> dict[str, tuple[Setting, str]]:
    """Return each setting of a resolved config with the layer that had set it.

    Words of earlier command lines are counted: of two that exclude each other the later one decides, and what is typed
    now decides over all of them.
    """
    turns = [int(turn) for origin in stored.values() if (turn := _turn_of(origin))]
    names = {COMMAND_LINE.source: f"{COMMAND_LINE.source} {max(turns, default=0) + 1}"}
    found = {}
    for key, setting in layers.settings.items():
        origin = stored.get(key, DEFAULT.source)
        if layer_of(origin) in ("default", "recipe", "preset"):
            # A recipe's paths keep their `~`. Values of other layers keep their line, for an error in an edited file.
            setting = layers.settings[key] = replace(setting, place=Place(RECIPE_LAYER, origin))
        found[key] = setting, names.get(origin, origin)
    return found


def _turn_of(origin: str) -> str:
    """Return the number in `command line 2`, or nothing."""
    turn = origin.removeprefix(f"{COMMAND_LINE.source} ")
    return turn if turn != origin and turn.isascii() and turn.isdigit() else ""


def _origin(setting: Setting | None, before: tuple[Setting, str] | None) -> Origin:
    if setting is None:
        return origin_at(DEFAULT)
    if before is not None and before[0] is setting:
        return Origin(before[1], layer_of(before[1]))
    return origin_at(setting.place)


def _tell_notes(problems: Problems) -> list[tuple[str, dict[str, object]]]:
    """Return the notes of a plain .json: whoever names a file .jsonc knows that only some programs read it."""
    return [(code, {"place": str(place)}) for place, code in problems.notes if Path(place.source).suffix == ".json"]


def _split_source(source: str | Path | None) -> tuple[Path | None, list[Word]]:
    """Tell a file from a recipe: a file has a known ending or is there; the rest is a recipe's name or folder."""
    if source is None:
        return None, []
    path = Path(source)
    if path.is_dir() and not isinstance(source, Path):
        # A folder is a recipe, also one that happens to have a built-in's name; a run directory is a slip worth a hint.
        is_file = (path / "config.yaml").is_file() and not (path / "preset.py").is_file()
    else:
        is_file = isinstance(source, Path) or path.suffix.lower() in FORMS or path.exists()
    if is_file:
        return path, []
    return None, [Word("recipe", str(source), COMMAND_LINE)]


def _find_recipe(
    recipe: Recipe | Callable[[str], Recipe],
    tree: Node,
    path: Path | None,
    words: list[Word],
    problems: Problems,
) -> Recipe:
    name, place = _early_value("recipe", tree, path, words)
    if isinstance(recipe, Recipe):
        if name is not None and name != recipe.name:
            problems.add(place, "config/other-recipe", wanted=name, given=recipe.name)
        return recipe
    try:
        return recipe(name if name is not None else str(RunConfig.model_fields["recipe"].default))
    except HeadwayError as error:
        problems.stop(place, error.code, **error.facts)


def _add_preset(
    layers: Layers, recipe: Recipe, tree: Node, path: Path | None, words: list[Word], problems: Problems
) -> None:
    name, place = _early_value("preset", tree, path, words)
    if name is None:
        default = recipe.defaults.get("preset")
        name, place = (str(default), Place(3, f"recipe {recipe.name}")) if default else (None, place)
    if name is None:
        return
    if name in SIZED_PRESETS and name not in recipe.presets:
        return  # it says how much memory to fill, and that is for the plan to work out
    if name not in recipe.presets:
        known = ", ".join(dict.fromkeys([*recipe.presets, *SIZED_PRESETS]))
        problems.add(place, "config/no-preset", name=name[:60], recipe=recipe.name, known=known)
        return
    layers.add_recipe(recipe.presets[name], Place(3, f"preset {name}"))


def _early_value(key: str, tree: Node, path: Path | None, words: list[Word]) -> tuple[str | None, Place]:
    """Return the text of a key that decides how the others are read, before they are: the highest layer's."""
    for word in reversed(words):
        if word.name.casefold() == key:
            return (word.text if word.text not in ("", "null", "none", "~") else None), word.place
    entry = tree.value.get(key) if isinstance(tree.value, dict) else None
    if entry is not None and path is not None and isinstance(entry.node.value, str):
        text = entry.node.value
        return (None if text in ("none", "None") else text), _file_place(path, entry)
    return None, DEFAULT


def _file_place(path: Path, entry: Entry) -> Place:
    return Place(0, str(path), entry.node.line, entry.node.column, FORMS[path.suffix.lower()])
