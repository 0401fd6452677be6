"""Looks at the machine: the one function of this stage."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from headway.config import RunConfig
from headway.machine.ascend.devices import read_npus
from headway.machine.cgroup import read_group_limits
from headway.machine.deep import WriteProbe, probe_write, reach_trackers, read_kernel_log, read_limits, try_port
from headway.machine.devices import apply_visible, keep_pairs
from headway.machine.framework import read_framework
from headway.machine.host import (
    count_cores,
    read_cpu,
    read_disk,
    read_memory,
    read_nofile,
    read_os,
    read_shm,
    read_swap,
)
from headway.machine.judge import OWN_VARIABLES, judge_line, judge_machine
from headway.machine.nvidia.nvml import NvmlDriver
from headway.machine.nvidia.smi import SmiDriver
from headway.machine.record import Framework, MachineReport
from headway.machine.rules.environment import NAMES
from headway.machine.vendors import FirstOf, GpuDriver, GpuReading

_WATCHED = tuple(dict.fromkeys((*OWN_VARIABLES, "CUDA_VISIBLE_DEVICES", "OMP_NUM_THREADS", *NAMES)))
_USUAL_CHECKPOINT = 1 << 30
"""Room that is tried when nobody knows how large a checkpoint will be."""


def inspect_machine(
    out: Path,
    *,
    driver: GpuDriver | None = None,
    config: RunConfig | None = None,
    environ: Mapping[str, str] | None = None,
    deep: bool = False,
    checkpoint_bytes: int | None = None,
) -> MachineReport:
    """Return what is here for a run that writes below `out`, with its findings.

    Args:
        driver: where GPU readings come from; none: NVML, then nvidia-smi.
        config: what the run asks for; findings and the ranks' interpreter depend on it.
        environ: the environment the ranks would inherit; none: this process's.
        deep: also try things: reserve a checkpoint's room, listen, reach trackers, read the kernel log (a second).
        checkpoint_bytes: size of one checkpoint of the run; none: a usual one.
    """
    environ = os.environ if environ is None else environ
    report = _read(out, read_framework(config.env.python if config else None), environ, driver)
    if deep:
        report = _try_things(report, environ, checkpoint_bytes or _USUAL_CHECKPOINT)
    return replace(report, findings=judge_machine(report, config, checkpoint_bytes))


def inspect_for_line(
    out: Path, python: str | None, environ: Mapping[str, str], *, driver: GpuDriver | None = None
) -> MachineReport:
    """Return what is here for a launch line of the user's own; its findings warn, none refuses.

    Args:
        out: folder of its run directory.
        python: the line's own interpreter; none: nobody knows which it will be.
        environ: what its program inherits.
        driver: where GPU readings come from; none: NVML, then nvidia-smi.
    """
    framework = Framework(python="n/a") if python is None else read_framework(python)
    report = _read(out, framework, environ, driver)
    return replace(report, findings=judge_line(report))


def _read(out: Path, framework: Framework, environ: Mapping[str, str], driver: GpuDriver | None) -> MachineReport:
    reading = (driver or FirstOf((NvmlDriver(), SmiDriver()))).read() or GpuReading(source="")
    gpus = apply_visible(reading.gpus, environ.get("CUDA_VISIBLE_DEVICES"))
    limits, disk = read_group_limits(), read_disk(out)
    memory, memory_free = read_memory(limits)
    shm, shm_free = read_shm()
    nofile, nofile_hard = read_nofile()
    memlock, nproc = read_limits()
    npu_driver, npus, npu_trouble = read_npus()
    return MachineReport(
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
        framework=framework,
        gpu_source=reading.source or None,
        gpu_driver=reading.driver,
        gpu_driver_cuda=reading.cuda,
        gpu_trouble=reading.trouble,
        gpus=gpus,
        hidden_gpus=len(reading.gpus) - len(gpus),
        npus=npus,
        npu_driver=npu_driver,
        npu_trouble=npu_trouble,
        links=keep_pairs(reading.links, gpus),
        p2p=keep_pairs(reading.p2p, gpus),
        memlock_bytes=memlock,
        nproc=nproc,
        swap_bytes=read_swap(),
        environment={name: environ[name] for name in _WATCHED if name in environ},
    )


def _try_things(report: MachineReport, environ: Mapping[str, str], checkpoint_bytes: int) -> MachineReport:
    probe = probe_write(Path(report.disk_place), checkpoint_bytes) if report.out_writable else WriteProbe()
    return replace(
        report,
        probe_bytes=probe.reserved_bytes,
        probe_trouble=probe.trouble,
        clock_ahead_s=probe.clock_ahead_s,
        port_trouble=try_port(),
        kernel_log=read_kernel_log(),
        trackers=reach_trackers(environ),
    )
