"""What recorded texts say about the machine around the GPUs: disks, quotas, memory, limits, cores, network, nodes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from headway.machine.record import Finding, Level
from headway.machine.rules.host import (
    GIB,
    judge_cores,
    judge_inodes,
    judge_limits,
    judge_memory,
    judge_mount,
    judge_shm,
)
from headway.machine.text import Facts, memory_of, room_of
from headway.units import size

_NO_DISK = ("tmpfs", "devtmpfs", "udev", "shm", "none", "squashfs", "/dev/loop", "efivarfs", "cgroup", "rootfs")
_NO_DATA_BYTES = GIB
"""Smaller file systems are mounted for the system itself: firmware, settings, devices."""
USUAL_CHECKPOINT = GIB
"""Room that is wanted when nobody knows how large a checkpoint will be."""
_COUNTS = {"": 1, "K": 1_000, "M": 1_000_000, "G": 1_000_000_000, "T": 1_000_000_000_000}
_UNWELL = re.compile(r"DOWN|DRAIN|FAIL|NOT_RESPOND|UNKNOWN|INVAL|\*$", re.I)


def judge_quota(facts: Facts, checkpoint_bytes: int | None) -> Iterator[Finding]:
    """Yield quotas in which the next checkpoint, or its files, would not fit.

    Writes are refused at the hard limit. Above the soft one they are refused when the time of grace ends, so a run of
    hours cannot count on what lies between.
    """
    need = checkpoint_bytes or USUAL_CHECKPOINT
    for row in facts.get("quotas", ()):
        limit = row["soft_bytes"] or row["hard_bytes"]
        place = row["place"] if row["who"] is None else f"{row['place']} ({row['who']})"
        if row["who"] == "root":  # limits are never enforced on root
            continue
        if limit is not None and limit - row["used_bytes"] < need:
            free = max(0, limit - row["used_bytes"])
            about = {"place": place, "used": size(row["used_bytes"]), "limit": size(limit)}
            yield Finding(
                code="machine/quota-low", level="warn", facts={**about, "free": size(free), "need": size(need)}
            )
        files = row.get("soft_files") or row.get("hard_files")
        if files is not None:
            yield from judge_inodes(place, max(0, files - row["used_files"]))


def _judge_df(facts: Facts) -> Iterator[Finding]:
    for table in (facts, *facts.get("more", ())):
        for row in table["filesystems"]:
            yield from _judge_row(row, table.get("block_bytes"))


def _judge_row(row: Facts, block: int | None) -> Iterator[Finding]:
    total, free, mount = room_of(row.get("size"), block), room_of(row.get("avail"), block), row["mount"]
    if mount == "/dev/shm":
        yield from judge_shm(total)
        return
    if total == 0 or any(str(row.get(key)).startswith(_NO_DISK) for key in ("fs", "type")):
        return
    inodes = re.fullmatch(r"(\d{1,18}(?:\.\d)?)([KMGT]?)", str(row.get("ifree")))
    if inodes and row.get("inodes") not in ("0", "-"):  # 0 of 0: it counts none
        yield from judge_inodes(mount, int(float(inodes[1]) * _COUNTS[inodes[2]]))
    if total is None or total >= _NO_DATA_BYTES or mount == "/":
        yield from judge_mount(mount, free, row.get("use_pct"))


def _judge_free(facts: Facts) -> Iterator[Finding]:
    total, swap = memory_of(facts, "total"), memory_of(facts, "swap_total")
    yield from judge_memory(total, swap)
    free = memory_of(facts, "available" if "available" in facts else "free_with_cache")
    if free is not None and free < GIB and (total or 0) >= 2 * GIB:
        about = {"free": size(free), "total": size(total), "need": size(GIB)}
        yield Finding(code="machine/memory-low", level="warn", facts=about)
    if swap and memory_of(facts, "swap_free") == 0:
        yield Finding(code="machine/swap-full", level="note", facts={"total": size(swap)})


def _judge_ulimit(facts: Facts) -> Iterator[Finding]:
    locked = _whole(facts.get("max_locked_memory_kb"))
    yield from judge_limits(
        nofile=_whole(facts.get("open_files")),
        memlock_bytes=None if locked is None else locked * 1024,
        nproc=_whole(facts.get("max_user_processes")),
    )


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) else None


def _judge_docker(facts: Facts) -> Iterator[Finding]:
    if "nvidia" not in facts["runtimes"] and not facts.get("has_cdi_gpus"):
        yield Finding(
            code="machine/docker-no-nvidia", level="warn", facts={"list": ", ".join(facts["runtimes"]) or "n/a"}
        )
    elif facts.get("default_runtime") != "nvidia":
        yield Finding(
            code="machine/docker-default", level="note", facts={"runtime": facts.get("default_runtime") or "n/a"}
        )


def _judge_ports(facts: Facts) -> Iterator[Finding]:
    """Yield ports of the fast network that are down; one that never had a cable is a note, as nobody may miss it."""
    down = [one for one in facts["ports"] if one["state"].lower() != "active"]
    if down:
        listed = ", ".join(f"{one['device']} {one['state']}" for one in down)
        level: Level = "warn" if len(down) == len(facts["ports"]) or any(one["was_up"] for one in down) else "note"
        about = {"num": str(len(down)), "ports": str(len(facts["ports"])), "list": listed}
        yield Finding(code="machine/ib-down", level=level, facts=about)


def _judge_nodes(facts: Facts) -> Iterator[Finding]:
    for one in facts["nodes"]:
        if _UNWELL.search(one["state"]):
            about = {"node": one["node"], "state": one["state"], "why": one.get("reason") or "n/a"}
            yield Finding(code="machine/node-unwell", level="warn", facts=about)


HOST_JUDGES: dict[str, Any] = {  # Any: each takes the facts of its own kind
    "df": _judge_df,
    "free": _judge_free,
    "lscpu": lambda facts: judge_cores(facts.get("cpus")),
    "nproc": lambda facts: judge_cores(facts.get("cpus")),
    "numactl": lambda facts: judge_cores(facts.get("cpus")),
    "ulimit": _judge_ulimit,
    "docker_info": _judge_docker,
    "infiniband": _judge_ports,
    "slurm_nodes": _judge_nodes,
}
