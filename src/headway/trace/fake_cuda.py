"""Torch as a script on a GPU machine finds it, in a process that has neither the GPUs nor the other ranks.

Everything here changes torch permanently: the process is thrown away when the trace is done.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
import torch.utils.checkpoint
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils import _device

from headway.trace.fake_tensors import Pretence
from headway.trace.storages import Tracker

LEFT_OUT: set[str] = set()
"""What the script asked for and the trace does without: `compile`, `scaler`."""


def nothing(*_: Any, **__: Any) -> None:
    """Do nothing, whatever is asked."""


def returns(value: Any) -> Callable[..., Any]:
    """Return a function that answers always the same."""
    return lambda *_, **__: value


def _itself(first: Any = None, *_: Any, **__: Any) -> Any:
    """Return what was given; as a decorator with arguments, one that does."""
    return first if first is not None else _itself


class Ignored:
    """A stream, an event, a timer: takes every call of theirs, and is a context."""

    def __init__(self, *_: Any, **__: Any) -> None:
        self.device = torch.device("cuda", 0)

    def __enter__(self) -> Ignored:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def elapsed_time(self, *_: Any) -> float:
        """Return milliseconds."""
        return 1.0

    def query(self) -> bool:
        """Say that it is done."""
        return True

    def is_capturing(self) -> bool:
        """Say that no graph is made."""
        return False

    is_completed = query
    wait = record = synchronize = wait_stream = wait_event = record_event = nothing


def pretend_cuda(pretence: Pretence, tracker: Tracker, gpu: Mapping[str, Any]) -> None:
    """Answer for `torch.cuda` as the machine of the plan would."""
    cuda = torch.cuda
    major, minor = gpu["capability"]
    total = int(gpu["total_bytes"])
    shape = SimpleNamespace(
        name=gpu["name"],
        major=major,
        minor=minor,
        total_memory=total,
        multi_processor_count=gpu.get("processors", 108),
        is_integrated=False,
        is_multi_gpu_board=False,
        warp_size=32,
        max_threads_per_multi_processor=2048,
        L2_cache_size=40 << 20,
        gcnArchName="",
    )

    def held(*_: Any, **__: Any) -> int:
        return tracker.total

    constants = {
        "is_available": True,
        "is_initialized": True,
        "device_count": gpu["num"],
        "current_device": 0,
        "is_bf16_supported": major >= 8,
        "is_tf32_supported": major >= 8,
        "get_device_name": gpu["name"],
        "get_device_capability": (major, minor),
        "get_device_properties": shape,
        "get_arch_list": [f"sm_{major}{minor}"],
        "memory_summary": "",
        "utilization": 0,
        "temperature": 0,
        "power_draw": 0,
        "can_device_access_peer": True,
        "is_current_stream_capturing": False,
        "list_gpu_processes": "",
        "initial_seed": 0,
        "get_rng_state_all": [],
    }
    for name, value in constants.items():
        setattr(cuda, name, returns(value))
    for name in (
        *("set_device", "synchronize", "empty_cache", "init", "ipc_collect", "manual_seed", "manual_seed_all", "seed"),
        *("seed_all", "set_rng_state", "set_rng_state_all", "reset_peak_memory_stats", "set_stream", "_lazy_init"),
        *("reset_max_memory_allocated", "reset_accumulated_memory_stats", "reset_max_memory_cached", "cudart"),
        *("set_per_process_memory_fraction", "set_sync_debug_mode"),
    ):
        setattr(cuda, name, nothing)
    for name in ("memory_allocated", "max_memory_allocated", "memory_reserved", "max_memory_reserved"):
        setattr(cuda, name, held)
    cuda.memory_stats = lambda *_, **__: {"allocated_bytes.all.current": held(), "allocated_bytes.all.peak": held()}
    cuda.mem_get_info = lambda *_, **__: (max(0, total - held()), total)
    cuda.get_rng_state = lambda *_, **__: torch.zeros(16, dtype=torch.uint8)
    for name in (
        "Stream",
        "Event",
        "device",
        "device_of",
        "stream",
        "current_stream",
        "default_stream",
        "ExternalStream",
    ):
        setattr(cuda, name, Ignored)
    for name in ("range", "mark", "range_push", "range_pop", "range_start", "range_end"):
        setattr(cuda.nvtx, name, returns(contextlib.nullcontext()))
    accelerator = torch.accelerator
    accelerator.is_available = returns(True)
    accelerator.device_count = returns(gpu["num"])
    accelerator.current_accelerator = returns(torch.device("cuda"))
    accelerator.current_device_index = accelerator.current_device_idx = returns(0)
    accelerator.current_stream = accelerator.device_index = Ignored
    for name in ("set_device_index", "set_device_idx", "set_stream", "synchronize", "empty_cache"):
        setattr(accelerator, name, nothing)
    torch.set_default_tensor_type = lambda kind: torch.set_default_device("cuda") if "cuda" in str(kind) else None
    # `Devices` reads the default device itself; torch's own mode would ask for CUDA behind it.
    _device.DeviceContext.__torch_function__ = lambda _, func, types, args=(), kwargs=None: func(
        *args, **(kwargs or {})
    )
    real = torch.Generator

    class Generator(real):  # type: ignore[misc,valid-type]
        """A generator of the host, wherever it was asked for."""

        def __new__(cls, *_: Any, **__: Any) -> Any:
            """Leave the device out."""
            return real.__new__(cls)

        def set_state(self, state: Tensor) -> Any:
            """Continue as before where the state went over the device and is lost."""
            return self if isinstance(state, FakeTensor) else super().set_state(state)

        device = property(returns(torch.device("cuda", 0)))

    set_state = torch.set_rng_state
    torch.set_rng_state = lambda state: None if isinstance(state, FakeTensor) else set_state(state)
    torch.Generator = Generator


def pretend_arithmetic(*, has_gpus: bool) -> None:
    """Cast on the CPU as a script asks it of CUDA; leave scalers and compilers out."""
    autocast = torch.amp.autocast_mode.autocast
    begin = autocast.__init__

    def start(
        self: Any, device_type: str = "cuda", dtype: Any = None, enabled: bool = True, cache_enabled: Any = None
    ) -> None:
        if device_type == "cuda" and has_gpus:
            device_type, dtype = "cpu", torch.bfloat16  # fp16 has no CPU kernels everywhere; bf16 is as wide
        begin(self, device_type, dtype=dtype, enabled=enabled, cache_enabled=cache_enabled)

    scaler = torch.amp.grad_scaler.GradScaler
    begin_scaler = scaler.__init__

    def start_scaler(self: Any, *_: Any, **__: Any) -> None:
        begin_scaler(self, "cpu", enabled=False)

    autocast.__init__ = start
    scaler.__init__ = start_scaler
    is_enabled, of_type = torch.is_autocast_enabled, torch.get_autocast_dtype
    if has_gpus:
        torch.is_autocast_enabled = lambda kind="cpu": is_enabled("cpu" if kind == "cuda" else kind)
        torch.get_autocast_dtype = lambda kind: of_type("cpu" if kind == "cuda" else kind)

    def compile_nothing(first: Any = None, *_: Any, **__: Any) -> Any:
        LEFT_OUT.add("compile")
        return first if first is not None else _itself

    torch.compile = compile_nothing
    nn.Module.compile = compile_nothing
    torch.jit.script = _itself
    torch.jit.trace = _itself


def pretend_modules(pretence: Pretence) -> None:
    """Make weights fake from the start, and let modules move as real ones do."""
    make = nn.Parameter.__new__
    register = nn.Module.register_buffer

    def new(cls: Any, data: Any = None, requires_grad: bool = True) -> Any:
        if isinstance(data, Tensor):
            data = pretence.make_fake(data)
        return make(cls, data, requires_grad)

    def register_fake(self: Any, name: str, tensor: Any, persistent: bool = True) -> None:
        register(self, name, pretence.make_fake(tensor) if isinstance(tensor, Tensor) else tensor, persistent)

    def apply(self: Any, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Any:
        # Torch swaps fake weights instead of setting their data, and cannot while a tracker looks at them.
        for child in self.children() if recurse else ():
            child._apply(fn)
        before, pretence.is_moving_weights = pretence.is_moving_weights, True
        with torch.no_grad():
            for param in (one for one in self._parameters.values() if one is not None):
                param.data = fn(param.detach())
                if param.grad is not None:
                    param.grad.data = fn(param.grad)
            for name, held in self._buffers.items():
                if held is not None:
                    self._buffers[name] = fn(held)
        pretence.is_moving_weights = before
        return self

    move = nn.Module.to

    def to(self: Any, *args: Any, **kwargs: Any) -> Any:
        # Torch without CUDA does not know what a bare number means.
        if args and type(args[0]) is int:
            args = (f"cuda:{args[0]}", *args[1:])
        if type(kwargs.get("device")) is int:
            kwargs["device"] = f"cuda:{kwargs['device']}"
        return move(self, *args, **kwargs)

    nn.Module.to = to
    nn.Parameter.__new__ = staticmethod(new)
    nn.Module.register_buffer = register_fake
    nn.Module._apply = apply


def pretend_optimizers() -> None:
    """Choose the kernels that torch chooses on a GPU: all weights of one type together."""
    for name, module in list(sys.modules.items()):
        if name.startswith("torch.optim.") and hasattr(module, "_default_to_fused_or_foreach"):
            module.__dict__["_default_to_fused_or_foreach"] = returns((False, True))


def pretend_checkpoints() -> None:
    """Compare what is recomputed by shape and type alone: inside of torch's own functions a device is not disguised."""
    checks = torch.utils.checkpoint._allowed_determinism_checks_to_fns
    checks["default"] = lambda tensor: {"shape": tensor.shape, "dtype": tensor.dtype}


