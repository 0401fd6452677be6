"""The machine as a table, and its findings below."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from headway.machine import Gpu, Level, MachineReport, Npu, is_free
from headway.messages import hint, say
from headway.ui.retype import MARGIN, paste_ready
from headway.units import ABSENT, size

_MARKS = {"ok": ("✓", "green"), "note": ("·", "cyan"), "warn": ("!", "yellow"), "stop": ("✗", "bold red")}


def show_machine(report: MachineReport, console: Console) -> None:
    """Print the machine as a table and its findings below."""
    other = report.stands_in
    title = say("machine/title") if other is None else say("machine/title-other", source=other)
    table = Table(title=title, title_justify="left", title_style="bold", show_header=False, box=None)
    table.add_column(style="cyan", no_wrap=True)
    table.add_column(overflow="fold")
    for label, value in _rows(report):
        table.add_row(label, value)
    console.print(table)
    console.print()
    show_findings(report, console)


def show_machine_line(report: MachineReport, console: Console) -> None:
    """Print the machine in one line, for commands that have more to say."""
    kinds = Counter((gpu.name or ABSENT).removeprefix("NVIDIA ") for gpu in report.gpus)
    parts = [
        report.host or report.stands_in or ABSENT,
        *(f"{num} × {name}" for name, num in kinds.items()),
        say("machine/cores", cores=report.cores or ABSENT, host=report.cores_host or ABSENT),
        say("machine/line-memory", free=size(report.memory_free_bytes)),
        say("machine/line-disk", free=size(report.disk_free_bytes)),
        f"torch {report.framework.torch or ABSENT}",
    ]
    console.print(Text(" · ".join(parts)))


def show_findings(report: MachineReport, console: Console) -> None:
    """Print what was found, each with its mark and what to do about it."""
    show_notes(((finding.level, finding.code, finding.facts) for finding in report.findings), console)


def show_notes(notes: Iterable[tuple[Level, str, Mapping[str, Any]]], console: Console) -> None:
    """Print messages (level, code, facts), one below the other; the mark says the level without colour."""
    for level, code, facts in notes:
        mark, style = _MARKS[level]
        text = Text(say(code, **facts))
        read, typed = [], []
        if level != "ok":
            text.append(f" [{code}]", style="dim")
            lines = paste_ready(hint(code, **facts)).splitlines()
            read = [line for line in lines if not line.startswith(MARGIN)]
            typed = [line for line in lines if line.startswith(MARGIN)]
        for place, line in enumerate(read):
            text.append(f"\n{'→' if place == 0 else ' '} {line}", style="cyan")
        table = Table.grid(padding=(0, 1))
        table.add_column(no_wrap=True)
        table.add_column(overflow="fold")
        table.add_row(Text(mark, style=style), text)
        console.print(table)
        for line in typed:  # never wrapped: a command in two lines cannot be pasted
            console.print(Text(f"  {line}", style="cyan"), soft_wrap=True)


def _rows(report: MachineReport) -> Iterator[tuple[str, str]]:
    found = report.framework
    free_of = {
        "memory": (report.memory_free_bytes, report.memory_bytes),
        "shm": (report.shm_free_bytes, report.shm_bytes),
        "disk": (report.disk_free_bytes, report.disk_bytes),
    }
    yield say("machine/row-host"), " · ".join(one or ABSENT for one in (report.host, report.os, report.kernel))
    cores = say("machine/cores", cores=report.cores or ABSENT, host=report.cores_host or ABSENT)
    yield say("machine/row-cpu"), f"{report.cpu or ABSENT} · {cores}"
    for key, (free, total) in free_of.items():
        text = say("machine/free-of", free=size(free), total=size(total))
        yield say(f"machine/row-{key}"), f"{text} · {report.disk_place}" if key == "disk" else text
    yield say("machine/row-limits"), _limits_text(report)
    yield say("machine/row-python"), f"{found.python_version or ABSENT} · {found.python}"
    absent = say("machine/absent") if report.stands_in is None else ABSENT
    yield say("machine/row-torch"), f"{found.torch} · {found.build or ABSENT}" if found.torch else absent
    if report.gpu_driver:
        cuda = f" · CUDA {report.gpu_driver_cuda}" if report.gpu_driver_cuda else ""
        yield say("machine/row-driver"), f"{report.gpu_driver}{cuda} · {report.gpu_source}"
    for gpu in report.gpus:
        yield say("machine/row-gpu", index=gpu.index), _gpu_text(gpu)
    if report.links:
        kinds = Counter(report.links.values())
        yield say("machine/row-links"), " · ".join(f"{num} × {kind}" for kind, num in kinds.items())
    for npu in report.npus:
        yield say("machine/row-npu", index=npu.index), _npu_text(npu)


def _limits_text(report: MachineReport) -> str:
    # Of a recorded machine nobody knows whether a limit that is not reported is one that is not set.
    endless = say("machine/unlimited") if report.stands_in is None else ABSENT
    return say(
        "machine/limits",
        files=endless if report.nofile is None else report.nofile,
        procs=endless if report.nproc is None else report.nproc,
        locked=endless if report.memlock_bytes is None else size(report.memlock_bytes),
    )


def _npu_text(npu: Npu) -> str:
    free = None if npu.total_bytes is None or npu.used_bytes is None else npu.total_bytes - npu.used_bytes
    parts = [
        npu.name or ABSENT,
        say("machine/free-of", free=size(free), total=size(npu.total_bytes)),
        ABSENT if npu.utilisation is None else f"{npu.utilisation}%",
        ABSENT if npu.temperature_c is None else f"{npu.temperature_c} °C",
        npu.health or ABSENT,
    ]
    return " · ".join(parts)


def _gpu_text(gpu: Gpu) -> str:
    if gpu.lost:
        return say("machine/state-lost")
    state = say("machine/state-free" if is_free(gpu) else "machine/state-busy")
    parts = [
        (gpu.name or ABSENT).removeprefix("NVIDIA "),
        say("machine/free-of", free=size(gpu.free_bytes), total=size(gpu.total_bytes)),
        ABSENT if gpu.utilisation is None else f"{gpu.utilisation}%",
        ABSENT if gpu.temperature_c is None else f"{gpu.temperature_c} °C",
        state,
    ]
    return " · ".join(parts)
