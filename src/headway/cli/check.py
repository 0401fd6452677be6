"""`headway check`: what this machine offers, and what would stop a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from headway.cli.bilingual import command, echo_json, option
from headway.cli.cpu import cpu_of, look_at_cpu
from headway.cli.source import load_words
from headway.config import LoadedConfig, Recipe, RunConfig
from headway.errors import CheckError
from headway.machine import (
    Finding,
    Gpu,
    Level,
    MachineReport,
    Npu,
    find_machine,
    has_devices,
    is_free,
    judge_data,
    mindspore_target,
    read_mindspore,
    try_batch,
    try_mindspore,
    try_ranks,
    with_cpu,
    with_findings,
    with_mindspore,
)
from headway.messages import hint, say
from headway.ui.console_safe import make_console
from headway.units import size

_MOST_FOLDERS = 200
_MARKS = {"ok": ("✓", "green"), "note": ("·", "cyan"), "warn": ("!", "yellow"), "stop": ("✗", "bold red")}


@command(
    "check",
    help="machine/help",
    context_settings={"ignore_unknown_options": True, "help_option_names": ["-h", "--help"]},
)
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="[SOURCE] [KEY=VALUE]…")
@option("--out", default=None, type=click.Path(path_type=Path), help="machine/help-out")
@option("--machine", "record", default=None, type=click.Path(path_type=Path), help="machine/help-machine")
@option("--on", "wanted", default=None, help="machine/help-on")
@option("--smoke", is_flag=True, help="machine/help-smoke")
@option("--json", "as_json", is_flag=True, help="machine/help-json")
@click.pass_context
def check(
    context: click.Context,
    words: tuple[str, ...],
    out: Path | None,
    record: Path | None,
    wanted: str | None,
    smoke: bool,
    as_json: bool,
) -> None:
    """See the message `machine/help`."""
    loaded = load_words(words) if words else None
    config = loaded.config if loaded else None
    place = out or Path(config.out if config else "runs")
    size_known = checkpoint_size(place)
    report = find_machine(place, config, record=record, wanted=wanted, deep=True, checkpoint_bytes=size_known)
    more: list[Finding] = []
    is_torch = loaded is None or loaded.framework == "torch"
    if loaded is not None and not is_torch and report.stands_in is None:
        found = read_mindspore(loaded.config.env.python)
        report = with_mindspore(report, found)
        more += (
            [try_mindspore(found, mindspore_target(report, loaded.config.task.device_target))]
            if smoke and report.can_run
            else []
        )
    if loaded is not None and report.stands_in is None:
        more += judge_data(loaded.recipe, loaded.config.task)
    if smoke and is_torch and report.stands_in is None:
        more += try_ranks(report, config.parallel.gpus if config else "auto")
    if smoke and is_torch and loaded is not None and report.stands_in is None and _has_data(loaded.recipe, more):
        more += try_batch(report.framework.python, _stored(loaded.config))
    report = with_findings(report, more)
    if report.stands_in is None:
        report = _with_cpu(report, loaded, smoke)
    if as_json:
        echo_json(report.to_json(), indent=2)
        context.exit(0 if report.can_run else 3)
    if loaded is not None:
        notes: list[tuple[Level, str, Mapping[str, Any]]] = [("warn", code, facts) for code, facts in loaded.warnings]
        show_notes(notes, make_console(stderr=True))
    show_machine(report, make_console())
    stops = sum(finding.level == "stop" for finding in report.findings)
    if stops:
        raise CheckError("machine/stopped", num=stops)
    click.echo(say("machine/ready"))


def _with_cpu(report: MachineReport, loaded: LoadedConfig | None, smoke: bool) -> MachineReport:
    """Return the report with what the CPU computes, where a run would compute on it."""
    if loaded is not None:
        return with_cpu(report, cpu_of(loaded, is_asked=smoke), loaded.config.train.precision, is_asked=smoke)
    if has_devices() or report.framework.torch is None:
        return report
    return with_cpu(report, look_at_cpu(None, "torch", is_asked=smoke), is_asked=smoke)


def _has_data(recipe: Recipe, found: Iterable[Finding]) -> bool:
    """Whether there is data to take a batch from: data that the start will prepare is not there yet."""
    codes = {finding.code for finding in found if finding.level == "stop" or finding.code == "machine/data-ready"}
    return codes == {"machine/data-ready"} or (not codes and recipe.train_samples is None)


def _stored(config: RunConfig) -> dict[str, Any]:
    """Return the config as a run keeps it; the precision is the plan's, and no data depends on it."""
    precision = "fp32" if config.train.precision == "auto" else config.train.precision
    return {"recipe": config.recipe, "config": config.model_dump(mode="json"), "plan": {"precision": precision}}


