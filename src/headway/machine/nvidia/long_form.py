"""The long form `nvidia-smi -q`: sections by indentation, `key : value`, whole or an excerpt."""

from __future__ import annotations

import re
from collections.abc import Iterator

from headway.machine.nvidia.xml import written_out
from headway.machine.text.values import Facts, count_or_none, is_absent, number, text_or_none, whole

_GPU = re.compile(r"^GPU ([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f])\s*$", re.M)
_LINE = re.compile(r"^(\s*)(\S.*?)\s*(?:\s:\s?(.*))?$")
_ECC = re.compile(r"^\s*(?:ECC Errors|Retired Pages|Remapped Rows|Clocks (?:Event|Throttle) Reasons)\b", re.M)
Entry = tuple[tuple[str, ...], str | None]
"""Where a line is, from the outermost section to its own key, and its value."""


def parse_q(text: str) -> Facts | None:
    """Return what the log says, or None when this is no such log."""
    text = written_out(text)
    marks = list(_GPU.finditer(text))
    if not marks and not _ECC.search(text):
        return None
    if not marks:  # an excerpt without the GPU's name
        entries = list(_entries(text))
        return {"ecc": _ecc(entries), **_health(entries, _values(entries))}
    head = {path[-1]: value for path, value in _entries(text[: marks[0].start()]) if value}
    ends = [*(mark.start() for mark in marks[1:]), len(text)]
    gpus = [_gpu(mark[1], text[mark.end() : end]) for mark, end in zip(marks, ends, strict=True)]
    attached = count_or_none(head.get("Attached GPUs"))
    latest = dict(zip((mark[1] for mark in marks), gpus, strict=True))
    if attached is not None and len(gpus) > attached == len(latest):
        gpus = list(latest.values())  # the same GPUs asked more than once: the last answer is how it is now
    return {
        "driver": _version(head.get("KMD Version", head.get("Driver Version"))),
        "cuda": _version(head.get("CUDA UMD Version", head.get("CUDA Version"))),
        "attached_gpus": len(gpus) if attached is None else attached,
        "gpus": gpus,
    }


def _version(value: str | None) -> str | None:
    """Return a version without what is said of the line itself: `610.57 [Deprecated; will be removed …]`."""
    return text_or_none((value or "").partition(" [")[0])


def _entries(text: str) -> Iterator[Entry]:
    """Yield every line with its place. A line that is deeper belongs to the last one less deep."""
    stack: list[tuple[int, str]] = []
    for line in text.splitlines():
        found = _LINE.match(line.expandtabs(4))
        if found is None or found[2].startswith(("[", "=", "...")):
            continue
        depth = len(found[1])
        while stack and stack[-1][0] >= depth:
            stack.pop()
        stack.append((depth, found[2]))
        yield tuple(name for _, name in stack), found[3].strip() if found[3] is not None else None


def _values(entries: list[Entry]) -> dict[tuple[str, ...], str]:
    """Return each value by its place; of places that come again (processes) the first."""
    values: dict[tuple[str, ...], str] = {}
    for path, value in entries:
        if value is not None:
            values.setdefault(path, value)
    return values


def _gpu(bus_id: str, body: str) -> Facts:
    entries = list(_entries(body))
    values = _values(entries)

    def first(*places: tuple[str, ...]) -> str | None:
        """Return the first of these that has a reading; else what is printed in place of one."""
        here = [values[place] for place in places if place in values]
        return next((value for value in here if not is_absent(value)), here[0] if here else None)

    facts: Facts = {"bus_id": bus_id, "processes": _processes(entries)}
    for name, value, read in (
        ("name", first(("Product Name",)), text_or_none),
        ("uuid", first(("GPU UUID",)), text_or_none),
        ("memory_total_mib", first(("FB Memory Usage", "Total")), whole),
        ("memory_used_mib", first(("FB Memory Usage", "Used")), whole),
        ("util_pct", first(("Utilization", "Gpu"), ("Utilization", "GPU")), whole),
        ("temp_c", first(("Temperature", "GPU Current Temp"), ("Temperature", "Gpu")), whole),
        ("power_w", first(*_power("Power Draw", "Average Power Draw", "Instantaneous Power Draw")), number),
        ("power_cap_w", first(*_power("Current Power Limit", "Power Limit", "Enforced Power Limit")), number),
        ("sm_clock_mhz", first(("Clocks", "SM")), whole),
        ("max_sm_clock_mhz", first(("Max Clocks", "SM")), whole),
        ("persistence", first(("Persistence Mode",)), str),
        ("mig_mode", first(("MIG Mode", "Current"), ("MIG Mode",)), str),
        ("compute_mode", first(("Compute Mode",)), text_or_none),
        ("ecc_mode", first(("ECC Mode", "Current"), ("Ecc Mode", "Current")), text_or_none),
        ("ecc_mode_pending", first(("ECC Mode", "Pending"), ("Ecc Mode", "Pending")), text_or_none),
        ("recovery_action", first(("GPU Recovery Action",)), text_or_none),
        ("fan_pct", first(("Fan Speed",)), whole),
        ("pcie_width", first(("PCI", "GPU Link Info", "Link Width", "Current")), whole),
        ("pcie_width_max", first(("PCI", "GPU Link Info", "Link Width", "Max")), whole),
        ("fabric_state", first(("Fabric", "State")), text_or_none),
    ):
        if value is not None:
            facts[name] = read(value)
    for name, value in (
        ("driver_model", first(("Driver Model", "Current"))),
        ("virtualization", first(("GPU Virtualization Mode", "Virtualization Mode"))),
    ):
        if text_or_none(value) not in (None, "None"):
            facts[name] = value
    return {**facts, **_health(entries, values)}


