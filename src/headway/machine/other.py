"""Another machine in place of this one: recorded, or made of GPUs from the data-sheet table."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from headway.config import RunConfig
from headway.config.files import read_file
from headway.errors import CheckError, UsageError
from headway.machine.ascend.devices import npus_from
from headway.machine.cards import make_gpus, parse_wanted
from headway.machine.from_text import driver_of, gpus_of, judge_dump
from headway.machine.inspect import inspect_machine
from headway.machine.judge import judge_machine, sort_findings
from headway.machine.record import Finding, Framework, Gpu, MachineReport
from headway.machine.text import Dump, memory_of, read_dump, room_of
from headway.units import size

_USUAL_CUDA = "12.8"
"""CUDA of the torch a new GPU machine is set up with, when its driver is not told."""
_CORES_A_GPU = 8
_MEMORY_SHARE = 2.0
"""Hosts sold with GPUs have at least eight cores and twice the GPU's memory for each."""
_KEYS = {"host", "cores", "framework"}


def find_machine(
    out: Path,
    config: RunConfig | None = None,
    *,
    record: Path | None = None,
    wanted: str | None = None,
    deep: bool = False,
    checkpoint_bytes: int | None = None,
) -> MachineReport:
    """Return the machine a command is about: this one, a recorded one (`--machine`), or one wished for (`--on`)."""
    if record is not None and wanted is not None:
        raise UsageError("machine/on-and-machine")
    deep = deep and record is None and wanted is None
    here = inspect_machine(out, config=config, deep=deep, checkpoint_bytes=checkpoint_bytes)
    if wanted is not None:
        return make_machine(wanted, here, config)
    if record is None:
        return here
    if str(record) == "-":
        return read_stand_in(sys.stdin.read(), "-", here, config, checkpoint_bytes)
    return stand_in(record, here, config, checkpoint_bytes)


def with_findings(report: MachineReport, more: Iterable[Finding]) -> MachineReport:
    """Return the machine with further findings, what stops the run first."""
    return replace(report, findings=sort_findings((*report.findings, *more)))


def stand_in(
    path: Path, here: MachineReport, config: RunConfig | None = None, checkpoint_bytes: int | None = None
) -> MachineReport:
    """Return the machine recorded in a file; what the file does not tell is taken from here.

    A machine.json (from `headway check --json` or a run directory) tells everything; the output of a command tells
    its part.
    """
    try:
        text = read_file(path).decode("utf-8", "replace")
    except OSError as err:
        raise CheckError("machine/record-unreadable", path=path, why=err.strerror or err) from err
    return read_stand_in(text, str(path), here, config, checkpoint_bytes)


def read_stand_in(
    text: str,
    source: str,
    here: MachineReport,
    config: RunConfig | None = None,
    checkpoint_bytes: int | None = None,
) -> MachineReport:
    """Return the machine recorded in a text."""
    whole = _machine_json(text, source)
    if whole is not None:
        report = replace(whole, stands_in=source)
        return replace(report, findings=_judge(report, config, ()))
    dump = read_dump(text)
    if not dump.parts:
        raise CheckError("machine/record-unknown", path=source)
    values = values_of(dump)
    report = replace(here, stands_in=source, environment=_without_choice(here), **values)
    report = replace(report, framework=_framework(dump, report))
    return replace(report, findings=_judge(report, config, judge_dump(dump, checkpoint_bytes=checkpoint_bytes)))


