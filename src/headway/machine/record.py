"""The record the machine stage hands on: what is here, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal

Level = Literal["ok", "note", "warn", "stop"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing worth saying about this machine; its words are the message of its code."""

    code: str
    level: Level
    """`stop`: the run cannot start like this; `note`: good to know, nothing has to be done."""
    facts: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the finding as it is in machine.json and in the event stream."""
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuProcess:
    """A process that holds memory on a GPU."""

    pid: int
    user: str | None = None
    """Its owner; none when the process lives outside this container."""
    name: str | None = None
    held_bytes: int | None = None
    kind: str | None = None
    """`C` computes, `G` draws, `C+G` both; none: not reported."""
    age_s: float | None = None
    """Seconds since it was started."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuHealth:
    """Readings that say whether a GPU can be trusted. An absent reading is None."""

    bus_id: str | None = None
    persistence: bool | None = None
    power_w: float | None = None
    power_cap_w: float | None = None
    compute_mode: str | None = None
    """`Default`, or who else may use it: `Exclusive_Process`, `Prohibited`."""
    mig: bool | None = None
    """Whether it is split into instances."""
    mig_devices: int | None = None
    ecc: bool | None = None
    ecc_pending: bool = False
    """A change of ECC mode waits for a reset."""
    corrected: int | None = None
    """Memory errors corrected since the driver was loaded."""
    uncorrected: int | None = None
    uncorrected_ever: int | None = None
    remap_pending: bool = False
    """Bad rows are marked and will be replaced at the next reset."""
    remap_failed: bool = False
    pages_retired: int | None = None
    pages_pending: bool = False
    throttle: tuple[str, ...] = ()
    """Reasons that hold its clock down now, in the driver's words; idleness is none."""
    sm_clock_mhz: int | None = None
    max_sm_clock_mhz: int | None = None
    broken: tuple[str, ...] = ()
    """Sensors that answer with an error."""
    driver_model: str | None = None
    """`WDDM` under Windows and WSL."""
    pcie_width: int | None = None
    pcie_width_max: int | None = None
    fabric: str | None = None
    """State of the NVSwitch fabric: `Completed`, or still `In Progress`."""
    recovery: str | None = None
    """What the driver asks for: `Reset`, `Reboot`, `Drain P2P`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Npu:
    """One Ascend device. An absent reading is None."""

    index: int
    name: str | None = None
    health: str | None = None
    total_bytes: int | None = None
    used_bytes: int | None = None
    utilisation: int | None = None
    temperature_c: int | None = None
    bus_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """One GPU. An absent reading is None."""

    index: int
    """The N of `cuda:N` for a process that inherits this environment (CUDA_VISIBLE_DEVICES is applied)."""
    physical: int
    """Its number in the driver's own count."""
    uuid: str | None = None
    name: str | None = None
    total_bytes: int | None = None
    free_bytes: int | None = None
    capability: tuple[int, int] | None = None
    """Compute capability, (8, 0) for A100."""
    utilisation: int | None = None
    """Per cent of the last second in which a kernel ran."""
    temperature_c: int | None = None
    used_percent: int | None = None
    """Share of its memory in use, where the source tells no bytes."""
    lost: bool = False
    """The driver lists it and cannot talk to it."""
    claim: str | None = None
    """Who has claimed it for another run, which may not have memory there yet: `ann, pid 4242, nanochat`."""
    processes: tuple[GpuProcess, ...] = ()
    health: GpuHealth = GpuHealth()

    @property
    def used_bytes(self) -> int | None:
        """Memory in use, by anyone."""
        if self.total_bytes is None or self.free_bytes is None:
            return None
        return self.total_bytes - self.free_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Framework:
    """The framework of the ranks' interpreter, read without importing it."""

    python: str
    """Path of the interpreter."""
    python_version: str | None = None
    """None: the interpreter could not be run."""
    torch: str | None = None
    """Version with its build tag, `2.13.0+cu128`; none: not installed."""
    cuda: str | None = None
    """CUDA version torch was built for; none: no CUDA in it."""
    hip: str | None = None
    """ROCm version torch was built for."""
    torchvision: str | None = None
    numpy: str | None = None
    trouble: str | None = None
    """Why it could not be read."""
    is_build_known: bool = True
    """Whether `cuda` and `hip` were reported; else nothing follows from their absence."""
    works: bool | None = None
    """Whether torch itself said that it can use a GPU; none: nobody asked it."""
    is_debug: bool | None = None
    conda_cuda: str | None = None
    """CUDA that the environment's package manager has installed beside it."""
    ops_missing: tuple[str, ...] = ()
    """Operators that DeepSpeed cannot build."""

    @property
    def build(self) -> str | None:
        """`cu128`, `rocm6.4` or `cpu`; none: not reported."""
        if self.torch is None or not self.is_build_known:
            return None
        if self.cuda:
            return f"cu{self.cuda.replace('.', '')}"
        return f"rocm{'.'.join(self.hip.split('.')[:2])}" if self.hip else "cpu"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mount:
    """One file system. An absent reading is None."""

    place: str
    free_bytes: int | None = None
    used_percent: int | None = None
    free_inodes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """What somebody may still write in one place."""

    place: str
    used_bytes: int
    limit_bytes: int | None = None
    free_files: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Port:
    """One port of the fast network."""

    device: str
    state: str
    was_up: bool = False
    """A port whose light is on but which is not active is broken; one that is dark may have no cable."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One node of a cluster, as its scheduler sees it."""

    name: str
    state: str
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Around:
    """What is around the devices. Few sources tell it; an absent reading is None, or an empty list."""

    toolkit: str | None = None
    """CUDA toolkit that extensions would be compiled with."""
    smi_version: str | None = None
    fault: str | None = None
    """Kind of failure of the GPU driver, a name of `nvidia/errors.py`."""
    fault_bus: str | None = None
    fault_library: str | None = None
    links_up: Mapping[str, int] = field(default_factory=dict)
    """Active NVLinks of each GPU, by its number."""
    links_down: Mapping[str, int] = field(default_factory=dict)
    link_counts: Mapping[str, int] = field(default_factory=dict)
    """How many pairs of GPUs have each kind of link, where the pairs are too many to be named."""
    is_low_power: bool = False
    is_wsl: bool = False
    swap_free_bytes: int | None = None
    mounts: tuple[Mount, ...] = ()
    quotas: tuple[Quota, ...] = ()
    runtimes: tuple[str, ...] | None = None
    """Container runtimes; none: nobody asked Docker."""
    default_runtime: str | None = None
    ports: tuple[Port, ...] = ()
    nodes: tuple[Node, ...] = ()


