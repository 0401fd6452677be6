"""The guides' monitor: the run, what it takes of this machine, its last warning, and the end of its log."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import psutil

from headway.errors import UsageError
from headway.guide.follow import headway
from headway.guide.log import write
from headway.machine import inspect_machine
from headway.messages import say
from headway.telemetry import RunDir, list_runs, read_events, read_record
from headway.units import size

_LOG_LINES = 5
_FIRST_S = 0.5
"""How long the first look takes, which has none before it to compare with."""


def monitor(out: Path, *, find_log: Callable[[], Path | None], interval_s: float, is_once: bool) -> int:
    """Show the newest run and the machine again and again, or once; a run that is still to come is waited for."""
    seen: dict[int, psutil.Process] = {}
    while True:
        runs, code = list_runs(out), 0
        if runs:
            code = subprocess.call(headway("watch", "--once", "--out", str(out)))
        elif is_once:
            raise UsageError("guide/nothing-to-watch", folder=Path.cwd())
        else:
            write(say("guide/nothing-to-watch", folder=Path.cwd()))
        for line in (*machine_lines(runs[0] if runs else None, seen), *_warning_lines(runs[:1])):
            write(line)
        log = find_log()
        if log is not None:
            write(say("guide/monitor-log", path=log))
            for line in log.read_text(encoding="utf-8", errors="replace").splitlines()[-_LOG_LINES:]:
                write(line)
        if is_once or code:
            return code
        time.sleep(interval_s)


def machine_lines(run: RunDir | None, seen: dict[int, psutil.Process]) -> list[str]:
    """Return what the machine and the job take: CPU, memory, disk, and every GPU there is."""
    is_first = not seen
    job = _processes(run, seen)
    if is_first:
        _cpu_shares(job)  # from here on: a first look at a process has no share
    memory, disk = psutil.virtual_memory(), psutil.disk_usage(os.getcwd())
    cpu = psutil.cpu_percent(interval=_FIRST_S if is_first else None)
    load = {"cpu": f"{cpu:.0f}", "cores": psutil.cpu_count() or 1, "free": size(disk.free)}
    lines = [say("guide/monitor-machine", used=size(memory.used), total=size(memory.total), **load)]
    if job:
        share, held = _cpu_shares(job)
        lines.append(say("guide/monitor-job", num=len(job), cpu=f"{share:.0f}", memory=size(held)))
    if run is not None:
        lines.append(say("guide/monitor-run", path=run.root, size=size(_disk_bytes(run.root))))
    gpus = [gpu for gpu in inspect_machine(Path.cwd()).gpus if not gpu.lost]
    for number, gpu in enumerate(gpus):
        used = "n/a" if gpu.utilisation is None else f"{gpu.utilisation:.0f}%"
        free = "n/a" if gpu.free_bytes is None else size(gpu.free_bytes)
        facts = {"temperature": "n/a" if gpu.temperature_c is None else gpu.temperature_c, "used": used, "free": free}
        lines.append(say("guide/monitor-gpu", number=number, name=gpu.name or "GPU", **facts))
    return lines if gpus else [*lines, say("guide/monitor-no-gpu")]


def _cpu_shares(job: Iterable[psutil.Process]) -> tuple[float, int]:
    """Return what some processes use together: percent of a core since they were looked at last, and bytes."""
    share, held = 0.0, 0
    for process in job:
        try:
            share += process.cpu_percent()
            held += process.memory_info().rss
        except psutil.Error:
            continue  # it has ended meanwhile
    return share, held


def _processes(run: RunDir | None, seen: dict[int, psutil.Process]) -> list[psutil.Process]:
    """Return the run's supervisor and all its children; the same objects at every look, or their CPU is unknown."""
    pid = read_record(run.lease).get("pid") if run is not None else None
    try:
        root = psutil.Process(int(pid)) if pid else None
        found = [root, *root.children(recursive=True)] if root is not None else []
    except (psutil.Error, ValueError):
        return []
    for process in found:
        seen.setdefault(process.pid, process)
    return [seen[process.pid] for process in found]


def _disk_bytes(folder: Path) -> int:
    total = 0
    for file in folder.rglob("*"):
        try:
            total += file.stat().st_size if file.is_file() else 0
        except OSError:
            continue
    return total


def _warning_lines(runs: Iterable[RunDir]) -> list[str]:
    """Return the last thing that went wrong, in words."""
    for run in runs:
        events = [event for event in read_events(run.events) if event["kind"] in ("warning", "incident")]
        if events:
            last = events[-1]
            text = last.get("text") or _say(str(last.get("code")), last.get("facts") or {})
            return [say("guide/monitor-warning", text=text)]
    return []


def _say(code: str, facts: dict[str, object]) -> str:
    try:
        return f"{say(code, **facts)} [{code}]"
    except (KeyError, ModuleNotFoundError):
        return code
