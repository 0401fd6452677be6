"""What is here: a folder for the output comes in, a `MachineReport` with its findings goes out.

Nothing here imports a framework, and a machine without GPUs, drivers or torch is described like any other.
"""

from headway.machine.devices import describe_holders, is_free, pick_devices
from headway.machine.findings import judge_machine
from headway.machine.gpus import FirstOf, GpuDriver, GpuReading, RecordedDriver
from headway.machine.inspect import inspect_machine
from headway.machine.nvml import NvmlDriver
from headway.machine.record import Finding, Framework, Gpu, GpuProcess, Level, MachineReport
from headway.machine.smi import SmiDriver, parse_smi

__all__ = [
    "Finding",
    "FirstOf",
    "Framework",
    "Gpu",
    "GpuDriver",
    "GpuProcess",
    "GpuReading",
    "Level",
    "MachineReport",
    "NvmlDriver",
    "RecordedDriver",
    "SmiDriver",
    "describe_holders",
    "inspect_machine",
    "is_free",
    "judge_machine",
    "parse_smi",
    "pick_devices",
]
