"""The CSV of `nvidia-smi --query-gpu` and `--query-compute-apps`: columns by name, in any order."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable

from headway.machine.text.values import Facts, is_absent, number, text_or_none, whole

_COLUMNS: dict[str, tuple[str, Callable[[str | None], object]]] = {
    "name": ("name", text_or_none),
    "gpu_name": ("name", text_or_none),
    "uuid": ("uuid", text_or_none),
    "gpu_uuid": ("uuid", text_or_none),
    "pci.bus_id": ("bus_id", text_or_none),
    "gpu_bus_id": ("bus_id", text_or_none),
    "driver_version": ("driver", text_or_none),
    "memory.total": ("memory_total_mib", whole),
    "memory.used": ("memory_used_mib", whole),
    "memory.free": ("memory_free_mib", whole),
    "compute_cap": ("compute_cap", text_or_none),
    "utilization.gpu": ("util_pct", whole),
    "temperature.gpu": ("temp_c", whole),
    "fan.speed": ("fan_pct", whole),
    "power.draw": ("power_w", number),
    "power.limit": ("power_cap_w", number),
    "enforced.power.limit": ("power_cap_enforced_w", number),
    "pstate": ("pstate", text_or_none),
    "persistence_mode": ("persistence", text_or_none),
    "ecc.errors.uncorrected.volatile.total": ("ecc_volatile_uncorrected", whole),
    "ecc.errors.corrected.volatile.total": ("ecc_volatile_corrected", whole),
    "ecc.mode.current": ("ecc_mode", text_or_none),
    "mig.mode.current": ("mig_mode", text_or_none),
    "pcie.link.gen.current": ("pcie_gen", whole),
    "pcie.link.width.current": ("pcie_width", whole),
    "pcie.link.gen.max": ("pcie_gen_max", whole),
    "pcie.link.width.max": ("pcie_width_max", whole),
    "compute_mode": ("compute_mode", text_or_none),
    "clocks.current.sm": ("sm_clock_mhz", whole),
    "clocks.sm": ("sm_clock_mhz", whole),
    "clocks.max.sm": ("max_sm_clock_mhz", whole),
    "remapped_rows.pending": ("remap_pending", text_or_none),
    "remapped_rows.failure": ("remap_failure", text_or_none),
    "retired_pages.pending": ("retired_pending", text_or_none),
}
_REASON = re.compile(r"clocks_(?:event|throttle)_reasons\.(\w+)$")
_NO_REASON = ("supported", "active")
_MARKS = ("name", "gpu_name", "index", "memory.total", "memory.used", "utilization.gpu", "temperature.gpu", "uuid",
          "pci.bus_id", "driver_version", "compute_cap", "mig.mode.current", "power.draw", "timestamp")  # fmt: skip
_OWN = {"pid", "process_name", "used_memory", "used_gpu_memory", "gpu_serial", "timestamp", "index", "count", "serial"}
_ASKED = re.compile(r"^[^\n]*nvidia-smi[^\n]*--query-(?:gpu|compute-apps)[= ]([\w.,\"']+)[^\n]*$", re.M)


def read_csv(text: str, *, needs: str) -> tuple[list[str], list[dict[str, str]]]:
    """Return (column names, rows) of the first table with that column; text around the table is passed over."""
    lines = [line for line in text.splitlines() if "," in line]
    for start, line in enumerate(lines):
        names = _names(line)
        if needs in names and _looks_queried(names):
            rest = lines[start + 1 :]
            end = next((place for place, other in enumerate(rest) if _looks_queried(_names(other))), len(rest))
            try:
                rows = list(csv.reader(io.StringIO("\n".join(rest[:end])), skipinitialspace=True))
            except csv.Error:  # a field beyond the reader's limit, or a stray control character
                return names, []
            return names, [dict(zip(names, map(str.strip, row), strict=True)) for row in rows if len(row) == len(names)]
    return [], []


def _names(line: str) -> list[str]:
    return [name.partition("[")[0].strip() for name in line.split(",")]


def parse_query(text: str) -> Facts | None:
    """Return the GPUs, the processes or both of the CSV, or None when there is no such CSV."""
    text = _with_names(text)
    names, apps = read_csv(text, needs="pid")
    facts: Facts = {"columns": len(names), "processes": [_process(row) for row in apps]} if names else {}
    for needs in _MARKS:
        names, rows = read_csv(text, needs=needs)
        if names and "pid" not in names:
            facts |= {"columns": len(names), "gpus": [_gpu(row, place) for place, row in enumerate(rows)]}
            break
    if "gpus" in facts:
        _place(facts.get("processes", ()), facts["gpus"])
    return facts or None


def _place(processes: Iterable[Facts], gpus: list[Facts]) -> None:
    """Tell each process its GPU's index: the list of processes knows GPUs by their names for life alone."""
    for one in processes:
        same = [gpu for gpu in gpus for key in ("uuid", "bus_id") if gpu.get(key) and gpu[key] == one.get(f"gpu_{key}")]
        if same:
            one["gpu"] = same[0]["index"]


def _with_names(text: str) -> str:
    """Return the text with the head of the table, where the command above it tells the columns and asks for no head."""

    def tell(found: re.Match[str]) -> str:
        return found[0] + "\n" + ", ".join(found[1].strip("\"'").split(",")) if "noheader" in found[0] else found[0]

    return _ASKED.sub(tell, text)


def _looks_queried(names: list[str]) -> bool:
    own = sum(name in _COLUMNS or name in _OWN or "." in name for name in names)
    return len(names) > 1 and own * 2 > len(names) and all(re.fullmatch(r"[\w.]+", name) for name in names)


def _gpu(row: dict[str, str], place: int) -> Facts:
    index = whole(row.get("index"))
    facts: Facts = {"index": index if isinstance(index, int) else place}
    for column, (name, read) in _COLUMNS.items():
        if column in row:
            facts[name] = read(row[column])
    reasons = {found[1]: value for column, value in row.items() if (found := _REASON.match(column))}
    if reasons:
        active = [name for name, value in reasons.items() if name not in _NO_REASON and value == "Active"]
        facts["clock_reasons_active"] = [name.replace("_", " ") for name in active]
    return facts


def _process(row: dict[str, str]) -> Facts:
    used = row.get("used_gpu_memory", row.get("used_memory"))
    facts: Facts = {
        "pid": whole(row.get("pid")),
        "name": text_or_none(row.get("process_name", row.get("name"))),
        "used_mib": None if is_absent(used) else whole(used),
    }
    for column, name in (("gpu_name", "gpu_name"), ("gpu_uuid", "gpu_uuid"), ("gpu_bus_id", "gpu_bus_id")):
        if column in row:
            facts[name] = text_or_none(row[column])
    return facts
