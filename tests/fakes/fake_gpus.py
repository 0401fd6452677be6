"""An NVML library whose GPUs do what a test says: work, get hot, count, fall silent."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pynvml


class FakeNvml:
    """Answers like the driver's library; values are in `gpus`, and a GPU of None is lost."""

    def __init__(self, *gpus: dict[str, Any] | None) -> None:
        self.gpus = list(gpus)
        self.traffic = 0
        self.xids: list[tuple[int, int]] = []
        self.c_nvmlGpmMetricsGet_t = pynvml.c_nvmlGpmMetricsGet_t  # the library's name

    def __getattr__(self, name: str) -> Any:
        """Hand out constants and the error of the real library; a question it does not know is not supported."""
        if name.startswith(("nvmlDevice", "nvmlGpm", "nvmlEvent")):
            if name == "nvmlEventTypeXidCriticalError":
                return pynvml.nvmlEventTypeXidCriticalError
            return self._refuse
        return getattr(pynvml, name)

    def _refuse(self, *_: Any) -> Any:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)

    def _gpu(self, index: int) -> dict[str, Any]:
        found = self.gpus[index]
        if found is None:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_GPU_IS_LOST)
        return found

    def nvmlInit(self) -> None:  # noqa: N802 - the library's names
        pass

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802
        return len(self.gpus)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:  # noqa: N802
        return index

    def nvmlDeviceGetUUID(self, handle: int) -> str:  # noqa: N802
        return f"GPU-{handle:08x}"

    def nvmlDeviceGetName(self, handle: int) -> str:  # noqa: N802
        self._gpu(handle)
        return "NVIDIA H20"

    def nvmlDeviceGetMemoryInfo(self, handle: int) -> Any:  # noqa: N802
        return SimpleNamespace(total=96 << 30, used=self._gpu(handle).get("mem", 1 << 30))

    def nvmlDeviceGetUtilizationRates(self, handle: int) -> Any:  # noqa: N802
        return SimpleNamespace(gpu=self._gpu(handle).get("util", 0))

    def nvmlDeviceGetTemperature(self, handle: int, kind: int) -> int:  # noqa: N802
        return self._gpu(handle).get("temp", 40)

    def nvmlDeviceGetPowerUsage(self, handle: int) -> int:  # noqa: N802
        return self._gpu(handle).get("power", 120) * 1000

    def nvmlDeviceGetClockInfo(self, handle: int, kind: int) -> int:  # noqa: N802
        return self._gpu(handle).get("clock", 1980)

    def nvmlDeviceGetMaxClockInfo(self, handle: int, kind: int) -> int:  # noqa: N802
        return 1980

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, handle: int) -> int:  # noqa: N802
        return self._gpu(handle).get("reasons", 0)

    def nvmlDeviceGetTotalEccErrors(self, handle: int, kind: int, since: int) -> int:  # noqa: N802
        return self._gpu(handle).get("ecc", 0)

    def nvmlDeviceGetFieldValues(self, handle: int, fields: Any) -> list[Any]:  # noqa: N802
        value = SimpleNamespace(ullVal=self.traffic)
        return [SimpleNamespace(nvmlReturn=0 if code in (197, 138) else 3, value=value) for code, _ in fields]

    def nvmlDeviceGetComputeRunningProcesses(self, handle: int) -> list[Any]:  # noqa: N802
        return [SimpleNamespace(pid=1, usedGpuMemory=2 << 30)]

    def nvmlEventSetCreate(self) -> object:  # noqa: N802
        return object()

    def nvmlDeviceRegisterEvents(self, handle: int, kind: int, events: object) -> None:  # noqa: N802
        pass

    def nvmlEventSetWait_v2(self, events: object, timeout_ms: int) -> Any:  # noqa: N802
        if not self.xids:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_TIMEOUT)
        gpu, xid = self.xids.pop()
        return SimpleNamespace(device=gpu, eventData=xid)

    def nvmlGpmQueryDeviceSupport(self, handle: int) -> Any:  # noqa: N802
        return SimpleNamespace(isSupportedDevice=int("sm" in self._gpu(handle)))

    def nvmlGpmSampleAlloc(self) -> Any:  # noqa: N802
        return pynvml.c_nvmlGpmSample_t()

    def nvmlGpmSampleFree(self, sample: int) -> None:  # noqa: N802
        pass

    def nvmlGpmSampleGet(self, handle: int, sample: int) -> None:  # noqa: N802
        self._handle = handle

    def nvmlGpmMetricsGet(self, asked: Any) -> None:  # noqa: N802
        for at in range(asked.numMetrics):
            asked.metrics[at].value = self._gpu(self._handle)["sm"] / (at + 1)
            asked.metrics[at].nvmlReturn = 0
