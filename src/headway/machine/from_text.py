"""A machine from a recorded text: its facts become the same records a driver gives, and the same rules judge them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from headway.machine.ascend.devices import judge_npus, npus_from
from headway.machine.from_text_host import HOST_JUDGES, judge_quota
from headway.machine.from_text_software import SOFTWARE_JUDGES
from headway.machine.judge import sort_findings
from headway.machine.record import Finding, Gpu, GpuHealth, GpuProcess
from headway.machine.rules.devices import judge_gpus, judge_mix, judge_use
from headway.machine.rules.kernel import judge_oom, judge_xids
from headway.machine.rules.links import judge_links, judge_nvlinks, judge_p2p
from headway.machine.rules.software import judge_driver, judge_toolkit
from headway.machine.text import Dump, Facts

_MIB = 1 << 20
_VRAM_HELD = 10
"""Per cent of an AMD GPU's memory above which somebody else is on it."""
_TABLES = ("nvidia_smi_q", "nvidia_smi", "nvidia_smi_query_csv", "nvidia_smi_list")
"""Where GPUs are told, the fullest first."""
_ERROR_CODES = {
    "driver_library_mismatch": "machine/driver-mismatch",
    "gpu_lost": "machine/gpu-lost-bus",
    "device_handle_unknown_error": "machine/gpu-lost-bus",
    "device_handle_error": "machine/gpu-lost-bus",
    "no_devices": "machine/no-devices",
    "nvml_unknown_error": "machine/container-lost",
    "driver_not_loaded": "machine/driver-not-loaded",
    "command_not_found": "machine/driver-not-loaded",
    "library_not_found": "machine/driver-not-loaded",
    "npu_driver_not_loaded": "machine/npu-driver-broken",
    "inforom_corrupted": "machine/gpu-inforom",
    "container_without_gpus": "machine/docker-no-nvidia",
}


def gpus_of(dump: Dump) -> tuple[Gpu, ...]:
    """Return the GPUs a recorded text tells of, as a driver would list them."""
    for kind in _TABLES:
        facts = dump.parts.get(kind, {})
        if facts.get("gpus"):
            return gpus_from(facts)
    rocm = dump.parts.get("rocm_smi", {})
    if rocm.get("gpus"):
        return tuple(_rocm_gpu(one, place) for place, one in enumerate(rocm["gpus"]))
    listed = dump.parts.get("collect_env", {}).get("gpus", ())
    return tuple(Gpu(index=place, physical=place, name=one["name"]) for place, one in enumerate(listed))


def driver_of(dump: Dump) -> tuple[str | None, str | None]:
    """Return (driver, newest CUDA it serves) of a recorded text."""
    for kind in _TABLES:
        facts = dump.parts.get(kind)
        if facts is not None:
            first = (facts.get("gpus") or [{}])[0]
            return facts.get("driver") or first.get("driver"), facts.get("cuda")
    found = dump.parts.get("collect_env", {}).get("driver")
    return (found if found and found[0].isdecimal() else None), None


def gpus_from(facts: Facts) -> tuple[Gpu, ...]:
    """Return the GPUs of one of nvidia-smi's tables, with the processes listed beside them."""
    held: dict[Any, list[GpuProcess]] = {}
    for one in facts.get("processes", ()):
        held.setdefault(one.get("gpu"), []).append(_process(one))
    gpus = []
    for place, one in enumerate(facts.get("gpus", ())):
        index = one.get("index", place)
        own = [_process(process) for process in one.get("processes", ())]
        processes = (*held.get(index, ()), *own)
        gpus.append(_gpu(one, index, processes, [d for d in facts.get("mig_devices", ()) if d["gpu"] == index], facts))
    return tuple(gpus)


def _process(one: Facts) -> GpuProcess:
    used = _whole(one.get("used_mib"))
    held = None if used is None else used * _MIB
    return GpuProcess(pid=one.get("pid") or 0, name=one.get("name"), held_bytes=held, kind=one.get("type"))


