"""What is wrong with this machine for this run. Each finding is a code and its facts; the words are messages."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace

from headway.config import RunConfig
from headway.errors import CheckError
from headway.machine.ascend.devices import judge_npus
from headway.machine.devices import can_use_gpus, pick_devices
from headway.machine.record import Finding, Framework, MachineReport
from headway.machine.rules.around import judge_around
from headway.machine.rules.devices import capability_of, judge_gpus, judge_mix, judge_use
from headway.machine.rules.environment import judge_env
from headway.machine.rules.faults import find_fault, judge_fault
from headway.machine.rules.host import NOFILE, judge_cores, judge_inodes, judge_limits, judge_memory, judge_shm
from headway.machine.rules.kernel import judge_oom, judge_xids
from headway.machine.rules.links import judge_links, judge_nvlinks, judge_p2p
from headway.machine.rules.software import (
    is_older,
    judge_build,
    judge_company,
    judge_driver,
    judge_p2p_driver,
    judge_packages,
    judge_pair,
    judge_toolkit,
)
from headway.machine.text import parse_oom, parse_xids
from headway.units import size

OWN_VARIABLES = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
"""Set by Headway for every rank; what a shell or an old script left in them has no effect."""

_GIB = 1 << 30
_DISK_STOP = _GIB // 4
"""Not even logs and one small checkpoint."""
_DISK_WARN = 5 * _GIB
_SHM_WARN = _GIB
"""Docker's default of 64 MiB ends data loader processes with a bus error; 1 GiB holds a few batches of each."""
_MEMORY_WARN = _GIB
_NOFILE_WARN = 1024
_CLOCK_S = 5.0
_MADE_IN = 2025


def judge_machine(
    report: MachineReport, config: RunConfig | None = None, checkpoint_bytes: int | None = None
) -> tuple[Finding, ...]:
    """Return everything worth saying about a machine, this one or a recorded one, what stops the run first.

    Args:
        checkpoint_bytes: what the run would write at a time; none: a usual checkpoint.
    """
    asked = config or RunConfig()
    findings = [
        *_judge_framework(report),
        *_judge_presence(report, asked),
        *_judge_choice(report, asked),
        *_judge_health(report),
        *_judge_disk(report),
        *_judge_host(report, asked),
        # Nobody has said what will run: what some runs would stumble over is worth a note.
        *(_judge_for_any_run(report) if config is None else ()),
        *judge_around(report.around, checkpoint_bytes),
        *_judge_tries(report),
        *_judge_environment(report),
    ]
    unique = {(one.code, tuple(sorted(one.facts.items()))): one for one in findings}
    return sort_findings(unique.values())


def judge_line(report: MachineReport) -> tuple[Finding, ...]:
    """Return what may go wrong for a launch line of the user's own: a word of warning, never a reason to refuse it.

    Whether it needs torch, which GPUs it takes and what its variables mean is the line's own business.
    """
    config = RunConfig()
    findings = [
        *(_judge_framework(report) if report.framework.torch is not None else ()),
        *_judge_presence(report, config),
        *_judge_health(report),
        *_judge_disk(report),
        *_judge_host(report, config),
    ]
    return sort_findings(replace(one, level="warn") if one.level == "stop" else one for one in findings)


