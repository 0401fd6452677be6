"""Setting MindSpore up before the first cell is built."""

from __future__ import annotations

import math
import os
from pathlib import Path

import mindspore as ms
import numpy as np

from headway.errors import CheckError
from headway.task.mindspore import Settings

_LEAST_BLOCK_GB = 1
_ONEDNN = ("ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA")


def set_up(settings: Settings, *, device: str, local_rank: int, threads: int, graphs: Path) -> str:
    """Choose mode, device and memory; return the device target."""
    if int(np.__version__.partition(".")[0]) >= 2:
        raise CheckError("mindspore/numpy", numpy=np.__version__, mindspore=ms.__version__)
    target = settings.device_target if settings.device_target != "auto" else "CPU" if device == "cpu" else "GPU"
    graphs.mkdir(parents=True, exist_ok=True)
    # Without a path a failed compile writes its findings into the working directory.
    os.environ["MS_DEV_SAVE_GRAPHS_PATH"] = str(graphs)
    os.environ["MS_DEV_SAVE_GRAPHS"] = "2" if settings.is_dumped else "0"
    ms.set_context(mode=ms.GRAPH_MODE if settings.is_graph else ms.PYNATIVE_MODE)
    number = settings.device_id if settings.device_id is not None else local_rank
    try:
        ms.set_device(target, None if target == "CPU" else number)
    except (RuntimeError, ValueError) as err:
        raise CheckError("mindspore/device", target=target, mindspore=ms.__version__, why=first_line(err)) from err
    if settings.has_sink:
        refuse_sink(target)
    if target == "CPU":
        limit_onednn()
        ms.runtime.set_cpu_affinity(False)
        if not settings.is_graph:
            # Handing every operator from thread to thread cost five times the work: 2.3 s of CPU a step, now 0.4.
            ms.runtime.launch_blocking()
        os.environ["OMP_NUM_THREADS"] = str(threads)
    else:
        if settings.max_memory:
            ms.set_context(max_device_memory=gigabytes(settings.max_memory))
        if settings.block_size:
            ms.set_context(mempool_block_size=gigabytes(settings.block_size, least=_LEAST_BLOCK_GB))
        if settings.has_offload:
            ms.set_context(memory_offload="ON")
        if settings.has_graph_kernel:
            ms.set_context(enable_graph_kernel=True)
    return target


def limit_onednn() -> None:
    """Keep oneDNN's convolutions at AVX2, unless the user has set a limit.

    MindSpore gives it tensors in NCHW order. For these and AVX-512, oneDNN 3.10 has only its reference code, forward
    and for the gradient of the input; for AVX2 it has a product of matrices. Measured with MindSpore 2.10 on an AMD
    EPYC: one 3x3 convolution of the recipe's small size 210 ms of CPU before, 4 ms now; a step of TFNet 6.3 s before,
    0.9 s now, with the same losses.
    """
    if not any(os.environ.get(name) for name in _ONEDNN):
        os.environ[_ONEDNN[0]] = "AVX2"


def refuse_sink(target: str) -> None:
    """Say no to the device's queue where the device has none."""
    if target == "CPU":
        raise CheckError("mindspore/sink", target=target)


def gigabytes(text: str, least: float = 0.0) -> str:
    """Return a size in the only unit MindSpore reads: 512MB is 0.5GB."""
    number, unit = float(text[:-2]), text[-2:]
    value = max(least, number / 1024 if unit == "MB" else number)
    return f"{math.floor(value) if value == int(value) else round(value, 3)}GB"


def first_line(error: BaseException) -> str:
    """Return what MindSpore says before its call stacks."""
    lines = [line.strip() for line in str(error).splitlines()]
    return next((line for line in lines if line and not set(line) <= {"-"}), type(error).__name__)[:300]
