"""What a script of anybody's would hold and do in a step, found by running it on fake tensors up to its second step.

    python -m headway.trace.script < question.json

The question names the script, its arguments and the GPUs to pretend; what the script prints goes nowhere. The process
ends the moment the second update is done, so that nothing after it in the script happens.
"""

from __future__ import annotations

import gc
import os
import resource
import runpy
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NoReturn

import torch
from torch import Tensor, nn
from torch._subclasses import fake_tensor
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensorMode,
    UnsupportedOperatorException,
)
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook
from torch.utils._pytree import tree_iter

from headway.ask import take_question
from headway.trace import fake_cuda
from headway.trace.fake_ranks import Group, Untraceable, pretend_ranks
from headway.trace.fake_tensors import KNOWN, Devices, Pretence
from headway.trace.sandbox import keep_safe, tidy_up
from headway.trace.skip_validation import skip_repeated
from headway.trace.storages import Tracker, tensor_bytes

Send = Callable[[Mapping[str, Any]], None]

_MOST_STEPS = 12
"""Of one optimizer, while another has not had its second: a critic has five to the generator's one."""

_BY_HAND = 3
"""Backward passes without any optimizer, after which the script is held to update its weights by hand."""
_MOST_WORDS = 300
"""Letters of an error that are passed on."""


