"""What was typed behind one of a guide's scripts: the script's own flags, and settings of the config."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from headway.errors import UsageError

FULL_SIZE = "--full-size"
HELP = ("--help", "-h")


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A script's arguments, taken apart."""

    flags: Mapping[str, str] = field(default_factory=dict)
    """The script's own flags by name, with `_`."""
    words: tuple[str, ...] = ()
    """Settings of the config, as `key=value`."""
    is_full_wanted: bool = False
    """Whether the guide's own size is asked for."""

    def config(self, usual: str, flag: str = "config") -> Path:
        """Return the config file, which must be there."""
        path = Path(self.flags.get(flag, usual))
        if not path.is_file():
            folder = Path(usual).parent
            known = ", ".join(sorted(str(one) for one in folder.glob(f"[!_]*{Path(usual).suffix}"))) or "n/a"
            raise UsageError("guide/no-config", path=path, known=known, usual=usual)
        return path


def read_flags(
    argv: Sequence[str],
    known: Sequence[str],
    *,
    hidden: Sequence[str] = (),
    takes_settings: bool = False,
    takes_first: str | None = None,
) -> Asked:
    """Return the flags of a script and the settings beside them.

    `--flag value`, `--flag=value` and `key=value` are the same everywhere.

    Args:
        known: the script's own flags, each with a value.
        hidden: further ones that launchers and our own scripts add; not listed when a flag is refused.
        takes_settings: any other flag is a setting of the config (`--num_iterations=50`, a bare `--image_aug` is true);
            else it is refused.
        takes_first: the flag that a first word without a dash stands for (`./train_dual_gpu.sh FILE`).
    """
    flags: dict[str, str] = {}
    words: list[str] = []
    waiting = [word for word in argv if word not in (FULL_SIZE, "--")]
    if takes_first and waiting and not waiting[0].startswith("-") and "=" not in waiting[0]:
        flags[takes_first] = waiting.pop(0)
    while waiting:
        word = waiting.pop(0)
        name, is_pair, value = word.removeprefix("--").partition("=")
        name = name.replace("-", "_") if word.startswith("--") else name
        if not word.startswith("--"):
            if not is_pair:
                raise UsageError("guide/odd-word", word=word)
            words.append(word)
        elif name in (*known, *hidden):
            if not is_pair and not waiting:
                raise UsageError("guide/no-value", flag=word)
            flags[name] = value if is_pair else waiting.pop(0)
        elif takes_settings or "." in name:  # `--data.batch_size=16`: no flag of a script has a dot
            words.append(f"{name}={value if is_pair else _take_value(waiting)}")
        else:
            raise UsageError("guide/odd-flag", flag=word, known=", ".join(f"--{one}" for one in known))
    return Asked(flags=flags, words=tuple(words), is_full_wanted=FULL_SIZE in argv)


def read_seconds(flag: str, text: str) -> float:
    """Return a time of a flag in seconds, which must be above zero."""
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < math.inf:
        raise UsageError("guide/odd-seconds", flag=flag, value=text)
    return seconds


def read_count(flag: str, text: str) -> int:
    """Return a number of a flag, which must be whole and above zero."""
    if not text.isdecimal() or int(text) < 1:
        raise UsageError("guide/odd-count", flag=flag, value=text)
    return int(text)


def _take_value(waiting: list[str]) -> str:
    """Return the word behind a flag, where it is the flag's value; a flag that is alone is true."""
    is_value = bool(waiting) and not waiting[0].startswith("--") and "=" not in waiting[0]
    return waiting.pop(0) if is_value else "true"


def settings_of(words: Sequence[str]) -> dict[str, str]:
    """Return `key=value` words by key; of two for one key the last counts."""
    return dict(word.partition("=")[::2] for word in words)
