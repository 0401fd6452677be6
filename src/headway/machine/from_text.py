"""A machine from a recorded text: its facts become the record that this machine's own readings become.

What the text does not tell stays None: nothing of the machine at hand is mixed in, and the rules are silent on None.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

from headway.machine.ascend.devices import npus_from
from headway.machine.record import (
    Around,
    Framework,
    Gpu,
    GpuHealth,
    GpuProcess,
    MachineReport,
    Mount,
    Node,
    Port,
    Quota,
)
from headway.machine.rules.software import native_cuda
from headway.machine.text import Dump, Facts, bytes_of, memory_of, room_of

_MIB = 1 << 20
_TABLES = ("nvidia_smi_q", "nvidia_smi", "nvidia_smi_query_csv", "nvidia_smi_list")
"""Where GPUs are reported, the fullest first."""
_YES, _NO = ("True", "Yes"), ("False", "No")
"""torch printed the words until 1.6, Python's own since."""
_NO_DISK = ("tmpfs", "devtmpfs", "udev", "shm", "none", "squashfs", "/dev/loop", "efivarfs", "cgroup", "rootfs")
_NO_DATA_BYTES = 1 << 30
"""Smaller file systems are mounted for the system itself: firmware, settings, devices."""
_COUNTS = {"": 1, "K": 1_000, "M": 1_000_000, "G": 1_000_000_000, "T": 1_000_000_000_000}


def report_from(dump: Dump, *, source: str = "-", out: str = "runs") -> MachineReport:
    """Return the machine a recorded text tells of, not yet judged.

    Args:
        source: where the text came from.
        out: folder that would hold the run directories: the user's wish, not a reading.
    """
    parts = dump.parts
    cpus = next((parts[kind] for kind in ("lscpu", "numactl", "nproc") if parts.get(kind, {}).get("cpus")), {})
    memory, limits = parts.get("free", {}), parts.get("ulimit", {})
    locked = _limit(limits, "max_locked_memory_kb")
    # Older versions have no column of what is available: what buffers hold counts as free there.
    free = memory_of(memory, "available" if "available" in memory else "free_with_cache")
    return MachineReport(
        host=None,
        os=parts.get("collect_env", {}).get("os"),
        kernel=None,
        python=None,
        cpu=cpus.get("model"),
        cores=cpus.get("cpus"),
        cores_host=cpus.get("cpus"),
        memory_bytes=memory_of(memory, "total"),
        memory_free_bytes=memory_of(memory, "free") if free is None else free,
        swap_bytes=memory_of(memory, "swap_total"),
        **_disk_values(parts),
        out=out,
        out_writable=None,
        nofile=_limit(limits, "open_files"),
        nofile_hard=None,
        nproc=_limit(limits, "max_user_processes"),
        memlock_bytes=None if locked is None else locked * 1024,
        framework=_framework(parts),
        stands_in=source,
        kernel_log=dump.log,
        around=_around(dump),
        **_gpu_values(dump),
    )


def _gpu_values(dump: Dump) -> dict[str, Any]:  # Any: values of the report's fields
    parts = dump.parts
    gpus = gpus_of(dump) or _gpus_hinted_at(parts)
    driver, cuda = driver_of(dump)
    fault = _fault(parts)
    values: dict[str, Any] = {"gpus": gpus, "gpu_driver": driver, "gpu_driver_cuda": cuda}
    if gpus or fault or driver:
        values["gpu_source"] = "recorded"
    values["gpu_trouble"] = fault.replace("_", " ") if fault and not gpus else None
    values["lists_processes"] = bool({"nvidia_smi", "nvidia_smi_q"} & set(dump.kinds))
    npus = parts.get("npu_smi", {})
    if "npus" in npus:
        values |= {"npus": npus_from(npus), "npu_driver": npus["npu_smi"]}
    pairs = parts.get("topology", {}).get("pairs") or {}
    values["links"] = {pair.replace("GPU", ""): kind for kind, named in pairs.items() for pair in named}
    values["p2p"] = parts.get("topology_p2p", {}).get("pairs", {})
    return values


