"""GPU readings from the driver's own library, through nvidia-ml-py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headway.machine.gpus import GpuReading, describe_process
from headway.machine.record import Gpu, GpuProcess


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
    )


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
    )


def _read_process(found: Any) -> GpuProcess:
    user, name = describe_process(found.pid)
    held = found.usedGpuMemory
    return GpuProcess(pid=int(found.pid), user=user, name=name, held_bytes=None if held is None else int(held))


def _ask(nvml: Any, question: Callable[..., Any], *args: Any) -> Any:
    """Return the answer, or None where this GPU or driver does not have it."""
    try:
        return question(*args)
    except nvml.NVMLError:
        return None


def _text(value: str | bytes | None) -> str | None:
    return value.decode(errors="replace") if isinstance(value, bytes) else value