def _gpu(one: Facts, index: int, processes: tuple[GpuProcess, ...], migs: list[Facts], table: Facts) -> Gpu:
    total, used = _whole(one.get("memory_total_mib")), _whole(one.get("memory_used_mib"))
    free = _whole(one.get("memory_free_mib"))
    if free is None and total is not None and used is not None:
        free = max(0, total - used)
    errors = [name for name in ("fan_pct", "temp_c", "power_w", "util_pct", "pstate") if _is_error(one.get(name))]
    capability = re.fullmatch(r"(\d+)\.(\d+)", one.get("compute_cap") or "")
    return Gpu(
        index=index,
        physical=index,
        uuid=one.get("uuid"),
        name=one.get("name"),
        total_bytes=None if total is None else total * _MIB,
        free_bytes=None if free is None else free * _MIB,
        capability=(int(capability[1]), int(capability[2])) if capability else None,
        utilisation=_whole(one.get("util_pct")),
        temperature_c=_whole(one.get("temp_c")),
        lost=any("gpu is lost" in str(value).lower() for value in one.values()) or len(errors) >= 4,
        processes=processes,
        health=_health(one, errors, len(migs) if "mig_devices" in table else None),
    )


def _health(one: Facts, errors: list[str], num_mig: int | None) -> GpuHealth:
    nonzero: Mapping[str, int] = one.get("ecc_nonzero") or {}
    remapped: Mapping[str, Any] = one.get("remapped_rows") or {}
    retired: Mapping[str, Any] = one.get("retired_pages") or {}
    pages = [num for num in (retired.get("single_bit"), retired.get("double_bit")) if num is not None]
    mode = one.get("ecc_mode")
    pending_mode = one.get("ecc_mode_pending")
    volatile = _whole(one.get("ecc_volatile_uncorrected"))
    return GpuHealth(
        bus_id=one.get("bus_id"),
        persistence=_is_on(one.get("persistence")),
        power_w=_real(one.get("power_w")),
        power_cap_w=_real(one.get("power_cap_w")),
        compute_mode=one.get("compute_mode"),
        mig=_is_on(one.get("mig_mode")),
        mig_devices=num_mig,
        ecc=_is_on(mode),
        ecc_pending=bool(one.get("ecc_pending_change")) or bool(mode and pending_mode and mode != pending_mode),
        corrected=_sum(nonzero, "volatile", "correctable", "single_bit") or one.get("ecc_volatile_corrected"),
        uncorrected=volatile if volatile is not None else _sum(nonzero, "volatile", "uncorrectable", "double_bit"),
        uncorrected_ever=_sum(nonzero, "aggregate", "uncorrectable", "double_bit"),
        remap_pending="Yes" in (remapped.get("pending"), one.get("remap_pending")),
        remap_failed="Yes" in (remapped.get("failure"), one.get("remap_failure")),
        pages_retired=sum(pages) if pages else None,
        pages_pending="Yes" in (retired.get("pending"), one.get("retired_pending")),
        throttle=tuple(one.get("clock_reasons_active") or ()),
        sm_clock_mhz=_whole(one.get("sm_clock_mhz")),
        max_sm_clock_mhz=_whole(one.get("max_sm_clock_mhz")),
        broken=tuple(errors) if len(errors) < 4 else (),
        driver_model=one.get("driver_model"),
        pcie_width=_whole(one.get("pcie_width")),
        pcie_width_max=_whole(one.get("pcie_width_max")),
        fabric=one.get("fabric_state"),
        recovery=one.get("recovery_action"),
    )


def _sum(nonzero: Mapping[str, int], when: str, *words: str) -> int | None:
    """Return the count of one kind; a total that an old table prints beside its parts is not counted twice."""
    found = {
        name: num
        for name, num in nonzero.items()
        if name.partition(".")[0] == when and any(re.search(rf"(?:^|[._]){word}", name) for word in words)
    }
    totals = [num for name, num in found.items() if name.endswith(".total")]
    return (max(totals) if totals else sum(found.values())) or None


