"""deepspeed: GPUs by `--num_gpus`, by `--include host:0,1`, or all that are visible."""

from __future__ import annotations

import re

from headway.adopt.command import Command
from headway.adopt.launchers.parts import count_devices, entry_of, make, visible_devices, with_options
from headway.adopt.options import Options, flags, known, read_options
from headway.adopt.record import Launch
from headway.adopt.shell.expand import Said

_TAKES = (
    "hostfile include exclude num_nodes num_gpus min_elastic_nodes max_elastic_nodes master_port master_addr node_rank"
    " launcher launcher_args autotuning bind_core_list ssh_port enable_each_rank_log venv_script save_pid_file"
)
_BARE = (
    "module no_python no_local_rank no_ssh no_ssh_check force_multi save_pid bind_cores_to_rank elastic_training"
    " help use_numa"
)
TABLE = flags(
    _TAKES,
    _BARE,
    H="hostfile",
    i="include",
    e="exclude",
    h="help",
    num_accelerators="num_gpus",
    n="num_gpus",
    m="module",
)


def read_deepspeed(command: Command) -> Launch:
    """Read the words behind deepspeed."""
    found = read_options(command.words, TABLE)
    entry, args = entry_of(found.rest, is_module=found.has("module"), is_command=found.has("no_python"))
    hosts = _hosts(found.get("include"))
    devices = visible_devices(command.env.get("CUDA_VISIBLE_DEVICES"))
    ranks = found.number("num_gpus")
    if hosts:
        devices, ranks = _one_list(hosts), ranks or _one_count(hosts)
    elif not found.has("num_gpus", "include", "exclude", "hostfile", "num_nodes"):
        ranks = count_devices(devices)
    launch = make(
        command,
        "deepspeed",
        nproc_per_node=ranks,
        nnodes=_num_nodes(found, hosts),
        node_rank=found.number("node_rank"),
        master_addr=known(found.get("master_addr")),
        master_port=found.number("master_port"),
        cuda_visible_devices=devices,
        entry=entry,
        args=args,
        hostfile=found.text("hostfile"),
    )
    return with_options(launch, found)


def _hosts(include: Said | None) -> dict[str, tuple[int, ...]] | None:
    """Return the GPUs of each host of `host:0,1@other:0,1`; None where that is open or not given."""
    if include is None or not include.is_known:
        return None
    hosts: dict[str, tuple[int, ...]] = {}
    for part in include.text.split("@"):
        match = re.fullmatch(r"\s*([^:]+):(\d+(?:,\d+)*)\s*", part)
        if not match:
            return None
        hosts[match[1]] = tuple(int(one) for one in match[2].split(","))
    return hosts


def _one_list(hosts: dict[str, tuple[int, ...]]) -> tuple[int, ...] | None:
    lists = set(hosts.values())
    return lists.pop() if len(lists) == 1 else None


def _one_count(hosts: dict[str, tuple[int, ...]]) -> int | None:
    counts = {len(one) for one in hosts.values()}
    return counts.pop() if len(counts) == 1 else None


def _num_nodes(found: Options, hosts: dict[str, tuple[int, ...]] | None) -> int | str | None:
    low, high = found.number("min_elastic_nodes"), found.number("max_elastic_nodes")
    if low is not None and high is not None:
        return f"{low}:{high}"
    if found.has("num_nodes"):
        return found.number("num_nodes")
    return len(hosts) if hosts and len(hosts) > 1 else None
