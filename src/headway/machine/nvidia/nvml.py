"""GPU readings from the driver's own library, through nvidia-ml-py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headway.machine.record import Gpu, GpuHealth, GpuProcess
from headway.machine.vendors import GpuReading, age_of, describe_process

_REASONS = {
    0x4: "SW Power Cap",
    0x8: "HW Slowdown",
    0x20: "SW Thermal Slowdown",
    0x40: "HW Thermal Slowdown",
    0x80: "HW Power Brake Slowdown",
}
"""Bits of the clock's event reasons; idleness, user settings and sync boost hold nothing down."""
_MODES = {0: "Default", 1: "Exclusive_Thread", 2: "Prohibited", 3: "Exclusive_Process"}
_ANCESTORS = {0: "PIX", 10: "PIX", 20: "PXB", 30: "PHB", 40: "NODE", 50: "SYS"}
"""Nearest part two GPUs share, in the words of `nvidia-smi topo -m`."""


class NvmlDriver:
    """The first source: quick, complete, and there wherever the driver is."""

    def read(self) -> GpuReading | None:
        """Return the reading, or None when the library or the driver is not on this machine."""
        import pynvml  # 50 ms that a command without GPUs need not pay on import

        absent = (pynvml.NVML_ERROR_LIBRARY_NOT_FOUND, pynvml.NVML_ERROR_DRIVER_NOT_LOADED)
        try:
            pynvml.nvmlInit()
        except pynvml.NVMLError as err:
            return None if err.value in absent else GpuReading(source="nvml", trouble=str(err))
        try:
            return _read_all(pynvml)
        except pynvml.NVMLError as err:
            return GpuReading(source="nvml", trouble=str(err))
        finally:
            pynvml.nvmlShutdown()


def _read_all(nvml: Any) -> GpuReading:  # Any: the bindings carry no types
    cuda = _ask(nvml, nvml.nvmlSystemGetCudaDriverVersion_v2)
    return GpuReading(
        source="nvml",
        driver=_text(_ask(nvml, nvml.nvmlSystemGetDriverVersion)),
        cuda=f"{cuda // 1000}.{cuda % 1000 // 10}" if cuda else None,
        gpus=tuple(_read_one(nvml, index) for index in range(nvml.nvmlDeviceGetCount())),
        **_read_pairs(nvml),
    )


def _read_pairs(nvml: Any) -> dict[str, Any]:
    """Return how GPUs are joined and which may read each other's memory. Any: fields of a reading."""
    handles = {}
    for index in range(nvml.nvmlDeviceGetCount()):
        handle = _ask(nvml, nvml.nvmlDeviceGetHandleByIndex, index)
        if handle is not None:
            handles[index] = handle
    links, p2p = {}, {}
    for one, first in handles.items():
        for other, second in handles.items():
            if other <= one:
                continue
            near = _ask(nvml, nvml.nvmlDeviceGetTopologyCommonAncestor, first, second)
            if near in _ANCESTORS:
                links[f"{one}-{other}"] = _ANCESTORS[near]
            joined = _ask(nvml, nvml.nvmlDeviceGetP2PStatus, first, second, nvml.NVML_P2P_CAPS_INDEX_NVLINK)
            if joined == nvml.NVML_P2P_STATUS_OK:
                links[f"{one}-{other}"] = f"NV{_count_links(nvml, first) or ''}"
            readable = _ask(nvml, nvml.nvmlDeviceGetP2PStatus, first, second, nvml.NVML_P2P_CAPS_INDEX_READ)
            if readable is not None:
                p2p[f"{one}-{other}"] = readable == nvml.NVML_P2P_STATUS_OK
    return {"links": links, "p2p": p2p}


def _count_links(nvml: Any, handle: Any) -> int:
    states = (_ask(nvml, nvml.nvmlDeviceGetNvLinkState, handle, link) for link in range(18))
    return sum(state == nvml.NVML_FEATURE_ENABLED for state in states)


