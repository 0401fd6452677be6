"""Looks at the machine: the one function of this stage."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from headway.config import RunConfig
from headway.machine.cgroup import read_group_limits
from headway.machine.findings import OWN_VARIABLES, judge_machine
from headway.machine.framework import read_framework
from headway.machine.gpus import FirstOf, GpuDriver, GpuReading
from headway.machine.host import count_cores, read_cpu, read_disk, read_memory, read_nofile, read_os, read_shm
from headway.machine.nvml import NvmlDriver
from headway.machine.record import MachineReport
from headway.machine.smi import SmiDriver
from headway.machine.visible import apply_visible

_WATCHED = (*OWN_VARIABLES, "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "OMP_NUM_THREADS")


def inspect_machine(
    out: Path,
    *,
    driver: GpuDriver | None = None,
    config: RunConfig | None = None,
    environ: Mapping[str, str] | None = None,
) -> MachineReport:
    """Return what is here for a run that writes below `out`, with its findings.

    Args:
        driver: where GPU readings come from; none: NVML, then nvidia-smi.
        config: what the run asks for; findings and the ranks' interpreter depend on it.
        environ: the environment the ranks would inherit; none: this process's.
    """
    environ = os.environ if environ is None else environ
    reading = (driver or FirstOf((NvmlDriver(), SmiDriver()))).read() or GpuReading(source="")
    gpus = apply_visible(reading.gpus, environ.get("CUDA_VISIBLE_DEVICES"))
    limits, disk = read_group_limits(), read_disk(out)
    memory, memory_free = read_memory(limits)
    shm, shm_free = read_shm()
    nofile, nofile_hard = read_nofile()
    report = MachineReport(
        host=platform.node(),
        os=read_os(),
        kernel=platform.release(),
        python=platform.python_version(),
        cpu=read_cpu(),
        cores=count_cores(limits),
        cores_host=os.cpu_count(),
        memory_bytes=memory,
        memory_free_bytes=memory_free,
        shm_bytes=shm,
        shm_free_bytes=shm_free,
        out=str(out),
        disk_place=str(disk.place),
        disk_bytes=disk.total_bytes,
        disk_free_bytes=disk.free_bytes,
        disk_free_inodes=disk.free_inodes,
        out_writable=disk.writable,
        nofile=nofile,
        nofile_hard=nofile_hard,
        framework=read_framework(config.env.python if config else None),
        gpu_source=reading.source or None,
        gpu_driver=reading.driver,
        gpu_driver_cuda=reading.cuda,
        gpu_trouble=reading.trouble,
        gpus=gpus,
        hidden_gpus=len(reading.gpus) - len(gpus),
        environment={name: environ[name] for name in _WATCHED if name in environ},
    )
    return replace(report, findings=judge_machine(report, config))
