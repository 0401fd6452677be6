"""What is around the devices: disks and quotas, containers, the fast network, nodes. Silent on what is not reported."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from headway.machine.record import Around, Finding, Level, Port, Quota
from headway.machine.rules.host import GIB, judge_inodes, judge_mount
from headway.units import size

USUAL_CHECKPOINT = GIB
"""Room that is wanted when nobody knows how large a checkpoint will be."""
_UNWELL = re.compile(r"DOWN|DRAIN|FAIL|NOT_RESPOND|UNKNOWN|INVAL|\*$", re.I)


def judge_around(around: Around, checkpoint_bytes: int | None) -> Iterator[Finding]:
    """Yield what may go wrong around the devices."""
    for mount in around.mounts:
        yield from judge_inodes(mount.place, mount.free_inodes)
        yield from judge_mount(mount.place, mount.free_bytes, mount.used_percent)
    for quota in around.quotas:
        yield from _judge_quota(quota, checkpoint_bytes or USUAL_CHECKPOINT)
    yield from _judge_containers(around)
    yield from _judge_ports(around.ports)
    for node in around.nodes:
        if _UNWELL.search(node.state):
            facts = {"node": node.name, "state": node.state, "why": node.reason or "n/a"}
            yield Finding(code="machine/node-unwell", level="warn", facts=facts)
    if around.is_low_power:
        yield Finding(code="machine/rocm-low-power", level="note", facts={})
    if around.is_wsl:
        yield Finding(code="machine/wsl", level="note", facts={})


def _judge_quota(quota: Quota, need: int) -> Iterator[Finding]:
    """Yield a quota in which the next checkpoint, or its files, would not fit."""
    if quota.limit_bytes is not None and quota.limit_bytes - quota.used_bytes < need:
        free = max(0, quota.limit_bytes - quota.used_bytes)
        about = {"place": quota.place, "used": size(quota.used_bytes), "limit": size(quota.limit_bytes)}
        yield Finding(code="machine/quota-low", level="warn", facts={**about, "free": size(free), "need": size(need)})
    yield from judge_inodes(quota.place, quota.free_files)


def _judge_containers(around: Around) -> Iterator[Finding]:
    if around.runtimes is None:
        return
    if not any(name.startswith("nvidia") for name in around.runtimes):
        facts = {"list": ", ".join(around.runtimes) or "n/a"}
        yield Finding(code="machine/docker-no-nvidia", level="warn", facts=facts)
    elif around.default_runtime != "nvidia":
        yield Finding(code="machine/docker-default", level="note", facts={"runtime": around.default_runtime or "n/a"})


def _judge_ports(ports: Sequence[Port]) -> Iterator[Finding]:
    """Yield ports of the fast network that are down; one that never had a cable is a note, as nobody may miss it."""
    down = [port for port in ports if port.state.lower() != "active"]
    if down:
        listed = ", ".join(f"{port.device} {port.state}" for port in down)
        level: Level = "warn" if len(down) == len(ports) or any(port.was_up for port in down) else "note"
        facts = {"num": str(len(down)), "ports": str(len(ports)), "list": listed}
        yield Finding(code="machine/ib-down", level=level, facts=facts)
