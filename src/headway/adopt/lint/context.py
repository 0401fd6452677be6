"""What the rules may look at beside the line they judge."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from headway.adopt.record import Launch, Setting

TORCHRUN_LIKE = ("torchrun", "torch.distributed.launch")
SETS_RANKS = (
    *TORCHRUN_LIKE,
    "accelerate",
    "deepspeed",
    "llamafactory",
    "swift",
    "mm_dist_train",
    "colossalai",
)
"""Launchers that set RANK, WORLD_SIZE and the like for every rank, over whatever the user exported.

Not among them: composer takes them from the environment, and srun, mpirun, horovod, ray and paddle leave them alone.
"""
SETS_ADDRESS = (*TORCHRUN_LIKE, "accelerate", "deepspeed", "colossalai")
"""Launchers that give the ranks an address of their own, made from their flags."""

Version = tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """The whole text, and the torch it will meet."""

    launches: tuple[Launch, ...] = ()
    settings: tuple[Setting, ...] = ()
    torch: Version | None = None
    """None: not known, so that rules for one version name it."""
    values: Mapping[str, str] = field(default_factory=dict)
    """Last known value of each variable."""
    announced: tuple[str, ...] = ()
    """What the text tells its reader."""
    used: frozenset[str] = frozenset()
    """Variables that the text itself puts into its commands: taking one away would change them."""

    def by_launcher(self, *names: str) -> tuple[Launch, ...]:
        """Return the launches of some launchers."""
        return tuple(launch for launch in self.launches if launch.launcher in names)

    @property
    def is_plain_python(self) -> bool:
        """Whether plain python is all that starts the ranks, so that RANK and its like are the user's own affair."""
        others = ("composer", "other", "horovod", "mpirun")
        return bool(self.by_launcher("python")) and not self.by_launcher(*SETS_RANKS, *others)

    def is_all(self, *names: str) -> bool:
        """Whether there are launches, and all of them are by these launchers; a script may well hide one of them."""
        return bool(self.launches) and len(self.by_launcher(*names, "other")) == len(self.launches)


def parse_version(text: str) -> Version | None:
    """Return major and minor of `2.13.0+cpu`."""
    match = re.match(r"(\d+)\.(\d+)", text)
    return (int(match[1]), int(match[2])) if match else None