class Watch:
    """Counts steps, gives what is alive its names, and ends the script when the second update is done."""

    def __init__(self, tracker: Tracker, pretence: Pretence, send: Send) -> None:
        self.tracker = tracker
        self.pretence = pretence
        self.send = send
        self.group = Group(1)
        self.began = time.monotonic()
        self.is_open = False
        """Whether all optimizers have their state, so that peaks count."""
        self.steps: dict[int, int] = {}
        self.optimizers: dict[int, torch.optim.Optimizer] = {}
        self.backwards = self.backwards_before = 0
        self.loaded: list[tuple[int, ...]] = []
        self.update_bytes = 0
        self.update_peak: tuple[int, dict[str, int], str] = (0, {}, "")
        self._moved = 0

    def attach(self, devices: Devices) -> None:
        """Hear of every optimizer, update, backward and batch."""
        self._hear_backward(devices)
        self._hear_loader()
        self.pretence.tell = lambda tensor: self._rename([tensor], "batch")
        begin = torch.optim.Optimizer.__init__

        def start(one: Any, *args: Any, **kwargs: Any) -> None:
            begin(one, *args, **kwargs)
            self.optimizers[id(one)] = one

        torch.optim.Optimizer.__init__ = start
        register_optimizer_step_pre_hook(self._before_step)
        register_optimizer_step_post_hook(self._after_step)

    def _hear_backward(self, devices: Devices) -> None:
        run = torch.autograd._engine_run_backward

        def call(*args: Any, accumulate_grad: bool, **kwargs: Any) -> Any:
            before, self.tracker.phase = self.tracker.phase, "backward"
            # A mode is off while one of its calls runs, and backward runs forwards again (checkpoints).
            with devices:
                out = run(*args, accumulate_grad=accumulate_grad, **kwargs)
            self.tracker.phase = before
            self.backwards += accumulate_grad
            if not self.optimizers and self.backwards == _BY_HAND:
                self.finish(is_by_hand=True) if self.is_open else self._open()
            self._end_early()
            return out

        torch.autograd._engine_run_backward = call

    def _hear_loader(self) -> None:
        loader = torch.utils.data.DataLoader
        walk = loader.__iter__

        def iterate(one: Any) -> Any:
            for batch in walk(one):
                first = next((part for part in tree_iter(batch) if isinstance(part, Tensor) and part.dim()), None)
                if first is not None:
                    self.loaded.append(tuple(first.shape))
                yield batch

        loader.__iter__ = iterate

    def _before_step(self, optimizer: Any, *_: Any) -> None:
        if id(optimizer) not in self.steps:
            for param in _params(optimizer):
                if param.requires_grad:
                    param.register_post_accumulate_grad_hook(self._name_gradient)
        self.tracker.phase = "step"
        self._moved = self.tracker.moved
        if not self.is_open:
            self.tracker.most = 0

    def _after_step(self, optimizer: Any, *_: Any) -> None:
        self.tracker.phase = "activations"
        steps = self.steps[id(optimizer)] = self.steps.get(id(optimizer), 0) + 1
        self._rename(tree_iter(list(optimizer.state.values())), "optimizer-state")
        self.update_bytes = self.tracker.moved - self._moved
        if steps == 1:
            self._open()
            return
        is_done = all(self.steps.get(key, 0) >= 2 for key in self.optimizers)
        if is_done or steps >= _MOST_STEPS:
            self.finish()

    def _open(self) -> None:
        """Count peaks from here on: weights, gradients and state are all there."""
        if not self.pretence.is_touched:
            self.tracker.count_all()
        held = [one for kind in self.optimizers.values() for one in _params(kind)]
        for module in _modules():
            held += [*module._parameters.values(), *module._buffers.values()]
        self._rename(held, "weights")
        self._rename([one.grad for one in held if isinstance(one, Tensor) and one.is_leaf], "gradients")
        self.update_peak = (self.tracker.most, dict(self.tracker.peak), "step")
        self.is_open = True
        self.backwards_before, self.backwards = self.backwards, 0
        self.pretence.sent.clear()
        self.loaded.clear()
        self.tracker.begin()

    def _end_early(self) -> None:
        """Stop after two of many micro-batches: the others hold the same, and the update was seen before."""
        if self.is_open and self.backwards == 2 < self.backwards_before and len(self.optimizers) == 1:
            if self.update_peak[0] > self.tracker.most:
                self.tracker.most, self.tracker.peak, self.tracker.moment = self.update_peak
            self.finish(is_early=True)

    def _name_gradient(self, param: Tensor) -> None:
        if param.grad is not None:
            self._rename([param.grad], "gradients")

    def _rename(self, tensors: Any, holder: str) -> None:
        for one in tensors:
            if isinstance(one, Tensor) and self.tracker.has_seen(one):
                self.tracker.rename(one, holder)

    def finish(self, *, is_early: bool = False, is_by_hand: bool = False) -> NoReturn:
        """Write the answer and end the process.

        Args:
            is_early: before the second update, after two of its micro-batches.
            is_by_hand: no optimizer updates the weights; every backward pass is a step.
        """
        tracker = self.tracker
        seen = self.pretence.sent or self.loaded
        loads = sum(shape == seen[0] for shape in seen) if seen else self.backwards
        passes = max(1, min(self.backwards, loads)) if len(self.optimizers) < 2 else 1
        update = self.update_bytes
        params = {id(one): one for kind in self.optimizers.values() for one in _params(kind)}
        weights = {id(one): one for module in _modules() for one in module._parameters.values() if one is not None}
        weights |= params
        trained = [one for one in (weights if is_by_hand else params).values() if one.requires_grad]
        states = [one for kind in self.optimizers.values() for one in tree_iter(list(kind.state.values()))]
        send_and_end(
            self.send,
            {
                "peak_bytes": tracker.most,
                "parts": {name: size for name, size in tracker.peak.items() if size},
                "moment": tracker.moment,
                "on_device": self.pretence.is_touched,
                "micro_batch": seen[0][0] if seen else None,
                "accumulation": 1 if is_by_hand else self.backwards_before if is_early else passes,
                "world_size": self.group.world_size if self.group.is_open else 1,
                "params": sum(one.numel() for one in weights.values()),
                "trained": sum(one.numel() for one in trained),
                "weight_bytes": sum(map(tensor_bytes, weights.values())),
                "trained_bytes": sum(map(tensor_bytes, trained)),
                "state_bytes": sum(tensor_bytes(one) for one in states if isinstance(one, Tensor)),
                "flops": tracker.flops // passes,
                "half_share": round(tracker.half_flops / tracker.flops, 4) if tracker.flops else 0.0,
                "moved_bytes": max(0, tracker.moved - (0 if is_early else update)) // passes,
                "update_bytes": update,
                "kernels": tracker.kernels // passes,
                "optimizers": sorted({type(one).__name__ for one in self.optimizers.values()}),
                "left_out": sorted(fake_cuda.LEFT_OUT),
                "ops": tracker.ops,
                "took_s": round(time.monotonic() - self.began, 3),
                "rss_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
                "torch": torch.__version__,
            },
        )


