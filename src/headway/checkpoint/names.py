"""Names inside a checkpoints folder. What a name means is decided here and nowhere else.

`step-00001000` is a checkpoint; `step-00001000.r1` is a second writing of the same step, made when the first name
was taken, because a name is never used twice. `.tmp-3` is being written by attempt 3 (`.tmp-3.1`: its second try),
`.trash-…` is being deleted, `.dropped-3` tells the other ranks of attempt 3 that rank 0 gave up on that step.
"""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Final

LATEST: Final = "latest"
MANIFEST: Final = "manifest.json"
MANIFEST_HASH: Final = "manifest.b3"

_FINAL: Final = re.compile(r"step-([0-9]{8,18})(?:\.r([1-9][0-9]{0,5}))?")
_TEMP: Final = re.compile(r"step-([0-9]{8,18})\.tmp-([0-9]{1,9})(?:\.([1-9][0-9]{0,5}))?")
_TRASH: Final = re.compile(r"step-[0-9]{8,18}(?:\.[\w.-]+)?\.trash-[0-9a-f]{8}")
_DROPPED: Final = re.compile(r"step-([0-9]{8,18})\.dropped-([0-9]{1,9})")
_SHARD: Final = re.compile(r"rank-([0-9]{5,9})\.safetensors")


@dataclass(frozen=True, slots=True, order=True)
class FinalName:
    """A checkpoint's name: its step, and how often that step had been written before."""

    step: int
    rewrite: int = 0

    def __str__(self) -> str:
        return f"step-{self.step:08d}" + (f".r{self.rewrite}" if self.rewrite else "")


@dataclass(frozen=True, slots=True, order=True)
class TempName:
    """The name a checkpoint has while it is written."""

    step: int
    attempt: int
    number: int = 0

    def __str__(self) -> str:
        return f"step-{self.step:08d}.tmp-{self.attempt}" + (f".{self.number}" if self.number else "")


def parse_final(name: str) -> FinalName | None:
    """Return what a checkpoint's name says, or None for any other name."""
    found = _FINAL.fullmatch(name)
    if found is None:
        return None
    parsed = FinalName(int(found[1]), int(found[2] or 0))
    # One step has one name: `step-000000001000` is not ours.
    return parsed if str(parsed) == name else None


def parse_temp(name: str) -> TempName | None:
    """Return what a temporary name says, or None for any other name."""
    found = _TEMP.fullmatch(name)
    return TempName(int(found[1]), int(found[2]), int(found[3] or 0)) if found else None


def parse_dropped(name: str) -> tuple[int, int] | None:
    """Return step and attempt of a dropped mark, or None for any other name."""
    found = _DROPPED.fullmatch(name)
    return (int(found[1]), int(found[2])) if found else None


def parse_shard(name: str) -> int | None:
    """Return the rank in a shard's name, or None for any other name."""
    found = _SHARD.fullmatch(name)
    return int(found[1]) if found and shard_name(int(found[1])) == name else None


def is_trash(name: str) -> bool:
    """Tell whether a name belongs to something half deleted."""
    return _TRASH.fullmatch(name) is not None


def trash_name(path: Path) -> Path:
    """Return a fresh name for something that is about to be deleted."""
    return path.with_name(f"{path.name}.trash-{secrets.token_hex(4)}")


def dropped_name(step: int, attempt: int) -> str:
    """Return the name of the mark that says: rank 0 gave up on this step."""
    return f"step-{step:08d}.dropped-{attempt}"


def shard_name(rank: int) -> str:
    """Return the name of a rank's shard."""
    return f"rank-{rank:05d}.safetensors"


def part_name(rank: int) -> str:
    """Return the name of a rank's list of what it wrote; rank 0 merges and removes these."""
    return f"rank-{rank:05d}.json"


def failed_name(rank: int) -> str:
    """Return the name of the mark that says: this rank could not write."""
    return f"rank-{rank:05d}.failed"
