"""What the guide's commands are told: their flags, and its config file at the size that is trained here."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from headway.config import LoadedConfig, RunConfig
from headway.errors import UsageError
from headway.recipes import guided
from headway.recipes.atlas.data import data_dir, splits_of
from headway.recipes.atlas.preset import RECIPE
from headway.recipes.atlas.section import AtlasSection

CONFIG = "atlas/configs/train_config.yaml"
_DATA_DIR = AtlasSection.model_fields["data_dir"].default
_SMALL = (
    *(f"{key}={RECIPE.defaults[key]}" for key in ("task.image_size", "task.geom_output_dim", "task.fusion_hidden_dim")),
    "task.vggt_checkpoint=null",
    "task.lang_encoder_name=null",
    "parallel.workers=0",
)
"""What of the guide's file describes the guide's model and machine; all its other numbers hold at every size."""
OF_RUN = ("batch.", "ema.", "eval.", "guard.", "lr.", "optimizer.", "parallel.", "save.", "train.")
"""What may be other when a run goes on than when it began; model and data may not."""


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
            known = ", ".join(sorted(map(str, Path(CONFIG).parent.glob("*.y*ml")))) or "n/a"
            raise UsageError("atlas/guide-no-config", path=path, known=known)
        return path

    @property
    def lr_factor(self) -> float:
        """What `atlas/train.py` makes of a base rate of 1."""
        return float(self.flags.get("lr_factor", "1"))


@dataclass(frozen=True, slots=True)
class Choice:
    """What is trained, and where the guide's files go."""

    words: tuple[str, ...]
    """The config file and the settings over it."""
    folder: Path

    def load(self) -> RunConfig:
        """Return the whole config."""
        return guided.load(self.words[0], self.words[1:]).config


def read_flags(argv: Sequence[str], known: Sequence[str]) -> Asked:
    """Return `--flag value`, `--flag=value` and `key=value` apart; a flag the original does not have is refused."""
    flags: dict[str, str] = {}
    words: list[str] = []
    waiting = list(argv)
    while waiting:
        word = waiting.pop(0)
        name, is_pair, value = word.lstrip("-").partition("=")
        name = name.replace("-", "_")
        if not word.startswith("--") and is_pair:
            words.append(word)
        elif name not in known:
            shown = ", ".join(f"--{one}" for one in known if one not in ("local_rank", "lr_factor"))
            raise UsageError("atlas/guide-odd-flag", flag=word, known=shown)
        elif not is_pair and not waiting:
            raise UsageError("atlas/guide-no-value", flag=word)
        else:
            flags[name] = value if is_pair else waiting.pop(0)
    return Asked(flags, tuple(words))


def choose_words(asked: Asked, *, ranks: int, is_full: bool, has_gpu: bool) -> Choice:
    """Return what `headway train` is told: the guide's file with the rate of `atlas/train.py`, at the size for here."""
    # Every checkpoint of the guide can be gone on from, so none is thrown away.
    own = ["recipe=atlas", "save.every_epochs=1", "save.keep_last=1000000"]
    own += [f"parallel.{'gpus' if has_gpu else 'cpus'}={ranks}", *(["preset=published"] if is_full else _SMALL)]
    loaded = guided.load(asked.config, [*own, *asked.words])
    if not is_full:
        own += _small_words(loaded)
    # Headway's own checkpoints stay in the run directory; the file's folder is for those of the guide's names.
    folder = Path(loaded.config.out if "out" in loaded.guide_names else "checkpoints")
    own += ["out=runs", *_length_words(loaded), *_rate_words(loaded, asked.lr_factor, ranks)]
    return Choice((str(asked.config), *own, *asked.words), folder)


def _small_words(loaded: LoadedConfig) -> list[str]:
    task: AtlasSection = loaded.config.task
    words = [] if task.freeze_vggt else ["task.whiten=false"]
    if not any((data_dir(task) / split).is_dir() for split in splits_of(task)) and not _has_hdf5(task):
        words += [f"task.data_dir={_DATA_DIR}"]
    return words


def _has_hdf5(task: AtlasSection) -> bool:
    return next(data_dir(task).rglob("*.hdf5"), None) is not None


def _length_words(loaded: LoadedConfig) -> list[str]:
    """Return the recipe's own length taken back, where the file counts epochs and nobody counts steps."""
    return [] if loaded.config.train.epochs is None or guided.asks_for_steps(loaded) else ["train.steps=null"]


def _rate_words(loaded: LoadedConfig, factor: float, ranks: int) -> list[str]:
    """Return the guide's rule: by GPUs alone, so the base batch is what one GPU takes in a step.

    A rule of the file comes before that of `atlas/train.py`.
    """
    config = loaded.config
    base = (config.batch.per_device or 1) * (config.batch.accumulation or 1)
    rules = {"linear": float(ranks), "sqrt": math.sqrt(ranks), "none": 1.0}
    fits = [rule for rule, value in rules.items() if math.isclose(value, factor)]
    if loaded.guide_names.get("lr.scaling") is not None:
        fits = [config.lr.scaling]
    if not fits:
        return ["lr.scaling=none", f"lr.base={config.lr.base * factor!r}"]
    return [f"lr.base_batch={base}", f"lr.scaling={fits[0]}"]
