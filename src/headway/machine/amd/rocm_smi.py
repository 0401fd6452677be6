"""AMD's devices: every form of `rocm-smi` (table, lines, JSON, CSV, topology). `amd-smi` is in amd_smi.py."""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter
from typing import Any

from headway.machine.amd.amd_smi import amd_smi_gpus
from headway.machine.text.values import Facts, count_or_none, number, text_or_none, whole

_ROCM_LINE = re.compile(r"^[ \t]*GPU\[(\d+)\]\s*:\s*(.+?):\s*(.*?)\s*$")
_ROCM_KEYS: dict[str, tuple[str, Any]] = {  # Any: a reader of one printed value
    "GPU use (%)": ("util_pct", whole),
    "VRAM Total Memory (B)": ("memory_total_bytes", whole),
    "VRAM Total Used Memory (B)": ("memory_used_bytes", whole),
    "GPU memory use (%)": ("vram_pct", whole),
    "GPU Memory Allocated (VRAM%)": ("vram_pct", whole),
    "Temperature (Sensor junction) (C)": ("temp_c", number),
    "Temperature (Sensor edge) (C)": ("temp_edge_c", number),
    "Temperature": ("temp_c", number),
    "Average Graphics Package Power (W)": ("power_w", number),
    "Average Graphics Package Power": ("power_w", number),
    "Current Socket Graphics Package Power (W)": ("power_w", number),
    "Max Graphics Package Power (W)": ("power_cap_w", number),
    "Device Name": ("name", text_or_none),
    "Card series": ("name", text_or_none),
    "Card Series": ("name", text_or_none),
    "GFX Version": ("gfx", text_or_none),
    "PCI Bus": ("bus_id", text_or_none),
}
_CONCISE = re.compile(
    r"^[ \t]*(\d{1,3})\s+(.*?)\s*(\S+?)(?:°C|[cC])\s+(N/A|\S+?W)\s+.*\s(\S+?)W\s+"
    r"(\d+|N/A|Unsupported)%?\s+(\d+|N/A)%?\s*$"
)
_CONCISE_OLD = re.compile(r"^[ \t]*(\d{1,3})[ \t]+([\d.]+)c[ \t]+([\d.]+)W[ \t]+\S+hz\b")
"""Before ROCm 2 the table had neither limits nor memory."""
_HARDWARE = re.compile(r"^[ \t]*(\d{1,3})[ \t]+(\d+[ \t]+0x\w+[ \t]+\d+)[ \t]+(gfx\w+)[ \t].*?([0-9A-Fa-f]{4}:\S+)")
_TITLES = ("ROCm System Management Interface", "ROCm SMI", "AMD-SMI", "amd-smi")


def parse_rocm(text: str) -> Facts | None:
    """Return the AMD devices or their links, or None when this is not of rocm-smi or amd-smi."""
    modern = amd_smi_gpus(text)
    asked = _cards(text)
    is_named = any(title in text for title in _TITLES) or _has_rocm_lines(text) or _trouble(text)
    if not modern and not asked and not is_named:
        return None
    gpus: dict[int, Facts] = {index: {**asked.get(index, {}), **one} for index, one in {**asked, **modern}.items()}
    numa: dict[str, int | None] = {}
    for line in text.splitlines():
        if found := _ROCM_LINE.match(line):
            index, key, value = int(found[1][:9]), found[2].strip(), found[3]
            if key == "(Topology) Numa Node":
                numa[str(index)] = count_or_none(value)
            elif key in _ROCM_KEYS:
                _keep(gpus.setdefault(index, {"index": index}), key, value)
        elif row := _CONCISE.match(line):
            gpus[int(row[1])] = _concise(row)
        elif row := _CONCISE_OLD.match(line):
            gpus[int(row[1])] = {"index": int(row[1]), "temp_c": float(row[2]), "power_w": float(row[3])}
        elif row := _HARDWARE.match(line):
            about = {"ids": " ".join(row[2].split()), "gfx": row[3], "bus_id": row[4]}
            gpus.setdefault(int(row[1]), {"index": int(row[1])}).update(about)
    facts: Facts = {}
    if gpus:
        facts["gpus"] = [gpus[index] for index in sorted(gpus)]
    if links := _rocm_links(text):
        facts |= links
    if numa:
        facts["numa"] = numa
    if "low-power state" in text:
        facts["low_power"] = True
    if trouble := _trouble(text):
        facts |= {"gpus": facts.get("gpus", []), "error_class": trouble}
    # A text that only speaks of these tools is not one of theirs.
    return facts or ({} if "End of ROCm SMI Log" in text else None)


def _trouble(text: str) -> str | None:
    if re.search(r"No AMD GPUs specified|No AMD GPUs? (?:were )?(?:found|detected)", text):
        return "no_devices"
    if re.search(r"amdgpu not found in modules|ROCk module is NOT loaded", text):
        return "driver_not_loaded"
    return None


def _keep(gpu: Facts, key: str, value: str) -> None:
    name, read = _ROCM_KEYS[key]
    found = read(value)
    # An older key may say less than the one that came before it.
    if found is not None or name not in gpu:
        gpu[name] = found


def _cards(text: str) -> dict[int, Facts]:
    """Return the devices of `rocm-smi --json` or `--csv`: the same keys, under `card0`."""
    cards: dict[int, Facts] = {}
    for index, row in (*_json_cards(text), *_csv_cards(text)):
        for key, value in row.items():
            if key in _ROCM_KEYS:
                _keep(cards.setdefault(index, {"index": index}), key, value)
    return cards


def _json_cards(text: str) -> list[tuple[int, dict[str, str]]]:
    start = re.search(r'\{\s*"card\d', text)
    if start is None:
        return []
    try:
        data, _ = json.JSONDecoder().raw_decode(text[start.start() :])
    except (ValueError, RecursionError):
        return []
    return [
        (int(name[4:][:9]), {key: str(value) for key, value in row.items()})
        for name, row in data.items()
        if re.fullmatch(r"card[0-9]+", name) and isinstance(row, dict)
    ]


def _csv_cards(text: str) -> list[tuple[int, dict[str, str]]]:
    head = re.search(r"^[ \t]*(device,.+)$", text, re.M)
    if head is None:
        return []
    try:
        names, *rows = csv.reader(io.StringIO(text[head.start() :].strip()))
    except csv.Error:
        return []
    return [
        (int(row[0][4:][:9]), dict(zip(names, row, strict=False)))
        for row in rows
        if row and re.fullmatch(r"card[0-9]+", row[0])
    ]


def _has_rocm_lines(text: str) -> bool:
    return bool(re.search(r"^[ \t]*GPU\[\d+\]\s*:", text, re.M))


def _concise(row: re.Match[str]) -> Facts:
    facts: Facts = {
        "index": int(row[1]),
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
