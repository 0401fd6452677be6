"""How devices are joined: `nvidia-smi topo -m` and `-p2p`, `npu-smi info -t topo`, `nvidia-smi nvlink -s`."""

from __future__ import annotations

import re
from collections import Counter

from headway.machine.text.values import Facts

_DEVICE = re.compile(r"(?:GPU|NPU)\d+")
_COLUMN = re.compile(r"(?:GPU|NPU|NIC)\d+|mlx\w+|\w+_\d+|ib\d+|hfi1\w*|bnxt\w*|eth\d+|ens\w+")
_LINK = re.compile(r"X|NV\d+|SYS|NODE|PHB|PXB|PIX|SOC|HCCS\w*|SIO|NA|N/A|-|PSB|XGMI|PCIE")
_JOINED = re.compile(r"(?<=NIC\d\d)(?=NIC|CPU)|(?<=NIC\d)(?=NIC|CPU)")
_FEW = 4
"""Up to this many devices the pairs are named one by one."""


def parse_topology(text: str) -> Facts | None:
    """Return devices, links by kind, and where each device's cores are, or None when there is no matrix."""
    # A terminal's tabs vanish where a name fills its column: `NIC11CPU Affinity`.
    lines = [_JOINED.sub(" ", line) if "NIC" in line else line for line in text.splitlines()]
    start = next((place for place, line in enumerate(lines) if _is_header(line)), None)
    if start is None:
        return None
    columns = _columns(lines[start])
    rows: dict[str, list[str]] = {}
    tails: dict[str, list[str]] = {}
    for line in lines[start + 1 :]:
        words = line.split()
        if not words or not _DEVICE.fullmatch(words[0]) or words[0] not in columns:
            continue
        cells = words[1 : 1 + len(columns)]
        if len(cells) < len(columns) or not all(_LINK.fullmatch(cell) for cell in cells):
            continue
        rows[words[0]], tails[words[0]] = cells, _tail(line, words, len(columns))
    devices = [name for name in columns if _DEVICE.fullmatch(name)]
    if not devices or not rows:
        return None
    pairs = _pairs(devices, columns, rows)
    named = {kind: [pair for pair, one in pairs.items() if one == kind] for kind in dict.fromkeys(pairs.values())}
    facts: Facts = {
        "devices": len(devices),
        "nics": len(columns) - len(devices),
        "pair_counts": dict(Counter(pairs.values())),
        "pairs": named if len(devices) <= _FEW else None,
    }
    if left_out := _left_out(pairs, devices):
        facts["left_out"] = left_out
    has_cpu, has_numa = "CPU Affinity" in lines[start], "NUMA Affinity" in lines[start]
    facts["cpu_affinity"] = {name: tail[0] for name, tail in tails.items() if has_cpu and tail}
    facts["numa"] = {name: tail[1] for name, tail in tails.items() if has_numa and len(tail) > 1}
    return facts


_P2P = re.compile(r"^[ \t]*GPU(\d{1,3})[ \t]+((?:(?:X|OK|CNS|GNS|TNS|DR|NS|U)[ \t]*)+)$", re.M)


def parse_p2p(text: str) -> Facts | None:
    """Return which pairs can read each other's memory, or None when there is no such matrix."""
    rows = {int(one[0]): one[1].split() for one in _P2P.findall(text)}
    if not any(cell not in ("X", "U") for cells in rows.values() for cell in cells):
        return None
    return {
        "pairs": {
            f"{row}-{column}": cells[column] == "OK"
            for row, cells in rows.items()
            for column in range(row + 1, len(cells))
        }
    }


def _is_header(line: str) -> bool:
    words = line.split()
    if len(words) < 2 or not _DEVICE.fullmatch(words[0]):
        return len(words) == 1 and bool(_DEVICE.fullmatch(words[0]))
    return "Affinity" in line or bool(_COLUMN.fullmatch(words[1]))


def _columns(header: str) -> list[str]:
    names = []
    for word in header.partition("CPU Affinity")[0].split():
        if not _COLUMN.fullmatch(word):
            break
        names.append(word)
    return names


