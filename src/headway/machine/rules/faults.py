"""A GPU driver that does not answer: which failure it is, and whether a run may begin without its GPUs."""

from __future__ import annotations

from dataclasses import dataclass

from headway.machine.nvidia.errors import parse_trouble
from headway.machine.record import Finding, MachineReport

_CODES = {
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
_MAYBE_NO_GPU = (
    "machine/no-devices",
    "machine/driver-not-loaded",
    "machine/npu-driver-broken",
    "machine/gpu-inforom",
    "machine/docker-no-nvidia",
)
"""Nothing says that there is a GPU at all, or the GPU works anyway."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What a driver said instead of an answer."""

    said: str
    kind: str | None = None
    bus: str | None = None
    library: str | None = None
    hides_all: bool = True
    """Whether no GPU answered; else the others can be used."""


def find_fault(report: MachineReport) -> Fault | None:
    """Return the failure of the GPU driver, sorted by its cause; None: it answered."""
    around, hides_all = report.around, not report.gpus
    if around.fault is not None:
        said = around.fault.replace("_", " ")
        about = {"bus": around.fault_bus, "library": around.fault_library}
        return Fault(said=said, kind=around.fault, hides_all=hides_all, **about)
    if report.gpu_trouble is None:
        return None
    facts = parse_trouble(report.gpu_trouble) or {}
    about = {"kind": facts.get("error_class"), "bus": facts.get("bus_id"), "library": facts.get("library_version")}
    return Fault(said=report.gpu_trouble, hides_all=hides_all, **about)


def judge_fault(fault: Fault, *, is_wanted: bool) -> Finding:
    """Return the finding. GPUs that are there and do not answer stop a run which did not say that it wants none.

    Else it would train on the CPU, some hundred times slower, and call that ready.
    """
    code = _CODES.get(fault.kind or "", "machine/gpu-driver-broken")
    facts = {"said": fault.said, "bus": fault.bus or "n/a", "list": "n/a"}
    if code == "machine/driver-mismatch":
        facts["library"] = fault.library or "n/a"
    is_stop = is_wanted and fault.hides_all and code not in _MAYBE_NO_GPU
    return Finding(code=code, level="stop" if is_stop else "warn", facts=facts)
