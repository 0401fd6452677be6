"""One reading of the GPUs of a run, in a thread of its own: a driver that hangs delays nobody.

The first source is NVML, which is asked through the driver's own library and imports nothing of ours; where it is
absent, the sources of `headway.machine` (nvidia-smi, npu-smi) are asked at the same keys.
"""

from __future__ import annotations

import os
import pwd
import queue
import shutil
import threading
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any, Final, Protocol

Reading = dict[str, Any]
_ANSWER_S: Final = 10.0
_LOOK_IN_S: Final = 0.1
_REASONS: Final = {
    0x4: "SW Power Cap",
    0x8: "HW Slowdown",
    0x20: "SW Thermal Slowdown",
    0x40: "HW Thermal Slowdown",
    0x80: "HW Power Brake Slowdown",
}
_PCIE_TX, _PCIE_RX, _LINK_TX, _LINK_RX = 197, 198, 138, 139
"""NVML_FI_DEV_PCIE_COUNT_TX_BYTES and so on: bytes, and KiB of all links, since the driver was loaded."""
_MOST_HOLDERS: Final = 32
_ALL_LINKS: Final = 0xFFFFFFFF
_GPM: Final = {"sm": 2, "tensor": 5, "dram": 10}
"""NVML_GPM_METRIC_SM_UTIL, ANY_TENSOR_UTIL, DRAM_BW_UTIL: per cent of time; Hopper and newer."""


class GpuSource(Protocol):
    """Answers one question: how are the GPUs now?"""

    def about(self) -> list[Reading]:
        """Return what does not change, one object per GPU."""

    def read(self, now: float) -> list[Reading]:
        """Return one reading per GPU; `lost` for one that does not answer."""


