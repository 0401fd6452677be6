"""Another machine in place of this one: recorded, or made of GPUs from the data-sheet table."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from headway.config import RunConfig
from headway.config.files import read_file
from headway.errors import CheckError, UsageError
from headway.machine.cards import make_gpus, parse_wanted, split_nodes
from headway.machine.from_text import report_from
from headway.machine.inspect import inspect_machine
from headway.machine.judge import judge_machine, sort_findings
from headway.machine.record import USUAL_CORES, USUAL_MEMORY_SHARE, Finding, Framework, Gpu, MachineReport
from headway.machine.text import Dump, read_dump
from headway.units import size

_USUAL_CUDA = "12.8"
"""CUDA of the torch a new GPU machine is set up with, when its driver is not reported."""
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
    if record is not None:
        text = sys.stdin.read() if str(record) == "-" else _read_text(record)
        return read_machine(text, str(record), out, config, checkpoint_bytes)
    deep = deep and wanted is None
    here = inspect_machine(out, config=config, deep=deep, checkpoint_bytes=checkpoint_bytes)
    return here if wanted is None else make_machine(wanted, here, config)


def with_findings(report: MachineReport, more: Iterable[Finding]) -> MachineReport:
    """Return the machine with further findings, what stops the run first."""
    return replace(report, findings=sort_findings((*report.findings, *more)))


def read_machine(
    text: str,
    source: str = "-",
    out: Path = Path("runs"),
    config: RunConfig | None = None,
    checkpoint_bytes: int | None = None,
) -> MachineReport:
    """Return the machine recorded in a text, judged by the rules of this one; what the text does not tell is None.

    A machine.json (from `headway check --json` or a run directory) tells everything; the output of a command tells
    its part.
    """
    whole = _machine_json(text, source)
    if whole is not None:
        return _judged([replace(whole, stands_in=source)], config, checkpoint_bytes)
    dump = read_dump(text)
    if not dump.parts:
        raise CheckError("machine/record-unknown", path=source)
    more = dump.parts.get("nvidia_smi", {}).get("more", ())  # one paste of several machines
    dumps = [dump, *(Dump({"nvidia_smi": table}) for table in more)]
    reports = [report_from(one, source=source, out=str(out)) for one in dumps]
    return _judged(reports, config, checkpoint_bytes)


def _read_text(path: Path) -> str:
    try:
        return read_file(path).decode("utf-8", "replace")
    except OSError as err:
        raise CheckError("machine/record-unreadable", path=path, why=err.strerror or err) from err


def _judged(reports: Sequence[MachineReport], config: RunConfig | None, checkpoint_bytes: int | None) -> MachineReport:
    """Return the first machine with what is to be said of all."""
    found = [one for report in reports for one in judge_machine(report, config, checkpoint_bytes)]
    source = Finding(code="machine/stands-in", level="note", facts={"source": reports[0].stands_in or "n/a"})
    unique = {(one.code, tuple(sorted(one.facts.items()))): one for one in (source, *found)}
    return replace(reports[0], findings=sort_findings(unique.values()))


def make_machine(wanted: str, here: MachineReport, config: RunConfig | None = None) -> MachineReport:
    """Return this machine with other GPUs, `8xH20`: idle, healthy, and with a torch that can use them.

    Of several nodes, `2x8xH20`, it is one: they are taken to be alike.
    """
    nodes, rest = split_nodes(wanted)
    count, model = parse_wanted(rest)
    memory = int(USUAL_MEMORY_SHARE * count * model.devices * model.memory_gib * (1 << 30))
    report = replace(
        here,
        stands_in=f"{count} × {model.name}" if nodes == 1 else f"{nodes} × {count} × {model.name}",
        nodes=nodes,
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
        cores=max(here.cores or 0, USUAL_CORES * count),
        cores_host=max(here.cores_host or 0, USUAL_CORES * count),
        memory_bytes=max(here.memory_bytes or 0, memory),
        memory_free_bytes=max(here.memory_free_bytes or 0, memory),
        shm_bytes=max(here.shm_bytes or 0, memory // 2),
        shm_free_bytes=max(here.shm_free_bytes or 0, memory // 2),
        environment=_without_choice(here),
    )
    report = replace(report, framework=_framework_for(report))
    facts = {"source": report.stands_in or "n/a", "cores": str(report.cores), "memory": size(report.memory_bytes)}
    wished = Finding(code="machine/wished", level="note", facts=facts)
    return replace(report, findings=sort_findings((wished, *judge_machine(report, config))))


def wished_devices(wanted: str) -> tuple[Gpu, ...]:
    """Return the devices of a wish, NPUs too: a formula asks for their memory and rates, not for CUDA."""
    return make_gpus(*parse_wanted(split_nodes(wanted)[1]))


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


def _without_choice(here: MachineReport) -> dict[str, str]:
    """Return the environment without what hides GPUs of this machine: it says nothing about the other one."""
    return {name: value for name, value in here.environment.items() if name != "CUDA_VISIBLE_DEVICES"}


def _framework_for(report: MachineReport) -> Framework:
    """Return this machine's framework as the build that the wished GPUs would be used with."""
    here = report.framework
    if not report.gpus or here.torch is None or here.cuda:
        return here
    plain = here.torch.partition("+")[0]
    makers = Counter(gpu.capability is not None or "nvidia" in (gpu.name or "").lower() for gpu in report.gpus)
    if not makers[True]:
        return replace(here, torch=f"{plain}+rocm", hip="6.4")
    return replace(here, torch=f"{plain}+cu{_USUAL_CUDA.replace('.', '')}", cuda=_USUAL_CUDA)