def _rocm_gpu(one: Facts, place: int) -> Gpu:
    total, used = (_whole(one.get(f"memory_{what}_bytes")) for what in ("total", "used"))
    if total is None:  # amd-smi says MB and means MiB
        total, used = (
            None if num is None else num * _MIB
            for num in (_whole(one.get(f"memory_{what}_mb")) for what in ("total", "used"))
        )
    temperature = _real(one.get("temp_c"))
    # The short table has no names; the number of the device tells at least which boards are alike.
    number = re.search(r"0x[0-9a-f]+", one.get("ids") or "", re.I)
    return Gpu(
        index=one.get("index", place),
        physical=one.get("index", place),
        name=one.get("name") or (f"AMD {number[0]}" if number else None),
        total_bytes=total,
        free_bytes=None if total is None or used is None else max(0, total - used),
        utilisation=_whole(one.get("util_pct")),
        temperature_c=None if temperature is None else int(temperature),
        processes=tuple(_process(process) for process in one.get("processes", ())),
        health=GpuHealth(
            bus_id=one.get("bus_id"),
            power_w=_real(one.get("power_w")),
            power_cap_w=_real(one.get("power_cap_w")),
            uncorrected=_whole(one.get("uncorrected")),
        ),
    )


def _is_on(word: object) -> bool | None:
    return {"on": True, "enabled": True, "off": False, "disabled": False}.get(str(word).lower())


def _is_error(value: object) -> bool:
    return isinstance(value, str) and ("err" in value.lower() or "unknown" in value.lower())


def _whole(value: object) -> int | None:
    return int(value) if isinstance(value, int | float) else None


