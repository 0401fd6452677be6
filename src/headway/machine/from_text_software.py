"""What recorded texts say about the software: torch, its neighbours, DeepSpeed and Accelerate."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from headway.machine.record import Finding
from headway.machine.rules.host import judge_shm
from headway.machine.rules.software import (
    is_older,
    judge_driver,
    judge_packages,
    judge_pair,
    judge_toolkit,
    native_cuda,
)
from headway.machine.text import Facts, bytes_of

_YES, _NO = ("True", "Yes"), ("False", "No")
"""torch printed the words until 1.6, Python's own since."""


def _judge_collect(facts: Facts) -> Iterator[Finding]:
    if facts.get("torch_cuda") in ("None", "N/A") and facts.get("torch_rocm") in ("None", "N/A", None):
        about = {"torch": facts.get("torch") or "n/a", "gpus": str(len(facts["gpus"])), "python": "python"}
        yield Finding(code="machine/torch-cpu-build", level="warn", facts=about)
    elif facts.get("cuda_available") in _NO:
        driver, torch_cuda = facts.get("driver"), facts.get("torch_cuda")
        serves = native_cuda(driver)
        if is_older(serves, torch_cuda):
            about = {"driver": driver, "serves": serves, "torch": facts.get("torch") or "n/a", "cuda": torch_cuda}
            yield Finding(code="machine/driver-too-old", level="warn", facts=about)
        yield Finding(code="machine/cuda-unavailable", level="warn", facts={"torch": facts.get("torch") or "n/a"})
    if facts.get("debug_build") in _YES:
        yield Finding(code="machine/torch-debug", level="note", facts={"torch": facts.get("torch") or "n/a"})
    yield from judge_pair(facts.get("torch"), facts.get("torchvision"))
    conda = next((one for one in facts["pip_conda_torch"] if one.startswith("conda: cudatoolkit ")), "")
    yield from judge_packages(facts.get("torch_cuda"), conda.removeprefix("conda: cudatoolkit ") or None)
    runtime = facts.get("cuda_runtime") or ""
    works = facts.get("cuda_available") in _YES
    if runtime[:1].isdecimal():
        yield from _as_notes(judge_toolkit(runtime, torch_cuda=facts.get("torch_cuda")), "machine/toolkit-old", works)
    # An old driver serves this torch; it is the next one that it will not serve.
    driver = facts.get("driver") or ""
    yield from _as_notes(judge_driver(driver, native_cuda(driver)), "machine/driver-old", works)
    if facts.get("is_wsl"):
        yield Finding(code="machine/wsl", level="note", facts={})


def _as_notes(found: Iterable[Finding], code: str, is_note: bool) -> Iterator[Finding]:
    """Yield the findings, those of one code as notes: what is old but works is no trouble yet."""
    for one in found:
        yield replace(one, level="note") if is_note and one.code == code else one


def _judge_ds(facts: Facts) -> Iterator[Finding]:
    if facts["incompatible_ops"]:
        yield Finding(code="machine/ops-missing", level="note", facts={"list": ", ".join(facts["incompatible_ops"])})
    yield from judge_toolkit(facts.get("nvcc"), torch_cuda=facts.get("torch_cuda"))
    yield from judge_shm(bytes_of(facts.get("dev_shm")))


def _judge_accelerate(facts: Facts) -> Iterator[Finding]:
    if facts.get("torch_gpu") == "False" and facts.get("accelerator") is None:
        yield Finding(code="machine/cuda-unavailable", level="warn", facts={"torch": facts.get("torch") or "n/a"})


SOFTWARE_JUDGES: dict[str, Any] = {  # Any: each takes the facts of its own kind
    "collect_env": _judge_collect,
    "ds_report": _judge_ds,
    "accelerate_env": _judge_accelerate,
}
