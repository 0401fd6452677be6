"""The NVML source against a library that answers like the real one: whole, in part, or not at all."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pynvml
import pytest

from headway.machine import NvmlDriver


class FakeNvml:
    """Two GPUs: one whole, one lost. Errors are the real library's."""

    NVMLError = pynvml.NVMLError
    NVML_ERROR_LIBRARY_NOT_FOUND = pynvml.NVML_ERROR_LIBRARY_NOT_FOUND
    NVML_ERROR_DRIVER_NOT_LOADED = pynvml.NVML_ERROR_DRIVER_NOT_LOADED
    NVML_ERROR_NOT_SUPPORTED = pynvml.NVML_ERROR_NOT_SUPPORTED
    NVML_TEMPERATURE_GPU = pynvml.NVML_TEMPERATURE_GPU

    def __init__(self, init_error: int | None = None) -> None:
        self.init_error = init_error
        self.is_open = False

    def nvmlInit(self):  # noqa: N802 - the library's name
        if self.init_error is not None:
            raise pynvml.NVMLError(self.init_error)
        self.is_open = True

    def nvmlShutdown(self):  # noqa: N802
        self.is_open = False

    def nvmlSystemGetCudaDriverVersion_v2(self):  # noqa: N802
        return 12080

    def nvmlSystemGetDriverVersion(self):  # noqa: N802
        return b"570.211.01"

    def nvmlDeviceGetCount(self):  # noqa: N802
        return 2

    def nvmlDeviceGetHandleByIndex(self, index):  # noqa: N802
        if index == 1:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_GPU_IS_LOST)
        return index

    def nvmlDeviceGetMemoryInfo(self, handle):  # noqa: N802
        return SimpleNamespace(total=80 << 30, free=79 << 30)

    def nvmlDeviceGetUtilizationRates(self, handle):  # noqa: N802
        raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)

    def nvmlDeviceGetCudaComputeCapability(self, handle):  # noqa: N802
        return (9, 0)

    def nvmlDeviceGetUUID(self, handle):  # noqa: N802
        return "GPU-aaaa"

    def nvmlDeviceGetName(self, handle):  # noqa: N802
        return "NVIDIA H100 80GB HBM3"

    def nvmlDeviceGetTemperature(self, handle, kind):  # noqa: N802
        return 41

    def nvmlDeviceGetComputeRunningProcesses(self, handle):  # noqa: N802
        return [SimpleNamespace(pid=999_999_999, usedGpuMemory=None)]

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, handle):  # noqa: N802
        return 0x1 | 0x8 | 0x80

    def nvmlDeviceGetEccMode(self, handle):  # noqa: N802
        return [1, 0]

    def nvmlDeviceGetMigMode(self, handle):  # noqa: N802
        return [1, 1]

    def nvmlDeviceGetMaxMigDeviceCount(self, handle):  # noqa: N802
        return 7

    def nvmlDeviceGetRemappedRows(self, handle):  # noqa: N802
        return [0, 4, 1, 0]

    def nvmlDeviceGetTotalEccErrors(self, handle, kind, since):  # noqa: N802
        return 3 if kind == pynvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED and since == pynvml.NVML_VOLATILE_ECC else 0

    def __getattr__(self, name):
        """Answer every other question as a GPU that does not have it; constants are the real library's."""
        if not name.startswith("nvml"):
            return getattr(pynvml, name)

        def lacks(*args):
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)

        return lacks


@pytest.fixture
def library(monkeypatch):
    def use(fake: FakeNvml) -> FakeNvml:
        monkeypatch.setitem(sys.modules, "pynvml", fake)
        return fake

    return use


def test_every_reading_is_taken_and_what_a_gpu_lacks_is_none(library):
    fake = library(FakeNvml())
    found = NvmlDriver().read()
    assert found is not None
    whole, gone = found.gpus
    assert (found.source, found.driver, found.cuda) == ("nvml", "570.211.01", "12.8")
    assert (whole.name, whole.free_bytes, whole.capability, whole.utilisation) == (
        "NVIDIA H100 80GB HBM3",
        79 << 30,
        (9, 0),
        None,
    )
    assert [(one.pid, one.user, one.held_bytes) for one in whole.processes] == [(999_999_999, None, None)]
    assert (gone.physical, gone.lost, gone.total_bytes) == (1, True, None)
    assert not fake.is_open


def test_health_is_read_and_what_holds_a_clock_down_is_named(library):
    library(FakeNvml())
    health = NvmlDriver().read().gpus[0].health
    assert health.throttle == ("HW Slowdown", "HW Power Brake Slowdown")
    assert (health.mig, health.mig_devices, health.ecc, health.ecc_pending) == (True, 0, True, True)
    assert (health.remap_pending, health.remap_failed, health.uncorrected, health.power_w) == (True, False, 3, None)


class TwoJoined(FakeNvml):
    """Two GPUs joined by NVLink that may not read each other over PCIe."""

    def nvmlDeviceGetHandleByIndex(self, index):  # noqa: N802
        return index

    def nvmlDeviceGetTopologyCommonAncestor(self, one, other):  # noqa: N802
        return 50

    def nvmlDeviceGetP2PStatus(self, one, other, kind):  # noqa: N802
        good = kind == pynvml.NVML_P2P_CAPS_INDEX_NVLINK
        return pynvml.NVML_P2P_STATUS_OK if good else pynvml.NVML_P2P_STATUS_CHIPSET_NOT_SUPPORTED

    def nvmlDeviceGetNvLinkState(self, handle, link):  # noqa: N802
        if link > 3:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_INVALID_ARGUMENT)
        return pynvml.NVML_FEATURE_ENABLED


def test_links_and_p2p_between_gpus_are_read(library):
    library(TwoJoined())
    found = NvmlDriver().read()
    assert (found.links, found.p2p) == ({"0-1": "NV4"}, {"0-1": False})


@pytest.mark.parametrize("code", [pynvml.NVML_ERROR_LIBRARY_NOT_FOUND, pynvml.NVML_ERROR_DRIVER_NOT_LOADED])
def test_no_driver_is_no_source(library, code):
    library(FakeNvml(code))
    assert NvmlDriver().read() is None


def test_a_broken_driver_is_told(library):
    library(FakeNvml(pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH))
    found = NvmlDriver().read()
    assert found is not None and found.gpus == ()
    assert "version mismatch" in (found.trouble or "").lower()