def _tail(line: str, words: list[str], num_columns: int) -> list[str]:
    """Return CPU and NUMA affinity; tabs keep an empty one in its place, blanks cannot."""
    if "\t" in line:
        cells = [cell.strip() for cell in line.split("\t")]
        rest = cells[1 + num_columns :]
        if len(rest) >= 2 and any(rest):
            return rest
    return words[1 + num_columns :]


def _pairs(devices: list[str], columns: list[str], rows: dict[str, list[str]]) -> dict[str, str]:
    pairs = {}
    for place, one in enumerate(devices):
        for other in devices[place + 1 :]:
            if one in rows:
                pairs[f"{one}-{other}"] = rows[one][columns.index(other)]
    return pairs


def _left_out(pairs: dict[str, str], devices: list[str]) -> list[str]:
    """Return devices without any NVLink while all the others, three at least, are joined by it to each other."""
    joined = {pair: kind.startswith("NV") for pair, kind in pairs.items()}
    alone = [name for name in devices if not any(up for pair, up in joined.items() if name in pair.split("-"))]
    others = [up for pair, up in joined.items() if not set(alone) & set(pair.split("-"))]
    return alone if len(devices) - len(alone) >= 3 and others and all(others) else []


_NVLINK_GPU = re.compile(r"^\s*GPU (\d+): (.+?) \(UUID: ([^)]*)\)\s*$")
_LISTED_MIG = re.compile(r"[ \t]*MIG (\S+)[ \t]+Device[ \t]+(\d{1,3}): \(UUID: (MIG-[^)\s]*)\)[ \t]*")
_LISTED_GPU = re.compile(r"[ \t]*GPU (\d{1,3}): (\S.*?) \(UUID: (GPU-[^)\s]*)\)[ \t]*")
_NVLINK_LINK = re.compile(r"^\s*Link (\d+): (.+?)\s*$")


def parse_nvlink(text: str) -> Facts | None:
    """Return the active links of each GPU, or None when this is no such list."""
    if not re.search(r"^\s*Link \d+: |NVLink information|NvLink", text, re.M):
        return None
    gpus: list[Facts] = []
    for line in text.splitlines():
        if gpu := _NVLINK_GPU.match(line):
            gpus.append({"index": int(gpu[1]), "name": gpu[2], "links": 0, "speeds": []})
        elif not gpus:
            continue
        elif link := _NVLINK_LINK.match(line):
            if "GB/s" in link[2]:
                gpus[-1]["links"] += 1
                if link[2] not in gpus[-1]["speeds"]:
                    gpus[-1]["speeds"].append(link[2])
            elif link[2].startswith("Remote Device"):  # `-R`: a link that knows its other end is up
                gpus[-1]["links"] += 1
            elif "inactive" in link[2].lower() or "disabled" in link[2].lower():
                gpus[-1]["inactive"] = gpus[-1].get("inactive", 0) + 1
            else:  # counters of errors (`-e`) and the like say nothing of the state
                gpus[-1]["is_other"] = True
        elif line.strip() and not line.startswith(("\t", " ")):
            gpus[-1].setdefault("message", line.strip())
    return {"gpus": gpus} if gpus else None


def parse_list(text: str) -> Facts | None:
    """Return the GPUs of `nvidia-smi -L`, or None; the list of links has the same lines with links below them."""
    gpus: list[Facts] = []
    migs: list[Facts] = []
    for line in text.splitlines():
        if one := _LISTED_GPU.fullmatch(line):
            if any(gpu["uuid"] == one[3] and gpu["index"] == int(one[1]) for gpu in gpus):
                break  # the list once more
            gpus.append({"index": int(one[1]), "name": one[2], "uuid": one[3]})
        elif gpus and (one := _LISTED_MIG.fullmatch(line)):
            gpus[-1]["mig_mode"] = "Enabled"
            migs.append({"gpu": gpus[-1]["index"], "mig_dev": int(one[2]), "profile": one[1], "uuid": one[3]})
    if not gpus:
        return None
    return {"gpus": gpus, "mig_devices": migs} if migs else {"gpus": gpus}