def sort_findings(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return the findings, what stops the run first, what is well last."""
    order = ("stop", "warn", "note", "ok")
    return tuple(sorted(findings, key=lambda finding: order.index(finding.level)))


def _judge_framework(report: MachineReport) -> Iterator[Finding]:
    found = report.framework
    is_read = report.stands_in is None  # a text that tells of no Python says nothing of it
    if is_read and found.python_version is None:
        facts = {"python": found.python, "why": found.trouble or "n/a"}
        yield Finding(code="machine/python-broken", level="stop", facts=facts)
    elif found.torch is None and found.python_version is not None:
        facts = {"python": found.python, "why": f" ({found.trouble})" if found.trouble else ""}
        yield Finding(code="machine/torch-missing", level="stop", facts=facts)
    elif found.torch is not None:
        yield from _judge_torch(report, found, found.torch)


def _judge_torch(report: MachineReport, found: Framework, torch: str) -> Iterator[Finding]:
    is_for_cpu = not can_use_gpus(report)
    if is_for_cpu and (report.gpus or found.works is False):
        facts = {"torch": torch, "gpus": str(len(report.gpus)), "python": found.python}
        yield Finding(code="machine/torch-cpu-build", level="warn", facts=facts)
    elif report.gpus and is_older(report.gpu_driver_cuda, found.cuda) and not found.works:
        facts = {
            "driver": report.gpu_driver or "n/a",
            "serves": report.gpu_driver_cuda or "n/a",
            "torch": torch,
            "cuda": found.cuda or "n/a",
        }
        yield Finding(code="machine/driver-too-old", level="stop", facts=facts)
    if found.works is False and not is_for_cpu:
        yield Finding(code="machine/cuda-unavailable", level="warn", facts={"torch": torch})
    if found.is_debug:
        yield Finding(code="machine/torch-debug", level="note", facts={"torch": torch})
    if found.ops_missing:
        yield Finding(code="machine/ops-missing", level="note", facts={"list": ", ".join(found.ops_missing)})
    yield from judge_pair(torch, found.torchvision)
    yield from judge_company(torch, numpy=found.numpy, python=found.python_version)
    yield from judge_packages(found.cuda, found.conda_cuda)
    kinds = {(gpu.name, capability_of(gpu)) for gpu in report.gpus if not gpu.lost}
    for name, capability in sorted(kinds, key=str):
        yield from judge_build(torch, found.cuda, name, capability)


def _judge_health(report: MachineReport) -> Iterator[Finding]:
    """Yield what is wrong with the devices themselves, their links and their driver."""
    around, works = report.around, bool(report.framework.works)
    yield from judge_gpus(report.gpus, lists_processes=report.lists_processes)
    driver = judge_driver(report.gpu_driver, report.gpu_driver_cuda, smi=around.smi_version, has_gpus=bool(report.gpus))
    # An old driver or toolkit that supports this torch is not a problem yet: it will not support the next one.
    yield from _as_notes(driver, "machine/driver-old", works)
    toolkit = judge_toolkit(around.toolkit, serves=_serves(report), torch_cuda=report.framework.cuda)
    yield from _as_notes(toolkit, "machine/toolkit-old", works)
    yield from judge_links(around.link_counts or Counter(report.links.values()))
    yield from judge_nvlinks(around.links_up, around.links_down)
    yield from judge_p2p(report.p2p)
    yield from judge_p2p_driver(report.gpu_driver, [gpu.name or "" for gpu in report.gpus])
    if report.npu_trouble:
        yield Finding(code="machine/npu-driver-broken", level="warn", facts={"said": report.npu_trouble})
    yield from judge_npus(report.npus)
    if report.kernel_log:
        yield from judge_xids(parse_xids(report.kernel_log) or {})
        # What was ended may be anybody's and long ago: worth knowing, nothing to repair.
        for finding in judge_oom(parse_oom(report.kernel_log) or {}):
            yield replace(finding, level="note")


def _serves(report: MachineReport) -> str | None:
    """Return the newest CUDA the driver supports; one that torch was seen to work with serves what it needs."""
    return None if report.framework.works is not None else report.gpu_driver_cuda


def _as_notes(found: Iterable[Finding], code: str, is_note: bool) -> Iterator[Finding]:
    for one in found:
        yield replace(one, level="note") if is_note and one.code == code else one


def _judge_tries(report: MachineReport) -> Iterator[Finding]:
    """Yield what the deep check tried in vain."""
    if report.probe_trouble:
        need = f"> {size(report.probe_bytes)}"
        facts = {"need": need, "place": report.disk_place, "why": report.probe_trouble}
        yield Finding(code="machine/write-refused", level="stop", facts=facts)
    if report.port_trouble:
        yield Finding(code="machine/port-refused", level="stop", facts={"why": report.port_trouble})
    if report.clock_ahead_s is not None and abs(report.clock_ahead_s) > _CLOCK_S:
        facts = {"place": report.disk_place, "apart": f"{abs(report.clock_ahead_s):.0f}"}
        yield Finding(code="machine/clock-apart", level="warn", facts=facts)
    year = time.gmtime().tm_year
    if year < _MADE_IN:
        yield Finding(code="machine/clock-wrong", level="warn", facts={"year": str(year)})
    for name, answer in report.trackers.items():
        if answer != "ok":
            variable, _, address = name.partition(" ")
            facts = {"name": variable, "address": address, "why": answer}
            yield Finding(code="machine/tracker-unreachable", level="warn", facts=facts)


def _judge_for_any_run(report: MachineReport) -> Iterator[Finding]:
    """Yield what matters to runs of several processes, over InfiniBand, with much data, and to mixed GPUs."""
    is_over_fabric = bool(report.around.ports) or report.stands_in is not None  # a text may not tell of its ports
    yield from judge_limits(
        nofile=report.nofile if (report.nofile or 0) >= _NOFILE_WARN else None,
        memlock_bytes=report.memlock_bytes if is_over_fabric else None,
        nproc=None,
    )
    yield from judge_cores(report.cores)
    yield from judge_memory(report.memory_bytes, report.swap_bytes, report.around.swap_free_bytes)
    yield from judge_mix([gpu for gpu in report.gpus if not gpu.lost])


def _judge_presence(report: MachineReport, config: RunConfig) -> Iterator[Finding]:
    fault = find_fault(report)
    if fault is not None:
        yield judge_fault(fault, is_wanted=config.parallel.gpus != 0)
    elif report.hidden_gpus and not report.gpus:
        facts = {"value": report.environment.get("CUDA_VISIBLE_DEVICES", ""), "hidden": str(report.hidden_gpus)}
        yield Finding(code="machine/gpus-hidden", level="warn", facts=facts)
    elif not report.gpus and report.knows_gpus:
        yield Finding(code="machine/no-gpu", level="ok", facts={"cpus": str(config.parallel.cpus)})
    yield from judge_use(report.gpus)


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
    yield from judge_mix(chosen)


def _judge_disk(report: MachineReport) -> Iterator[Finding]:
    place, free = report.disk_place, report.disk_free_bytes
    if report.out_writable is False:
        yield Finding(code="machine/out-not-writable", level="stop", facts={"out": report.out, "place": place})
    if free is not None and free < _DISK_WARN:
        is_full = free < _DISK_STOP
        facts = {"place": place, "free": size(free), "need": size(_DISK_STOP if is_full else _DISK_WARN)}
        code = "machine/disk-full" if is_full else "machine/disk-low"
        yield Finding(code=code, level="stop" if is_full else "warn", facts=facts)
    yield from judge_inodes(place, report.disk_free_inodes)


def _judge_host(report: MachineReport, config: RunConfig) -> Iterator[Finding]:
    workers = config.parallel.workers
    if report.memory_free_bytes is not None and report.memory_free_bytes < _MEMORY_WARN:
        facts = {"free": size(report.memory_free_bytes), "total": size(report.memory_bytes), "need": size(_MEMORY_WARN)}
        yield Finding(code="machine/memory-low", level="warn", facts=facts)
    if workers and report.shm_bytes is not None and (report.shm_free_bytes or 0) < _SHM_WARN:
        facts = {"free": size(report.shm_free_bytes), "need": size(_SHM_WARN), "workers": str(workers)}
        yield Finding(code="machine/shm-small", level="warn", facts=facts)
    need = NOFILE if workers else _NOFILE_WARN
    if report.nofile is not None and report.nofile < need:
        facts = {"have": str(report.nofile), "need": str(need)}
        yield Finding(code="machine/nofile-low", level="warn", facts=facts)
    # Pinned memory matters to InfiniBand alone, and one machine needs none.
    yield from judge_limits(nofile=None, memlock_bytes=None, nproc=report.nproc)
    if report.gpus or not report.knows_gpus:  # NCCL takes its buffers from there, with or without loader processes
        yield from judge_shm(report.shm_bytes)


def _judge_environment(report: MachineReport) -> Iterator[Finding]:
    left = {name: report.environment[name] for name in OWN_VARIABLES if name in report.environment}
    if left:
        facts = {"list": " ".join(f"{name}={value}" for name, value in left.items()), "names": " ".join(left)}
        yield Finding(code="machine/env-left-over", level="warn", facts=facts)
    if "OMP_NUM_THREADS" in report.environment:
        facts = {"value": report.environment["OMP_NUM_THREADS"]}
        yield Finding(code="machine/omp-set", level="warn", facts=facts)
    yield from judge_env(report.environment)
