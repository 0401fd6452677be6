"""Around one machine: ports of the fast network, NUMA nodes, and what Slurm says of its nodes."""

from __future__ import annotations

import re

from headway.machine.text.values import Facts, count_or_none, number

_DEVICE = re.compile(
    r"^[ \t]*(?:CA '([\w.-]+)'|hca_id:[ \t]*([\w.-]+)|Infiniband device '([\w.-]+)' port \d+ status:)", re.M
)
_PORT_KEYS = {"state", "physical state", "phys state", "phys_state", "rate", "link layer", "link_layer"}


def parse_ports(text: str) -> Facts | None:
    """Return the ports `ibstat`, `ibstatus` or `ibv_devinfo` list, or None."""
    marks = list(_DEVICE.finditer(text))
    ports: list[Facts] = []
    ends = [mark.start() for mark in marks[1:]]
    for mark, end in zip(marks, [*ends, len(text)], strict=False):
        found: dict[str, str] = {}
        for key, value in re.findall(r"^[ \t]*([A-Za-z_ ]+?):[ \t]+(\S.*?)[ \t]*$", text[mark.end() : end], re.M):
            if key.lower() in _PORT_KEYS:
                found.setdefault(key.lower().replace("phys_", "phys ").replace("_", " "), value)
        if "state" in found:
            ports.append({"device": next(filter(None, mark.groups())), **_port(found)})
    return {"ports": ports} if ports else None


def _port(found: dict[str, str]) -> Facts:
    """Return one port. `Active`, `4: ACTIVE` and `PORT_ACTIVE (4)` are the same word."""
    word = re.sub(r"^\d+: |^PORT_| \(\d+\)$", "", found["state"])
    physical = re.sub(r"^\d+: | \(\d+\)$", "", found.get("physical state", found.get("phys state", ""))) or None
    rate = number(found.get("rate"))
    return {
        "state": word.capitalize(),
        "physical": physical,
        "rate_gb_s": rate if isinstance(rate, float) else None,
        "link_layer": found.get("link layer"),
        # A port whose light is on but which is not active is broken; one that is dark may have no cable.
        "was_up": word.lower() != "active" and (physical or "").lower().replace("_", "") in ("linkup", "polling"),
    }


_NODE_CPUS = re.compile(r"^[ \t]*node (\d{1,4}) cpus:[ \t]*([\d \t]*)$", re.M)
_NODE_SIZE = re.compile(r"^[ \t]*node (\d{1,4}) (size|free): (\d{1,12}) MB", re.M)


def parse_numactl(text: str) -> Facts | None:
    """Return the NUMA nodes of `numactl -H`, or None."""
    head = re.search(r"^[ \t]*available: (\d{1,4}) nodes?", text, re.M)
    if head is None:
        return None
    cpus = {node: len(listed.split()) for node, listed in _NODE_CPUS.findall(text)}
    sizes = {f"{node} {what}": int(num) for node, what, num in _NODE_SIZE.findall(text)}
    nodes = [
        {"node": int(node), "cpus": num, "size_mb": sizes.get(f"{node} size"), "free_mb": sizes.get(f"{node} free")}
        for node, num in cpus.items()
    ]
    return {"numa_nodes": int(head[1]), "cpus": sum(cpus.values()) or None, "nodes": nodes}


def parse_nproc(text: str) -> Facts | None:
    """Return the number `nproc` printed below its own command, or None: a bare number could be anything."""
    found = re.search(r"(?:^|[$#%>][ \t]*|^\+ )nproc(?: --all)?[ \t]*\n[ \t]*(\d{1,5})[ \t]*$", text, re.M)
    return {"cpus": int(found[1])} if found else None


_SINFO = re.compile(r"^[ \t]*((?:\S+[ \t]+)*(?:STATE)(?:[ \t]+\S+)*)[ \t]*$", re.M)
_SCONTROL = re.compile(r"^[ \t]*NodeName=(\S+)", re.M)


def parse_nodes(text: str) -> Facts | None:
    """Return nodes, their states and their GPUs from `scontrol show node` or `sinfo`, or None."""
    marks = list(_SCONTROL.finditer(text))
    if marks:
        ends = [*(mark.start() for mark in marks[1:]), len(text)]
        nodes = [_node(mark[1], text[mark.end() : end]) for mark, end in zip(marks, ends, strict=True)]
        nodes = [one for one in nodes if one is not None]
        return {"nodes": nodes} if nodes else None
    for head in _SINFO.finditer(text):
        columns = head[1].split()
        if "NODELIST" in columns and ("PARTITION" in columns or "NODES" in columns):
            return {"nodes": _sinfo_rows(text[head.end() :], columns)}
    return None


def _node(name: str, body: str) -> Facts | None:
    def value(key: str) -> str | None:
        found = re.search(rf"(?:^|\s){key}=(\S+)", body)
        return found[1] if found else None

    state = value("State")
    if state is None:
        return None
    reason = re.search(r"^[ \t]*Reason=(.*?)[ \t]*$", body, re.M)
    facts: Facts = {"node": name, "state": state, "gres": value("Gres"), "cpus": count_or_none(value("CPUTot"))}
    return {**facts, "memory_mb": count_or_none(value("RealMemory")), "reason": reason[1] if reason else None}


def _sinfo_rows(text: str, columns: list[str]) -> list[Facts]:
    rows: list[Facts] = []
    for line in text.splitlines()[1:]:
        words = line.split()
        if len(words) < len(columns):
            break
        row = dict(zip(columns, words, strict=False))
        rows.append({"node": row["NODELIST"], "state": row["STATE"], "gres": row.get("GRES"), "reason": None})
    return rows


_MIG = re.compile(r"^[ \t]*\|[ \t]+(\d{1,3})[ \t]+MIG (\S+)[ \t]+(\d{1,3})[ \t]+(\d{1,3})[ \t]+(\d+:\d+)[ \t]*\|", re.M)


def parse_mig(text: str) -> Facts | None:
    """Return the GPU instances of `nvidia-smi mig -lgi`, or None."""
    if re.search(r"No GPU instances found", text):
        return {"instances": []}
    if not re.search(r"^[ \t]*\| GPU instances:", text, re.M):
        return None
    names = ("gpu", "profile", "profile_id", "gi", "placement")
    rows = [dict(zip(names, one, strict=True)) for one in _MIG.findall(text)]
    whole = ("gpu", "profile_id", "gi")
    return {"instances": [{key: int(v) if key in whole else v for key, v in row.items()} for row in rows]}