def checkpoint_size(out: Path) -> int | None:
    """Return the size of the newest checkpoint below a folder of runs: the class of what will be written next."""
    folders = sorted(out.glob("*/checkpoints/step-*"), key=lambda folder: folder.name[-12:])[-_MOST_FOLDERS:]
    newest = max(folders, key=lambda folder: folder.stat().st_mtime, default=None)
    if newest is None:
        return None
    return sum(file.stat().st_size for file in newest.rglob("*") if file.is_file()) or None


def show_machine(report: MachineReport, console: Console) -> None:
    """Print the machine as a table and its findings below."""
    table = Table(title=say("machine/title"), title_justify="left", title_style="bold", show_header=False, box=None)
    table.add_column(style="cyan", no_wrap=True)
    table.add_column(overflow="fold")
    for label, value in _rows(report):
        table.add_row(label, value)
    console.print(table)
    console.print()
    show_findings(report, console)


def show_machine_line(report: MachineReport, console: Console) -> None:
    """Print the machine in one line, for commands that have more to say."""
    kinds = Counter((gpu.name or "n/a").removeprefix("NVIDIA ") for gpu in report.gpus)
    parts = [
        report.host,
        *(f"{num} × {name}" for name, num in kinds.items()),
        say("machine/cores", cores=report.cores, host=report.cores_host or "n/a"),
        say("machine/line-memory", free=size(report.memory_free_bytes)),
        say("machine/line-disk", free=size(report.disk_free_bytes)),
        f"torch {report.framework.torch or 'n/a'}",
    ]
    console.print(Text(" · ".join(parts)))


def show_findings(report: MachineReport, console: Console) -> None:
    """Print what was found, each with its mark and what to do about it."""
    show_notes(((finding.level, finding.code, finding.facts) for finding in report.findings), console)


def show_notes(notes: Iterable[tuple[Level, str, Mapping[str, Any]]], console: Console) -> None:
    """Print messages (level, code, facts), one below the other; the mark says the level without colour."""
    table = Table.grid(padding=(0, 1))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for level, code, facts in notes:
        mark, style = _MARKS[level]
        text = Text(say(code, **facts))
        if level != "ok":
            text.append(f" [{code}]", style="dim")
            advice = hint(code, **facts)
            text.append(f"\n→ {advice}" if advice else "", style="cyan")
        table.add_row(Text(mark, style=style), text)
    if table.row_count:
        console.print(table)


def _rows(report: MachineReport) -> Iterator[tuple[str, str]]:
    found = report.framework
    free_of = {
        "memory": (report.memory_free_bytes, report.memory_bytes),
        "shm": (report.shm_free_bytes, report.shm_bytes),
        "disk": (report.disk_free_bytes, report.disk_bytes),
    }
    yield say("machine/row-host"), f"{report.host} · {report.os} · {report.kernel}"
    cores = say("machine/cores", cores=report.cores, host=report.cores_host or "n/a")
    yield say("machine/row-cpu"), f"{report.cpu or 'n/a'} · {cores}"
    for key, (free, total) in free_of.items():
        text = say("machine/free-of", free=size(free), total=size(total))
        yield say(f"machine/row-{key}"), f"{text} · {report.disk_place}" if key == "disk" else text
    yield say("machine/row-limits"), _limits_text(report)
    yield say("machine/row-python"), f"{found.python_version or 'n/a'} · {found.python}"
    yield say("machine/row-torch"), f"{found.torch} · {found.build}" if found.torch else say("machine/absent")
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
    endless = say("machine/unlimited")
    return say(
        "machine/limits",
        files=endless if report.nofile is None else report.nofile,
        procs=endless if report.nproc is None else report.nproc,
        locked=endless if report.memlock_bytes is None else size(report.memlock_bytes),
    )


def _npu_text(npu: Npu) -> str:
    free = None if npu.total_bytes is None or npu.used_bytes is None else npu.total_bytes - npu.used_bytes
    parts = [
        npu.name or "n/a",
        say("machine/free-of", free=size(free), total=size(npu.total_bytes)),
        "n/a" if npu.utilisation is None else f"{npu.utilisation} %",
        "n/a" if npu.temperature_c is None else f"{npu.temperature_c} °C",
        npu.health or "n/a",
    ]
    return " · ".join(parts)


def _gpu_text(gpu: Gpu) -> str:
    if gpu.lost:
        return say("machine/state-lost")
    state = say("machine/state-free" if is_free(gpu) else "machine/state-busy")
    parts = [
        (gpu.name or "n/a").removeprefix("NVIDIA "),
        say("machine/free-of", free=size(gpu.free_bytes), total=size(gpu.total_bytes)),
        "n/a" if gpu.utilisation is None else f"{gpu.utilisation} %",
        "n/a" if gpu.temperature_c is None else f"{gpu.temperature_c} °C",
        state,
    ]
    return " · ".join(parts)