def make_machine(wanted: str, here: MachineReport, config: RunConfig | None = None) -> MachineReport:
    """Return this machine with other GPUs, `8xH20`: idle, healthy, and with a torch that can use them."""
    count, model = parse_wanted(wanted)
    memory = int(_MEMORY_SHARE * count * model.devices * model.memory_gib * (1 << 30))
    report = replace(
        here,
        stands_in=f"{count} × {model.name}",
        gpus=make_gpus(count, model) if model.vendor != "ascend" else (),
        hidden_gpus=0,
        gpu_source="data sheet",
        gpu_driver=None,
        gpu_driver_cuda=None,
        gpu_trouble=None,
        npus=(),
        links={},
        p2p={},
        kernel_log=None,
        cores=max(here.cores, _CORES_A_GPU * count),
        cores_host=max(here.cores_host or 0, _CORES_A_GPU * count),
        memory_bytes=max(here.memory_bytes, memory),
        memory_free_bytes=max(here.memory_free_bytes, memory),
        shm_bytes=max(here.shm_bytes or 0, memory // 2),
        shm_free_bytes=max(here.shm_free_bytes or 0, memory // 2),
        environment=_without_choice(here),
    )
    report = replace(report, framework=_framework(Dump({}), report))
    facts = {"source": report.stands_in or "n/a", "cores": str(report.cores), "memory": size(report.memory_bytes)}
    wished = Finding(code="machine/wished", level="note", facts=facts)
    return replace(report, findings=sort_findings((wished, *judge_machine(report, config))))


def wished_devices(wanted: str) -> tuple[Gpu, ...]:
    """Return the devices of a wish, NPUs too: a formula asks for their memory and rates, not for CUDA."""
    return make_gpus(*parse_wanted(wanted))


def _judge(report: MachineReport, config: RunConfig | None, more: tuple[Finding, ...]) -> tuple[Finding, ...]:
    source = Finding(code="machine/stands-in", level="note", facts={"source": report.stands_in or "n/a"})
    known = {(one.code, tuple(sorted(one.facts.items()))): one for one in (*judge_machine(report, config), *more)}
    return sort_findings((source, *known.values()))


def _machine_json(text: str, source: str) -> MachineReport | None:
    if not text.lstrip().startswith("{"):
        return None
    try:
        data = json.loads(text)
        if not isinstance(data, dict) or not data.keys() >= _KEYS:
            return None
        return MachineReport.from_json(data)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as err:
        raise CheckError("machine/record-unreadable", path=source, why=err) from err


def values_of(dump: Dump) -> dict[str, Any]:
    """Return the fields of a MachineReport that a recorded text tells. Any: values of its fields."""
    values: dict[str, Any] = {}
    gpus = gpus_of(dump)
    driver, cuda = driver_of(dump)
    trouble = dump.parts.get("nvidia_smi_error")
    if gpus or trouble or driver:
        values |= {"gpus": gpus, "gpu_source": "recorded", "gpu_driver": driver, "gpu_driver_cuda": cuda}
        values |= {"hidden_gpus": 0, "links": {}, "p2p": {}, "kernel_log": None}
        values["lists_processes"] = bool({"nvidia_smi", "nvidia_smi_q"} & set(dump.kinds))
        values["gpu_trouble"] = trouble["error_class"].replace("_", " ") if trouble and not gpus else None
    npus = dump.parts.get("npu_smi", {})
    if "npus" in npus:
        values |= {"npus": npus_from(npus), "npu_driver": npus["npu_smi"], "gpus": gpus}
    pairs = dump.parts.get("topology", {}).get("pairs") or {}
    links = {pair.replace("GPU", ""): kind for kind, named in pairs.items() for pair in named}
    if links:
        values["links"] = links
    if "topology_p2p" in dump.parts:
        values["p2p"] = dump.parts["topology_p2p"]["pairs"]
    return {**values, **_host_values(dump)}


def _host_values(dump: Dump) -> dict[str, Any]:
    values: dict[str, Any] = {}
    cpus = next((dump.parts[kind] for kind in ("lscpu", "numactl", "nproc") if kind in dump.parts), {})
    if cpus.get("cpus"):
        values |= {"cores": cpus["cpus"], "cores_host": cpus["cpus"], "cpu": cpus.get("model")}
    limits = dump.parts.get("ulimit", {})
    for name, key, scale in (("nofile", "open_files", 1), ("nproc", "max_user_processes", 1)):
        if key in limits:
            values[name] = limits[key] * scale if isinstance(limits[key], int) else None
    disks = dump.parts.get("df", {})
    for row in disks.get("filesystems", ()):
        total, free = (room_of(row.get(key), disks.get("block_bytes")) for key in ("size", "avail"))
        if row["mount"] == "/dev/shm" and total is not None:
            values |= {"shm_bytes": total, "shm_free_bytes": free}
        elif row["mount"] == "/" and total is not None:
            values |= {"disk_bytes": total, "disk_free_bytes": free, "disk_place": "/"}
    memory = dump.parts.get("free", {})
    total = memory_of(memory, "total")
    if total is not None:
        # Older versions have no such column: what buffers hold counts as free there.
        free = memory_of(memory, "available" if "available" in memory else "free_with_cache")
        values |= {"memory_bytes": total, "memory_free_bytes": memory_of(memory, "free") if free is None else free}
        values["swap_bytes"] = memory_of(memory, "swap_total")
    return values


def _without_choice(here: MachineReport) -> dict[str, str]:
    """Return the environment without what hides GPUs of this machine: it says nothing about the other one."""
    return {name: value for name, value in here.environment.items() if name != "CUDA_VISIBLE_DEVICES"}


def _framework(dump: Dump, report: MachineReport) -> Framework:
    """Return the framework the record tells; else this one, as the build that its GPUs would be used with."""
    found = dump.parts.get("collect_env")
    if found is not None and found.get("torch"):
        cuda, hip = (_version_or_none(found.get(key)) for key in ("torch_cuda", "torch_rocm"))
        version = found.get("python") or report.framework.python_version
        return Framework(python="python", python_version=version, torch=found["torch"], cuda=cuda, hip=hip)
    here = report.framework
    if not report.gpus or here.torch is None or here.cuda:
        return here
    plain = here.torch.partition("+")[0]
    makers = Counter(gpu.capability is not None or "nvidia" in (gpu.name or "").lower() for gpu in report.gpus)
    if report.gpu_source == "data sheet" and not makers[True]:
        return replace(here, torch=f"{plain}+rocm", hip="6.4")
    cuda = report.gpu_driver_cuda or _USUAL_CUDA
    return replace(here, torch=f"{plain}+cu{cuda.replace('.', '')}", cuda=cuda)


def _version_or_none(text: str | None) -> str | None:
    return text if text and text[0].isdecimal() else None