def _real(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def judge_dump(dump: Dump, *, checkpoint_bytes: int | None = None) -> tuple[Finding, ...]:
    """Return everything worth saying about a recorded text, the worst first.

    Args:
        checkpoint_bytes: what a run would write at a time; none: a usual checkpoint.
    """
    found = [finding for kind, facts in dump.parts.items() if kind in _JUDGES for finding in _JUDGES[kind](facts)]
    found += [*_judge_toolkit(dump), *_judge_recorded_gpus(dump)]
    found += judge_quota(dump.parts.get("quota", {}), checkpoint_bytes)
    for other in dump.parts.get("nvidia_smi", {}).get("more", ()):  # one paste of several machines
        found += judge_dump(Dump({"nvidia_smi": other}))
    unique = {(one.code, tuple(sorted(one.facts.items()))): one for one in found}
    return sort_findings(unique.values())


def _judge_recorded_gpus(dump: Dump) -> Iterator[Finding]:
    gpus = gpus_of(dump)
    driver, cuda = driver_of(dump)
    table = dump.parts.get("nvidia_smi", {})
    if any(kind in dump.parts for kind in _TABLES):
        yield from judge_driver(driver, cuda, smi=table.get("nvidia_smi_version"))
    yield from judge_gpus(gpus, lists_processes=bool(table) or "nvidia_smi_q" in dump.parts)
    yield from judge_use(gpus, counts_screens=False)
    yield from judge_mix([gpu for gpu in gpus if not gpu.lost])


def _judge_toolkit(dump: Dump) -> Iterator[Finding]:
    toolkit = dump.parts.get("nvcc", {}).get("nvcc_release")
    yield from judge_toolkit(toolkit, serves=driver_of(dump)[1])


def _judge_trouble(facts: Facts) -> Iterator[Finding]:
    name = facts["error_class"]
    code = _ERROR_CODES.get(name, "machine/gpu-driver-broken")
    said = {"said": name.replace("_", " "), "bus": facts.get("bus_id", "n/a"), "list": "n/a"}
    if code == "machine/driver-mismatch":
        said["library"] = facts.get("library_version", "n/a")
    yield Finding(code=code, level="warn", facts=said)


def _judge_query(facts: Facts) -> Iterator[Finding]:
    """Yield who is on the GPUs of a list that has processes alone."""
    if facts.get("gpus") or not facts.get("processes"):
        return
    gpu = Gpu(index=0, physical=0, processes=tuple(_process(one) for one in facts["processes"]))
    yield from judge_gpus([gpu])
    yield from judge_use([gpu], counts_screens=False)


def _judge_q(facts: Facts) -> Iterator[Finding]:
    """Yield what is wrong in an excerpt that names no GPU, and a driver that serves no CUDA."""
    if "gpus" not in facts:
        yield from judge_gpus([Gpu(index=0, physical=0, health=_health(facts, [], None))])
    elif facts.get("driver"):
        yield from _judge_table({**facts, "nvidia_smi_version": facts["driver"]})


def _judge_vgpu(facts: Facts) -> Iterator[Finding]:
    if facts["vgpus"]:
        yield Finding(code="machine/vgpu-host", level="warn", facts={"gpus": "0", "num": str(len(facts["vgpus"]))})


def _judge_mig(facts: Facts) -> Iterator[Finding]:
    """Yield GPUs that are split, from the list of their instances alone."""
    counted = Counter(one["gpu"] for one in facts["instances"])
    for num in sorted(set(counted.values())):
        listed = ",".join(str(gpu) for gpu, have in sorted(counted.items()) if have == num)
        yield Finding(code="machine/mig-on", level="warn", facts={"gpus": listed, "num": str(num)})


def _judge_rocm(facts: Facts) -> Iterator[Finding]:
    if facts.get("error_class") == "no_devices":
        yield Finding(code="machine/no-devices", level="warn", facts={})
    elif facts.get("error_class"):
        said = {"said": f"amdgpu: {facts['error_class'].replace('_', ' ')}"}
        yield Finding(code="machine/gpu-driver-broken", level="warn", facts=said)
    for one in facts.get("gpus", ()):
        # A share alone says nothing of bytes; a share of some per cent is what the driver keeps.
        share = one.get("vram_pct")
        if isinstance(share, int) and share >= _VRAM_HELD and one.get("memory_total_bytes") is None:
            held = {"gpu": str(one["index"]), "holders": "n/a", "used": f"{share}%", "total": "VRAM"}
            yield Finding(code="machine/gpu-busy", level="warn", facts=held)
    if facts.get("low_power"):
        yield Finding(code="machine/rocm-low-power", level="note", facts={})
    yield from judge_links(facts.get("pair_counts", {}))


def _judge_table(facts: Facts) -> Iterator[Finding]:
    """Yield a driver that serves no CUDA at all."""
    smi = facts.get("nvidia_smi_version") or ""
    major = smi.partition(".")[0]
    if facts["gpus"] and facts.get("cuda") is None and major.isdecimal() and int(major[:6]) >= 410:
        yield Finding(code="machine/driver-no-cuda", level="warn", facts={"driver": facts.get("driver") or smi})


def _judge_topology(facts: Facts) -> Iterator[Finding]:
    yield from judge_links(facts["pair_counts"])
    yield from judge_nvlinks({int(name[3:12]): 0 for name in facts.get("left_out", ())}, {})


def _judge_npu(facts: Facts) -> Iterator[Finding]:
    if "npus" in facts:
        yield from judge_npus(npus_from(facts))


_JUDGES: dict[str, Any] = {  # Any: each takes the facts of its own kind
    "nvidia_smi": _judge_table,
    "nvidia_smi_vgpu": _judge_vgpu,
    "nvidia_smi_q": _judge_q,
    "nvidia_smi_query_csv": _judge_query,
    "nvidia_smi_error": _judge_trouble,
    "nvidia_smi_mig": _judge_mig,
    "npu_smi": _judge_npu,
    "rocm_smi": _judge_rocm,
    "topology_p2p": lambda facts: judge_p2p(facts["pairs"]),
    "topology": _judge_topology,
    "nvlink": lambda facts: judge_nvlinks(
        {one["index"]: one["links"] for one in facts["gpus"] if one["links"] or "is_other" not in one},
        {one["index"]: one["inactive"] for one in facts["gpus"] if "inactive" in one},
    ),
    "dmesg_xid": judge_xids,
    "dmesg_oom": judge_oom,
    **SOFTWARE_JUDGES,
    **HOST_JUDGES,
}