class NvmlSource:
    """The driver's own library. Counters become rates between two readings."""

    def __init__(self, nvml: Any, wanted: Sequence[str] | None = None) -> None:
        """Start the library; `wanted` names GPUs by number or UUID, none: all. Any: the bindings carry no types."""
        self._nvml = nvml
        nvml.nvmlInit()
        self._handles: dict[int, Any] = {}
        self._wanted = wanted
        self._counts: dict[tuple[int, int], tuple[float, float]] = {}
        self._gpm: dict[int, Any] = {}
        self._events: Any = None
        self._find()

    def about(self) -> list[Reading]:
        """Return name, memory, limits."""
        nvml = self._nvml
        return [
            {
                "i": index,
                "uuid": _text(self._ask(nvml.nvmlDeviceGetUUID, handle)),
                "name": _text(self._ask(nvml.nvmlDeviceGetName, handle)),
                "mem": _field(self._ask(nvml.nvmlDeviceGetMemoryInfo, handle), "total"),
                "power_cap": _thousandth(self._ask(nvml.nvmlDeviceGetEnforcedPowerLimit, handle)),
                "clock": self._ask(nvml.nvmlDeviceGetMaxClockInfo, handle, nvml.NVML_CLOCK_SM),
                "slowdown": self._ask(
                    nvml.nvmlDeviceGetTemperatureThreshold, handle, nvml.NVML_TEMPERATURE_THRESHOLD_SLOWDOWN
                ),
            }
            for index, handle in self._handles.items()
            if handle is not None
        ]

    def read(self, now: float) -> list[Reading]:
        """Return one reading per GPU."""
        xids = self._read_xids()
        return [self._read_one(index, handle, now, xids) for index, handle in self._handles.items()]

    def _find(self) -> None:
        nvml = self._nvml
        for index in range(nvml.nvmlDeviceGetCount()):
            handle = self._ask(nvml.nvmlDeviceGetHandleByIndex, index)
            uuid = _text(self._ask(nvml.nvmlDeviceGetUUID, handle)) if handle is not None else None
            if self._wanted is None or str(index) in self._wanted or (uuid and _is_named(uuid, self._wanted)):
                self._handles[index] = handle
        self._listen()

    def _listen(self) -> None:
        """Ask for reports of Xid errors; a driver that does not do so is asked nothing more."""
        nvml = self._nvml
        events = self._ask(nvml.nvmlEventSetCreate)
        for handle in self._handles.values():
            if events is not None and handle is not None:
                self._ask(nvml.nvmlDeviceRegisterEvents, handle, nvml.nvmlEventTypeXidCriticalError, events)
        self._events = events

    def _read_xids(self) -> dict[str, int]:
        """Return the Xid errors since the last reading by the GPU's UUID."""
        found: dict[str, int] = {}
        for _ in range(16 if self._events is not None else 0):
            event = self._ask(self._nvml.nvmlEventSetWait_v2, self._events, 0)
            if event is None:
                break
            uuid = _text(self._ask(self._nvml.nvmlDeviceGetUUID, event.device))
            found[str(uuid)] = int(event.eventData)
        return found

    def _read_one(self, index: int, handle: Any, now: float, xids: dict[str, int]) -> Reading:
        nvml = self._nvml
        try:
            if handle is None:
                handle = self._handles[index] = nvml.nvmlDeviceGetHandleByIndex(index)
            temp = nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU)
        except nvml.NVMLError as err:
            if err.value in (nvml.NVML_ERROR_GPU_IS_LOST, nvml.NVML_ERROR_UNKNOWN) or handle is None:
                return {"i": index, "lost": True, "why": str(err)}
            temp = None
        rates = self._ask(nvml.nvmlDeviceGetUtilizationRates, handle)
        reasons = self._ask(nvml.nvmlDeviceGetCurrentClocksThrottleReasons, handle)
        kinds = (nvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, nvml.NVML_VOLATILE_ECC)
        found: Reading = {
            "util": _field(rates, "gpu"),
            "mem": _field(self._ask(nvml.nvmlDeviceGetMemoryInfo, handle), "used"),
            "temp": temp,
            "power": _thousandth(self._ask(nvml.nvmlDeviceGetPowerUsage, handle)),
            "clock": self._ask(nvml.nvmlDeviceGetClockInfo, handle, nvml.NVML_CLOCK_SM),
            "mem_clock": self._ask(nvml.nvmlDeviceGetClockInfo, handle, nvml.NVML_CLOCK_MEM),
            "throttle": None if reasons is None else [name for bit, name in _REASONS.items() if reasons & bit],
            "ecc": self._ask(nvml.nvmlDeviceGetTotalEccErrors, handle, *kinds),
            "xid": xids.get(str(_text(self._ask(nvml.nvmlDeviceGetUUID, handle)))) if xids else None,
            **self._traffic(index, handle, now),
            **self._activity(index, handle),
            "procs": self._processes(handle),
        }
        return {"i": index, **{key: value for key, value in found.items() if value is not None}}

    def _traffic(self, index: int, handle: Any, now: float) -> Reading:
        """Return bytes per second over PCIe and NVLink, from the driver's counters."""
        fields = (
            ("pcie_tx", _PCIE_TX, 1),
            ("pcie_rx", _PCIE_RX, 1),
            ("nvlink_tx", _LINK_TX, 1024),
            ("nvlink_rx", _LINK_RX, 1024),
        )
        asked = [(code, _ALL_LINKS) if code in (_LINK_TX, _LINK_RX) else (code, 0) for _, code, _ in fields]
        answers = self._ask(self._nvml.nvmlDeviceGetFieldValues, handle, asked)
        found: Reading = {}
        for (name, code, times), answer in zip(fields, answers or (), strict=False):
            if answer.nvmlReturn != 0:
                continue
            count = float(answer.value.ullVal) * times
            before = self._counts.get((index, code))
            self._counts[(index, code)] = (now, count)
            if before is not None and now > before[0] and count >= before[1]:
                found[name] = round((count - before[1]) / (now - before[0]))
        return found

    def _activity(self, index: int, handle: Any) -> Reading:
        """Return how busy the parts of the chip were since the last reading, where the card counts it."""
        nvml = self._nvml
        if self._gpm.get(index) is False:
            return {}
        try:
            if index not in self._gpm:
                support = nvml.nvmlGpmQueryDeviceSupport(handle)
                self._gpm[index] = False
                if not support.isSupportedDevice:
                    return {}
                self._gpm[index] = nvml.nvmlGpmSampleAlloc()
                nvml.nvmlGpmSampleGet(handle, self._gpm[index])
                return {}
            sample = nvml.nvmlGpmSampleAlloc()
            nvml.nvmlGpmSampleGet(handle, sample)
            asked = nvml.c_nvmlGpmMetricsGet_t()
            asked.version, asked.numMetrics = nvml.NVML_GPM_METRICS_GET_VERSION, len(_GPM)
            asked.sample1, asked.sample2 = self._gpm[index], sample
            for at, metric in enumerate(_GPM.values()):
                asked.metrics[at].metricId = metric
            nvml.nvmlGpmMetricsGet(asked)
            nvml.nvmlGpmSampleFree(self._gpm[index])
            self._gpm[index] = sample
        except (nvml.NVMLError, AttributeError):  # the second: bindings older than the function
            self._gpm[index] = False
            return {}
        values = {name: asked.metrics[at] for at, name in enumerate(_GPM)}
        return {name: round(float(one.value), 1) for name, one in values.items() if one.nvmlReturn == 0}

    def _processes(self, handle: Any) -> list[str] | None:
        found = self._ask(self._nvml.nvmlDeviceGetComputeRunningProcesses, handle)
        if found is None:
            return None
        return [name_holder(int(one.pid), one.usedGpuMemory) for one in found[:_MOST_HOLDERS]]

    def _ask(self, question: Callable[..., Any], *args: Any) -> Any:
        try:
            return question(*args)
        except self._nvml.NVMLError:
            return None