def pretend_loader() -> None:
    """Load in this process: a worker would not know of the fake devices."""
    loader = torch.utils.data.DataLoader
    begin = loader.__init__

    def start(self: Any, *args: Any, **kwargs: Any) -> None:
        args = tuple(0 if place == 5 else False if place == 7 else one for place, one in enumerate(args))
        gone = ("prefetch_factor", "persistent_workers", "multiprocessing_context", "timeout", "worker_init_fn")
        kwargs = {key: value for key, value in kwargs.items() if key not in gone}
        for key, value in (("num_workers", 0), ("pin_memory", False)):
            if key in kwargs:
                kwargs[key] = value
        begin(self, *args, **kwargs)

    loader.__init__ = start


def forbid_saving(scratch: Path) -> None:
    """Keep a trace from writing what it does not have: weights."""
    torch.save = nothing
    torch.jit.save = nothing
    checkpoint = importlib.import_module("torch.distributed.checkpoint")
    checkpoint.__dict__.update(save=nothing, async_save=nothing)
    with contextlib.suppress(ImportError):
        files = importlib.import_module("safetensors.torch")
        files.__dict__.update(save_file=nothing, save_model=nothing)
    os.environ.update(
        WANDB_MODE="disabled",
        MLFLOW_TRACKING_URI=f"file://{scratch}/mlruns",
        COMET_MODE="DISABLED",
        SWANLAB_MODE="disabled",
    )
