"""Reads a recorded text, whichever of the known commands printed it; one file may hold the output of several."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from headway.machine.amd.rocm_smi import parse_rocm
from headway.machine.ascend.npu_smi import parse_npu
from headway.machine.nvidia.errors import parse_trouble
from headway.machine.nvidia.links import parse_list, parse_nvlink, parse_p2p, parse_topology
from headway.machine.nvidia.long_form import parse_q
from headway.machine.nvidia.query import parse_query
from headway.machine.nvidia.table import parse_table, parse_vgpu
from headway.machine.nvidia.xid import parse_oom, parse_xids
from headway.machine.text.cluster import parse_mig, parse_nodes, parse_nproc, parse_numactl, parse_ports
from headway.machine.text.disk import parse_df, parse_quota
from headway.machine.text.host import parse_free, parse_lscpu, parse_ulimit
from headway.machine.text.software import parse_accelerate, parse_collect_env, parse_docker, parse_ds_report, parse_nvcc
from headway.machine.text.values import Facts, clean

MOST_CHARS = 8 << 20
"""Longer texts are cut: the longest real one, `-q` of 16 GPUs, is a fiftieth of this."""
_PARSERS: dict[str, Callable[[str], Facts | None]] = {
    "nvidia_smi": parse_table,
    "nvidia_smi_vgpu": parse_vgpu,
    "nvidia_smi_q": parse_q,
    "nvidia_smi_query_csv": parse_query,
    "nvidia_smi_list": parse_list,
    "npu_smi": parse_npu,
    "rocm_smi": parse_rocm,
    "topology": parse_topology,
    "topology_p2p": parse_p2p,
    "nvlink": parse_nvlink,
    "nvidia_smi_mig": parse_mig,
    "infiniband": parse_ports,
    "nvcc": parse_nvcc,
    "collect_env": parse_collect_env,
    "ds_report": parse_ds_report,
    "accelerate_env": parse_accelerate,
    "df": parse_df,
    "quota": parse_quota,
    "free": parse_free,
    "lscpu": parse_lscpu,
    "numactl": parse_numactl,
    "nproc": parse_nproc,
    "ulimit": parse_ulimit,
    "slurm_nodes": parse_nodes,
    "dmesg_xid": parse_xids,
    "dmesg_oom": parse_oom,
    "docker_info": parse_docker,
    "nvidia_smi_error": parse_trouble,
}
KINDS = tuple(_PARSERS)


@dataclass(frozen=True, slots=True)
class Dump:
    """What a recorded text says: for each command recognised in it, the facts it printed."""

    parts: Mapping[str, Facts]
    log: str | None = None
    """The text itself, where it holds lines of a kernel log."""

    @property
    def kinds(self) -> tuple[str, ...]:
        """Commands recognised, the most telling first."""
        return tuple(self.parts)


def read_dump(text: str) -> Dump:
    """Return the facts of a recorded text; a text nothing recognises has no parts. Never raises."""
    cleaned = clean(text[:MOST_CHARS])
    parts = {kind: facts for kind, parse in _PARSERS.items() if (facts := parse(cleaned)) is not None}
    if "topology" in parts and "npu_smi" not in parts and "NPU0" in cleaned:
        parts = {"npu_smi": parts["topology"], **parts}
    if "nvlink" in parts:
        parts.pop("nvidia_smi_list", None)
    # A lost GPU is in its own row of the table.
    if parts.get("nvidia_smi", {}).get("gpus") and parts.get("nvidia_smi_error", {}).get("error_class") == "gpu_lost":
        parts.pop("nvidia_smi_error")
    # A log of the driver speaks of lost GPUs in words that also stand for a failed nvidia-smi.
    if "dmesg_xid" in parts:
        parts.pop("nvidia_smi_error", None)
    return Dump(parts, cleaned if {"dmesg_xid", "dmesg_oom"} & set(parts) else None)