class ReadingSource:
    """Any source of `headway.machine`, asked for everything at each reading: nvidia-smi, a recorded machine."""

    def __init__(self, read: Callable[[], Sequence[Any]], wanted: Sequence[str] | None = None) -> None:
        """Take a function that returns records like `machine.Gpu` or `machine.Npu`."""
        self._read, self._wanted = read, wanted

    def about(self) -> list[Reading]:
        """Return name, memory, limits."""
        return [
            {
                "i": gpu["index"],
                "uuid": gpu.get("uuid"),
                "name": gpu.get("name"),
                "mem": gpu.get("total_bytes"),
                "power_cap": (gpu.get("health") or {}).get("power_cap_w") if _has_health(gpu) else None,
                "clock": (gpu.get("health") or {}).get("max_sm_clock_mhz") if _has_health(gpu) else None,
            }
            for gpu in self._gpus()
            if not gpu.get("lost")
        ]

    def read(self, now: float) -> list[Reading]:
        """Return one reading per GPU."""
        return [_from_record(gpu) for gpu in self._gpus()]

    def _gpus(self) -> list[Reading]:
        found = [asdict(one) for one in self._read()]
        found = [{**gpu, "index": gpu.get("physical", gpu["index"])} for gpu in found]
        return [
            gpu
            for gpu in found
            if self._wanted is None
            or str(gpu["index"]) in self._wanted
            or (gpu.get("uuid") and _is_named(str(gpu["uuid"]), self._wanted))
        ]


def _has_health(gpu: Reading) -> bool:
    return isinstance(gpu.get("health"), dict)


def _from_record(gpu: Reading) -> Reading:
    if gpu.get("lost"):
        return {"i": gpu["index"], "lost": True}
    health = gpu["health"] if _has_health(gpu) else {}
    used = gpu.get("used_bytes")
    if used is None and gpu.get("total_bytes") is not None and gpu.get("free_bytes") is not None:
        used = gpu["total_bytes"] - gpu["free_bytes"]
    found: Reading = {
        "util": gpu.get("utilisation"),
        "mem": used,
        "temp": gpu.get("temperature_c"),
        "power": health.get("power_w"),
        "clock": health.get("sm_clock_mhz"),
        "throttle": list(health["throttle"]) if "throttle" in health else None,
        "ecc": health.get("uncorrected"),
        "procs": [name_holder(one["pid"], one["held_bytes"]) for one in (gpu.get("processes") or ())[:_MOST_HOLDERS]],
    }
    return {"i": gpu["index"], **{key: value for key, value in found.items() if value is not None}}