def _read_health(nvml: Any, handle: Any) -> GpuHealth:
    """Return the readings that say whether a GPU can be trusted; what this GPU or driver lacks is None."""
    bus = _ask(nvml, nvml.nvmlDeviceGetPciInfo, handle)
    reasons = _ask(nvml, nvml.nvmlDeviceGetCurrentClocksThrottleReasons, handle) or 0
    power, cap = (
        _ask(nvml, read, handle) for read in (nvml.nvmlDeviceGetPowerUsage, nvml.nvmlDeviceGetEnforcedPowerLimit)
    )
    ecc = _ask(nvml, nvml.nvmlDeviceGetEccMode, handle)
    mig = _ask(nvml, nvml.nvmlDeviceGetMigMode, handle)
    rows = _ask(nvml, nvml.nvmlDeviceGetRemappedRows, handle)
    persistence = _ask(nvml, nvml.nvmlDeviceGetPersistenceMode, handle)
    return GpuHealth(
        bus_id=_text(bus.busId) if bus else None,
        persistence=None if persistence is None else bool(persistence),
        power_w=None if power is None else power / 1000,
        power_cap_w=None if cap is None else cap / 1000,
        compute_mode=_MODES.get(_ask(nvml, nvml.nvmlDeviceGetComputeMode, handle)),
        mig=bool(mig[0]) if mig else None,
        mig_devices=_count_mig(nvml, handle) if mig and mig[0] else None,
        ecc=bool(ecc[0]) if ecc else None,
        ecc_pending=bool(ecc and ecc[0] != ecc[1]),
        corrected=_errors(nvml, handle, nvml.NVML_MEMORY_ERROR_TYPE_CORRECTED, nvml.NVML_VOLATILE_ECC),
        uncorrected=_errors(nvml, handle, nvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, nvml.NVML_VOLATILE_ECC),
        uncorrected_ever=_errors(nvml, handle, nvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, nvml.NVML_AGGREGATE_ECC),
        remap_pending=bool(rows and rows[2]),
        remap_failed=bool(rows and rows[3]),
        pages_pending=bool(_ask(nvml, nvml.nvmlDeviceGetRetiredPagesPendingStatus, handle)),
        throttle=tuple(name for bit, name in _REASONS.items() if reasons & bit),
        sm_clock_mhz=_ask(nvml, nvml.nvmlDeviceGetClockInfo, handle, nvml.NVML_CLOCK_SM),
        max_sm_clock_mhz=_ask(nvml, nvml.nvmlDeviceGetMaxClockInfo, handle, nvml.NVML_CLOCK_SM),
        pcie_width=_ask(nvml, nvml.nvmlDeviceGetCurrPcieLinkWidth, handle),
        pcie_width_max=_ask(nvml, nvml.nvmlDeviceGetMaxPcieLinkWidth, handle),
    )


def _errors(nvml: Any, handle: Any, kind: int, since: int) -> int | None:
    found = _ask(nvml, nvml.nvmlDeviceGetTotalEccErrors, handle, kind, since)
    return None if found is None else int(found)


def _count_mig(nvml: Any, handle: Any) -> int:
    most = _ask(nvml, nvml.nvmlDeviceGetMaxMigDeviceCount, handle) or 0
    devices = (_ask(nvml, nvml.nvmlDeviceGetMigDeviceHandleByIndex, handle, index) for index in range(most))
    return sum(device is not None for device in devices)


def _read_one(nvml: Any, index: int) -> Gpu:
    try:
        handle = nvml.nvmlDeviceGetHandleByIndex(index)
        memory = nvml.nvmlDeviceGetMemoryInfo(handle)
    except nvml.NVMLError as err:
        if err.value == nvml.NVML_ERROR_NOT_SUPPORTED:  # unified memory: a GPU without memory of its own
            memory = None
        else:
            return Gpu(index=index, physical=index, lost=True)
    rates = _ask(nvml, nvml.nvmlDeviceGetUtilizationRates, handle)
    capability = _ask(nvml, nvml.nvmlDeviceGetCudaComputeCapability, handle)
    return Gpu(
        index=index,
        physical=index,
        uuid=_text(_ask(nvml, nvml.nvmlDeviceGetUUID, handle)),
        name=_text(_ask(nvml, nvml.nvmlDeviceGetName, handle)),
        total_bytes=int(memory.total) if memory else None,
        free_bytes=int(memory.free) if memory else None,
        capability=(int(capability[0]), int(capability[1])) if capability else None,
        utilisation=int(rates.gpu) if rates else None,
        temperature_c=_ask(nvml, nvml.nvmlDeviceGetTemperature, handle, nvml.NVML_TEMPERATURE_GPU),
        processes=tuple(
            _read_process(one) for one in _ask(nvml, nvml.nvmlDeviceGetComputeRunningProcesses, handle) or ()
        ),
        health=_read_health(nvml, handle),
    )


def _read_process(found: Any) -> GpuProcess:
    user, name = describe_process(found.pid)
    held = found.usedGpuMemory
    pid = int(found.pid)
    held_bytes = None if held is None else int(held)
    return GpuProcess(pid=pid, user=user, name=name, held_bytes=held_bytes, kind="C", age_s=age_of(pid))


def _ask(nvml: Any, question: Callable[..., Any], *args: Any) -> Any:
    """Return the answer, or None where this GPU or driver does not have it (or the library is older than us)."""
    try:
        return question(*args)
    except nvml.NVMLError:
        return None


def _text(value: str | bytes | None) -> str | None:
    return value.decode(errors="replace") if isinstance(value, bytes) else value
