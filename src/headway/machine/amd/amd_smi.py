"""`amd-smi`: its table, `monitor` (columns by name), and the sections of `metric`, `static` and `list`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from headway.machine.text.values import Facts, bytes_of, count_or_none, number, text_or_none, whole

_FIRST = re.compile(
    r"^[ \t]*\|[ \t]+([0-9A-Fa-f]{4}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f])[ \t]+(\S.*?)[ \t]*\|[ \t]*"
    r"(N/A|\S+ %)[ \t]+(N/A|\S+ °C)[ \t]+(\S+)[ \t]+(\S.*?)[ \t]*\|[ \t]*$"
)
_SECOND = re.compile(
    r"^[ \t]*\|[ \t]+(\d{1,3})[ \t]+(?:\S+[ \t]+){2}(\S+)[ \t]*\|[ \t]*(N/A|\S+ %)[ \t]+(\S+(?: %)?)[ \t]+"
    r"(\d+|N/A)/(\d+|N/A)[ \t]*MB[ \t]*\|[ \t]*$"
)
_PROCESS = re.compile(
    r"^[ \t]*\|[ \t]+(\d{1,3})[ \t]+(\d{1,9})[ \t]+(\S.*?)[ \t]+(?:N/A|[\d.]+ \w?B)[ \t]+(N/A|[\d.]+ \w?B)[ \t]"
)
_MONITOR: dict[str, tuple[str, Any]] = {  # Any: a reader of one printed value
    "POWER": ("power_w", number), "PWR": ("power_w", number), "PWR_CAP": ("power_cap_w", number),
    "GPU_TEMP": ("temp_c", number), "GPU_T": ("temp_c", number), "GFX_UTIL": ("util_pct", whole),
    "GFX%": ("util_pct", whole), "VRAM_USED": ("memory_used_mb", whole), "VRAM_TOTAL": ("memory_total_mb", whole),
}  # fmt: skip
_SECTIONS: dict[str, tuple[str, Any]] = {
    "MARKET_NAME": ("name", text_or_none), "BDF": ("bus_id", text_or_none), "GFX_ACTIVITY": ("util_pct", whole),
    "SOCKET_POWER": ("power_w", number), "HOTSPOT": ("temp_c", number), "EDGE": ("temp_edge_c", number),
    "TOTAL_VRAM": ("memory_total_mb", whole), "USED_VRAM": ("memory_used_mb", whole),
    "MAX_POWER": ("power_cap_w", number), "TARGET_GRAPHICS_VERSION": ("gfx", text_or_none),
    "TOTAL_UNCORRECTABLE_COUNT": ("uncorrected", whole),
}  # fmt: skip


def amd_smi_gpus(text: str) -> dict[int, Facts]:
    """Return the devices by index; none when nothing here is of amd-smi."""
    found: dict[int, Facts] = {}
    for one in (*_sections(text), *_monitor(text), *_table(text)):
        found.setdefault(one["index"], {}).update(one)
    return found


def _table(text: str) -> Iterator[Facts]:
    if "Mem-Usage" not in text:
        return
    first: re.Match[str] | None = None
    gpus: dict[int, Facts] = {}
    for line in text.splitlines():
        if row := _FIRST.match(line):
            first = row
        elif first is not None and (row := _SECOND.match(line)):
            gpus[int(row[1])] = _gpu(first, row)
            first = None
        elif gpus and (row := _PROCESS.match(line)) and int(row[1]) in gpus:
            held = bytes_of(row[4])
            used = None if held is None else held >> 20
            one = {"pid": int(row[2]), "name": row[3], "used_mib": used}
            gpus[int(row[1])].setdefault("processes", []).append(one)
    yield from gpus.values()


def _gpu(first: re.Match[str], second: re.Match[str]) -> Facts:
    power, _, cap = first[6].removesuffix("W").strip().replace("N/A", "-").partition("/")
    return {
        "index": int(second[1]),
        "name": first[2],
        "bus_id": first[1],
        "mem_util_pct": whole(first[3]),
        "temp_c": number(first[4]),
        "uncorrected": count_or_none(first[5]),
        "power_w": number(power),
        "power_cap_w": number(cap),
        "partition": text_or_none(second[2]),
        "util_pct": whole(second[3]),
        "fan_pct": number(second[4]),
        "memory_used_mb": count_or_none(second[5]),
        "memory_total_mb": count_or_none(second[6]),
    }


def _monitor(text: str) -> Iterator[Facts]:
    lines = text.splitlines()
    start = next((at for at, line in enumerate(lines) if re.match(r"\s*GPU\s+(?:XCP\s+)?P(?:OWER|WR)\b", line)), None)
    if start is None:
        return
    names = lines[start].split()
    for line in lines[start + 1 :]:
        # Every reading but the first two has its unit behind one blank.
        cells = re.findall(r"N/A(?: \w+/s)?|\S+ (?:W|°C|%|[MG]Hz|[KMGT]?B|[MG]b/s)(?=\s|$)|\S+", line)
        if len(cells) != len(names) or not cells[0].isdecimal():
            break
        row = dict(zip(names, cells, strict=True))
        facts: Facts = {"index": int(cells[0][:9])}
        facts |= {name: read(row[column]) for column, (name, read) in _MONITOR.items() if column in row}
        if usage := re.fullmatch(r"([\d.]+)/\s*([\d.]+) GB", row.get("VRAM_USAGE", "")):
            used, total = (round(float(one) * 1024) for one in usage.groups())
            facts |= {"memory_used_mb": used, "memory_total_mb": total}
        yield facts


def _sections(text: str) -> Iterator[Facts]:
    marks = list(re.finditer(r"^[ \t]*GPU: (\d{1,3})[ \t]*$", text, re.M))
    ends = [mark.start() for mark in marks[1:]]
    for mark, end in zip(marks, [*ends, len(text)], strict=False):
        facts: Facts = {"index": int(mark[1])}
        for key, value in re.findall(r"^[ \t]+([A-Z_]+):[ \t]+(\S.*?)[ \t]*$", text[mark.end() : end], re.M):
            if key in _SECTIONS:
                name, read = _SECTIONS[key]
                facts.setdefault(name, read(value))
        yield facts
