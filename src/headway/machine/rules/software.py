"""Driver, CUDA, toolkit and framework against each other: what is too old, what does not fit, what misleads."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from headway.machine.record import Finding

_NATIVE = {
    352: "7.5", 367: "8.0", 375: "8.0", 384: "9.0", 390: "9.1", 396: "9.2",
    410: "10.0", 418: "10.1", 430: "10.2", 440: "10.2", 450: "11.0", 455: "11.1", 460: "11.2", 465: "11.3", 470: "11.4",
    495: "11.5", 510: "11.6", 515: "11.7", 520: "11.8", 525: "12.0", 530: "12.1", 535: "12.2", 545: "12.3", 550: "12.4",
    555: "12.5", 560: "12.6", 565: "12.7", 570: "12.8", 575: "12.9", 580: "13.0", 590: "13.1", 595: "13.2", 610: "13.3",
}  # fmt: skip
"""CUDA version each branch of the Linux driver brings."""
LEAST_CUDA = (12, 0)
"""torch 2.8 and later is built for CUDA 12.6 or newer; inside one major any driver of that major serves."""
_OLD_TOOLKIT = (11, 0)
_NUMPY_2 = (2, 3)
"""First torch whose wheels work with numpy 2; older ones warn and then fail in `tensor.numpy()`."""
_PYTHONS = (((3, 14), (2, 9)), ((3, 13), (2, 5)), ((3, 12), (2, 2)), ((3, 11), (2, 0)))
"""First torch with wheels for a Python."""
_NEWEST_GPUS = (10, 0)
_NEWEST_GPUS_CUDA = (12, 8)
_SHOWS_CUDA = 410
"""First driver whose tables say which CUDA it supports."""
_P2P_DRIVER = (550, 40)
"""Older drivers claim P2P between RTX 40 boards and deliver wrong data or hang."""


def parse_version(text: str | None) -> tuple[int, int] | None:
    """Return (major, minor) of `12.8` or `2.6.0+cu124`; None: not a version."""
    found = re.match(r"(\d{1,4})\.(\d{1,4})", text or "")
    return (int(found[1]), int(found[2])) if found else None


def judge_driver(
    driver: str | None, cuda: str | None, *, smi: str | None = None, has_gpus: bool = False
) -> Iterator[Finding]:
    """Yield what is wrong with a driver by itself: too old for any torch of today, without CUDA, or mixed."""
    major = (smi or "").partition(".")[0]
    if has_gpus and cuda is None and major.isdecimal() and int(major[:6]) >= _SHOWS_CUDA:
        yield Finding(code="machine/driver-no-cuda", level="warn", facts={"driver": driver or smi or "n/a"})
    # Drivers before 410 do not print which CUDA they serve; their branch tells.
    cuda = cuda or (native_cuda(driver) if (parse_version(driver) or (999, 0)) < (_SHOWS_CUDA, 0) else None)
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


def is_older(serves: str | None, built: str | None) -> bool:
    """Whether the driver is of an older major than torch's CUDA; inside one major CUDA is compatible."""
    majors = [(version or "").partition(".")[0] for version in (serves, built)]
    return all(major.isdecimal() for major in majors) and int(majors[0]) < int(majors[1])


def native_cuda(driver: str | None) -> str | None:
    """Return the CUDA version a driver of this branch brings by itself, or None for a branch we do not know."""
    major = (driver or "").partition(".")[0]
    if not major.isdecimal() or len(major) > 4:
        return None
    below = [branch for branch in _NATIVE if branch <= int(major)]
    return _NATIVE[max(below)] if below and int(major) - max(below) < 5 else None


def judge_toolkit(
    toolkit: str | None, *, serves: str | None = None, torch_cuda: str | None = None
) -> Iterator[Finding]:
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
        facts = {"toolkit": toolkit or "n/a", "cuda": torch_cuda or "n/a"}
        yield Finding(code="machine/toolkit-differs", level="note" if have[0] == built[0] else "warn", facts=facts)