_LISTS: dict[str, type] = {"mounts": Mount, "quotas": Quota, "ports": Port, "nodes": Node}


def _around_from_json(data: Mapping[str, Any]) -> Around:
    values = _known(Around, data)
    for name, kind in _LISTS.items():
        values[name] = tuple(kind(**_known(kind, one)) for one in values.get(name) or ())
    if values.get("runtimes") is not None:
        values["runtimes"] = tuple(values["runtimes"])
    return Around(**values)


USUAL_CORES = 8
USUAL_MEMORY_SHARE = 2.0
"""Hosts sold with GPUs have at least eight cores and twice the GPU's memory for each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineReport:
    """What one machine offers to one run. An absent reading is None; a recorded text has many, and none is made up."""

    host: str | None
    os: str | None
    kernel: str | None
    python: str | None
    cpu: str | None
    """Model of the processor."""
    cores: int | None
    """Cores this process may use: affinity and cgroup quota applied."""
    cores_host: int | None
    """Cores of the whole machine."""
    memory_bytes: int | None
    """Memory this process may use: the machine's or the cgroup's, whichever is less."""
    memory_free_bytes: int | None
    shm_bytes: int | None
    """Size of /dev/shm; none: there is none."""
    shm_free_bytes: int | None
    out: str
    """Folder that will hold the run directories."""
    disk_place: str
    """Nearest part of `out` that exists: where the readings below were taken."""
    disk_bytes: int | None
    disk_free_bytes: int | None
    disk_free_inodes: int | None
    """None on file systems that do not count them."""
    out_writable: bool | None
    nofile: int | None
    """Open files a process may have (soft limit); none: no limit."""
    nofile_hard: int | None
    framework: Framework
    gpu_source: str | None = None
    """Which source answered: `nvml`, `nvidia-smi`, `recorded`; none: no source is here, or the text tells of none."""
    gpu_driver: str | None = None
    """Version of the GPU driver."""
    gpu_driver_cuda: str | None = None
    """Newest CUDA version this driver can serve."""
    gpu_trouble: str | None = None
    """What the driver said when it could not answer."""
    gpus: tuple[Gpu, ...] = ()
    """The GPUs a rank would see, in the order it would see them."""
    hidden_gpus: int = 0
    """GPUs taken out of sight by CUDA_VISIBLE_DEVICES."""
    lists_processes: bool = True
    """Whether the source tells who is on a GPU; else nothing follows from an empty list."""
    npus: tuple[Npu, ...] = ()
    npu_driver: str | None = None
    """Version of npu-smi."""
    npu_trouble: str | None = None
    """What npu-smi said when it could not answer."""
    links: Mapping[str, str] = field(default_factory=dict)
    """How two GPUs are joined, `{"0-1": "NV12"}`, in the words of `nvidia-smi topo -m`."""
    p2p: Mapping[str, bool] = field(default_factory=dict)
    """Whether two GPUs may read each other's memory, as the driver says."""
    memlock_bytes: int | None = None
    """Memory a process may pin; none: no limit."""
    nproc: int | None = None
    """Processes and threads a user may have; none: no limit."""
    swap_bytes: int | None = None
    kernel_log: str | None = None
    """Lines of the kernel log about GPUs and ended processes; none: closed to this user."""
    port_trouble: str | None = None
    """Why a listening socket on the loopback could not be made."""
    clock_ahead_s: float | None = None
    """How far this clock is ahead of the disk's; network disks have their own."""
    probe_bytes: int | None = None
    """Size that was really reserved at `disk_place` and given back."""
    probe_trouble: str | None = None
    """Why it could not be reserved: a quota, a full disk, a limit on file sizes."""
    trackers: Mapping[str, str] = field(default_factory=dict)
    """Tracker addresses that were tried, and what happened: `ok` or why not."""
    stands_in: str | None = None
    """File or wish this machine was made from; none: it is the one here."""
    nodes: int = 1
    """How many machines like this one the wish names, `2x8xH20`."""
    network_gb_s: float | None = None
    """Gigabytes per second, one way, that a node was said to have to the others; none: what is usual for its GPUs."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables of this process that matter to a run."""
    cpu_refused: Mapping[str, str] = field(default_factory=dict)
    """What the processor does not compute in that environment, `{"bf16 linear": "SIGILL"}`."""
    cpu_settings: Mapping[str, str] = field(default_factory=dict)
    """Variables the ranks get besides, so that it does."""
    around: Around = Around()
    findings: tuple[Finding, ...] = ()

    @property
    def knows_gpus(self) -> bool:
        """Whether an empty list of GPUs means that there are none."""
        return self.stands_in is None or self.gpu_source is not None

    @property
    def planned_cores(self) -> int:
        """The cores a plan counts on: those reported, else what hosts sold with such GPUs have."""
        return self.cores or USUAL_CORES * max(1, len(self.gpus))

    @property
    def planned_memory_bytes(self) -> int:
        """The free memory a plan counts on: what was reported, else what hosts sold with such GPUs have."""
        usual = sum(gpu.total_bytes or 0 for gpu in self.gpus) or (1 << 34)
        return self.memory_free_bytes or int(USUAL_MEMORY_SHARE * usual)

    @property
    def can_run(self) -> bool:
        """Whether nothing found here stops a run."""
        return all(finding.level != "stop" for finding in self.findings)

    def to_json(self) -> dict[str, Any]:
        """Return the record as it is in machine.json."""
        return {"schema": "machine/1", **asdict(self)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> MachineReport:
        """Read the record back; keys of a newer version are passed over."""
        values = _known(cls, data)
        framework = _known(Framework, values["framework"])
        values["framework"] = Framework(**{**framework, "ops_missing": tuple(framework.get("ops_missing", ()))})
        values["around"] = _around_from_json(values.get("around") or {})
        values["gpus"] = tuple(gpu_from_json(gpu) for gpu in values.get("gpus", ()))
        values["npus"] = tuple(Npu(**_known(Npu, one)) for one in values.get("npus", ()))
        values["findings"] = tuple(Finding(**_known(Finding, one)) for one in values.get("findings", ()))
        return cls(**values)


def gpu_from_json(data: Mapping[str, Any]) -> Gpu:
    """Read one GPU back."""
    values = _known(Gpu, data)
    if values.get("capability") is not None:
        major, minor = values["capability"]
        values["capability"] = (int(major), int(minor))
    values["processes"] = tuple(GpuProcess(**_known(GpuProcess, one)) for one in values.get("processes", ()))
    health = _known(GpuHealth, values.get("health") or {})
    for name in ("throttle", "broken"):
        health[name] = tuple(health.get(name, ()))
    values["health"] = GpuHealth(**health)
    return Gpu(**values)


def _known(cls: type, data: Mapping[str, Any]) -> dict[str, Any]:
    names = {f.name for f in fields(cls)}
    return {key: value for key, value in data.items() if key in names}