def _gpus_hinted_at(parts: Mapping[str, Facts]) -> tuple[Gpu, ...]:
    """Return GPUs of texts that list none: instances, processes or an excerpt of readings tell that there is one."""
    instances = Counter(one["gpu"] for one in parts.get("nvidia_smi_mig", {}).get("instances", ()))
    if instances:
        split = {index: GpuHealth(mig=True, mig_devices=num) for index, num in sorted(instances.items())}
        return tuple(Gpu(index=index, physical=index, health=health) for index, health in split.items())
    lent = parts.get("nvidia_smi_vgpu", {}).get("vgpus", ())
    listed = [_process(one) for one in parts.get("nvidia_smi_query_csv", {}).get("processes", ())]
    processes = (*(GpuProcess(pid=0, name="vgpu", kind="G") for _ in lent), *listed)
    excerpt = parts.get("nvidia_smi_q")
    if not processes and excerpt is None:
        return ()
    return (Gpu(index=0, physical=0, processes=processes, health=_health(excerpt or {}, [], None)),)


def _fault(parts: Mapping[str, Facts]) -> str | None:
    found: str | None = parts.get("nvidia_smi_error", {}).get("error_class")
    amd = parts.get("rocm_smi", {}).get("error_class")
    return found or (amd if amd in (None, "no_devices") else f"amdgpu: {amd}")


def _around(dump: Dump) -> Around:
    parts = dump.parts
    table, fault, docker = (parts.get(name, {}) for name in ("nvidia_smi", "nvidia_smi_error", "docker_info"))
    runtime = parts.get("collect_env", {}).get("cuda_runtime") or ""
    long_form = parts.get("nvidia_smi_q", {})
    return Around(
        toolkit=parts.get("nvcc", {}).get("nvcc_release")
        or parts.get("ds_report", {}).get("nvcc")
        or (runtime if runtime[:1].isdecimal() else None),
        smi_version=table.get("nvidia_smi_version") or (long_form.get("driver") if long_form.get("gpus") else None),
        fault=_fault(parts),
        fault_bus=fault.get("bus_id"),
        fault_library=fault.get("library_version"),
        **_links(parts),
        is_low_power=bool(parts.get("rocm_smi", {}).get("low_power")),
        is_wsl=bool(parts.get("collect_env", {}).get("is_wsl")),
        swap_free_bytes=memory_of(parts.get("free", {}), "swap_free"),
        mounts=_mounts(parts.get("df", {})),
        quotas=tuple(_quota(row) for row in parts.get("quota", {}).get("quotas", ()) if row["who"] != "root"),
        runtimes=tuple(docker["runtimes"]) + (("nvidia (CDI)",) if docker.get("has_cdi_gpus") else ())
        if docker
        else None,
        default_runtime=docker.get("default_runtime"),
        ports=tuple(
            Port(device=one["device"], state=one["state"], was_up=one["was_up"])
            for one in parts.get("infiniband", {}).get("ports", ())
        ),
        nodes=tuple(
            Node(name=one["node"], state=one["state"], reason=one.get("reason"))
            for one in parts.get("slurm_nodes", {}).get("nodes", ())
        ),
    )


def _links(parts: Mapping[str, Facts]) -> dict[str, Any]:
    told = [one for one in parts.get("nvlink", {}).get("gpus", ()) if one["links"] or "is_other" not in one]
    up = {str(one["index"]): one["links"] for one in told}
    up |= {name[3:12]: 0 for name in parts.get("topology", {}).get("left_out", ())}
    down = {str(one["index"]): one["inactive"] for one in told if "inactive" in one}
    counts = parts.get("topology", {}).get("pair_counts") or parts.get("rocm_smi", {}).get("pair_counts") or {}
    return {"links_up": up, "links_down": down, "link_counts": counts}


def _quota(row: Facts) -> Quota:
    """Return one quota, by the soft limit where there is one.

    Writes are refused at the hard limit. Above the soft one they are refused when the time of grace ends, so a run of
    hours cannot count on what lies between. On root limits are never enforced.
    """
    files = row.get("soft_files") or row.get("hard_files")
    return Quota(
        place=row["place"] if row["who"] is None else f"{row['place']} ({row['who']})",
        used_bytes=row["used_bytes"],
        limit_bytes=row["soft_bytes"] or row["hard_bytes"],
        free_files=None if files is None else max(0, files - row["used_files"]),
    )


