"""Ascend devices: `npu-smi info`. Its topology is read with that of GPUs."""

from __future__ import annotations

import re

from headway.machine.text.values import Facts, count_or_none, number, text_or_none, whole

_NPU_HEAD = re.compile(r"npu-smi\s+(\d\S*)(?:\s+Version:\s*(\S+))?")
_NPU_COLUMNS = re.compile(r"^\W*NPU\s+Name\s*\|\s*Health\b", re.M)
"""The table below its title, which a paste may leave out."""
_BUS = re.compile(r"[0-9A-Fa-f]{4}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f]")
_IDS = re.compile(r"\d{1,6}(?:\s.*)?")
_USAGE = re.compile(r"(\d+)\s*/\s*(\d+)")


def parse_npu(text: str) -> Facts | None:
    """Return the Ascend devices, or None when there is no such table."""
    head = _NPU_HEAD.search(text)
    start = head or _NPU_COLUMNS.search(text)
    if start is None:
        return None
    has_hbm = "HBM-Usage" in text
    npus: list[Facts] = []
    processes: list[Facts] = []
    first: list[str] | None = None
    for line in text[start.start() :].partition("NVIDIA-SMI")[0].splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")] if line.strip().startswith("|") else []
        if not cells and first is not None and line.strip().startswith("+"):
            npus.append(_npu(first, ["", "", ""], has_hbm))  # a short table has one row per device
            first = None
        if len(cells) == 3 and _IDS.fullmatch(cells[0]):
            if _BUS.search(cells[1]) and first is not None:
                npus.append(_npu(first, cells, has_hbm))
                first = None
            else:
                first = cells
        elif len(cells) in (4, 5) and _IDS.fullmatch(cells[0]) and cells[1].isdecimal():
            ids = cells[0].split()
            one = {"npu": int(ids[0]), "pid": int(cells[1][:18]), "name": text_or_none(cells[2])}
            processes.append({**one, "used_mb": count_or_none(cells[3])})
    return {"npu_smi": head[1] if head else None, "npus": npus, "processes": processes}


def _npu(first: list[str], second: list[str], has_hbm: bool) -> Facts:
    name = first[0].split(None, 1)
    readings = first[2].split()
    usages = [(int(used[:18]), int(total[:18])) for used, total in _USAGE.findall(second[2])]
    facts: Facts = {
        "npu": int(name[0][:9]),
        "chip": count_or_none(second[0].partition(" ")[0]),
        "name": name[1].strip() if len(name) > 1 else None,
        "health": text_or_none(first[1]),
        "power_w": number(readings[0]) if readings else None,
        "temp_c": whole(readings[1]) if len(readings) > 1 else None,
        "bus_id": second[1] or None,
        "aicore_pct": whole(second[2].split()[0]) if second[2] else None,
    }
    if has_hbm and len(usages) > 1:
        facts |= {"hbm_used_mb": usages[1][0], "hbm_total_mb": usages[1][1]}
    if usages:
        facts |= {"memory_used_mb": usages[0][0], "memory_total_mb": usages[0][1]}
    return facts
