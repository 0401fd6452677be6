"""The table of plain `nvidia-smi`, of every age: drivers 3xx to 6xx, with and without MIG rows, Linux and Windows."""

from __future__ import annotations

import re

from headway.machine.text.values import Facts, count_or_none, text_or_none, whole

_HEADER = re.compile(r"NVIDIA-SMI\s+(\d[\w.]*)")
_DRIVER = re.compile(r"(?:Driver|KMD) Version:\s*(\d[\w.]*)")
_CUDA = re.compile(r"CUDA (?:UMD )?Version:\s*([\w./]+!?)")
_BUS = r"([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f])"
_BUS_CELL = re.compile(rf"(?:{_BUS}|N/A|ERR!|Unknown Error)\s+(On|Off|N/A|ERR!)?")
"""Boards without PCIe (Jetson) have no address, a GPU that has gone tells none."""
_FIRST = re.compile(r"\s*(\d{1,3})\s+(\S.*?)\s+(On|Off|N/A|WDDM|TCC|MCDM|ERR!|Unknown Error)\s*$")
_SECOND = re.compile(r"\s*(\S+)\s+(\S+)\s+(P\d+|N/A|ERR!|Unknown\s?\S*)\s+(\S+)\s*/\s*(\S+)\s*$")
_MEMORY = re.compile(r"\s*(\d+)\s*MiB\s*/\s*(\d+)\s*MiB")
_PROCESS = re.compile(
    r"\|\s+(\d{1,3})\s+(?:(N/A|\d+)\s+(N/A|\d+)\s+)?(\d{1,9})\s+([CGM](?:\+[CGM])*)?\s*(\S.*?)?\s+"
    r"(\d+\s*MiB|N/A|Insufficient Permissions)?\s*\|\s*$"
)
_BUS_ANY = re.compile(_BUS)
_MIG = re.compile(r"\|\s+(\d+)\s+(\d+)\s+(\d+)\s+(\d+)\s+\|\s*(\d+)\s*MiB\s*/\s*(\d+)\s*MiB")


def parse_table(text: str) -> Facts | None:
    """Return driver, cuda, gpus, processes and MIG devices, or None when there is no such table."""
    header = _HEADER.search(text)
    if header is None or "vGPU ID" in text:
        return None
    here, *others = [_table(lines) for lines in _tables(text, header)]
    return {**here, "more": others} if others else here


def _table(lines: list[str]) -> Facts:
    head = "\n".join(lines[:3])
    header, driver, cuda = _HEADER.search(head), _DRIVER.search(head), _CUDA.search(head)
    starts = {name: _find(lines, name) for name in ("MIG devices:", "Processes:", "processes:")}
    process_start = starts["Processes:"] if starts["Processes:"] is not None else starts["processes:"]
    ends = [place for place in (starts["MIG devices:"], process_start) if place is not None]
    facts: Facts = {
        "driver": driver[1] if driver else None,
        "nvidia_smi_version": header[1] if header else None,
        "cuda": text_or_none(cuda[1]) if cuda else None,
        "gpus": _gpus(lines[: min(ends, default=len(lines))]),
        **_processes(lines, process_start),
    }
    if starts["MIG devices:"] is not None:
        facts["mig_devices"] = _mig_devices(lines[starts["MIG devices:"] : process_start or len(lines)])
    return facts


def _tables(text: str, header: re.Match[str]) -> list[list[str]]:
    """Return the lines of one table a machine, without what a log put before each of them.

    Whoever watches a machine prints its table again and again: the last one is how it is now. Tables with other
    addresses are of other machines.
    """
    start = text.rfind("\n", 0, header.start()) + 1
    column = max(0, text.rfind("|", start, header.start()) - start)
    lines = [
        line[column:] if line[column : column + 1] in ("|", "+") and line[:column].strip(" |+-=") else line
        for line in text[start:].splitlines()
    ]
    heads = [place for place, line in enumerate(lines) if _HEADER.search(line)]
    tables = [lines[one:other] for one, other in zip(heads, [*heads[1:], len(lines)], strict=True)]
    return list({tuple(_BUS_ANY.findall("\n".join(table))): table for table in tables}.values())


def _find(lines: list[str], title: str) -> int | None:
    return next((place for place, line in enumerate(lines) if line.lstrip("| ").startswith(title)), None)


