"""What is here: a folder for the output comes in, a `MachineReport` with its findings goes out.

Nothing here imports a framework, and a machine without GPUs, drivers or torch is described like any other.
"""

from headway.machine.cards import GpuModel, find_model, gemm_sources, gpu_models, has_bf16
from headway.machine.cpu import CpuAnswers, cpu_environment, find_cpu, has_devices
from headway.machine.data import judge_data
from headway.machine.devices import (
    apply_visible,
    count_visible,
    describe_holders,
    is_free,
    list_visible,
    pick_devices,
)
from headway.machine.first_batch import judge_batch, try_batch
from headway.machine.from_text import gpus_of, report_from
from headway.machine.host import free_address_bytes, free_memory_bytes
from headway.machine.inspect import inspect_for_line, inspect_machine
from headway.machine.judge import judge_machine
from headway.machine.mindspore import (
    MindSpore,
    check_mindspore,
    made_for_mindspore,
    mindspore_target,
    other_python,
    read_mindspore,
    try_mindspore,
    with_mindspore,
)
from headway.machine.nvidia.nvml import NvmlDriver
from headway.machine.nvidia.smi import SmiDriver, parse_smi
from headway.machine.other import (
    find_machine,
    make_machine,
    read_machine,
    wished_devices,
    with_findings,
)
from headway.machine.record import Finding, Framework, Gpu, GpuHealth, GpuProcess, Level, MachineReport, Npu
from headway.machine.rules.processor import with_cpu
from headway.machine.smoke import RankAnswer, RankRunner, judge_answers, try_ranks
from headway.machine.text import Dump, read_dump
from headway.machine.vendors import FirstOf, GpuDriver, GpuReading, RecordedDriver

__all__ = [
    "CpuAnswers",
    "Dump",
    "Finding",
    "FirstOf",
    "Framework",
    "Gpu",
    "GpuDriver",
    "GpuHealth",
    "GpuModel",
    "GpuProcess",
    "GpuReading",
    "Level",
    "MachineReport",
    "MindSpore",
    "Npu",
    "NvmlDriver",
    "RankAnswer",
    "RankRunner",
    "RecordedDriver",
    "SmiDriver",
    "apply_visible",
    "check_mindspore",
    "count_visible",
    "cpu_environment",
    "describe_holders",
    "find_cpu",
    "find_machine",
    "find_model",
    "free_address_bytes",
    "free_memory_bytes",
    "gemm_sources",
    "gpu_models",
    "gpus_of",
    "has_bf16",
    "has_devices",
    "inspect_for_line",
    "inspect_machine",
    "is_free",
    "judge_answers",
    "judge_batch",
    "judge_data",
    "judge_machine",
    "list_visible",
    "made_for_mindspore",
    "make_machine",
    "mindspore_target",
    "other_python",
    "parse_smi",
    "pick_devices",
    "read_dump",
    "read_machine",
    "read_mindspore",
    "report_from",
    "try_batch",
    "try_mindspore",
    "try_ranks",
    "wished_devices",
    "with_cpu",
    "with_findings",
    "with_mindspore",
]
