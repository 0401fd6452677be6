"""Runs and devices as Prometheus reads them; GPUs under the names of DCGM's exporter, so that its dashboards fit."""

from __future__ import annotations

import math
from typing import Any, Final

from headway.telemetry import RunDir, number, section, tail_devices
from headway.ui.board.store import Store

_MOST_RUNS: Final = 64
_GPU: Final = {
    "util": ("DCGM_FI_DEV_GPU_UTIL", 1.0),
    "mem": ("DCGM_FI_DEV_FB_USED", 1 / (1 << 20)),
    "temp": ("DCGM_FI_DEV_GPU_TEMP", 1.0),
    "power": ("DCGM_FI_DEV_POWER_USAGE", 1.0),
    "clock": ("DCGM_FI_DEV_SM_CLOCK", 1.0),
    "mem_clock": ("DCGM_FI_DEV_MEM_CLOCK", 1.0),
    "xid": ("DCGM_FI_DEV_XID_ERRORS", 1.0),
    "sm": ("DCGM_FI_PROF_SM_ACTIVE", 0.01),
    "tensor": ("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", 0.01),
    "dram": ("DCGM_FI_PROF_DRAM_ACTIVE", 0.01),
    "pcie_tx": ("DCGM_FI_PROF_PCIE_TX_BYTES", 1.0),
    "pcie_rx": ("DCGM_FI_PROF_PCIE_RX_BYTES", 1.0),
    "nvlink_tx": ("DCGM_FI_PROF_NVLINK_TX_BYTES", 1.0),
    "nvlink_rx": ("DCGM_FI_PROF_NVLINK_RX_BYTES", 1.0),
}


_HELP: Final = {
    "DCGM_FI_DEV_GPU_UTIL": "GPU utilization (in %).",
    "DCGM_FI_DEV_FB_USED": "Framebuffer memory used (in MiB).",
    "DCGM_FI_DEV_GPU_TEMP": "GPU temperature (in C).",
    "DCGM_FI_DEV_POWER_USAGE": "Power draw (in W).",
    "DCGM_FI_DEV_SM_CLOCK": "SM clock frequency (in MHz).",
    "DCGM_FI_DEV_MEM_CLOCK": "Memory clock frequency (in MHz).",
    "DCGM_FI_DEV_XID_ERRORS": "Value of the last XID error encountered.",
    "DCGM_FI_PROF_SM_ACTIVE": "Ratio of cycles in which an SM has a warp assigned.",
    "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE": "Ratio of cycles in which the tensor pipe is active.",
    "DCGM_FI_PROF_DRAM_ACTIVE": "Ratio of cycles in which the memory interface sends or receives.",
    "DCGM_FI_PROF_PCIE_TX_BYTES": "Bytes per second that the GPU sends over PCIe.",
    "DCGM_FI_PROF_PCIE_RX_BYTES": "Bytes per second that the GPU receives over PCIe.",
    "DCGM_FI_PROF_NVLINK_TX_BYTES": "Bytes per second that the GPU sends over NVLink.",
    "DCGM_FI_PROF_NVLINK_RX_BYTES": "Bytes per second that the GPU receives over NVLink.",
    "headway_runs": "Runs of the folder by state.",
    "headway_step": "Optimizer steps finished.",
    "headway_total_steps": "Optimizer steps planned.",
    "headway_loss": "Last training loss.",
    "headway_samples_per_second": "Speed over the last steps.",
    "headway_best": "Best validation so far.",
    "headway_rank_cores": "Processor cores in use by a rank.",
    "headway_rank_memory_bytes": "Host memory in use by a rank.",
}


def _help_of(name: str) -> str:
    return f"{name.removeprefix('headway_').replace('_', ' ').capitalize()}."


def render_metrics(store: Store) -> str:
    """Return the text of all runs that train now, and how many there are of each state."""
    rows = store.rows()
    values: dict[str, list[tuple[dict[str, str], float]]] = {}

    def put(name: str, value: Any, **labels: object) -> None:
        found = number(value)
        if math.isfinite(found):
            values.setdefault(name, []).append(({key: str(one) for key, one in labels.items()}, found))

    for state in sorted({row.state for row in rows}):
        put("headway_runs", sum(row.state == state for row in rows), state=state)
    for row in [row for row in rows if row.state == "running"][:_MOST_RUNS]:
        put("headway_step", row.step, run=row.name)
        put("headway_total_steps", row.total_steps, run=row.name)
        put("headway_loss", row.loss, run=row.name)
        put("headway_samples_per_second", row.rate_samples_s, run=row.name)
        if row.best is not None:
            put("headway_best", row.best.value, run=row.name, measure=row.best.name)
        reading = tail_devices(RunDir(store.out / row.name).devices)
        for gpu in reading.get("gpus") or ():
            for key, (name, times) in _GPU.items():
                if isinstance(gpu, dict) and key in gpu:
                    put(name, number(gpu[key]) * times, gpu=gpu.get("i"), run=row.name)
        for key, value in section(reading.get("host")).items():
            put(f"headway_host_{key}", value, run=row.name)
        for rank in reading.get("ranks") or ():
            if isinstance(rank, dict):
                put("headway_rank_cores", rank.get("cpu"), rank=rank.get("r"), run=row.name)
                put("headway_rank_memory_bytes", rank.get("mem"), rank=rank.get("r"), run=row.name)
    lines = []
    for name, found in values.items():
        lines += [f"# HELP {name} {_HELP.get(name, _help_of(name))}", f"# TYPE {name} gauge"]
        lines += [f"{name}{_labels(labels)} {value!r}" for labels, value in found]
    return "\n".join(lines) + "\n"


def _labels(labels: dict[str, str]) -> str:
    told = ",".join(f'{name}="{_escape(value)}"' for name, value in labels.items())
    return f"{{{told}}}" if told else ""


def _escape(value: str) -> str:
    text = value.encode("utf-8", "replace").decode("utf-8").replace("\\", "\\\\").replace('"', '\\"')
    return "".join(letter if letter.isprintable() else "?" for letter in text.replace("\n", "\\n"))
