"""A machine from a recorded text: its facts become the same records a driver gives, and the same rules judge them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from headway.machine.devices import describe_holders, is_free, list_alike, list_gpus
from headway.machine.dumps import Dump, Facts, bytes_of, memory_of
from headway.machine.findings import sort_findings
from headway.machine.judge_gpus import judge_gpus
from headway.machine.judge_host import judge_cores, judge_inodes, judge_limits, judge_memory, judge_mount, judge_shm
from headway.machine.judge_kernel import judge_oom, judge_xids
from headway.machine.judge_links import judge_links, judge_nvlinks, judge_p2p
from headway.machine.judge_npus import judge_npus, npus_from
from headway.machine.judge_versions import (
    is_older,
    judge_driver,
    judge_packages,
    judge_pair,
    judge_toolkit,
    native_cuda,
)
from headway.machine.record import Finding, Gpu, GpuHealth, GpuProcess
from headway.units import size

_MIB = 1 << 20
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
}


def gpus_of(dump: Dump) -> tuple[Gpu, ...]:
    """Return the GPUs a recorded text tells of, as a driver would list them."""
    for kind in _TABLES:
        facts = dump.parts.get(kind, {})
        if facts.get("gpus"):
            return _gpus(facts)
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


def _gpus(facts: Facts) -> tuple[Gpu, ...]:
    held: dict[Any, list[GpuProcess]] = {}
    for one in facts.get("processes", ()):
        held.setdefault(one.get("gpu"), []).append(_process(one))
    gpus = []
    for place, one in enumerate(facts["gpus"]):
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
    total, used = _whole(one.get("memory_total_bytes")), _whole(one.get("memory_used_bytes"))
    temperature = _real(one.get("temp_c"))
    return Gpu(
        index=one.get("index", place),
        physical=one.get("index", place),
        name=one.get("name"),
        total_bytes=total,
        free_bytes=None if total is None or used is None else max(0, total - used),
        utilisation=_whole(one.get("util_pct")),
        temperature_c=None if temperature is None else int(temperature),
        health=GpuHealth(power_w=_real(one.get("power_w")), power_cap_w=_real(one.get("power_cap_w"))),
    )


def _is_on(word: object) -> bool | None:
    return {"on": True, "enabled": True, "off": False, "disabled": False}.get(str(word).lower())


def _is_error(value: object) -> bool:
    return isinstance(value, str) and ("err" in value.lower() or "unknown" in value.lower())


def _whole(value: object) -> int | None:
    return int(value) if isinstance(value, int | float) else None


def _real(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def judge_dump(dump: Dump) -> tuple[Finding, ...]:
    """Return everything worth saying about a recorded text, the worst first."""
    found = [finding for kind, facts in dump.parts.items() if kind in _JUDGES for finding in _JUDGES[kind](facts)]
    found += [*_judge_toolkit(dump), *_judge_recorded_gpus(dump)]
    unique = {(one.code, tuple(sorted(one.facts.items()))): one for one in found}
    return sort_findings(unique.values())


def _judge_recorded_gpus(dump: Dump) -> Iterator[Finding]:
    gpus = gpus_of(dump)
    driver, cuda = driver_of(dump)
    table = dump.parts.get("nvidia_smi", {})
    yield from judge_driver(driver, cuda, smi=table.get("nvidia_smi_version"))
    yield from judge_gpus(gpus, lists_processes=bool(table) or "nvidia_smi_q" in dump.parts)
    for gpu in gpus:
        if gpu.lost:
            yield Finding(code="machine/gpu-lost", level="warn", facts={"gpu": str(gpu.index)})
        elif not is_free(_without_screens(gpu)):
            facts = {
                "gpu": str(gpu.index),
                "holders": describe_holders(gpu),
                "used": size(gpu.used_bytes),
                "total": size(gpu.total_bytes),
            }
            yield Finding(code="machine/gpu-busy", level="warn", facts=facts)
    here = [gpu for gpu in gpus if not gpu.lost]
    models = {(gpu.name, (gpu.total_bytes or 0) >> 30) for gpu in here}
    if len(models) > 1:
        facts = {"list": list_gpus(here), "same": list_alike(here)}
        yield Finding(code="machine/gpus-differ", level="warn", facts=facts)


def _without_screens(gpu: Gpu) -> Gpu:
    """Return the GPU without programs that only draw."""
    return replace(gpu, processes=tuple(one for one in gpu.processes if one.kind != "G"))


def _judge_toolkit(dump: Dump) -> Iterator[Finding]:
    toolkit = dump.parts.get("nvcc", {}).get("nvcc_release")
    yield from judge_toolkit(toolkit, serves=driver_of(dump)[1])


def _judge_trouble(facts: Facts) -> Iterator[Finding]:
    name = facts["error_class"]
    code = _ERROR_CODES.get(name, "machine/gpu-driver-broken")
    said = {"said": name.replace("_", " "), "bus": facts.get("bus_id", "n/a")}
    if code == "machine/driver-mismatch":
        said["library"] = facts.get("library_version", "n/a")
    yield Finding(code=code, level="warn", facts=said)


def _judge_query(facts: Facts) -> Iterator[Finding]:
    """Yield who is on the GPUs of a list that has processes alone."""
    if facts.get("gpus") or not facts.get("processes"):
        return
    gpu = Gpu(index=0, physical=0, processes=tuple(_process(one) for one in facts["processes"]))
    yield from judge_gpus([gpu])
    if not is_free(_without_screens(gpu)):
        holders = {"gpu": "0", "holders": describe_holders(gpu), "used": "n/a", "total": "n/a"}
        yield Finding(code="machine/gpu-busy", level="warn", facts=holders)


def _judge_q(facts: Facts) -> Iterator[Finding]:
    """Yield what is wrong in an excerpt that names no GPU."""
    if "gpus" not in facts:
        yield from judge_gpus([Gpu(index=0, physical=0, health=_health(facts, [], None))])


def _judge_vgpu(facts: Facts) -> Iterator[Finding]:
    if facts["vgpus"]:
        yield Finding(code="machine/vgpu-host", level="warn", facts={"gpus": "0", "num": str(len(facts["vgpus"]))})


def _judge_collect(facts: Facts) -> Iterator[Finding]:
    if facts.get("torch_cuda") in ("None", "N/A") and facts.get("torch_rocm") in ("None", "N/A", None):
        about = {"torch": facts.get("torch") or "n/a", "gpus": str(len(facts["gpus"])), "python": "python"}
        yield Finding(code="machine/torch-cpu-build", level="warn", facts=about)
    elif facts.get("cuda_available") == "False":
        driver, torch_cuda = facts.get("driver"), facts.get("torch_cuda")
        serves = native_cuda(driver)
        if is_older(serves, torch_cuda):
            about = {"driver": driver, "serves": serves, "torch": facts.get("torch") or "n/a", "cuda": torch_cuda}
            yield Finding(code="machine/driver-too-old", level="warn", facts=about)
        yield Finding(code="machine/cuda-unavailable", level="warn", facts={"torch": facts.get("torch") or "n/a"})
    if facts.get("debug_build") == "True":
        yield Finding(code="machine/torch-debug", level="note", facts={"torch": facts.get("torch") or "n/a"})
    yield from judge_pair(facts.get("torch"), facts.get("torchvision"))
    conda = next((one for one in facts["pip_conda_torch"] if one.startswith("conda: cudatoolkit ")), "")
    yield from judge_packages(facts.get("torch_cuda"), conda.removeprefix("conda: cudatoolkit ") or None)
    runtime = facts.get("cuda_runtime") or ""
    if runtime[:1].isdecimal():
        yield from judge_toolkit(runtime, torch_cuda=facts.get("torch_cuda"))
    if facts.get("is_wsl"):
        yield Finding(code="machine/wsl", level="note", facts={})


def _judge_ds(facts: Facts) -> Iterator[Finding]:
    if facts["incompatible_ops"]:
        yield Finding(code="machine/ops-missing", level="note", facts={"list": ", ".join(facts["incompatible_ops"])})
    yield from judge_toolkit(facts.get("nvcc"), torch_cuda=facts.get("torch_cuda"))
    yield from judge_shm(bytes_of(facts.get("dev_shm")))


def _judge_accelerate(facts: Facts) -> Iterator[Finding]:
    if facts.get("torch_gpu") == "False":
        yield Finding(code="machine/cuda-unavailable", level="warn", facts={"torch": facts.get("torch") or "n/a"})


def _judge_df(facts: Facts) -> Iterator[Finding]:
    for row in facts["filesystems"]:
        if str(row.get("ifree")).isdecimal() and row.get("inodes") != "0":  # 0 of 0: it counts none
            yield from judge_inodes(row["mount"], int(row["ifree"]))
        total, free, mount = bytes_of(row.get("size")), bytes_of(row.get("avail")), row["mount"]
        if mount == "/dev/shm":
            yield from judge_shm(total)
        elif not str(row["fs"]).startswith(("tmpfs", "devtmpfs", "udev", "shm", "none", "squashfs", "/dev/loop")):
            yield from judge_mount(mount, free, row.get("use_pct"))


def _judge_free(facts: Facts) -> Iterator[Finding]:
    swap = memory_of(facts, "swap_total")
    yield from judge_memory(memory_of(facts, "total"), swap)
    if swap and memory_of(facts, "swap_free") == 0:
        yield Finding(code="machine/swap-full", level="note", facts={"total": size(swap)})


def _judge_ulimit(facts: Facts) -> Iterator[Finding]:
    locked = _whole(facts.get("max_locked_memory_kb"))
    yield from judge_limits(
        nofile=_whole(facts.get("open_files")),
        memlock_bytes=None if locked is None else locked * 1024,
        nproc=_whole(facts.get("max_user_processes")),
    )


def _judge_docker(facts: Facts) -> Iterator[Finding]:
    if "nvidia" not in facts["runtimes"]:
        yield Finding(
            code="machine/docker-no-nvidia", level="warn", facts={"list": ", ".join(facts["runtimes"]) or "n/a"}
        )
    elif facts.get("default_runtime") != "nvidia":
        yield Finding(
            code="machine/docker-default", level="note", facts={"runtime": facts.get("default_runtime") or "n/a"}
        )


def _judge_rocm(facts: Facts) -> Iterator[Finding]:
    if facts.get("low_power"):
        yield Finding(code="machine/rocm-low-power", level="note", facts={})
    yield from judge_links(facts.get("pair_counts", {}))


def _judge_table(facts: Facts) -> Iterator[Finding]:
    """Yield a driver that serves no CUDA at all."""
    smi = facts.get("nvidia_smi_version") or ""
    major = smi.partition(".")[0]
    if facts["gpus"] and facts.get("cuda") is None and major.isdecimal() and int(major[:6]) >= 410:
        yield Finding(code="machine/driver-no-cuda", level="warn", facts={"driver": facts.get("driver") or smi})


def _judge_npu(facts: Facts) -> Iterator[Finding]:
    if "npus" in facts:
        yield from judge_npus(npus_from(facts))


_JUDGES: dict[str, Any] = {  # Any: each takes the facts of its own kind
    "nvidia_smi": _judge_table,
    "nvidia_smi_vgpu": _judge_vgpu,
    "nvidia_smi_q": _judge_q,
    "nvidia_smi_query_csv": _judge_query,
    "nvidia_smi_error": _judge_trouble,
    "npu_smi": _judge_npu,
    "rocm_smi": _judge_rocm,
    "topology_p2p": lambda facts: judge_p2p(facts["pairs"]),
    "topology": lambda facts: judge_links(facts["pair_counts"]),
    "nvlink": lambda facts: judge_nvlinks(
        {one["index"]: one["links"] for one in facts["gpus"]},
        {one["index"]: one["inactive"] for one in facts["gpus"] if "inactive" in one},
    ),
    "collect_env": _judge_collect,
    "ds_report": _judge_ds,
    "accelerate_env": _judge_accelerate,
    "df": _judge_df,
    "free": _judge_free,
    "lscpu": lambda facts: judge_cores(facts.get("cpus")),
    "ulimit": _judge_ulimit,
    "dmesg_xid": judge_xids,
    "dmesg_oom": judge_oom,
    "docker_info": _judge_docker,
}