def _disk_values(parts: Mapping[str, Facts]) -> dict[str, Any]:
    values: dict[str, Any] = dict.fromkeys(("shm_bytes", "shm_free_bytes", "disk_bytes", "disk_free_bytes"))
    values |= {"disk_free_inodes": None, "disk_place": "n/a"}
    values["shm_bytes"] = bytes_of(parts.get("ds_report", {}).get("dev_shm"))
    disks = parts.get("df", {})
    for row in disks.get("filesystems", ()):
        total, free = (room_of(row.get(key), disks.get("block_bytes")) for key in ("size", "avail"))
        if row["mount"] == "/dev/shm" and total is not None:
            values |= {"shm_bytes": total, "shm_free_bytes": free}
        elif row["mount"] == "/" and total is not None:
            values |= {"disk_bytes": total, "disk_free_bytes": free, "disk_place": "/"}
    return values


def _mounts(disks: Facts) -> tuple[Mount, ...]:
    tables = (disks, *disks.get("more", ())) if disks else ()
    rows = [(row, table.get("block_bytes")) for table in tables for row in table["filesystems"]]
    return tuple(mount for row, block in rows if (mount := _mount(row, block)) is not None)


def _mount(row: Facts, block: int | None) -> Mount | None:
    """Return a file system that may hold data; None: it holds none, or none of a user's."""
    total, place = room_of(row.get("size"), block), row["mount"]
    if place == "/dev/shm" or total == 0 or any(str(row.get(key)).startswith(_NO_DISK) for key in ("fs", "type")):
        return None
    inodes = re.fullmatch(r"(\d{1,18}(?:\.\d)?)([KMGT]?)", str(row.get("ifree")))
    counts = inodes if row.get("inodes") not in ("0", "-") else None  # 0 of 0: it counts none
    has_room = total is None or total >= _NO_DATA_BYTES or place == "/"
    return Mount(
        place=place,
        free_bytes=room_of(row.get("avail"), block) if has_room else None,
        used_percent=row.get("use_pct") if has_room else None,
        free_inodes=int(float(counts[1]) * _COUNTS[counts[2]]) if counts else None,
    )


def _limit(limits: Facts, name: str) -> int | None:
    value = limits.get(name)
    return value if isinstance(value, int) else None


def _framework(parts: Mapping[str, Facts]) -> Framework:
    """Return the framework the text tells of; a text that tells of none says nothing of its absence."""
    found = parts.get("collect_env", {})
    if found.get("torch"):
        cuda, hip = (_version_or_none(found.get(key)) for key in ("torch_cuda", "torch_rocm"))
        conda = next((one for one in found["pip_conda_torch"] if one.startswith("conda: cudatoolkit ")), "")
        return Framework(
            python="python",
            python_version=found.get("python"),
            torch=found["torch"],
            cuda=cuda,
            hip=hip,
            is_build_known="torch_cuda" in found,
            torchvision=found.get("torchvision"),
            works=_yes_or_no(found.get("cuda_available")),
            is_debug=_yes_or_no(found.get("debug_build")),
            conda_cuda=conda.removeprefix("conda: cudatoolkit ") or None,
        )
    speed, other = parts.get("ds_report", {}), parts.get("accelerate_env", {})
    works = False if other.get("torch_gpu") == "False" and other.get("accelerator") is None else None
    return Framework(
        python="python",
        torch=speed.get("torch") or other.get("torch"),
        cuda=_version_or_none(speed.get("torch_cuda")),
        hip=_version_or_none(speed.get("torch_hip")),
        is_build_known=False,
        works=works,
        ops_missing=tuple(speed.get("incompatible_ops", ())),
    )


def _yes_or_no(word: object) -> bool | None:
    return True if word in _YES else False if word in _NO else None


def _version_or_none(text: str | None) -> str | None:
    return text if text and text[0].isdecimal() else None


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
    """Return (driver, newest CUDA it supports) of a recorded text."""
    for kind in _TABLES:
        facts = dump.parts.get(kind)
        if facts is not None:
            first = (facts.get("gpus") or [{}])[0]
            return facts.get("driver") or first.get("driver"), facts.get("cuda")
    found = dump.parts.get("collect_env", {}).get("driver")
    driver = found if found and found[0].isdecimal() else None
    return driver, native_cuda(driver)  # its branch tells, though collect_env does not print it


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
        used_percent=_whole(one.get("vram_pct")) if total is None else None,
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
