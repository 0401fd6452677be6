"""The XML of `nvidia-smi -q -x`, written out as the long form it stands for: what is known of that holds for both.

Read tag by tag, not as a document: a paste is often cut, and a text from elsewhere should not define entities.
"""

from __future__ import annotations

import re

_TAG = re.compile(r"<(/?)(\w{1,80})((?:\s[^<>]*?)?)(/?)>([^<]*)")
_ID = re.compile(r"\bid=\"([0-9A-Fa-f:.]+)\"")
_TITLES = {
    "uuid": "GPU UUID", "gpu_util": "Gpu", "gpu_temp": "GPU Current Temp",
    "instant_power_draw": "Instantaneous Power Draw", "sm_clock": "SM",
    "pci_gpu_link_info": "GPU Link Info", "link_widths": "Link Width",
    "current_link_width": "Current", "max_link_width": "Max", "current_mig": "Current", "pending_mig": "Pending",
    "current_ecc": "Current", "pending_ecc": "Pending", "current_dm": "Current", "pending_dm": "Pending",
    "remapped_row_corr": "Correctable Error", "remapped_row_unc": "Uncorrectable Error",
    "remapped_row_pending": "Pending", "remapped_row_failure": "Remapping Failure Occurred",
    "pending_blacklist": "Pending Page Blacklist", "pending_retirement": "Pending Page Blacklist",
    "pid": "Process ID", "process_name": "Name", "used_memory": "Used GPU Memory",
}  # fmt: skip
_COUNTS = {"multiple_single_bit_retirement": "Single Bit ECC", "double_bit_retirement": "Double Bit ECC"}
_SHORT = {"fb", "gpu", "ecc", "mig", "pci", "hw", "sw", "cuda", "kmd", "umd"}


def written_out(text: str) -> str:
    """Return the long form of a log in XML; other texts stay as they are."""
    start = text.find("<nvidia_smi_log")
    if start < 0:
        return text
    lines: list[str] = []
    open_tags: list[str] = []
    for closes, tag, attributes, is_empty, value in _TAG.findall(text[start:]):
        if closes:
            if tag in open_tags:  # a cut may have taken the end of others
                del open_tags[len(open_tags) - 1 - open_tags[::-1].index(tag) :]
            continue
        known = _ID.search(attributes) if tag == "gpu" else None
        if known:
            open_tags = ["nvidia_smi_log"]
            lines.append(f"GPU {known[1]}")
        elif open_tags:
            lines.append(_line(tag, value.strip(), open_tags))
        if not is_empty:
            open_tags.append(tag)
    return "\n".join(lines)


def _line(tag: str, value: str, above: list[str]) -> str:
    if tag == "retired_count" and above[-1] in _COUNTS:
        return f"{'    ' * (len(above) - 2)}{_COUNTS[above[-1]]} : {value}"
    bare = re.sub(r"^clocks_(?:event|throttle)_reason_", "", tag)
    title = _TITLES.get(bare) or " ".join(
        word.upper() if word in _SHORT else word.capitalize() for word in bare.split("_")
    )
    return f"{'    ' * (len(above) - 1)}{title}{f' : {value}' if value else ''}"
