"""What the guide's commands are told: their flags, and a config file at the size that is trained here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from headway.config import LoadedConfig, flatten, layer_of, write_word
from headway.errors import UsageError
from headway.recipes import guided
from headway.recipes.layoutmaster.data import base_dir
from headway.recipes.layoutmaster.poster import list_posters

CONFIG = "config_data_action_head.json"
FLAGS = ("config", "mode", "resume", "checkpoint", "num_samples", "output_dir", "poster_dir")

_OF_SIZE = (
    *(f"task.{key}" for key in ("hidden_dim", "num_layers", "num_heads", "dropout", "image_size", "trajectory_steps")),
    *(f"task.{key}" for key in ("visual_backbone", "visual_dim", "backbone_path", "freeze_visual", "synthetic")),
    *("parallel.all_workers", "parallel.workers", "preset", "recipe"),
)
"""Keys that describe the guide's model and machine; all others mean the same at every size."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A command's flags by name, and the words that are not flags: `key=value`."""

    flags: dict[str, str] = field(default_factory=dict)
    words: tuple[str, ...] = ()

    @property
    def config(self) -> Path:
        """The config file, which must be there."""
        path = Path(self.flags.get("config", CONFIG))
        if not path.is_file():
            known = ", ".join(sorted(file.name for file in Path.cwd().glob("*.json"))) or "n/a"
            raise UsageError("layoutmaster/guide-no-config", path=path, known=known)
        return path


def read_flags(argv: Sequence[str]) -> Asked:
    """Return `--flag value`, `--flag=value` and `key=value` apart; a flag the original does not have is refused."""
    flags: dict[str, str] = {}
    words: list[str] = []
    waiting = list(argv)
    while waiting:
        word = waiting.pop(0)
        if not word.startswith("--"):
            if "=" not in word:
                raise UsageError("layoutmaster/guide-odd-word", word=word)
            words.append(word)
            continue
        name, is_pair, value = word[2:].partition("=")
        name = name.replace("-", "_")
        if name not in FLAGS:
            raise UsageError("layoutmaster/guide-odd-flag", flag=word, known=", ".join(f"--{one}" for one in FLAGS))
        if not is_pair and not waiting:
            raise UsageError("layoutmaster/guide-no-value", flag=word)
        flags[name] = value if is_pair else waiting.pop(0)
    return Asked(flags, tuple(words))


def choose_words(config: Path, words: Sequence[str], *, is_full: bool) -> list[str]:
    """Return what `headway train` is told: the guide's file as it is, or the recipe's small size with its numbers."""
    loaded = guided.load(config, ["recipe=layoutmaster", *words])
    # Every checkpoint of the guide can be gone on from, so none is thrown away; the best is looked for as often.
    own = ["save.keep_last=1000000"]
    if loaded.config.eval.every_epochs is None and loaded.config.save.every_epochs is not None:
        own += ["eval.every=0", f"eval.every_epochs={loaded.config.save.every_epochs:g}"]
    if is_full:
        return [str(config), "recipe=layoutmaster", *own, *words]
    values = flatten(loaded.config.model_dump(mode="json"))
    kept = [
        write_word(key, values[key])
        for key, origin in loaded.origins.items()
        if layer_of(origin) == "file" and key not in _OF_SIZE and _holds_here(key, loaded)
    ]
    # The recipe's own length in steps is taken back where the file counts epochs.
    length = [] if loaded.config.train.epochs is None or guided.asks_for_steps(loaded) else ["train.steps=null"]
    return ["layoutmaster", *own, *length, *kept, *words]


def _holds_here(key: str, loaded: LoadedConfig) -> bool:
    """Say whether a number of the file has a meaning at the small size, with what is here and what else was asked."""
    if key == "train.epochs":
        return not guided.asks_for_steps(loaded)
    return key != "task.data_dir" or bool(list_posters(base_dir(loaded.config.task)))
