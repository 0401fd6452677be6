"""The machine around the GPUs: `free`, `lscpu`, `ulimit -a`. Values stay in the unit that was printed.

The first two are translated by the locale: English and Chinese are read by their words, others by their order.
`/proc/meminfo` is read as `free` is.
"""

from __future__ import annotations

import re

from headway.machine.text.values import Facts, bytes_of, count_or_none, text_or_none

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
    found = dict(re.findall(r"^[ \t]*(\w+):[ \t]+(\d{1,15}) kB\b", text, re.M))
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
    facts["unit"] = "human" if is_human else _asked(text) or _unit(count_or_none(values.get("total")))
    if old := re.search(r"^-/\+ buffers/cache:\s+(\S+)\s+(\S+)", text, re.M):
        facts["used_without_cache"] = old[1] if is_human else count_or_none(old[1])
        facts["free_with_cache"] = old[2] if is_human else count_or_none(old[2])
    if swap := re.search(r"^[ \t]*(?:Swap:|交换[:：])[ \t]*(\S+)(?:[ \t]+(\S+))?(?:[ \t]+(\S+))?", text, re.M):
        for name, value in zip(("swap_total", "swap_used", "swap_free"), swap.groups(), strict=True):
            facts[name] = value if is_human else count_or_none(value)
    return facts


def _asked(text: str) -> str | None:
    """Return the unit a command above the table asks for."""
    found = re.search(r"(?:^|[$#%>][ \t]*)free[ \t]+-\w*([bkmg])\w*[ \t]*$", text, re.M)
    return {"b": "B", "k": "KiB", "m": "MiB", "g": "GiB"}[found[1]] if found else None


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
_ZSH_LIMIT = re.compile(r"^[ \t]*-(\w): [^\n]*?\s(\S+)\s*$", re.M)
_WORD_LIMITS = {
    "n": r"nofiles?(?:\(descriptors\))?|descriptors|NOFILE[ \t]+max number of open files|Max open files",
    "l": r"locked ?mem(?:ory)?\(kbytes\)|memorylocked|MEMLOCK[ \t]+max locked[\w -]*|Max locked memory",
    "u": r"process(?:es)?|maxproc|NPROC[ \t]+max number of processes|Max processes",
    "s": r"stack\(kbytes\)|stacksize|STACK[ \t]+max stack size|Max stack size",
    "f": r"file\(blocks\)|filesize|FSIZE[ \t]+max file size|Max file size",
    "t": r"time\(seconds\)|cputime|CPU[ \t]+CPU time|Max cpu time",
}
"""`ulimit -a` of dash and ksh, `limit` of zsh and csh, `prlimit`, `/proc/self/limits`: by name, without letters."""
_IN_BYTES = re.compile(r"^[ \t]*(?:Max (?:locked memory|stack size)|MEMLOCK|STACK)\b", re.M)
_NAMED_LIMITS = {"open_files": "n", "max_locked_memory_kb": "l", "max_user_processes": "u", "stack_kb": "s"}


def parse_ulimit(text: str) -> Facts | None:
    """Return the limits by their letter and the four that matter by name, or None."""
    found = [*_BASH_LIMIT.findall(text), *_ZSH_LIMIT.findall(text)]
    limits = {flag: int(value[:18]) if value.isdecimal() else value for flag, value in found}
    if "n" not in limits:
        limits = _limits_by_word(text)
    if len(limits) < 3 or "n" not in limits:
        return None
    return {"by_flag": limits, **{name: limits[flag] for name, flag in _NAMED_LIMITS.items() if flag in limits}}


def _limits_by_word(text: str) -> dict[str, int | str]:
    limits: dict[str, int | str] = {}
    is_bytes = bool(_IN_BYTES.search(text))
    for flag, names in _WORD_LIMITS.items():
        found = re.search(rf"^[ \t]*(?:{names})[ \t]+(\d{{1,18}}|unlimited)(kB|MB)?\b", text, re.M)
        if found is None:
            continue
        scale = 1024 if found[2] == "MB" else 1
        value: int | str = int(found[1]) * scale if found[1].isdecimal() else found[1]
        if is_bytes and flag in "ls" and isinstance(value, int):
            value //= 1024
        limits[flag] = value
    return limits