def _gpus(lines: list[str]) -> list[Facts]:
    gpus: list[Facts] = []
    row = 0
    for line in lines:
        cells = line.strip().strip("|").split("|") if line.lstrip().startswith("|") else []
        if len(cells) != 3:
            row = 0 if line.lstrip().startswith("+") else row
            continue
        first, bus = _FIRST.match(cells[0]), re.search(_BUS_CELL, cells[1])
        if first and bus:
            gpus.append({"index": int(first[1]), "name": first[2], **_first_row(first[3], bus, cells[2])})
            row = 1
        elif gpus and row == 1:
            gpus[-1].update(_second_row(cells))
            row = 2
        elif gpus and row == 2 and not cells[0].strip():
            mode = text_or_none(cells[2])
            gpus[-1]["mig_mode"] = mode.removesuffix("*") if mode else None
            if mode and mode.endswith("*"):
                gpus[-1]["mig_pending_change"] = True
            row = 0
    return gpus


def _first_row(mode: str, bus: re.Match[str], ecc: str) -> Facts:
    facts: Facts = {"bus_id": bus[1], "display_active": text_or_none(bus[2])}
    if mode in ("WDDM", "TCC", "MCDM"):  # Windows prints the driver model where Linux has persistence
        facts["driver_model"] = mode
    else:
        facts["persistence"] = text_or_none(mode)
    word = ecc.strip()
    plain = word.removesuffix("*")
    if word.endswith("*"):
        facts["ecc_pending_change"] = True
    if plain in ("On", "Off"):
        return {**facts, "ecc_volatile_uncorrected": None, "ecc_mode": plain}
    return {**facts, "ecc_volatile_uncorrected": whole(plain)}


def _second_row(cells: list[str]) -> Facts:
    sensors, memory = _SECOND.match(cells[0]), _MEMORY.match(cells[1])
    util, _, mode = cells[2].strip().partition(" ")
    facts: Facts = {
        "memory_used_mib": int(memory[1]) if memory else None,
        "memory_total_mib": int(memory[2]) if memory else None,
        "util_pct": whole(util),
        "compute_mode": text_or_none(mode),
    }
    if sensors is None:
        words = cells[0].split()
        return {**facts, "fan_pct": whole(words[0]) if words else None}
    return {
        **facts,
        "fan_pct": whole(sensors[1]),
        "temp_c": whole(sensors[2]),
        "pstate": text_or_none(sensors[3]),
        "power_w": whole(sensors[4]),
        "power_cap_w": whole(sensors[5]),
    }


def _mig_devices(lines: list[str]) -> list[Facts]:
    names = ("gpu", "gi", "ci", "mig_dev", "memory_used_mib", "memory_total_mib")
    found = (_MIG.search(line) for line in lines)
    return [dict(zip(names, map(int, one.groups()), strict=True)) for one in found if one]


def _processes(lines: list[str], start: int | None) -> Facts:
    if start is None:
        return {"process_list": "absent", "processes": []}
    rest = lines[start:]
    found = [one for line in rest if (one := _PROCESS.match(line.strip()))]
    processes = [_process(one) for one in found]
    is_none = any("No running" in line for line in rest)
    return {
        "process_list": "listed" if processes else "none running" if is_none else "empty",
        "processes": processes,
    }


def _process(found: re.Match[str]) -> Facts:
    gpu, gi, ci, pid, kind, name, used = found.groups()
    facts: Facts = {
        "gpu": int(gpu),
        "pid": int(pid),
        "type": kind,
        "name": text_or_none(name),
        "used_mib": count_or_none(used),
    }
    if gi and gi.isdecimal():
        facts |= {"gi": int(gi), "ci": count_or_none(ci)}
    return facts


_VGPU_GPU = re.compile(r"\|\s+(\d+)\s+(\S.*?)\s*\|\s*" + _BUS + r"\s*\|\s*(\S+)\s*\|")
_VGPU_ONE = re.compile(r"\|\s+(\d{5,})\s+(\S.*?)\s*\|\s*(\S+)\s+(\S.*?)\s*\|\s*(\S+)\s*\|")


def parse_vgpu(text: str) -> Facts | None:
    """Return the GPUs of a vGPU host and what is lent to virtual machines, or None."""
    if _HEADER.search(text) is None or "vGPU ID" not in text:
        return None
    driver = _DRIVER.search(text)
    gpus, vgpus = [], []
    for line in text.splitlines():
        if one := _VGPU_GPU.match(line.strip()):
            util = whole(one[4])
            gpus.append({"index": int(one[1]), "name": one[2], "bus_id": one[3], "util_pct": util})
        elif one := _VGPU_ONE.match(line.strip()):
            vgpus.append({"vgpu_id": int(one[1]), "type": one[2], "vm": one[4], "util_pct": whole(one[5])})
    return {"driver": driver[1] if driver else None, "gpus": gpus, "vgpus": vgpus}
