"""Devices that are not NVIDIA's: `npu-smi info` (Ascend) and `rocm-smi` (AMD)."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from headway.machine.dumps.values import Facts, count_or_none, number, text_or_none, whole

_NPU_HEAD = re.compile(r"npu-smi\s+(\d\S*)(?:\s+Version:\s*(\S+))?")
_BUS = re.compile(r"[0-9A-Fa-f]{4}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f]")
_IDS = re.compile(r"\d{1,6}(?:\s.*)?")
_USAGE = re.compile(r"(\d+)\s*/\s*(\d+)")


def parse_npu(text: str) -> Facts | None:
    """Return the Ascend devices, or None when there is no such table."""
    head = _NPU_HEAD.search(text)
    if head is None:
        return None
    has_hbm = "HBM-Usage" in text
    npus: list[Facts] = []
    processes: list[Facts] = []
    first: list[str] | None = None
    for line in text[head.start() :].partition("NVIDIA-SMI")[0].splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")] if line.strip().startswith("|") else []
        if not cells and first is not None and line.strip().startswith("+"):
            npus.append(_npu(first, ["", "", ""], has_hbm))  # a short table has one row a device
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
    return {"npu_smi": head[1], "npus": npus, "processes": processes}


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


_ROCM_LINE = re.compile(r"^GPU\[(\d+)\]\s*:\s*(.+?):\s*(.*?)\s*$")
_ROCM_KEYS: dict[str, tuple[str, Any]] = {  # Any: a reader of one printed value
    "GPU use (%)": ("util_pct", whole),
    "VRAM Total Memory (B)": ("memory_total_bytes", whole),
    "VRAM Total Used Memory (B)": ("memory_used_bytes", whole),
    "GPU memory use (%)": ("vram_pct", whole),
    "Temperature (Sensor junction) (C)": ("temp_c", number),
    "Temperature (Sensor edge) (C)": ("temp_edge_c", number),
    "Average Graphics Package Power (W)": ("power_w", number),
    "Current Socket Graphics Package Power (W)": ("power_w", number),
    "Max Graphics Package Power (W)": ("power_cap_w", number),
    "Card series": ("name", text_or_none),
    "Card Series": ("name", text_or_none),
    "GFX Version": ("gfx", text_or_none),
}
_CONCISE = re.compile(
    r"^(\d+)\s+(.*?)\s*(\S+?)(?:°C|[cC])\s+(N/A|\S+?W)\s+.*\s(\S+?)W\s+(\d+|N/A|Unsupported)%?\s+(\d+|N/A)%?\s*$"
)


def parse_rocm(text: str) -> Facts | None:
    """Return the AMD devices or their links, or None when this is not of rocm-smi."""
    if "ROCm System Management Interface" not in text and "ROCm SMI" not in text and not _has_rocm_lines(text):
        return None
    gpus: dict[int, Facts] = {}
    numa: dict[str, int | None] = {}
    for line in text.splitlines():
        if found := _ROCM_LINE.match(line):
            index, key, value = int(found[1][:9]), found[2].strip(), found[3]
            if key == "(Topology) Numa Node":
                numa[str(index)] = count_or_none(value)
            elif key in _ROCM_KEYS:
                name, read = _ROCM_KEYS[key]
                gpus.setdefault(index, {"index": index})[name] = read(value)
        elif row := _CONCISE.match(line):
            gpus[int(row[1][:9])] = _concise(row)
    facts: Facts = {}
    if gpus:
        facts["gpus"] = [gpus[index] for index in sorted(gpus)]
    if links := _rocm_links(text):
        facts |= links
    if numa:
        facts["numa"] = numa
    if "low-power state" in text:
        facts["low_power"] = True
    return facts


def _has_rocm_lines(text: str) -> bool:
    return bool(re.search(r"^GPU\[\d+\]\s*:", text, re.M))


def _concise(row: re.Match[str]) -> Facts:
    facts: Facts = {
        "index": int(row[1][:9]),
        "temp_c": number(row[3]),
        "power_w": number(row[4]),
        "power_cap_w": number(row[5]),
        "vram_pct": whole(row[6]),
        "util_pct": whole(row[7]),
    }
    return {**facts, "ids": " ".join(row[2].split())} if row[2].strip() else facts


def _rocm_links(text: str) -> Facts:
    """Return the links in one sentence when all pairs are alike, else counted by kind."""
    tables = {title: _matrix(text, title) for title in ("Weight between", "Hops between", "Link Type between")}
    kinds = tables["Link Type between"]
    if not kinds:
        return {}
    names = Counter(kinds.values())
    devices = len({one for pair in kinds for one in pair})
    if len(names) == 1 and len(set(tables["Hops between"].values())) <= 1:
        parts = [f"all pairs {next(iter(names))}"]
        hops, weights = set(tables["Hops between"].values()), set(tables["Weight between"].values())
        if hops:
            num = next(iter(hops))
            parts.append(f"{num} hop" if num == "1" else f"{num} hops")
        if len(weights) == 1:
            parts.append(f"weight {next(iter(weights))}")
        return {"devices": devices, "links": ", ".join(parts), "pair_counts": dict(names)}
    text_form = ", ".join(f"{num} pairs {name}" for name, num in names.items())
    return {"devices": devices, "links": text_form, "pair_counts": dict(names)}


def _matrix(text: str, title: str) -> dict[tuple[int, int], str]:
    """Return the upper half of one matrix of rocm-smi, by its title."""
    _, _, rest = text.partition(title)
    cells: dict[tuple[int, int], str] = {}
    for line in rest.splitlines()[1:]:
        if line.startswith("="):
            break
        words = line.split()
        if words and re.fullmatch(r"GPU\d+", words[0]) and not (len(words) > 1 and words[1].startswith("GPU")):
            row = int(words[0][3:12])
            cells |= {(row, column): word for column, word in enumerate(words[1:]) if column > row}
    return cells
