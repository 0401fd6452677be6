"""Where readings about GPUs come from: NVML, the text of nvidia-smi, or a recorded machine."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import psutil

from headway.machine.record import Gpu, gpu_from_json


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuReading:
    """All GPUs of a machine, in the driver's own order."""

    source: str
    driver: str | None = None
    cuda: str | None = None
    """Newest CUDA version the driver can serve."""
    gpus: tuple[Gpu, ...] = ()
    trouble: str | None = None
    """What the driver said when it could not answer."""
    links: Mapping[str, str] = field(default_factory=dict)
    """How two GPUs are joined, `{"0-1": "NV12"}`, by the driver's numbers."""
    p2p: Mapping[str, bool] = field(default_factory=dict)
    """Whether two GPUs may read each other's memory."""


class GpuDriver(Protocol):
    """Answers one question: which GPUs are here, and how are they?"""

    def read(self) -> GpuReading | None:
        """Return the reading, or None when this source does not exist here."""
        ...


@dataclass(frozen=True, slots=True)
class FirstOf:
    """Asks several sources in turn and takes the first that answers without trouble."""

    drivers: Sequence[GpuDriver]

    def read(self) -> GpuReading | None:
        """Return the first whole answer; when there is none, the first trouble met."""
        troubled: GpuReading | None = None
        for driver in self.drivers:
            reading = driver.read()
            if reading is None:
                continue
            if reading.trouble is None:
                return reading
            troubled = troubled or reading
        return troubled


@dataclass(frozen=True, slots=True)
class RecordedDriver:
    """Stands in for a machine that is elsewhere: reads the GPUs of a machine.json."""

    path: Path

    def read(self) -> GpuReading | None:
        """Return the recorded GPUs."""
        data = json.loads(self.path.read_text(encoding="utf-8"))
        return GpuReading(
            source="recorded",
            driver=data.get("gpu_driver"),
            cuda=data.get("gpu_driver_cuda"),
            gpus=tuple(gpu_from_json(gpu) for gpu in data.get("gpus", ())),
            trouble=data.get("gpu_trouble"),
            links=data.get("links") or {},
            p2p=data.get("p2p") or {},
        )


def describe_process(pid: int) -> tuple[str | None, str | None]:
    """Return (user, name) of a process; None each when it lives outside this container or has ended."""
    try:
        process = psutil.Process(pid)
        return process.username(), process.name()
    except (psutil.Error, KeyError):  # KeyError: a user id without a name
        return None, None


def age_of(pid: int) -> float | None:
    """Return seconds since a process was started; None when it cannot be seen from here."""
    try:
        return max(0.0, time.time() - float(psutil.Process(pid).create_time()))
    except psutil.Error:
        return None
