"""What a launch line means."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

LAUNCHERS = (
    "python",
    "torchrun",
    "torch.distributed.launch",
    "accelerate",
    "deepspeed",
    "llamafactory",
    "swift",
    "mm_dist_train",
    "mm_slurm_train",
    "slurm",
    "composer",
    "colossalai",
    "paddle",
    "horovod",
    "mpirun",
    "msrun",
    "ray",
    "other",
)


@dataclass(frozen=True, slots=True)
class Entry:
    """What the ranks run."""

    kind: Literal["script", "module", "command"]
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """One launch. None means that the text does not say; no launcher's default is filled in."""

    launcher: str
    """One of `LAUNCHERS`: what starts the ranks."""
    nproc_per_node: int | str | None = None
    """Ranks on each node: a number, `auto`, `gpu` or `cpu`."""
    nnodes: int | str | None = None
    """Nodes: a number or `min:max`."""
    node_rank: int | None = None
    master_addr: str | None = None
    master_port: int | None = None
    cuda_visible_devices: tuple[int | str, ...] | None = None
    """Devices by index or UUID; empty for an empty value (no GPU)."""
    env: Mapping[str, str] = field(default_factory=dict)
    """All that is exported or set before the command."""
    mixed_precision: str | None = None
    """Only a flag of the launcher itself."""
    launcher_config: str | None = None
    """`--config_file` of accelerate, `--runtime-env` of ray."""
    entry: Entry | None = None
    args: tuple[str, ...] = ()
    """The script's own arguments, without redirects and pipes."""
    world_size: int | None = None
    """A total that the text states."""
    hostfile: str | None = None
    wrappers: tuple[str, ...] = ()
    """`nohup`, `uv run`, `srun`, `docker run` …, outermost first."""
    sbatch: Mapping[str, str | bool] = field(default_factory=dict)
    """The `#SBATCH` header, long option to value."""
    slurm: Mapping[str, str] = field(default_factory=dict)
    """Partition and job name given to `slurm_train.sh`."""
    options: Mapping[str, str] = field(default_factory=dict)
    """The launcher's own flags as written, names with underscores; a flag without a value is empty."""
    unresolved: frozenset[str] = frozenset()
    """Variables whose value the text does not give, and command substitutions as written."""
    patterns: frozenset[str] = frozenset()
    """Words with a glob, a tilde or braces, which a shell would replace by others."""
    line: int = 1
    """Where the command begins in the text."""

    def to_json(self) -> dict[str, Any]:
        """Return the plain form: twelve keys always, the others where they say something."""
        devices = self.cuda_visible_devices
        entry = None if self.entry is None else {"kind": self.entry.kind, "name": self.entry.name}
        record: dict[str, Any] = {
            "launcher": self.launcher,
            "nproc_per_node": self.nproc_per_node,
            "nnodes": self.nnodes,
            "node_rank": self.node_rank,
            "master_addr": self.master_addr,
            "master_port": self.master_port,
            "cuda_visible_devices": None if devices is None else list(devices),
            "env": dict(self.env),
            "mixed_precision": self.mixed_precision,
            "launcher_config": self.launcher_config,
            "entry": entry,
            "args": list(self.args),
        }
        optional = {
            "world_size": self.world_size,
            "hostfile": self.hostfile,
            "wrappers": list(self.wrappers),
            "sbatch": dict(self.sbatch),
            "slurm": dict(self.slurm),
        }
        return record | {key: value for key, value in optional.items() if value not in (None, [], {})}


@dataclass(frozen=True, slots=True)
class Setting:
    """A variable that the text sets."""

    name: str
    value: str
    line: int
    is_exported: bool
    """Exported, or set before a command; a bare `NAME=value` is neither."""
    is_known: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Meaning:
    """Everything a text launches, the launch that counts first."""

    launches: tuple[Launch, ...] = ()
    """In the order of the text."""
    primary: int | None = None
    """The launch that counts: the first, or the training one where the others are servers or preparation."""
    settings: tuple[Setting, ...] = ()
    slips: tuple[tuple[str, int], ...] = ()
    """Message codes and lines of what the author did not mean as written."""
    announced: tuple[str, ...] = ()
    """What the text tells its reader with echo and printf."""
    one_line: str = ""
    """The whole text, tidied, where it is one line with one launch; what only a shell can say about it is kept so."""
    defaulted: frozenset[str] = frozenset()
    """Variables for which the text gives a default and the environment may give a value."""
    used: frozenset[str] = frozenset()
    """Variables that the text itself puts into its commands: `--nproc_per_node=$WORLD_SIZE`."""

    @property
    def launch(self) -> Launch | None:
        """The launch that counts."""
        return None if self.primary is None else self.launches[self.primary]

    @property
    def more(self) -> tuple[Launch, ...]:
        """The other launches, in order."""
        return tuple(one for place, one in enumerate(self.launches) if place != self.primary)

    @property
    def unresolved(self) -> list[str]:
        """What the text leaves open, over all launches."""
        return sorted(frozenset().union(*(one.unresolved for one in self.launches)))
