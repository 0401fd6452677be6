"""The machine around the GPUs: `df`, `free`, `lscpu`, `ulimit -a`. Values stay in the unit that was printed.

The first three are translated by the locale: English and Chinese are read by their words, others by their order.
`/proc/meminfo` is read as `free` is.
"""

from __future__ import annotations

import re

from headway.machine.dumps.values import Facts, bytes_of, count_or_none, text_or_none

_DF_HEAD = re.compile(r"^[ \t]*(?:Filesystem|文件系统)[ \t]+(.*?)[ \t]+(?:Mounted on|挂载点)[ \t]*$", re.M)
_DF_ANY = re.compile(r"^[ \t]*[^\W\d]\S*(?:[ \t]+\S+){4,8}[ \t]*$(?=\n[^\n]*[ \t]\d{1,3}%[ \t]+/)", re.M)
"""The head in any other language: words above rows that end in a share and a mount."""
_DF_USUAL = ["Size", "Used", "Avail", "Use%"]
_DF_WORDS = {"Available": "Avail", "Capacity": "Use%", "容量": "Size", "大小": "Size", "已用": "Used", "可用": "Avail",
             "已用%": "Use%", "类型": "Type", "1K-块": "1K-blocks", "可用%": "Avail%"}  # fmt: skip
_DF_SIZES = ("Size", "1K-blocks", "1024-blocks", "512-blocks", "1M-blocks", "1B-blocks", "Inodes")


def parse_df(text: str) -> Facts | None:
    """Return the file systems, or None when there is no such table."""
    head = _DF_HEAD.search(text) or _DF_ANY.search(text)
    if head is None:
        return None
    columns = _DF_USUAL if head.re is _DF_ANY else [_DF_WORDS.get(word, word) for word in head[1].split()]
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
    return {"Use%": "use_pct", "IUse%": "iuse_pct"}.get(name, name.lower())


_FREE_WORDS = {"buff/cache": "buff_cache", "总计": "total", "已用": "used", "空闲": "free", "共享": "shared",
               "缓冲/缓存": "buff_cache", "可用": "available"}  # fmt: skip


_FREE_HEAD = re.compile(r"^[ \t]+(?:total|总计|gesamt|всего|toplam)(?:[ \t]+\S+){2,6}[ \t]*$", re.M | re.I)
_FREE_ROWS = r"Mem|内存|Speicher|Mem\.|Memoria|Mémoire|Память|記憶體"
_MEMINFO = {
    "total": "MemTotal", "free": "MemFree", "available": "MemAvailable", "shared": "Shmem",
    "swap_total": "SwapTotal", "swap_free": "SwapFree",
}  # fmt: skip


def _parse_meminfo(text: str) -> Facts | None:
    """Return the same readings of `/proc/meminfo`, or None."""
    found = dict(re.findall(r"^[ \t]*(\w+):[ \t]+(\d{1,15}) kB[ \t]*$", text, re.M))
    if "MemTotal" not in found:
        return None
    return {name: int(found[key]) for name, key in _MEMINFO.items() if key in found} | {"unit": "KiB"}


def parse_free(text: str) -> Facts | None:
    """Return memory and swap of `free`, new or old layout, or None."""
    head = _FREE_HEAD.search(text)
    memory = re.search(rf"^[ \t]*(?:{_FREE_ROWS})[:：][ \t]*(\d.*?)[ \t]*$", text, re.M)
    if head is None or memory is None:
        return _parse_meminfo(text)
    names = [_FREE_WORDS.get(word, word) for word in head[0].split()]
    if "used" not in names:  # another language: the order is the same in all
        names = ["total", "used", "free", "shared", "buff_cache", "available"]
    values = dict(zip(names, memory[1].split(), strict=False))
    is_human = any(re.search(r"[A-Za-z]", value) for value in values.values())
    facts: Facts = {name: value if is_human else count_or_none(value) for name, value in values.items()}
    facts["unit"] = "human" if is_human else _unit(count_or_none(values.get("total")))
    if old := re.search(r"^-/\+ buffers/cache:\s+(\S+)\s+(\S+)", text, re.M):
        facts["used_without_cache"] = old[1] if is_human else count_or_none(old[1])
        facts["free_with_cache"] = old[2] if is_human else count_or_none(old[2])
    if swap := re.search(r"^[ \t]*(?:Swap:|交换[:：])[ \t]*(\S+)(?:[ \t]+(\S+))?(?:[ \t]+(\S+))?", text, re.M):
        for name, value in zip(("swap_total", "swap_used", "swap_free"), swap.groups(), strict=True):
            facts[name] = value if is_human else count_or_none(value)
    return facts


def memory_of(facts: Facts, name: str) -> int | None:
    """Return one reading of `free` in bytes; None: it is not there."""
    value = facts.get(name)
    scale = {"GiB": 1 << 30, "MiB": 1 << 20, "KiB": 1 << 10, "B": 1}.get(facts.get("unit") or "")
    return value * scale if isinstance(value, int) and scale else bytes_of(value)


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
    "cpus": r"CPU(?:\(s\))?",
    "threads_per_core": r"(?:Thread\(s\) per core|每个核的线程数)",
    "cores_per_socket": r"(?:Core\(s\) per (?:socket|cluster)|每个座的核数|每个簇的核数)",
    "sockets": r"(?:Socket\(s\)|座)",
    "numa_nodes": r"NUMA (?:node\(s\)|节点)",
}


def parse_lscpu(text: str) -> Facts | None:
    """Return the processor, or None when this is not of lscpu."""
    arch = re.search(r"^[ \t]*(?:Architecture|架构)[:：][ \t]*(\S+)", text, re.M)
    if arch is None or not re.search(r"^[ \t]*CPU(?:\(s\))?[:：]", text, re.M):
        return None
    facts: Facts = {"arch": arch[1]}
    for name, key in _LSCPU.items():
        found = re.search(rf"^[ \t]*{key}[:：][ \t]*(\S+)", text, re.M)
        facts[name] = count_or_none(found[1]) if found else None
    model = re.search(r"^[ \t]*(?:Model name|型号名称)[:：][ \t]*(.*?)[ \t]*$", text, re.M)
    facts["model"] = text_or_none(model[1]) if model else None
    facts["numa_cpus"] = dict(
        re.findall(r"^[ \t]*NUMA (?:node|节点)[ \t]*(\d+) CPU(?:\(s\))?[:：][ \t]*(\S+)", text, re.M)
    )
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
