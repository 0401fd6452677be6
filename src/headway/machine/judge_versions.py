"""Driver, CUDA, toolkit and framework against each other: what is too old, what does not fit, what misleads."""

from __future__ import annotations

import re
from collections.abc import Iterator

from headway.machine.record import Finding

_NATIVE = {
    410: "10.0", 418: "10.1", 430: "10.2", 440: "10.2", 450: "11.0", 455: "11.1", 460: "11.2", 465: "11.3", 470: "11.4",
    495: "11.5", 510: "11.6", 515: "11.7", 520: "11.8", 525: "12.0", 530: "12.1", 535: "12.2", 545: "12.3", 550: "12.4",
    555: "12.5", 560: "12.6", 565: "12.7", 570: "12.8", 575: "12.9", 580: "13.0", 590: "13.1", 595: "13.2", 610: "13.3",
}  # fmt: skip
"""CUDA version each branch of the Linux driver brings."""
LEAST_CUDA = (12, 0)
"""torch 2.8 and later is built for CUDA 12.6 or newer; inside one major any driver of that major serves."""
_OLD_TOOLKIT = (11, 0)
VISION_OF = {
    (1, 7): "0.8", (1, 8): "0.9", (1, 9): "0.10", (1, 10): "0.11", (1, 11): "0.12", (1, 12): "0.13", (1, 13): "0.14",
    (2, 0): "0.15", (2, 1): "0.16", (2, 2): "0.17", (2, 3): "0.18", (2, 4): "0.19", (2, 5): "0.20", (2, 6): "0.21",
    (2, 7): "0.22", (2, 8): "0.23", (2, 9): "0.24", (2, 10): "0.25", (2, 11): "0.26", (2, 12): "0.27", (2, 13): "0.28",
}  # fmt: skip
"""torchvision is compiled against one minor version of torch and breaks with any other."""
_FAULTY_TORCH = {"2.0.0": "2.0.1", "2.1.0": "2.1.2", "2.3.0": "2.3.1", "2.6.0": "2.7.1"}
"""Releases with a fault in training that the named one repairs (wrong or leaking distributed or compile paths)."""


def parse_version(text: str | None) -> tuple[int, int] | None:
    """Return (major, minor) of `12.8` or `2.6.0+cu124`; None: not a version."""
    found = re.match(r"(\d{1,4})\.(\d{1,4})", text or "")
    return (int(found[1]), int(found[2])) if found else None


def judge_driver(driver: str | None, cuda: str | None, *, smi: str | None = None) -> Iterator[Finding]:
    """Yield what is wrong with a driver by itself: too old for any current torch, or mixed with other parts."""
    serves = parse_version(cuda)
    if serves is not None and serves < LEAST_CUDA:
        facts = {"driver": driver or "n/a", "serves": cuda or "n/a", "need": ".".join(map(str, LEAST_CUDA))}
        yield Finding(code="machine/driver-old", level="warn", facts=facts)
    native = native_cuda(driver)
    if serves is not None and native is not None and serves > (parse_version(native) or serves):
        facts = {"driver": driver or "n/a", "shown": cuda or "n/a", "native": native}
        yield Finding(code="machine/cuda-compat", level="note", facts=facts)
    if smi and driver and smi != driver and smi.split(".")[0] != driver.split(".")[0]:
        facts = {"smi": smi, "driver": driver}
        yield Finding(code="machine/smi-differs", level="note", facts=facts)


def native_cuda(driver: str | None) -> str | None:
    """Return the CUDA version a driver of this branch brings by itself, or None for a branch we do not know."""
    major = (driver or "").partition(".")[0]
    if not major.isdecimal() or len(major) > 4:
        return None
    below = [branch for branch in _NATIVE if branch <= int(major)]
    return _NATIVE[max(below)] if below and int(major) - max(below) < 5 else None


def judge_toolkit(toolkit: str | None, *, serves: str | None = None, torch_cuda: str | None = None) -> Iterator[Finding]:
    """Yield what a CUDA toolkit beside the driver and torch means for extensions compiled here."""
    have = parse_version(toolkit)
    if have is None:
        return
    least = parse_version(serves)
    built = parse_version(torch_cuda)
    if have < _OLD_TOOLKIT:
        yield Finding(code="machine/toolkit-old", level="warn", facts={"toolkit": toolkit or "n/a"})
    if least is not None and have > least:
        facts = {"toolkit": toolkit or "n/a", "serves": serves or "n/a"}
        yield Finding(code="machine/toolkit-newer", level="warn", facts=facts)
    if built is not None and have != built:
        # Extensions may be built across minors of one major; across majors they are refused.
        level = "note" if have[0] == built[0] and have > built else "warn"
        facts = {"toolkit": toolkit or "n/a", "cuda": torch_cuda or "n/a"}
        yield Finding(code="machine/toolkit-differs", level="warn" if level == "warn" else "note", facts=facts)


def judge_pair(torch: str | None, vision: str | None) -> Iterator[Finding]:
    """Yield a torchvision that was compiled against another torch, and a torch with a known fault."""
    version = parse_version(torch)
    want = VISION_OF.get(version) if version else None
    have = parse_version(vision)
    if want and have and ".".join(map(str, have)) != want:
        facts = {"torch": torch or "n/a", "vision": vision or "n/a", "want": want}
        yield Finding(code="machine/vision-pair", level="warn", facts=facts)
    plain = (torch or "").partition("+")[0]
    if plain in _FAULTY_TORCH:
        facts = {"torch": torch or "n/a", "better": _FAULTY_TORCH[plain]}
        yield Finding(code="machine/torch-faulty", level="note", facts=facts)


def judge_packages(torch_cuda: str | None, conda_toolkit: str | None) -> Iterator[Finding]:
    """Yield a CUDA of the environment's package manager that is not torch's."""
    built, beside = parse_version(torch_cuda), parse_version(conda_toolkit)
    if built and beside and built != beside:
        facts = {"cuda": torch_cuda or "n/a", "toolkit": conda_toolkit or "n/a"}
        yield Finding(code="machine/packages-disagree", level="warn", facts=facts)
