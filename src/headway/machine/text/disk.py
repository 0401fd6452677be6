"""Room on disks: `df` with any option, and quotas (`quota`, `lfs quota`, `repquota`, `xfs_quota`). As printed.

`df` is translated by the locale: English and Chinese are read by their words, others by their order.
"""

from __future__ import annotations

import re

from headway.machine.text.values import Facts, bytes_of, count_or_none

_DF_HEAD = re.compile(r"^[ \t]*(?:Filesystem|文件系统)[ \t]+(.*?)[ \t]+(?:Mounted on|挂载点)[ \t]*$", re.M)
_DF_ANY = re.compile(r"^[ \t]*[^\W\d]\S*(?:[ \t]+\S+){4,8}[ \t]*$(?=\n[^\n]*[ \t]\d{1,3}%[ \t]+/)", re.M)
"""The head in any other language: words above rows that end in a share and a mount."""
_DF_USUAL = ["Size", "Used", "Avail", "Use%"]
_DF_WORDS = {"Available": "Avail", "Capacity": "Use%", "容量": "Size", "大小": "Size", "已用": "Used", "可用": "Avail",
             "已用%": "Use%", "类型": "Type", "1K-块": "1K-blocks", "可用%": "Avail%"}  # fmt: skip
_DF_BLOCK = re.compile(r"(\d{0,6})([KMGTkB]?)B?-blocks")
_DF_STEP = {"B": 1, "": 1, "k": 1 << 10, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_SHARE = re.compile(r"\d{1,3}%|-")


def parse_df(text: str) -> Facts | None:
    """Return the file systems, or None when there is no such table; a later table (`df -i`) is under `more`."""
    heads = list(_DF_HEAD.finditer(text)) or list(_DF_ANY.finditer(text))[:1]
    tables = []
    for place, head in enumerate(heads):
        end = heads[place + 1].start() if place + 1 < len(heads) else len(text)
        columns = _DF_USUAL if head.re is _DF_ANY else [_DF_WORDS.get(word, word) for word in head[1].split()]
        if any(_df_name(name) in ("size", "inodes") for name in columns):
            tables.append((columns, _df_rows(text[head.end() : end], columns)))
    if not tables:
        return None
    columns, rows = tables[0]
    shm = next((row.get("size") for row in rows if row["mount"] == "/dev/shm"), None)
    facts: Facts = {"filesystems": rows, "dev_shm": shm}
    if block := _block(columns):
        facts["block_bytes"] = block
    if len(tables) > 1:
        facts["more"] = [{"filesystems": rows, "block_bytes": _block(columns)} for columns, rows in tables[1:]]
    return facts


def room_of(value: object, block: int | None) -> int | None:
    """Return the bytes of one cell of `df`; a bare number counts blocks."""
    word = str(value)
    return int(word[:18]) * block if block and word.isdecimal() else bytes_of(value)


def _df_rows(text: str, columns: list[str]) -> list[Facts]:
    names = [_df_name(name) for name in columns]
    rows: list[Facts] = []
    name: list[str] = []
    for line in text.splitlines():
        words = line.split()
        # A long name takes a line of its own, and its row begins with blanks.
        row = _df_row([*name, *words] if line[:1].isspace() else words, names)
        name = [] if row or words == ["..."] or any(_SHARE.fullmatch(word) for word in words) else words
        if row:
            rows.append(row)
    return rows


def _df_row(words: list[str], names: list[str]) -> Facts | None:
    """Return one row. It is anchored at the share before the mount: names on either side of it may have blanks."""
    last = next(
        (at for at in range(len(names), len(words) - 1) if _SHARE.fullmatch(words[at]) and words[at + 1][0] in "/<"),
        len(names) if len(words) > len(names) + 1 and _SHARE.fullmatch(words[len(names)]) else None,
    )
    if last is None:
        return None
    row: Facts = {"fs": " ".join(words[: last - len(names) + 1])}
    row |= dict(zip(names, words[last - len(names) + 1 :], strict=False))
    row["mount"] = " ".join(words[last + 1 :])
    for key in ("use_pct", "iuse_pct"):
        if key in row:
            row[key] = count_or_none(str(row[key]).rstrip("%"))
    return row


def _df_name(name: str) -> str:
    if name == "Inodes" or name == "Size" or _DF_BLOCK.fullmatch(name):
        return "inodes" if name == "Inodes" else "size"
    return {"Use%": "use_pct", "IUse%": "iuse_pct"}.get(name, name.lower())


def _block(columns: list[str]) -> int | None:
    """Return how many bytes a bare number stands for; None: sizes carry their letter."""
    found = next((one for name in columns if (one := _DF_BLOCK.fullmatch(name))), None)
    return int(found[1] or 1) * _DF_STEP[found[2]] if found else None


_QUOTA = re.compile(
    r"Disk quotas for|^\*\*\* Report for \w+ quotas on|^[ \t]*(?:User|Group|Project) quota on /|Block Limits\s+\|", re.M
)
_QUOTA_PLACE = re.compile(r"(?:quotas on device|(?:User|Group|Project) quota on) (\S+)")
_QUOTA_SIZE = re.compile(r"(\d{1,15}(?:\.\d{1,6})?)([kKMGTPE]?)i?B?\*?")
_QUOTA_WARNED = re.compile(r"\b\d\d \[[^\]\n]*\]")


def parse_quota(text: str) -> Facts | None:
    """Return the quotas with a limit: whose or where, how much is used and allowed, in bytes and files; or None."""
    if not _QUOTA.search(text):
        return None
    rows: list[Facts] = []
    place, name = None, ""
    for line in text.splitlines():
        if found := _QUOTA_PLACE.search(line):
            place, name = found[1], ""
            continue
        words = _QUOTA_WARNED.sub("-", line).split()
        if len(words) == 1 and "/" in words[0]:  # a long name takes a line of its own
            name = words[0]
            continue
        if words and not _QUOTA_SIZE.fullmatch(words[0]):
            name = words.pop(0)
        if name and (row := _quota_row(words)):
            rows.append({"place": place or name, "who": name if place else None, **row})
        name = ""
    return {"quotas": rows}


def _quota_row(words: list[str]) -> Facts | None:
    """Return used, soft and hard limit of bytes, then of files; what is between them (time of grace) is not a size."""
    middle = words.index("|") if "|" in words else len(words)  # GPFS counts what is in doubt as well
    halves = [
        [found for word in half if (found := _QUOTA_SIZE.fullmatch(word))] for half in (words[:middle], words[middle:])
    ]
    sizes = [*halves[0][:3], *halves[1]] if halves[1] else halves[0]
    if len(sizes) < 3:
        return None
    used, soft, hard = (int(float(one[1]) * _DF_STEP.get(one[2] or "K", 1 << 50)) for one in sizes[:3])
    row: Facts = {"used_bytes": used, "soft_bytes": soft or None, "hard_bytes": hard or None}
    if len(sizes) >= 6:
        files = [int(float(one[1]) * 1000 ** " kMGTPE".index(one[2].replace("K", "k") or " ")) for one in sizes[3:6]]
        row |= {"used_files": files[0], "soft_files": files[1] or None, "hard_files": files[2] or None}
    return row
