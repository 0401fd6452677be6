"""What one step of a real model would hold and do, found without a GPU, without weights and without time.

    python -m headway.engine.trace < question.json > answer.json

The model, its loss, backward and the optimizer of the engine run on fake tensors: shapes and types without memory. A
tracker follows every storage from its birth to its end. Runs in a process of its own, as torch may end it: a question
on stdin, an answer on stdout, so the planner never imports torch.
"""

from __future__ import annotations

import json
import sys
import time
import traceback
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensorMode,
    UnsupportedOperatorException,
)
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_iter
from torch.utils.flop_counter import flop_registry

from headway.engine.ema import Ema
from headway.engine.optim import Muon, make_optimizers
from headway.engine.parallel import Ranks
from headway.engine.precision import Precision
from headway.engine.standins import StandIns
from headway.engine.task import Task
from headway.engine.worker import build_model, load_task
from headway.errors import HeadwayError
from headway.plan import Plan

_UNTRACEABLE = (DataDependentOutputException, DynamicOutputShapeException, UnsupportedOperatorException, RuntimeError)
"""What a fake tensor answers when its value is asked for."""
_CUDA_IN_FP32 = {
    torch.nn.functional.layer_norm,
    torch.nn.functional.group_norm,
    torch.nn.functional.softmax,
    torch.nn.functional.log_softmax,
    torch.softmax,
    torch.log_softmax,
    torch.Tensor.softmax,
    torch.Tensor.log_softmax,
    torch.exp,
    torch.Tensor.exp,
    torch.pow,
    torch.Tensor.pow,
    torch.norm,
    torch.cumsum,
    torch.Tensor.cumsum,
}
"""What CUDA's autocast runs in fp32 and the CPU's does not."""


class CudaCasts(TorchFunctionMode):
    """Casts as CUDA's autocast does, so that a trace on the CPU keeps what a GPU would keep."""

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:  # the signature is torch's own
        kwargs = kwargs or {}
        if func in (torch.nn.functional.rms_norm, torch.rms_norm):
            return FusedRmsNorm.apply(*args, *kwargs.values())
        if func in _CUDA_IN_FP32 and torch.is_autocast_enabled("cpu"):
            args = tuple(_widen(value) for value in args)
            kwargs = {name: _widen(value) for name, value in kwargs.items()}
            with torch.autocast("cpu", enabled=False):
                return func(*args, **kwargs)
        return func(*args, **kwargs)


class FusedRmsNorm(torch.autograd.Function):
    """The norm as CUDA's one kernel does it, for fake tensors: it keeps its input alone, the CPU's every step."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, normalized_shape: Any, weight: Tensor | None = None, eps: Any = None) -> Tensor:
        """Return a tensor like the result."""
        ctx.save_for_backward(x, x.new_empty((*x.shape[:-1], 1), dtype=torch.float32))
        ctx.weight = weight
        return torch.empty_like(x)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        """Return tensors like the gradients."""
        x, _ = ctx.saved_tensors
        return torch.empty_like(x), None, None if ctx.weight is None else torch.empty_like(ctx.weight), None


def _widen(value: Any) -> Any:
    return value.float() if isinstance(value, Tensor) and value.dtype in (torch.bfloat16, torch.float16) else value


class Tracker(TorchDispatchMode):
    """Adds up the bytes of live storages, by what they are for, and remembers the moment of the most."""

    def __init__(self, *, is_cpu: bool = False) -> None:
        super().__init__()
        self.is_cpu = is_cpu
        """Count what kernels of the CPU hold while they run, too."""
        self.phase = "weights"
        self.live: dict[str, int] = {}
        self.peak: dict[str, int] = {}
        self.moment = ""
        self.most = self.total = self.moved = self.flops = self.ops = 0
        self._seen: weakref.WeakKeyDictionary[Any, list[Any]] = weakref.WeakKeyDictionary()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run one operation and count what it made and what it moved."""
        if self.is_cpu:
            self._pass(_inside(func._overloadpacket, args))
        out = func(*args, **(kwargs or {}))
        self.ops += 1
        fresh = sum(self._hold(value) for value in tree_iter(out) if isinstance(value, Tensor))
        count = flop_registry.get(func._overloadpacket)
        if count is not None:
            self.flops += count(*args, **(kwargs or {}), out_val=out)
        elif fresh or func._schema.is_mutable:
            # A view moves nothing, a product is bound by its arithmetic; all else reads and writes memory once.
            self.moved += fresh + sum(_bytes(one) for one in tree_iter((args, kwargs)) if isinstance(one, Tensor))
        return out

    def _hold(self, tensor: Tensor) -> int:
        """Count a tensor's storage if it is new; return the bytes it added."""
        storage = tensor.untyped_storage()
        if storage in self._seen:
            return 0
        entry = [self.phase, storage.nbytes()]
        self._seen[storage] = entry
        weakref.finalize(storage, self._drop, entry)
        self._add(*entry)
        return int(entry[1])

    def _add(self, holder: str, size: int) -> None:
        self.live[holder] = self.live.get(holder, 0) + size
        self.total += size
        if self.total > self.most:
            self.most, self.peak, self.moment = self.total, dict(self.live), self.phase

    def _pass(self, size: int) -> None:
        """Count what an operation holds only while it runs."""
        if size and self.total + size > self.most:
            self.most, self.moment = self.total + size, self.phase
            self.peak = {**self.live, self.phase: self.live.get(self.phase, 0) + size}

    def _drop(self, entry: list[Any]) -> None:
        holder, size = entry
        self.live[holder] -= size
        self.total -= size

    def rename(self, tensor: Tensor, holder: str) -> None:
        """Count a live tensor under another name from now on."""
        entry = self._seen[tensor.untyped_storage()]
        self.live[entry[0]] -= entry[1]
        self.live[holder] = self.live.get(holder, 0) + entry[1]
        entry[0] = holder

    def begin(self) -> None:
        """Forget the peak so far: what building took is gone before the first step."""
        self.most = self.moved = self.flops = 0
        self._add("batch", 0)


