"""What `nvidia-smi` or NVML print when they fail, sorted by cause."""

from __future__ import annotations

import re

from headway.machine.text.values import Facts

_CLASSES = (
    ("driver_library_mismatch", re.compile(r"driver/library version mismatch", re.I)),
    ("gpu_lost", re.compile(r"GPU is lost|GPU_IS_LOST|fallen off the bus", re.I)),
    (
        "device_handle_unknown_error",
        re.compile(r"unable to de(?:termine|tect) the device handle for gpu[^\n]*unknown error", re.I),
    ),
    ("device_handle_error", re.compile(r"unable to de(?:termine|tect) the device handle for gpu", re.I)),
    (
        "no_devices",
        re.compile(
            r"^\W*no devices were found|no supported gpus were found|no nvidia gpus? (?:were )?found", re.I | re.M
        ),
    ),
    (
        "driver_not_loaded",
        re.compile(r"could(?:n.t| not) communicate with the (?:NVIDIA )?driver|driver (?:is )?not loaded", re.I),
    ),
    (
        "library_not_found",
        re.compile(
            r"couldn.t find libnvidia-ml|NVML Shared Library Not Found|libnvidia-ml\.so[^\n]*(?:not found|cannot open)",
            re.I,
        ),
    ),
    ("insufficient_permissions", re.compile(r"failed to initialize NVML: insufficient permissions", re.I)),
    ("command_not_found", re.compile(r"nvidia-smi[^\n]*(?:command not found|not found|no such file)", re.I)),
    ("inforom_corrupted", re.compile(r"infoROM is corrupted", re.I)),
    ("container_without_gpus", re.compile(r"could not select device driver \S* with capabilities: \[\[.*gpu", re.I)),
    ("npu_driver_not_loaded", re.compile(r"dcmi (?:module|model) initiali[sz]e failed|DrvMng\w+ failed", re.I)),
    ("gpu_access_blocked", re.compile(r"GPU access blocked by the operating system", re.I)),
    ("nvml_unknown_error", re.compile(r"failed to initialize NVML: unknown error|NVML: unknown error", re.I)),
    ("nvml_error", re.compile(r"failed to initialize NVML|nvmlInit\w*\(\) failed", re.I)),
)
_HANDLE = re.compile(
    r"(?:device handle for|corrupted at) gpu ?\S*? ?([0-9a-f]{1,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f])", re.I
)
_GAVE = re.compile(r"NVML library version: (\S+)")


def parse_trouble(text: str) -> Facts | None:
    """Return the class of failure and the GPU it names, or None when nothing failed."""
    name = next((name for name, pattern in _CLASSES if pattern.search(text)), None)
    if name is None:
        return None
    facts: Facts = {"error_class": name, "gpus": []}
    if bus := _HANDLE.search(text):
        facts["bus_id"] = bus[1]
    if version := _GAVE.search(text):
        facts["library_version"] = version[1]
    return facts
