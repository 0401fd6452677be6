"""What one step of a real model would hold and do, found without a GPU, without weights and without time.

    python -m headway.trace.recipe < question.json > answer.json

The model, its loss, backward and the optimizer of the engine run on fake tensors: shapes and types without memory. A
tracker follows every storage from its birth to its end. Runs in a process of its own, as torch may end it: a question
on stdin, an answer on stdout, so the planner never imports torch.
"""

from __future__ import annotations

import hashlib
import importlib
import logging
import sys
import sysconfig
import time
import traceback
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
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

import headway
from headway.ask import take_question
from headway.engine.ema import Ema
from headway.engine.optim import Muon, make_optimizers
from headway.engine.parallel import Ranks
from headway.engine.precision import Precision
from headway.engine.rank import build_model, load_task
from headway.errors import CheckError, HeadwayError
from headway.planner import Plan
from headway.task import Task, find_recipe
from headway.trace.fake_ops import StandIns
from headway.trace.storages import CudaCasts, Tracker, tensor_bytes

_UNTRACEABLE = (DataDependentOutputException, DynamicOutputShapeException, UnsupportedOperatorException, RuntimeError)
"""What a fake tensor answers when its value is asked for."""


@contextmanager
def _as_device(plan: Plan, tracker: Tracker) -> Iterator[None]:
    """Run and cast as the plan's device does. Around backward too: there checkpointed blocks run forward again."""
    with ExitStack() as stack:
        stack.enter_context(StandIns(tracker.refused))
        if plan.device == "cuda":
            stack.enter_context(CudaCasts())
        yield


def _run_backward(total: Tensor) -> None:
    """Run backward with the function modes on: `Tensor.backward` is a function that they see, and until it returns
    they are off, so that a checkpointed block would be recomputed without them and save other tensors than before.
    """
    torch.autograd.graph._engine_run_backward(
        (total,), (torch.ones_like(total),), False, False, (), allow_unreachable=True, accumulate_grad=True
    )


def _precision(plan: Plan) -> Precision:
    # fp16 has no CPU autocast everywhere; bf16 is as wide.
    return Precision("bf16" if plan.precision == "fp16" else plan.precision, torch.device("cpu"))


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
        dealt = sum(
            tensor_bytes(one) for kind in optimizers if isinstance(kind, Muon) for one, _ in kind.state().values()
        )
        tracker.phase = "moving-average"
        ema = Ema(model, layout, config.ema) if config.ema.decay else None
        tracker.phase = "batch"
        moved = {name: torch.empty(value.shape, dtype=value.dtype) for name, value in batch.items()}
        tracker.begin()
        set_train_mode(task, model)
        tracker.phase = "activations"
        with _as_device(plan, tracker):
            with _precision(plan).context():
                loss = task.loss(model, moved)
            tracker.phase = "backward"
            _run_backward(loss.total)
        passed, flops = tracker.moved, tracker.flops
        del loss
        peaks = {"pass": _take_peak(tracker)}
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
        peaks["step"] = _take_peak(tracker)
        is_whole = _evaluate(task, model, moved, plan, ema, tracker)
        peaks["evaluation"] = _take_peak(tracker)
    highest = max(peaks.values(), key=lambda peak: peak["bytes"])
    return {
        "micro_batch": micro_batch,
        "peak_bytes": highest["bytes"],
        "step_peak_bytes": max(peaks["pass"]["bytes"], peaks["step"]["bytes"]),
        "is_evaluation_whole": is_whole,
        "parts": highest["parts"],
        "moment": highest["moment"],
        "peaks": {name: peak["parts"] for name, peak in peaks.items()},
        "moments": {name: peak["moment"] for name, peak in peaks.items()},
        "params": sum(param.numel() for param in model.parameters()),
        "trained": sum(param.numel() for param in trained),
        "dealt_bytes": dealt,
        "weight_bytes": _weights(model),
        "trained_bytes": sum(tensor_bytes(param) for param in trained),
        "state_bytes": sum(tensor_bytes(one) for kind in optimizers for one, _ in kind.state().values()),
        "largest_block_bytes": max((_weights(block) for block in task.blocks(model)), default=0),
        "rest_bytes": _weights(model) - sum(_weights(block) for block in task.blocks(model)),
        "flops": flops,
        "moved_bytes": passed,
        "update_bytes": worked[0] - passed,
        "ops": tracker.ops,
        "not_deterministic": sorted(tracker.refused - set(task.replaced)),
        "took_s": round(time.monotonic() - began, 3),
    }