def _inside(kernel: Any, args: Any) -> int:
    """Return what oneDNN's kernels hold while they run, results included, where no dispatcher sees it."""
    if kernel is torch.ops.aten.convolution_backward and args[-1][0]:
        out_channels, in_channels, *window = args[2].shape
        # In blocks of eight channels: the gradient of the input in their layout, then dense, then in ours. Windows of
        # one, and channels that make no blocks, are done in our layout from the start.
        is_blocked = max(window) > 1 and out_channels % 8 == 0 and in_channels % 8 == 0
        return 3 * _bytes(args[1]) if is_blocked else 0
    if kernel is torch.ops.aten.mkldnn_rnn_layer_backward:
        entry, first, second = args[:3]
        return _bytes(entry) + 3 * _bytes(first) + 2 * _bytes(second)  # both matrices again in their own layout
    return 0


def _bytes(tensor: Tensor) -> int:
    return tensor.numel() * tensor.element_size()


@contextmanager
def _arithmetic(plan: Plan) -> Iterator[None]:
    """Run forward in the plan's compute type, cast as its device casts."""
    device = torch.device("cpu")
    with ExitStack() as stack:
        stack.enter_context(StandIns())
        if plan.device == "cuda":
            stack.enter_context(CudaCasts())
        # fp16 has no CPU autocast everywhere; bf16 is as wide.
        name = "bf16" if plan.precision == "fp16" else plan.precision
        stack.enter_context(Precision(name, device).context())
        yield


