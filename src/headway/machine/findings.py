"""What is wrong with this machine for this run. Each finding is a code and its facts; the words are messages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from headway.config import RunConfig
from headway.errors import CheckError
from headway.machine.devices import can_use_gpus, describe_holders, is_free, list_gpus, pick_devices
from headway.machine.record import Finding, MachineReport
from headway.units import count, size

OWN_VARIABLES = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
"""Set by Headway for every rank; what a shell or an old script left in them has no effect."""

_GIB = 1 << 30
_DISK_STOP = _GIB // 4
"""Not even logs and one small checkpoint."""
_DISK_WARN = 5 * _GIB
_INODES_WARN = 10_000
_SHM_WARN = _GIB
"""Docker's default of 64 MiB ends data loader processes with a bus error; 1 GiB holds a few batches of each."""
_MEMORY_WARN = _GIB
_NOFILE_WARN = 1024
_NOFILE_WORKERS = 4096
"""Each tensor a data loader process hands over is an open file in the rank."""


def judge_machine(report: MachineReport, config: RunConfig | None = None) -> tuple[Finding, ...]:
    """Return everything worth saying about this machine, what stops the run first."""
    config = config or RunConfig()
    findings = [
        *_judge_framework(report),
        *_judge_gpus(report, config),
        *_judge_disk(report),
        *_judge_host(report, config),
        *_judge_environment(report),
    ]
    order = ("stop", "warn", "ok")
    return tuple(sorted(findings, key=lambda finding: order.index(finding.level)))


def _judge_framework(report: MachineReport) -> Iterator[Finding]:
    found = report.framework
    if found.python_version is None:
        facts = {"python": found.python, "why": found.trouble or "n/a"}
        yield Finding(code="machine/python-broken", level="stop", facts=facts)
    elif found.torch is None:
        facts = {"python": found.python, "why": f" ({found.trouble})" if found.trouble else ""}
        yield Finding(code="machine/torch-missing", level="stop", facts=facts)
    elif report.gpus and not can_use_gpus(report):
        facts = {"torch": found.torch, "gpus": str(len(report.gpus)), "python": found.python}
        yield Finding(code="machine/torch-cpu-build", level="warn", facts=facts)
    elif report.gpus and _is_older(report.gpu_driver_cuda, found.cuda):
        facts = {
            "driver": report.gpu_driver or "n/a",
            "serves": report.gpu_driver_cuda or "n/a",
            "torch": found.torch,
            "cuda": found.cuda or "n/a",
        }
        yield Finding(code="machine/driver-too-old", level="stop", facts=facts)


def _is_older(serves: str | None, built: str | None) -> bool:
    """Whether the driver is of an older major than torch's CUDA; inside one major CUDA is compatible."""
    majors = [(version or "").partition(".")[0] for version in (serves, built)]
    return all(major.isdecimal() for major in majors) and int(majors[0]) < int(majors[1])


def _judge_gpus(report: MachineReport, config: RunConfig) -> Iterator[Finding]:
    if report.gpu_trouble:
        yield Finding(code="machine/gpu-driver-broken", level="warn", facts={"said": report.gpu_trouble})
    elif report.hidden_gpus and not report.gpus:
        facts = {"value": report.environment.get("CUDA_VISIBLE_DEVICES", ""), "hidden": str(report.hidden_gpus)}
        yield Finding(code="machine/gpus-hidden", level="warn", facts=facts)
    elif not report.gpus:
        yield Finding(code="machine/no-gpu", level="ok", facts={"cpus": str(config.parallel.cpus)})
    for gpu in report.gpus:
        if gpu.lost:
            yield Finding(code="machine/gpu-lost", level="warn", facts={"gpu": str(gpu.index)})
        elif not is_free(gpu):
            facts = {
                "gpu": str(gpu.index),
                "holders": describe_holders(gpu),
                "used": size(gpu.used_bytes),
                "total": size(gpu.total_bytes),
            }
            yield Finding(code="machine/gpu-busy", level="warn", facts=facts)
    yield from _judge_choice(report, config)


def _judge_choice(report: MachineReport, config: RunConfig) -> Iterator[Finding]:
    """Try the choice the run will make, so that the check says what the plan would refuse."""
    try:
        picked = pick_devices(report, config.parallel.gpus)
    except CheckError as refused:
        facts = {key: str(value) for key, value in refused.facts.items()}
        yield Finding(code=refused.code, level="stop", facts=facts)
        return
    if not picked:
        return
    chosen = [gpu for gpu in report.gpus if gpu.index in picked]
    yield Finding(
        code="machine/gpus-chosen",
        level="ok",
        facts={"num": str(len(picked)), "here": str(len(report.gpus)), "list": ", ".join(map(str, picked))},
    )
    if len(Counter((gpu.name, gpu.total_bytes) for gpu in chosen)) > 1:
        yield Finding(code="machine/gpus-differ", level="warn", facts={"list": list_gpus(chosen)})


def _judge_disk(report: MachineReport) -> Iterator[Finding]:
    place, free = report.disk_place, report.disk_free_bytes
    if not report.out_writable:
        yield Finding(code="machine/out-not-writable", level="stop", facts={"out": report.out, "place": place})
    if free is not None and free < _DISK_WARN:
        is_full = free < _DISK_STOP
        facts = {"place": place, "free": size(free), "need": size(_DISK_STOP if is_full else _DISK_WARN)}
        code = "machine/disk-full" if is_full else "machine/disk-low"
        yield Finding(code=code, level="stop" if is_full else "warn", facts=facts)
    if report.disk_free_inodes is not None and report.disk_free_inodes < _INODES_WARN:
        facts = {"place": place, "free": count(report.disk_free_inodes), "need": count(_INODES_WARN)}
        yield Finding(code="machine/inodes-low", level="warn", facts=facts)


def _judge_host(report: MachineReport, config: RunConfig) -> Iterator[Finding]:
    workers = config.parallel.workers
    if report.memory_free_bytes < _MEMORY_WARN:
        facts = {"free": size(report.memory_free_bytes), "total": size(report.memory_bytes), "need": size(_MEMORY_WARN)}
        yield Finding(code="machine/memory-low", level="warn", facts=facts)
    if workers and report.shm_bytes is not None and (report.shm_free_bytes or 0) < _SHM_WARN:
        facts = {"free": size(report.shm_free_bytes), "need": size(_SHM_WARN), "workers": str(workers)}
        yield Finding(code="machine/shm-small", level="warn", facts=facts)
    need = _NOFILE_WORKERS if workers else _NOFILE_WARN
    if report.nofile is not None and report.nofile < need:
        facts = {"have": str(report.nofile), "need": str(need)}
        yield Finding(code="machine/nofile-low", level="warn", facts=facts)


def _judge_environment(report: MachineReport) -> Iterator[Finding]:
    left = {name: report.environment[name] for name in OWN_VARIABLES if name in report.environment}
    if left:
        facts = {"list": " ".join(f"{name}={value}" for name, value in left.items()), "names": " ".join(left)}
        yield Finding(code="machine/env-left-over", level="warn", facts=facts)
    if "OMP_NUM_THREADS" in report.environment:
        facts = {"value": report.environment["OMP_NUM_THREADS"]}
        yield Finding(code="machine/omp-set", level="warn", facts=facts)
