"""What a rehearsal has found."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Survival:
    """What one fault did to the run."""

    fault: str
    state: Literal["survived", "failed", "skipped"]
    detect_s: float | None = None
    """Until the supervisor knew; none: there was nothing to know, or it is not measured."""
    recover_s: float | None = None
    """Until the first step after it had ended."""
    redone: int | None = None
    """Steps that were taken again."""
    code: str = ""
    """Message code of a remark."""
    facts: dict[str, object] = field(default_factory=dict)
    """Of that message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Storage:
    """What a folder's disk guarantees, as far as it can be seen without cutting the power."""

    place: str
    kind: str | None
    """Type of the file system."""
    fsync_ms: float | None
    """Median time to make 4 KiB durable; none: it is refused."""
    fsync: Literal["memory", "too-fast", "plausible", "refused"]
    """`memory`: the file system is in memory; `too-fast`: faster than any disk can answer."""
    cache: str | None
    """Write cache of the disk as the kernel knows it; none: unknown."""
    syncs_folders: bool
    """A folder can be made durable, and with it the names in it."""
    renames: int
    """Times that a file was replaced by a rename while another process read it."""
    torn: int
    """Reads that found neither the old nor the new file, whole."""
    locks: bool
    """A lock that one process holds keeps others out."""
    write_mb_s: float | None

    @property
    def is_trusted(self) -> bool:
        """Say whether a committed checkpoint is safe here as far as anybody can see."""
        return self.fsync == "plausible" and self.syncs_folders and self.torn == 0 and self.locks


@dataclass(frozen=True, slots=True, kw_only=True)
class Rehearsal:
    """All that was tried."""

    faults: tuple[Survival, ...]
    storage: Storage | None
    seconds: float
    is_data_exact: bool | None
    """Every sample was trained on once, proven by the ledger of the last checkpoint; none: not looked at."""
    log: str
    """Folder in which the run was kept; empty: removed."""

    @property
    def has_survived(self) -> bool:
        """Say whether no fault ended the run or changed what it trained on."""
        return all(one.state != "failed" for one in self.faults) and self.is_data_exact is not False

    def to_json(self) -> dict[str, Any]:
        """Return the plain form."""
        return {
            "schema": "rehearse/1",
            "survived": self.has_survived,
            "seconds": round(self.seconds, 1),
            "data_exact": self.is_data_exact,
            "log": self.log or None,
            "faults": [asdict(one) for one in self.faults],
            "storage": None if self.storage is None else asdict(self.storage),
        }