def _power(*keys: str) -> list[tuple[str, ...]]:
    sections = (("GPU Power Readings",), ("Power Readings",), ("GPU Power Readings", "GPU Ceiling Power Limit"))
    return [(*section, key) for key in keys for section in sections]


def _health(entries: list[Entry], values: dict[tuple[str, ...], str]) -> Facts:
    facts: Facts = {}
    tops = {path[0] for path, _ in entries}
    if any(re.fullmatch(r"Clocks (Event|Throttle) Reasons", top) for top in tops):
        facts["clock_reasons_active"] = [
            path[-1]
            for path, value in entries
            if re.fullmatch(r"Clocks (Event|Throttle) Reasons", path[0]) and value == "Active"
        ]
    if any(top.lower() == "ecc errors" for top in tops):
        found = _ecc(entries)
        facts["ecc_nonzero"] = {f"{when}.{what}": num for when, kinds in found.items() for what, num in kinds.items()}
    if ("Remapped Rows",) in values:
        facts["remapped_rows"] = None
    elif "Remapped Rows" in tops:
        rows = {name: values.get(("Remapped Rows", key)) for name, key in _ROWS.items()}
        facts["remapped_rows"] = {
            "correctable": count_or_none(rows["correctable"]),
            "uncorrectable": count_or_none(rows["uncorrectable"]),
            "pending": rows["pending"],
            "failure": rows["failure"],
        }
    if "Retired Pages" in tops:
        facts["retired_pages"] = {
            "single_bit": count_or_none(values.get(("Retired Pages", "Single Bit ECC"))),
            "double_bit": count_or_none(values.get(("Retired Pages", "Double Bit ECC"))),
            "pending": values.get(
                ("Retired Pages", "Pending Page Blacklist"), values.get(("Retired Pages", "Pending"))
            ),
        }
    return facts


_ROWS = {
    "correctable": "Correctable Error",
    "uncorrectable": "Uncorrectable Error",
    "pending": "Pending",
    "failure": "Remapping Failure Occurred",
}


def _ecc(entries: list[Entry]) -> dict[str, dict[str, int]]:
    """Return the counts above zero: `{"volatile": {"dram_correctable": 177}}`."""
    found: dict[str, dict[str, int]] = {}
    for path, value in entries:
        if "ECC Errors" not in path and "Ecc Errors" not in path:
            continue
        inner = path[next(i for i, name in enumerate(path) if name.lower() == "ecc errors") + 1 :]
        count = count_or_none(value)
        if len(inner) >= 2 and count:
            name = ".".join(re.sub(r"\W+", "_", part.lower()).strip("_") for part in inner[1:])
            found.setdefault(re.sub(r"\W+", "_", inner[0].lower()), {})[name] = count
    return found


def _processes(entries: list[Entry]) -> list[Facts]:
    processes: list[Facts] = []
    for path, value in entries:
        if path[0] != "Processes" or value is None:
            continue
        key = path[-1]
        if key == "Process ID":
            processes.append({"pid": count_or_none(value), "type": None, "name": None, "used_mib": None})
        elif processes and key in ("Type", "Name"):
            processes[-1][key.lower()] = text_or_none(value)
        elif processes and key in ("Used GPU Memory", "Used Memory"):
            processes[-1]["used_mib"] = count_or_none(value)
    return processes
