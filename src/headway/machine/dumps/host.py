"""The machine around the GPUs: `df`, `free`, `lscpu`, `ulimit -a`. Values stay in the unit that was printed."""

from __future__ import annotations

import re

from headway.machine.dumps.values import Facts, count_or_none, text_or_none

_DF_HEAD = re.compile(r"^Filesystem\s+(.*?)\s+Mounted on\s*$", re.M)
_DF_SIZES = ("Size", "1K-blocks", "1024-blocks", "512-blocks", "1M-blocks", "1B-blocks", "Inodes")


def parse_df(text: str) -> Facts | None:
    """Return the file systems, or None when there is no such table."""
    head = _DF_HEAD.search(text)
    if head is None:
        return None
    columns = head[1].replace("Available", "Avail").replace("Capacity", "Use%").split()
    if not columns or not any(name in _DF_SIZES for name in columns):
        return None
    names = ["fs", *(_df_name(name) for name in columns)]
    rows: list[Facts] = []
    words: list[str] = []
    for line in text[head.end() :].splitlines():
        words += line.split()
        if len(words) == 1:  # a long name takes a line of its own
            continue
        if len(words) > len(names) and re.fullmatch(r"\d+%|-", words[len(names) - 1]):
            row: Facts = dict(zip(names, words, strict=False))
            row["mount"] = " ".join(words[len(names) :])
            for key in ("use_pct", "iuse_pct"):
                if key in row:
                    row[key] = count_or_none(str(row[key]).rstrip("%"))
            rows.append(row)
        words = []
    shm = next((row.get("size") for row in rows if row["mount"] == "/dev/shm"), None)
    return {"filesystems": rows, "dev_shm": shm}


def _df_name(name: str) -> str:
    if name in _DF_SIZES:
        return "inodes" if name == "Inodes" else "size"
    return {"Use%": "use_pct", "IUse%": "iuse_pct", "Avail": "avail", "Used": "used"}.get(name, name.lower())


def parse_free(text: str) -> Facts | None:
    """Return memory and swap of `free`, new or old layout, or None."""
    head = re.search(r"^\s+total\s+used\s+free\b.*$", text, re.M)
    memory = re.search(r"^Mem:\s+(.*?)\s*$", text, re.M)
    if head is None or memory is None:
        return None
    values = dict(zip(head[0].replace("buff/cache", "buff_cache").split(), memory[1].split(), strict=False))
    is_human = any(re.search(r"[A-Za-z]", value) for value in values.values())
    facts: Facts = {name: value if is_human else count_or_none(value) for name, value in values.items()}
    facts["unit"] = "human" if is_human else _unit(count_or_none(values.get("total")))
    if old := re.search(r"^-/\+ buffers/cache:\s+(\S+)\s+(\S+)", text, re.M):
        facts["used_without_cache"] = old[1] if is_human else count_or_none(old[1])
        facts["free_with_cache"] = old[2] if is_human else count_or_none(old[2])
    if swap := re.search(r"^Swap:\s+(\S+)(?:\s+(\S+))?(?:\s+(\S+))?", text, re.M):
        for name, value in zip(("swap_total", "swap_used", "swap_free"), swap.groups(), strict=True):
            facts[name] = value if is_human else count_or_none(value)
    return facts


def _unit(total: int | None) -> str | None:
    """Return the unit a total was most likely printed in: machines have between 1 GiB and a few TiB."""
    if total is None:
        return None
    if total >= 1 << 34:
        return "B"
    if total >= 500_000:
        return "KiB"
    return "MiB" if total >= 1500 else "GiB"


_LSCPU = {
    "cpus": "CPU(s)",
    "threads_per_core": "Thread(s) per core",
    "cores_per_socket": "Core(s) per socket",
    "sockets": "Socket(s)",
    "numa_nodes": "NUMA node(s)",
}


def parse_lscpu(text: str) -> Facts | None:
    """Return the processor, or None when this is not of lscpu."""
    arch = re.search(r"^\s*Architecture:[ \t]+(\S+)", text, re.M)
    if arch is None or not re.search(r"^\s*CPU\(s\):", text, re.M):
        return None
    facts: Facts = {"arch": arch[1]}
    for name, key in _LSCPU.items():
        found = re.search(rf"^\s*{re.escape(key)}:[ \t]*(\S+)", text, re.M)
        facts[name] = count_or_none(found[1]) if found else None
    model = re.search(r"^\s*Model name:[ \t]*(.*?)\s*$", text, re.M)
    facts["model"] = text_or_none(model[1]) if model else None
    facts["numa_cpus"] = dict(re.findall(r"^\s*NUMA node(\d+) CPU\(s\):[ \t]*(\S+)", text, re.M))
    return facts


_BASH_LIMIT = re.compile(r"^.+?\((?:[^()]*, )?-(\w)\)\s+(\S+)\s*$", re.M)
_ZSH_LIMIT = re.compile(r"^-(\w): [^\n]*?\s(\S+)\s*$", re.M)
_NAMED_LIMITS = {"open_files": "n", "max_locked_memory_kb": "l", "max_user_processes": "u", "stack_kb": "s"}


def parse_ulimit(text: str) -> Facts | None:
    """Return the limits by their letter and the four that matter by name, or None."""
    found = [*_BASH_LIMIT.findall(text), *_ZSH_LIMIT.findall(text)]
    limits = {flag: int(value[:18]) if value.isdecimal() else value for flag, value in found}
    if len(limits) < 3 or "n" not in limits:
        return None
    return {"by_flag": limits, **{name: limits[flag] for name, flag in _NAMED_LIMITS.items() if flag in limits}}
