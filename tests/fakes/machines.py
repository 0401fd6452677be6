"""Machines that are not here: eight large GPUs, four small ones, one lost, mixed, busy, none."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from headway.machine import Framework, Gpu, GpuProcess, GpuReading, MachineReport

GIB = 1 << 30


@dataclass(frozen=True)
class FakeGpuDriver:
    """Answers with a reading made up beforehand."""

    reading: GpuReading | None

    def read(self) -> GpuReading | None:
        return self.reading


def gpu(index: int, *, name: str = "NVIDIA H100 80GB HBM3", gib: int = 80, **more: Any) -> Gpu:
    """Return an idle GPU."""
    values: dict[str, Any] = {
        "uuid": f"GPU-{index:08x}-0000-4000-8000-{index:012x}",
        "name": name,
        "total_bytes": gib * GIB,
        "free_bytes": gib * GIB - GIB // 2,
        "capability": (9, 0),
        "utilisation": 0,
        "temperature_c": 35,
    }
    return Gpu(index=index, physical=index, **{**values, **more})


def busy(one: Gpu, *, user: str = "ann", gib: int = 60, utilisation: int = 98) -> Gpu:
    """Return the GPU with a process of that user at work on it."""
    process = GpuProcess(pid=4242, user=user, name="python", held_bytes=gib * GIB)
    free = (one.total_bytes or 0) - gib * GIB
    return replace(one, free_bytes=free, utilisation=utilisation, processes=(process,))


def lost(index: int) -> Gpu:
    """Return a GPU the driver cannot talk to."""
    return Gpu(index=index, physical=index, lost=True)


def eight_h100() -> tuple[Gpu, ...]:
    return tuple(gpu(index) for index in range(8))


def four_4090() -> tuple[Gpu, ...]:
    return tuple(gpu(index, name="NVIDIA GeForce RTX 4090", gib=24, capability=(8, 9)) for index in range(4))


def two_v100() -> tuple[Gpu, ...]:
    return tuple(gpu(index, name="Tesla V100-SXM2-32GB", gib=32, capability=(7, 0)) for index in range(2))


def mixed() -> tuple[Gpu, ...]:
    """Return one old card in front of two equal ones."""
    old = gpu(0, name="Tesla T4", gib=16, capability=(7, 5))
    return (old, *(gpu(index, name="NVIDIA L40S", gib=48, capability=(8, 9)) for index in (1, 2)))


def reading(gpus: tuple[Gpu, ...], **more: Any) -> GpuReading:
    """Return what a driver would say about these GPUs."""
    return GpuReading(source="nvml", driver="570.211.01", cuda="12.8", gpus=gpus, **more)


def machine(gpus: tuple[Gpu, ...] = (), **more: Any) -> MachineReport:
    """Return a healthy machine of 64 cores with these GPUs and a torch that can use them."""
    torch = Framework(
        python="/opt/venv/bin/python",
        python_version="3.12.4",
        torch="2.13.0+cu128" if gpus else "2.13.0+cpu",
        cuda="12.8" if gpus else None,
    )
    values: dict[str, Any] = {
        "host": "node7",
        "os": "Ubuntu 24.04.1 LTS",
        "kernel": "6.8.0",
        "python": "3.12.4",
        "cpu": "AMD EPYC 9654",
        "cores": 64,
        "cores_host": 192,
        "memory_bytes": 512 * GIB,
        "memory_free_bytes": 500 * GIB,
        "shm_bytes": 256 * GIB,
        "shm_free_bytes": 256 * GIB,
        "out": "runs",
        "disk_place": "/data",
        "disk_bytes": 4000 * GIB,
        "disk_free_bytes": 3000 * GIB,
        "disk_free_inodes": 10_000_000,
        "out_writable": True,
        "nofile": 65536,
        "nofile_hard": 1048576,
        "framework": torch,
        "gpu_source": "nvml" if gpus else None,
        "gpu_driver": "570.211.01" if gpus else None,
        "gpu_driver_cuda": "12.8" if gpus else None,
        "gpus": gpus,
    }
    return MachineReport(**{**values, **more})