def judge_pair(torch: str | None, vision: str | None) -> Iterator[Finding]:
    """Yield a torchvision that was compiled against another torch: it breaks with any minor but its own."""
    version, have = parse_version(torch), parse_version(vision)
    if version is None or have is None or version < (1, 0):
        return
    if version[0] == 2:
        want = (0, version[1] + 15)
    else:  # 1.2 and 1.3 share a minor of torchvision
        want = (0, version[1] + (2 if version < (1, 3) else 1))
    # Builds of one source tree carry the number to come, and torchvision's may lag behind torch's.
    is_near = "a0" in (torch or "") and have == (want[0], want[1] - 1)
    if have != want and not is_near:
        facts = {"torch": torch or "n/a", "vision": vision or "n/a", "want": f"{want[0]}.{want[1]}"}
        yield Finding(code="machine/vision-pair", level="warn", facts=facts)


def judge_company(torch: str | None, *, numpy: str | None, python: str | None) -> Iterator[Finding]:
    """Yield a numpy or a Python that this torch does not work with."""
    version = parse_version(torch)
    if version is None:
        return
    other = parse_version(numpy)
    if other is not None and other[0] >= 2 and version < _NUMPY_2:
        facts = {"torch": torch or "n/a", "numpy": numpy or "n/a"}
        yield Finding(code="machine/numpy-pair", level="warn", facts=facts)
    runs = parse_version(python)
    need = next((least for least_python, least in _PYTHONS if runs is not None and runs >= least_python), None)
    if need is not None and version < need:
        facts = {"torch": torch or "n/a", "python": python or "n/a", "need": f"{need[0]}.{need[1]}"}
        yield Finding(code="machine/python-pair", level="warn", facts=facts)


def judge_build(
    torch: str | None, torch_cuda: str | None, name: str | None, capability: tuple[int, int] | None
) -> Iterator[Finding]:
    """Yield a GPU for which this build of torch has no kernels."""
    built = parse_version(torch_cuda)
    if built is None or capability is None:
        return
    # pytorch/pytorch#157517 and #172352: wheels for CUDA 12.8 lost Pascal with torch 2.8 and Volta with 2.11.
    no_volta = built[0] >= 13 or (built >= _NEWEST_GPUS_CUDA and (parse_version(torch) or (0, 0)) >= (2, 11))
    least = (7, 5) if no_volta else (7, 0) if built >= _NEWEST_GPUS_CUDA else (5, 0)
    is_new = capability >= _NEWEST_GPUS and built < _NEWEST_GPUS_CUDA
    if capability < least or is_new:
        facts = {"name": name or "n/a", "capability": ".".join(map(str, capability)), "cuda": torch_cuda or "n/a"}
        facts["use"] = "cu128" if is_new else "cu126"
        # CUDA 13 has dropped what came before Turing, and no older CUDA knows Blackwell; between them it is the makers
        # of the wheel who choose, and another wheel may have chosen otherwise.
        is_sure = is_new or built[0] >= 13
        yield Finding(code="machine/gpu-not-in-build", level="stop" if is_sure else "warn", facts=facts)


def judge_p2p_driver(driver: str | None, names: Sequence[str]) -> Iterator[Finding]:
    """Yield several RTX 40 boards under a driver that lies about P2P."""
    ours = parse_version(driver)
    forties = [name for name in names if re.search(r"RTX 40\d\d", name)]
    if ours is not None and ours < _P2P_DRIVER and len(forties) > 1:
        facts = {"driver": driver or "n/a", "name": forties[0], "need": "550.40.07"}
        yield Finding(code="machine/p2p-driver", level="warn", facts=facts)


def judge_packages(torch_cuda: str | None, conda_toolkit: str | None) -> Iterator[Finding]:
    """Yield a CUDA of the environment's package manager that is not torch's."""
    built, beside = parse_version(torch_cuda), parse_version(conda_toolkit)
    if built and beside and built != beside:
        facts = {"cuda": torch_cuda or "n/a", "toolkit": conda_toolkit or "n/a"}
        yield Finding(code="machine/packages-disagree", level="warn", facts=facts)
