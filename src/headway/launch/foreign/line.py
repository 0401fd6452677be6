"""A line that is not ours: what its ranks are started with. The same names its own launcher would have set."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from headway.redact import redact, redact_words

OnHang = Literal["wait", "restart", "stop"]
Mode = Literal["native", "original"]
HANG_S: Final = 10.0
EXEC_ENTRY: Final = "headway.launch.foreign.exec:main"
COERCED: Final = "LC_CTYPE"
"""Set by Python in its own environment where the locale is C (PEP 538); a program of the user must not inherit it."""
_GIVEN: Final = Path("/proc/self/environ")


def has_given(name: str) -> bool:
    """Say whether this process was started with a variable; `os.environ` also holds what Python has added."""
    return any(one.startswith(f"{name}=".encode()) for one in _GIVEN.read_bytes().split(b"\0"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Foreign:
    """What `job.json` says about a foreign line; values of the environment are never written down."""

    argv: tuple[str, ...]
    """What a rank executes, or in `original` mode the launcher itself."""
    cwd: str
    mode: Mode = "native"
    launcher: str = "python"
    """Launcher of the line, one of `adopt.LAUNCHERS`."""
    is_distributed: bool = False
    """The ranks are told RANK, WORLD_SIZE and where to meet; a plain `python x.py` is not."""
    has_macros: bool = False
    """The arguments are torchrun's: `${local_rank}` in them becomes the number, `$$` a dollar, as torch does it."""
    run_id: str = "headway"
    role: str = "default"
    devices: tuple[str, ...] | None = None
    """Indexes or UUIDs for CUDA_VISIBLE_DEVICES; empty: no GPU; None: left as it is."""
    has_hook: bool = True
    must_train: bool = True
    """A run that makes an optimizer and never steps it has failed."""
    on_hang: OnHang = "wait"
    hang_s: float = HANG_S
    """Shortest silence that is looked into."""
    line: str = ""
    """As it was typed."""

    @property
    def makes_ranks(self) -> bool:
        """The one process we start may start its ranks by itself, as launchers do, and Lightning."""
        return not self.is_distributed

    def to_json(self) -> dict[str, Any]:
        """Return the plain form, as it may be written down: secrets among the arguments are left out."""
        return {
            "argv": redact_words(self.argv),
            "cwd": self.cwd,
            "mode": self.mode,
            "launcher": self.launcher,
            "is_distributed": self.is_distributed,
            "has_macros": self.has_macros,
            "run_id": self.run_id,
            "role": self.role,
            "devices": None if self.devices is None else list(self.devices),
            "has_hook": self.has_hook,
            "must_train": self.must_train,
            "on_hang": self.on_hang,
            "hang_s": self.hang_s,
            "line": redact(self.line),
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Foreign:
        """Read the plain form."""
        devices = data["devices"]
        return cls(
            **{
                **data,
                "argv": tuple(data["argv"]),
                "devices": None if devices is None else tuple(map(str, devices)),
            }
        )

    def environment(self, rank: int, world_size: int, port: int, attempt: int, restarts: int) -> dict[str, str]:
        """Return what one rank's environment gains."""
        found = {"HEADWAY_RANK": str(rank)} if self.mode == "native" else {}
        found["HEADWAY_HOOK_FAMILY"] = "1" if self.makes_ranks else ""
        if self.devices is not None:
            found["CUDA_VISIBLE_DEVICES"] = ",".join(self.devices)
            if self.devices and all(name.isdigit() for name in self.devices):
                # Indexes are the driver's (PCI order), so CUDA must count the same way.
                found["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"
        if self.is_distributed:
            elastic = _elastic(rank, world_size, attempt, restarts)
            found |= _meeting(rank, world_size, port) | elastic
            found |= {"TORCHELASTIC_RUN_ID": self.run_id, "ROLE_NAME": self.role}
            # As torchrun does: several ranks on one machine must not each start a thread a core.
            if world_size > 1 and "OMP_NUM_THREADS" not in os.environ:
                found["OMP_NUM_THREADS"] = "1"
        return found


def _meeting(rank: int, world_size: int, port: int) -> dict[str, str]:
    return {
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": str(world_size),
        "LOCAL_WORLD_SIZE": str(world_size),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
    }


def _elastic(rank: int, world_size: int, attempt: int, restarts: int) -> dict[str, str]:
    """Return what torchrun adds; its agent's store apart, for rank 0 opens a fresh one in every attempt."""
    return {
        "GROUP_RANK": "0",
        "GROUP_WORLD_SIZE": "1",
        "ROLE_RANK": str(rank),
        "ROLE_WORLD_SIZE": str(world_size),
        "TORCHELASTIC_RESTART_COUNT": str(attempt - 1),
        "TORCHELASTIC_MAX_RESTARTS": str(restarts),
        "TORCH_NCCL_ASYNC_ERROR_HANDLING": os.environ.get("TORCH_NCCL_ASYNC_ERROR_HANDLING", "1"),
    }
