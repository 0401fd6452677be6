"""Environment variables that do nothing, or do harm. Read in torch 2.13; a newer one is taken to be alike."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from headway.machine.record import Finding, Level


class Rule(NamedTuple):
    """When a variable is worth a word."""

    name: str
    code: str
    when: str = r".*"
    """Pattern its whole value must match."""
    use: str = "n/a"
    """What to write instead."""


_ON = r"(?i)1|true|yes|on"
_RULES = (
    Rule("NCCL_ASYNC_ERROR_HANDLING", "machine/env-renamed", use="TORCH_NCCL_ASYNC_ERROR_HANDLING"),
    Rule("NCCL_BLOCKING_WAIT", "machine/env-renamed", use="TORCH_NCCL_BLOCKING_WAIT"),
    Rule("TF32_OVERRIDE", "machine/env-renamed", use="NVIDIA_TF32_OVERRIDE"),
    Rule("TORCH_COMPILE", "machine/env-renamed", use="train.compile"),
    Rule("TORCHELASTIC_USE_AGENT_STORE", "machine/env-unread"),
    Rule("TORCH_NCCL_AVOID_RECORD_STREAMS", "machine/env-unread"),
    Rule("TORCH_NCCL_BLOCKING_WAIT", "machine/env-debug", _ON),
    Rule("CUDA_LAUNCH_BLOCKING", "machine/env-debug", _ON),
    Rule("PYTORCH_NO_CUDA_MEMORY_CACHING", "machine/env-debug", _ON),
    Rule("TORCH_USE_CUDA_DSA", "machine/env-debug", _ON),
    Rule("TORCH_DISTRIBUTED_DEBUG", "machine/env-debug", r"DETAIL"),
    Rule("NCCL_DEBUG", "machine/env-debug", r"(?i)INFO|TRACE"),
    Rule("PYTHONDONTWRITEBYTECODE", "machine/env-bytecode", r".+"),
    Rule("NCCL_P2P_DISABLE", "machine/env-link-off", r"1"),
    Rule("NCCL_SHM_DISABLE", "machine/env-link-off", r"1"),
    Rule("NCCL_IB_DISABLE", "machine/env-link-off", r"1"),
    Rule("CUDA_DEVICE_ORDER", "machine/env-order", r"FASTEST_FIRST"),
    Rule("LD_PRELOAD", "machine/env-foreign", r".+"),
    Rule("PYTHONPATH", "machine/env-foreign", r".*(?:site|dist)-packages.*"),
    Rule("KMP_DUPLICATE_LIB_OK", "machine/env-foreign", _ON),
    Rule("NVIDIA_TF32_OVERRIDE", "machine/env-tf32", r"0"),
)
_LEVELS: dict[str, Level] = {"machine/env-foreign": "note", "machine/env-renamed": "note", "machine/env-unread": "note"}
_LEVELS |= {"machine/env-bytecode": "note", "machine/env-tf32": "note"}
_NEW_ALLOC, _OLD_ALLOC = "PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"
_ALLOC_KEYS = {
    "max_split_size_mb", "roundup_power2_divisions", "garbage_collection_threshold", "expandable_segments", "backend",
    "release_lock_on_cudamalloc", "pinned_use_cuda_host_register", "pinned_num_register_threads",
    "pinned_use_background_threads", "max_non_split_rounding_mb", "per_process_memory_fraction",
    "pinned_reserve_segment_size_mb", "graph_capture_record_stream_reuse", "throw_on_cudamalloc_oom",
    "expandable_segments_reserve",
}  # fmt: skip
NAMES = (*(rule.name for rule in _RULES), _NEW_ALLOC, _OLD_ALLOC)
"""Variables worth reading; of others not even the value is kept."""


def judge_env(environment: Mapping[str, str]) -> Iterator[Finding]:
    """Yield the variables that have no effect or a bad one."""
    for rule in _RULES:
        value = environment.get(rule.name)
        if value is not None and re.fullmatch(rule.when, value):
            facts = {"name": rule.name, "value": value[:60], "use": rule.use}
            yield Finding(code=rule.code, level=_LEVELS.get(rule.code, "warn"), facts=facts)
    yield from _judge_alloc(environment)


def _judge_alloc(environment: Mapping[str, str]) -> Iterator[Finding]:
    found = {name: environment[name] for name in (_NEW_ALLOC, _OLD_ALLOC) if environment.get(name)}
    if len(found) == 2:
        # Against torch's own documentation: measured with 2.13, the old name wins.
        facts = {"name": _NEW_ALLOC, "other": _OLD_ALLOC}
        yield Finding(code="machine/env-alloc-both", level="warn", facts=facts)
    for name, value in found.items():
        keys = re.findall(r"(?:^|,)\s*([A-Za-z_]\w*)\s*:", value)
        unknown = [key for key in keys if key not in _ALLOC_KEYS]
        if unknown:
            facts = {"name": name, "keys": ", ".join(unknown)}
            yield Finding(code="machine/env-alloc-key", level="warn", facts=facts)