class GpuReader:
    """Asks a source in a thread: who does not answer within ten seconds is silent until it does."""

    def __init__(self, source: GpuSource, answer_s: float = _ANSWER_S) -> None:
        self._source, self._answer_s = source, answer_s
        self._asked: queue.Queue[float] = queue.Queue()
        self._answers: queue.Queue[list[Reading] | Exception] = queue.Queue()
        self._is_waiting = self._is_silent = False
        self._known: list[int] = [int(one["i"]) for one in source.about()]
        threading.Thread(target=self._work, daemon=True).start()

    def read(self, now: float) -> list[Reading]:
        """Return the readings; all GPUs known so far are `lost` while the driver does not answer."""
        if not self._is_waiting:
            self._asked.put(now)
            self._is_waiting = True
        try:
            # A silent one is only looked in on: the figures of the host must not wait for it every time.
            answer = self._answers.get(timeout=_LOOK_IN_S if self._is_silent else self._answer_s)
        except queue.Empty:
            self._is_silent = True
            return self._lost(f"no answer within {self._answer_s:g} s")
        self._is_waiting = self._is_silent = False
        if isinstance(answer, Exception):
            return self._lost(str(answer))
        self._known = [int(one["i"]) for one in answer]
        return answer

    def _lost(self, why: str) -> list[Reading]:
        return [{"i": index, "lost": True, "why": why} for index in self._known]

    def _work(self) -> None:
        while True:
            now = self._asked.get()
            try:
                self._answers.put(self._source.read(now))
            except Exception as err:  # border: telemetry emit; whatever a driver raises is a finding, not an end
                self._answers.put(err)


def find_source(wanted: Sequence[str] | None) -> GpuSource | None:
    """Return the source of this machine; None: it has no GPU, or the run uses none."""
    if wanted is not None and not wanted:
        return None
    try:
        import pynvml

        return NvmlSource(pynvml, wanted)
    except ImportError:
        pass
    except pynvml.NVMLError:
        pass
    if shutil.which("nvidia-smi"):
        from headway.machine import SmiDriver  # half a second, paid only where the driver's library is not

        return ReadingSource(lambda: _gpus_of(SmiDriver()), wanted)
    if shutil.which("npu-smi"):
        from headway.machine.ascend.devices import read_npus

        return ReadingSource(lambda: read_npus()[1], None)
    return None


def _gpus_of(driver: Any) -> Sequence[Any]:
    reading = driver.read()
    return reading.gpus if reading is not None else ()


def name_holder(pid: int, held_bytes: int | None) -> str:
    """Return `pid user program MiB` of a process that holds memory; a process of another container has no name."""
    held = "?" if held_bytes is None else str(int(held_bytes) >> 20)
    try:
        user = pwd.getpwuid(os.stat(f"/proc/{pid}").st_uid).pw_name
        with open(f"/proc/{pid}/comm", "rb") as file:
            name = file.read(64).decode("utf-8", "replace").strip().replace(" ", "_")
    except (OSError, KeyError):
        user = name = "?"
    return f"{pid} {user} {name} {held}"


def _is_named(uuid: str, wanted: Sequence[str]) -> bool:
    """Say whether a UUID is meant; CUDA takes the beginning of one too."""
    return any(name.startswith("GPU-") and uuid.startswith(name) for name in wanted)


def _field(answer: Any, name: str) -> int | None:
    return None if answer is None else int(getattr(answer, name))


def _thousandth(value: int | None) -> float | None:
    return None if value is None else value / 1000


def _text(value: str | bytes | None) -> str | None:
    return value.decode(errors="replace") if isinstance(value, bytes) else value