def _evaluate(
    task: Task, model: nn.Module, batch: Mapping[str, Tensor], plan: Plan, ema: Ema | None, tracker: Tracker
) -> bool:
    """Validate one batch as the engine does, with the average in place; say whether all of it could be followed.

    Measures often end on the host (a decoder, a table), where fake tensors have no values. The forward is behind them
    by then, and with it the memory.
    """
    model.eval()
    try:
        with ExitStack() as stack:
            # The weights are set aside while their average is in place, and are cut as it is.
            tracker.phase = "moving-average"
            if ema is not None:
                stack.enter_context(ema.applied())
            tracker.phase = "evaluation"
            stack.enter_context(torch.no_grad())
            stack.enter_context(_as_device(plan, tracker))
            stack.enter_context(_precision(plan).context())
            task.measures(model, batch)
    except (*_UNTRACEABLE, HeadwayError, OSError):  # measures may read data that is not prepared yet
        return False
    return True


def _take_peak(tracker: Tracker) -> dict[str, Any]:
    """Return the highest point since the last one was taken: with another batch another of them may be the highest."""
    parts = {name: size for name, size in tracker.peak.items() if size}
    found = {"bytes": tracker.most, "parts": parts, "moment": tracker.moment}
    tracker.most = 0
    tracker._add("batch", 0)
    return found


def model_shape(optimizer: Muon, chunk: list[int]) -> torch.Size:
    """Return the shape of the matrices of a chunk."""
    return optimizer.params[chunk[0]].shape


def set_train_mode(task: Task, model: nn.Module) -> None:
    """Put the model in training mode, and its frozen parts back in theirs."""
    model.train()
    for part in task.frozen(model):
        part.eval()


def _weights(module: nn.Module) -> int:
    return sum(tensor_bytes(param) for param in module.parameters())


def answer(question: Mapping[str, Any]) -> dict[str, Any]:
    """Return the traces asked for, or why there are none."""
    try:
        traces = _trace_all(question)
    except HeadwayError as error:
        return {"schema": "trace/1", "trouble": error.code, "text": str(error)}
    except Exception as error:  # border: whatever a model raises on fake tensors is the answer
        place = traceback.extract_tb(error.__traceback__)
        ours = [frame for frame in place if "torch" not in frame.filename and not frame.filename.endswith("trace.py")]
        where = f"{Path(ours[-1].filename).name}:{ours[-1].lineno}" if ours else "n/a"
        text = f"{type(error).__name__}: {error}"
        return {"schema": "trace/1", "trouble": "plan/trace-failed", "text": text, "where": where}
    return {"schema": "trace/1", "torch": torch.__version__, "traces": traces, "sources": own_sources()}


def _trace_all(question: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the traces; where the recipe's data is not there yet, it is prepared first, as for a run."""
    job, sizes = question["job"], question["micro_batches"]
    try:
        return [trace_step(job, size) for size in sizes]
    except CheckError:
        recipe = find_recipe(job["recipe"])
        if recipe.prepare is None:
            raise
        section = recipe.section.model_validate(job["config"]["task"])
        importlib.import_module(recipe.prepare).prepare(section, logging.getLogger(__name__).info)
        return [trace_step(job, size) for size in sizes]


def own_sources() -> dict[str, str]:
    """Return the user's own modules that took part, as files with their digests: a kept answer holds for these only.

    A recipe may import code from beside its folder; what is installed, and Headway itself, is known by its version.
    """
    installed = {Path(place).resolve() for place in (sysconfig.get_path("stdlib"), Path(headway.__file__).parent)}
    found = {}
    for module in list(sys.modules.values()):
        path = Path(getattr(module, "__file__", None) or "")
        if path.suffix != ".py" or {"site-packages", "dist-packages"} & set(path.parts) or not path.is_file():
            continue
        path = path.resolve()
        if not any(path.is_relative_to(place) for place in installed):
            found[str(path)] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


def main() -> None:
    """Answer one question."""
    question, send = take_question()
    torch.set_num_threads(1)
    send(answer(question))


if __name__ == "__main__":
    main()