def trace_step(stored: Mapping[str, Any], micro_batch: int) -> dict[str, Any]:
    """Return what one rank holds through a step of so many samples, and what it computes.

    The rank is traced alone: the planner adds what other ranks change.
    """
    began = time.monotonic()
    config, task = load_task(dict(stored))
    # Dynamo runs eagerly under a tracker, so compiling is left out; the planner says so.
    config = config.model_copy(update={"train": config.train.model_copy(update={"compile": False})})
    plan = replace(Plan.from_json(dict(stored["plan"])), strategy="single", world_size=1)
    ranks = Ranks(0, 1, 0, torch.device("cpu"))
    batch = task.example(micro_batch)
    tracker = Tracker(is_cpu=plan.device == "cpu")
    with FakeTensorMode(allow_non_fake_inputs=True), tracker:
        model, layout = build_model(task, config, plan, ranks)
        trained = [param for param in model.parameters() if param.requires_grad]
        for param in trained:
            if param.grad is not None:  # a view of its bucket
                tracker.rename(param.grad, "gradients")
        tracker.phase = "optimizer-state"
        optimizers = make_optimizers(task.param_groups(model), layout)
        dealt = sum(_bytes(one) for kind in optimizers if isinstance(kind, Muon) for one, _ in kind.state().values())
        tracker.phase = "moving-average"
        ema = Ema(model, layout, config.ema) if config.ema.decay else None
        tracker.phase = "batch"
        moved = {name: torch.empty(value.shape, dtype=value.dtype) for name, value in batch.items()}
        tracker.begin()
        set_train_mode(task, model)
        tracker.phase = "activations"
        with _arithmetic(plan):
            loss = task.loss(model, moved)
        tracker.phase = "backward"
        loss.total.backward()
        passed, flops = tracker.moved, tracker.flops
        del loss
        tracker.phase = "step"
        layout.scale_grads(1.0)
        for optimizer in optimizers:
            if isinstance(optimizer, Muon):
                # One chunk of each shape: the others take and give back the same, thousands of times.
                optimizer._chunks = list(
                    {tuple(model_shape(optimizer, one)): one for one in reversed(optimizer._chunks)}.values()
                )
            optimizer.step(1e-3, 1)
        if ema is not None:
            ema.update()
        worked = tracker.moved, tracker.flops
        steps_peak = tracker.most
        is_whole = _evaluate(task, model, moved, plan, ema, tracker)
    return {
        "micro_batch": micro_batch,
        "peak_bytes": tracker.most,
        "step_peak_bytes": steps_peak,
        "is_evaluation_whole": is_whole,
        "parts": {name: size for name, size in tracker.peak.items() if size},
        "moment": tracker.moment,
        "params": sum(param.numel() for param in model.parameters()),
        "trained": sum(param.numel() for param in trained),
        "dealt_bytes": dealt,
        "weight_bytes": _weights(model),
        "trained_bytes": sum(_bytes(param) for param in trained),
        "state_bytes": sum(_bytes(one) for kind in optimizers for one, _ in kind.state().values()),
        "largest_block_bytes": max((_weights(block) for block in task.blocks(model)), default=0),
        "rest_bytes": _weights(model) - sum(_weights(block) for block in task.blocks(model)),
        "flops": flops,
        "moved_bytes": passed,
        "update_bytes": worked[0] - passed,
        "ops": tracker.ops,
        "took_s": round(time.monotonic() - began, 3),
    }


def _evaluate(
    task: Task, model: nn.Module, batch: Mapping[str, Tensor], plan: Plan, ema: Ema | None, tracker: Tracker
) -> bool:
    """Validate one batch as the engine does, with the average in place; say whether all of it could be followed.

    Measures often end on the host (a decoder, a table), where fake tensors have no values. The forward is behind them
    by then, and with it the memory.
    """
    tracker.phase = "evaluation"
    model.eval()
    try:
        with ema.applied() if ema is not None else nullcontext(), torch.no_grad(), _arithmetic(plan):
            task.measures(model, batch)
    except (*_UNTRACEABLE, HeadwayError, OSError):  # measures may read data that is not prepared yet
        return False
    return True


def model_shape(optimizer: Muon, chunk: list[int]) -> torch.Size:
    """Return the shape of the matrices of a chunk."""
    return optimizer.params[chunk[0]].shape


def set_train_mode(task: Task, model: nn.Module) -> None:
    """Put the model in training mode, and its frozen parts back in theirs."""
    model.train()
    for part in task.frozen(model):
        part.eval()


def _weights(module: nn.Module) -> int:
    return sum(_bytes(param) for param in module.parameters())


def answer(question: Mapping[str, Any]) -> dict[str, Any]:
    """Return the traces asked for, or why there are none."""
    try:
        traces = [trace_step(question["job"], size) for size in question["micro_batches"]]
    except HeadwayError as error:
        return {"schema": "trace/1", "trouble": error.code, "text": str(error)}
    except (DataDependentOutputException, DynamicOutputShapeException, UnsupportedOperatorException) as error:
        place = traceback.extract_tb(error.__traceback__)
        ours = [frame for frame in place if "headway" in frame.filename and not frame.filename.endswith("trace.py")]
        where = f"{Path(ours[-1].filename).name}:{ours[-1].lineno}" if ours else "n/a"
        return {"schema": "trace/1", "trouble": "plan/trace-failed", "text": str(error), "where": where}
    return {"schema": "trace/1", "torch": torch.__version__, "traces": traces}


def main() -> None:
    """Answer one question."""
    question = json.load(sys.stdin)
    torch.set_num_threads(1)
    json.dump(answer(question), sys.stdout)


if __name__ == "__main__":
    main()