def send_and_end(send: Send, answer: Mapping[str, Any]) -> NoReturn:
    """Send the answer, undo what little was done, and end at once: no `finally` of the script runs."""
    tidy_up()
    send({"schema": "script/1", **answer})
    os._exit(0)


def _params(optimizer: torch.optim.Optimizer) -> list[Tensor]:
    return [one for group in optimizer.param_groups for one in group["params"]]


def _modules() -> list[nn.Module]:
    return [one for one in gc.get_objects() if issubclass(type(one), nn.Module)]


def explain(error: BaseException, watch: Watch, script: str) -> dict[str, Any]:
    """Return why there is no trace: the kind of trouble, the user's own line, and the words."""
    where = _place(error, script)
    text = next((line for line in str(error).strip().splitlines() if line), type(error).__name__)[:_MOST_WORDS]
    facts = {"where": where, "steps": max(watch.steps.values(), default=0)}
    if isinstance(error, Untraceable):
        return {"trouble": str(error), "text": text, **facts}
    if isinstance(error, SystemExit):
        return {"trouble": "no-step", "text": f"exit {error.code}", **facts}
    if isinstance(error, DynamicOutputShapeException | DataDependentOutputException):
        return {"trouble": "data-dependent", "text": text, **facts}
    if isinstance(error, UnsupportedOperatorException):
        return {"trouble": "unsupported", "text": text, **facts}
    return {"trouble": "error", "text": f"{type(error).__name__}: {text}", **facts}


def _place(error: BaseException, script: str) -> str:
    """Return the last line of the traceback that is the user's."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{Path(error.filename).name}:{error.lineno}"
    frames = traceback.extract_tb(error.__traceback__)
    own = [
        one
        for one in frames
        if "site-packages" not in one.filename
        and not one.filename.startswith((sys.base_prefix, "<frozen", str(Path(__file__).parent)))
    ]
    return f"{Path(own[-1].filename).name}:{own[-1].lineno}" if own else Path(script).name


def run_script(question: Mapping[str, Any], send: Send) -> NoReturn:
    """Run the script with fake devices; answer, whatever comes of it."""
    gpu = question["gpu"]
    # Values of small integer tensors survive on the device: lengths and masks decide on sizes.
    fake_tensor.CONSTANT_NUMEL_LIMIT = KNOWN
    fake = FakeTensorMode(allow_non_fake_inputs=True)
    pretence = Pretence(fake, has_gpus=gpu is not None)
    tracker = Tracker(is_cpu=gpu is None, run=pretence.run, counts=pretence.is_marked if gpu is not None else None)
    tracker.phase = "activations"
    watch = Watch(tracker, pretence, send)
    if gpu is not None:
        fake_cuda.pretend_cuda(pretence, tracker, gpu)
        fake_cuda.pretend_optimizers()
    fake_cuda.pretend_arithmetic(has_gpus=gpu is not None)
    fake_cuda.pretend_modules(pretence)
    fake_cuda.pretend_checkpoints()
    fake_cuda.pretend_loader()
    fake_cuda.forbid_saving(Path(question["scratch"]))
    watch.group = pretend_ranks(
        tracker, world_size=int(os.environ.get("WORLD_SIZE", "1")), num_gpus=gpu["num"] if gpu else 1
    )
    skip_repeated(pretence, is_counted=lambda: watch.is_open)
    devices = Devices(pretence)
    devices.answer_device()
    watch.attach(devices)
    keep_safe(Path(question["scratch"]))
    entry, kind = question["entry"], question["kind"]
    sys.argv = [entry, *question["args"]]
    sys.path.insert(0, str(Path(entry).resolve().parent) if kind == "script" else os.getcwd())
    try:
        with fake, tracker, devices:
            if kind == "module":
                runpy.run_module(entry, run_name="__main__", alter_sys=True)
            else:
                runpy.run_path(entry, run_name="__main__")
    except BaseException as error:  # border: whatever ends a stranger's script is the answer
        send_and_end(send, explain(error, watch, entry))
    send_and_end(send, {"trouble": "no-step", "where": Path(entry).name, "text": "", "steps": _most(watch)})


def _most(watch: Watch) -> int:
    return max(watch.steps.values(), default=0)


def main() -> None:
    """Answer one question."""
    question, send = take_question()
    torch.set_num_threads(1)
    run_script(question, send)


if __name__ == "__main__":
    main()
