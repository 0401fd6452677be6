"""Lines of the kernel log: Xid of the NVIDIA driver, SXid of NVSwitch, and the work of the OOM killer."""

from __future__ import annotations

import re
from collections import Counter

from headway.machine.text.values import Facts

_XID = re.compile(r"\bXid \((?:PCI:)?([0-9A-Fa-f:.]+)\): (\d{1,5})([^\n]*)")
_SXID = re.compile(r"\bSXid \((?:PCI:)?([0-9A-Fa-f:.]+)\): (\d{1,6})")
_FALLEN = re.compile(
    r"(?:NVIDIA GPU|NVRM: GPU)(?: at PCI)?[ :]+([0-9A-Fa-f:.]+\d)(?:(?!\bGPU \d).){0,400}?fallen off the bus", re.S
)

_NO_BAR = re.compile(r"PCI I/O region assigned to your NVIDIA[^()]{0,200}\(PCI:([0-9A-Fa-f:.]+)\)")
"""The firmware gave the GPU no room in the address space."""
_NONE = re.compile(
    r"None of the NVIDIA (?:devices|graphics adapters) were initialized"
    r"|No NVIDIA (?:graphics adapter|GPU) (?:probed|found)|NVIDIA probe routine was not called for \d+ device"
)


def parse_xids(text: str) -> Facts | None:
    """Return the driver's error codes, each with how often it came, or None when the log has nothing of NVIDIA."""
    if not re.search(r"NVRM|\bS?Xid \(|nvidia-nvswitch", text):
        return None
    counted: Counter[tuple[str, int, int | None, str | None]] = Counter()
    for pci, code, rest in _XID.findall(text):
        pid, name = re.search(r"\bpid='?(\d{1,9})", rest), re.search(r"\bname=([^,<\s][^,\n]*)", rest)
        counted[(pci, int(code), int(pid[1]) if pid else None, name[1].strip() if name else None)] += 1
    facts: Facts = {
        "xids": [
            {"pci": pci, "xid": xid, "pid": pid, "name": name, "count": num}
            for (pci, xid, pid, name), num in counted.items()
        ]
    }
    if sxids := sorted({int(code) for _, code in _SXID.findall(text)}):
        facts["sxids"] = sxids
    if fallen := list(dict.fromkeys(_FALLEN.findall(text))):
        facts["fallen"] = fallen
    if _NONE.search(text):
        facts["none_initialised"] = True
    failed = [*re.findall(r"GPU ([0-9A-Fa-f:.]+): RmInitAdapter failed", text), *_NO_BAR.findall(text)]
    if adapters := list(dict.fromkeys(failed)):
        facts["init_failed"] = adapters
    return facts


_NAME = r"\((\([^()\n]*\)|[^()\n]*)\)"
"""A process that changes its name while it starts is in brackets of its own."""
_KILLED = re.compile(rf"Kill(?:ed|ing) process (\d{{1,9}})(?:, UID \d+,)?[ ,]+{_NAME}([^\n]*)", re.I)
_CHOSEN = re.compile(rf"Kill process (\d{{1,9}}) {_NAME}([^\n]*)", re.I)


_REAPED = re.compile(rf"oom_reaper: reaped process (\d{{1,9}}) {_NAME}")
_TASK = re.compile(r"oom-kill:[^\n]*?,task=([^,\n]*),pid=(\d{1,9})")


_OOM = re.compile(
    r"invoked oom-killer|oom-kill:constraint|out of memory:? (?:and )?kill(?:ed|ing)? process|oom_reaper: reaped"
    r"|memory cgroup out of memory|killed process \d+.*anon-rss",
    re.I,
)


def parse_oom(text: str) -> Facts | None:
    """Return which processes the kernel ended for lack of memory, and whose memory ran out, or None."""
    # `CUDA out of memory` is another matter, and not the kernel's.
    if not _OOM.search(text):
        return None
    killed = []
    # Kernels before 5 say whom they will kill and then whom they killed, which may be a child of it.
    for pid, name, rest in _KILLED.findall(text) or _CHOSEN.findall(text):
        rss = re.search(r"anon-rss:(\d{1,15})kB", rest)
        killed.append({"pid": int(pid), "name": name, "anon_rss_kb": int(rss[1]) if rss else None})
    if not killed:  # the line of the choice alone, as `grep oom-kill` leaves it
        killed = [{"pid": int(pid), "name": name, "anon_rss_kb": None} for name, pid in _TASK.findall(text)]
    if not killed:  # what it held is given back by then
        killed = [{"pid": int(pid), "name": name, "anon_rss_kb": None} for pid, name in _REAPED.findall(text)]
    constraint = re.search(r"constraint=(CONSTRAINT_\w+)", text)
    in_group = bool(
        re.search(r"Memory cgroup out of memory|CONSTRAINT_MEMCG|memory: usage .* limit|as a result of limit of", text)
    )
    facts: Facts = {"killed": _merge(killed), "scope": "cgroup" if in_group else "global"}
    if constraint:
        facts["constraint"] = constraint[1]
    if invoked := re.search(r"(?:\]\s*|^)(\S[^\n\]]*?) invoked oom-killer", text, re.M):
        facts["invoked_by"] = invoked[1]
    for name, key in (("swap_total_kb", "Total swap"), ("swap_free_kb", "Free swap")):
        if found := re.search(rf"{key}\s*=\s*(\d{{1,15}})kB", text):
            facts[name] = int(found[1])
    return facts


def _merge(killed: list[Facts]) -> list[Facts]:
    """Return one entry a process: older kernels print a line before the end and one after it."""
    by_pid: dict[int, Facts] = {}
    for one in killed:
        before = by_pid.get(one["pid"])
        if before is None or before["anon_rss_kb"] is None:
            by_pid[one["pid"]] = one
    return list(by_pid.values())
