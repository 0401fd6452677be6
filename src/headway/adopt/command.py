"""A command that the text starts, before anyone has asked which launcher it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from headway.adopt.options import Options
from headway.adopt.shell.expand import Said


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """Words, what is exported to them, and where they are."""

    words: tuple[Said, ...]
    env: Mapping[str, Said] = field(default_factory=dict)
    line: int = 1
    wrappers: tuple[str, ...] = ()
    names: frozenset[str] = frozenset()
    """What redirects and words that were set aside leave open."""
    bodies: tuple[str, ...] = ()
    """Texts of heredocs."""
    srun: Options | None = None
    """The flags of an srun round it."""
    sbatch: Mapping[str, str | bool] = field(default_factory=dict)

    @property
    def unresolved(self) -> frozenset[str]:
        """Everything the command leaves open."""
        words = frozenset().union(*(word.names for word in self.words))
        return words.union(self.names, *(value.names for value in self.env.values()))

    def behind(self, count: int) -> Command:
        """Return the command without its first words; what they left open is kept."""
        gone = frozenset().union(*(word.names for word in self.words[:count]))
        return replace(self, words=self.words[count:], names=self.names | gone)

    def with_words(self, words: tuple[Said, ...]) -> Command:
        """Return the command with other words; what the old ones left open is kept."""
        return replace(self, words=words, names=self.names.union(*(word.names for word in self.words)))

    def variable(self, name: str) -> Said | None:
        """Return a variable of the environment."""
        return self.env.get(name)


def inherit(command: Command, outer: Command) -> Command:
    """Give a command inside `bash -c` what is round it."""
    return Command(
        words=command.words,
        env={**outer.env, **command.env},
        line=outer.line,
        wrappers=command.wrappers,
        names=command.names | outer.names,
        bodies=command.bodies,
        srun=command.srun or outer.srun,
        sbatch=command.sbatch or outer.sbatch,
    )
