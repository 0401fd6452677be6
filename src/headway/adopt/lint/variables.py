"""One rule a variable. The facts behind them were read in, or measured on, torch 2.13 to 2.15."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from headway.adopt.finding import Finding, Verdict
from headway.adopt.lint.context import SETS_ADDRESS, SETS_RANKS, TORCHRUN_LIKE, Context
from headway.adopt.record import Setting
from headway.machine import list_visible

Rule = Callable[[Setting, Context], Finding | None]

_ALLOCATOR_KEYS = frozenset(
    {
        "backend",
        "max_split_size_mb",
        "max_non_split_rounding_mb",
        "roundup_power2_divisions",
        "garbage_collection_threshold",
        "expandable_segments",
        "pinned_use_cuda_host_register",
        "pinned_num_register_threads",
        "pinned_use_background_threads",
        "release_lock_on_cudamalloc",
        "graph_capture_record_stream_reuse",
        "expandable_segments_reserve",
        "throw_on_cudamalloc_oom",
        "per_process_memory_fraction",
        "pinned_reserve_segment_size_mb",
    }
)
_RENAMED = {
    "NCCL_ASYNC_ERROR_HANDLING": "TORCH_NCCL_ASYNC_ERROR_HANDLING",
    "NCCL_BLOCKING_WAIT": "TORCH_NCCL_BLOCKING_WAIT",
    "NCCL_DESYNC_DEBUG": "TORCH_NCCL_DESYNC_DEBUG",
    "TORCH_NCCL_TRACE_BUFFER_SIZE": "TORCH_FR_BUFFER_SIZE",
    "TORCH_NCCL_DEBUG_INFO_TEMP_FILE": "TORCH_FR_DUMP_TEMP_FILE",
}
_GONE: Mapping[str, tuple[int, int]] = {"TORCH_NCCL_AVOID_RECORD_STREAMS": (2, 15)}
"""Variables that torch no longer reads, and since when."""
_NOT_TORCH = {"TORCH_COMPILE": "TORCH_COMPILE_DISABLE=1"}
_TRANSPORTS = ("NCCL_P2P_DISABLE", "NCCL_IB_DISABLE", "NCCL_SHM_DISABLE")
_READS_ADDRESS = ("llamafactory", "swift", "mm_dist_train", "mm_slurm_train", "slurm", "python", "composer")
_PERSONAL = re.compile(r"(/home/[\w.-]+|/root|/Users/[\w.-]+)(?=/|$)")
_TRUE = ("1", "true", "True", "TRUE", "yes", "on")


def find(setting: Setting, verdict: Verdict, code: str, **facts: object) -> Finding:
    """Return a finding about a variable."""
    return Finding(verdict, code, setting.line, f"{setting.name}={setting.value}", {"name": setting.name, **facts})


def judge_variable(setting: Setting, context: Context) -> Finding:
    """Return the verdict on one variable; what no rule objects to is kept."""
    for rule in (_RULES.get(setting.name), _personal_path):
        found = rule(setting, context) if rule is not None else None
        if found is not None:
            return found
    return find(setting, "kept", "adopt/env-kept")


def _libuv(setting: Setting, context: Context) -> Finding:
    if setting.value not in ("0", "false", "False"):
        return find(setting, "no_effect", "adopt/env-default")
    return find(setting, "no_effect", "adopt/env-libuv")


def _agent_store(setting: Setting, context: Context) -> Finding:
    return find(setting, "no_effect", "adopt/env-agent-store")


def _allocator(setting: Setting, context: Context) -> Finding:
    other = {"PYTORCH_CUDA_ALLOC_CONF": "PYTORCH_ALLOC_CONF"}.get(setting.name, "PYTORCH_CUDA_ALLOC_CONF")
    if other in context.values:
        return find(setting, "contradictory", "adopt/env-two-allocators")
    options = dict(part.partition(":")[::2] for part in setting.value.split(",") if part)
    unknown = [key for key in options if key.strip() and key.strip() not in _ALLOCATOR_KEYS]
    if unknown and setting.is_known:
        return find(setting, "no_effect", "adopt/env-allocator-key", key=", ".join(unknown))
    if "expandable_segments" in options and "max_split_size_mb" in options:
        return find(setting, "no_effect", "adopt/env-allocator-mixed")
    if setting.name == "PYTORCH_CUDA_ALLOC_CONF" and context.torch is not None and context.torch >= (2, 9):
        return find(setting, "kept", "adopt/env-renamed", new="PYTORCH_ALLOC_CONF")
    return find(setting, "kept", "adopt/env-kept")


def _renamed(setting: Setting, context: Context) -> Finding:
    if setting.name == "TORCH_NCCL_TRACE_BUFFER_SIZE" and setting.value == "0":
        return find(setting, "harmful", "adopt/env-no-recorder")
    return find(setting, "kept", "adopt/env-renamed", new=_RENAMED[setting.name])


def _recorder(setting: Setting, context: Context) -> Finding | None:
    return find(setting, "harmful", "adopt/env-no-recorder") if setting.value == "0" else None


def _gone(setting: Setting, context: Context) -> Finding:
    since = _GONE[setting.name]
    version = f"{since[0]}.{since[1]}"
    if context.torch is not None and context.torch >= since:
        return find(setting, "no_effect", "adopt/env-gone", version=version)
    return find(setting, "kept", "adopt/env-going", version=version)


def _engine(setting: Setting, context: Context) -> Finding:
    if context.torch is not None and context.torch < (2, 14):
        return find(setting, "no_effect", "adopt/env-too-new", version="2.14")
    if context.torch is not None and context.torch >= (2, 15) and setting.value in _TRUE:
        return find(setting, "no_effect", "adopt/env-default")
    return find(setting, "kept", "adopt/env-nccl-engine")


def _not_torch(setting: Setting, context: Context) -> Finding:
    return find(setting, "no_effect", "adopt/env-not-torch", real=_NOT_TORCH[setting.name])


def _threads(setting: Setting, context: Context) -> Finding | None:
    # Torchrun sets it where it starts several ranks; deepspeed, mpirun and srun never do.
    counts = [one.nproc_per_node for one in context.launches if one.launcher != "other"]
    is_several = all(isinstance(count, int) and count > 1 for count in counts) and not context.by_launcher("deepspeed")
    if setting.value == "1" and is_several and context.is_all(*SETS_RANKS):
        return find(setting, "no_effect", "adopt/env-one-thread")
    ranks = max((one.nproc_per_node for one in context.launches if isinstance(one.nproc_per_node, int)), default=1)
    if setting.value.isdigit() and ranks > 1:
        total = int(setting.value) * ranks
        return find(setting, "kept", "adopt/env-threads", value=setting.value, ranks=ranks, total=total)
    return None


def _transport(setting: Setting, context: Context) -> Finding | None:
    return find(setting, "kept", "adopt/env-transport") if setting.value in _TRUE else None


def _blocking(setting: Setting, context: Context) -> Finding | None:
    return find(setting, "harmful", "adopt/env-blocking") if setting.value in _TRUE else None


def _loud(setting: Setting, context: Context) -> Finding | None:
    return find(setting, "kept", "adopt/env-loud") if setting.value.upper() in ("INFO", "TRACE", "DETAIL") else None


def _cuda_home(setting: Setting, context: Context) -> Finding:
    return find(setting, "no_effect", "adopt/env-cuda-home")


def _world_size(setting: Setting, context: Context) -> Finding | None:
    said = int(setting.value) if setting.value.isdigit() else None
    for launch in context.by_launcher(*SETS_RANKS):
        ranks = launch.nproc_per_node
        count = launch.nnodes if isinstance(launch.nnodes, int) else 1
        if said is not None and isinstance(ranks, int) and ranks * count != said:
            return find(setting, "contradictory", "adopt/env-world-size-lost", said=said, ranks=ranks * count)
    if context.is_plain_python:
        started = len(context.launches)
        # With an address of another machine the line is one of several, typed on each of them.
        is_alone = context.values.get("MASTER_ADDR", "localhost") in ("localhost", "127.0.0.1", "::1")
        if said is not None and started != said and is_alone:
            return find(setting, "contradictory", "adopt/env-world-size", said=said, ranks=started)
        return None
    return _overwritten(setting, context, *SETS_RANKS)


def _rank(setting: Setting, context: Context) -> Finding | None:
    if setting.name == "RANK" and context.by_launcher("llamafactory", "swift"):
        return find(setting, "no_effect", "adopt/env-rank-not-node-rank")
    if context.is_plain_python or not context.launches:
        alike = [launch for launch in context.launches if launch.env.get(setting.name) == setting.value]
        if len(alike) > 1 and context.values.get("WORLD_SIZE") != "1":
            return find(setting, "harmful", "adopt/env-one-rank-for-all", count=len(alike), value=setting.value)
        return None
    return _overwritten(setting, context, *SETS_RANKS)


def _address(setting: Setting, context: Context) -> Finding | None:
    readers = context.by_launcher(*_READS_ADDRESS)
    is_hidden = all(launch.launcher == "other" for launch in context.launches)
    if readers or is_hidden:
        # A script whose inside is not shown may well hand the port on.
        if setting.name in ("MASTER_PORT", "PORT") and setting.value.isdigit() and not _spans_nodes(context):
            return find(setting, "harmful", "adopt/fixed-port", port=setting.value)
        if readers:
            return None
    return _overwritten(setting, context, *SETS_ADDRESS) if setting.name != "PORT" else None


def _overwritten(setting: Setting, context: Context, *launchers: str) -> Finding | None:
    """Say that a variable is lost where all launchers set it; one that the text itself uses is not."""
    if setting.name in context.used or not context.is_all(*launchers):
        return None
    return find(setting, "no_effect", "adopt/env-overwritten")


def _spans_nodes(context: Context) -> bool:
    """Several nodes must agree on a port, so one has to be written down."""
    return any(launch.nnodes not in (None, 1) for launch in context.launches)


def _devices(setting: Setting, context: Context) -> Finding | None:
    devices = list_visible(setting.value)
    for launch in context.by_launcher(*TORCHRUN_LIKE, "mm_dist_train"):
        ranks = launch.nproc_per_node
        if launch.env.get(setting.name) == setting.value and isinstance(ranks, int) and setting.is_known:
            if ranks > len(devices):
                return find(setting, "contradictory", "adopt/env-too-few-devices", ranks=ranks, devices=len(devices))
            if 1 < ranks < len(devices):  # a single rank may spread its model over all of them
                return find(setting, "no_effect", "adopt/env-spare-devices", ranks=ranks, devices=len(devices))
    users = [launch for launch in context.launches if launch.env.get(setting.name) == setting.value]
    if len(devices) == 1 and any("LOCAL_RANK" in launch.env for launch in users) and len(context.launches) > 1:
        return find(setting, "harmful", "adopt/env-device-and-local-rank", device=setting.value)
    return None


def _personal_path(setting: Setting, context: Context) -> Finding | None:
    match = _PERSONAL.search(setting.value)
    return find(setting, "harmful", "adopt/env-personal-path", path=match[1]) if match else None


_RULES: Mapping[str, Rule] = {
    "USE_LIBUV": _libuv,
    "TORCHELASTIC_USE_AGENT_STORE": _agent_store,
    "PYTORCH_CUDA_ALLOC_CONF": _allocator,
    "PYTORCH_ALLOC_CONF": _allocator,
    **dict.fromkeys(_RENAMED, _renamed),
    "TORCH_FR_BUFFER_SIZE": _recorder,
    **dict.fromkeys(_GONE, _gone),
    "TORCH_DIST_USE_NCCL2": _engine,
    **dict.fromkeys(_NOT_TORCH, _not_torch),
    "OMP_NUM_THREADS": _threads,
    **dict.fromkeys(_TRANSPORTS, _transport),
    "CUDA_LAUNCH_BLOCKING": _blocking,
    "NCCL_DEBUG": _loud,
    "TORCH_DISTRIBUTED_DEBUG": _loud,
    "CUDA_HOME": _cuda_home,
    "WORLD_SIZE": _world_size,
    "RANK": _rank,
    "LOCAL_RANK": _rank,
    "MASTER_ADDR": _address,
    "MASTER_PORT": _address,
    "PORT": _address,
    "CUDA_VISIBLE_DEVICES": _devices,
}
KNOWN = frozenset(_RULES)
"""Variables that have a rule of their own."""
