"""Measure or use a trained model outside of training: one process, weights from a verified checkpoint.

Asked by the command line, by module name (`headway/ask.py`).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import nn

from headway.checkpoint import Manifest
from headway.checkpoint.torch_state import pieces_of_tensor, restore
from headway.engine.evaluate import run_trial, sum_measures
from headway.engine.parallel import Ranks
from headway.engine.policy import refuse_empty
from headway.engine.precision import Precision
from headway.engine.rank import load_task
from headway.engine.request import answer_request, find_checkpoint
from headway.engine.snapshot import refuse_other_frozen
from headway.planner import Plan
from headway.task import hash_frozen
from headway.telemetry import RunDir, read_json, require_record


def main() -> None:
    """Answer one request."""
    answer_request(_answer)


def _answer(request: dict[str, Any]) -> dict[str, Any]:
    place = RunDir(Path(request["run_dir"]))
    stored = read_json(place.job)
    config, task = load_task(stored)
    plan = require_record(place.job, lambda job: Plan.from_json(job["plan"]))
    # As in training: sums keep their order, and small layers do not wait for threads that have no core.
    torch.set_num_threads(plan.threads)
    path, manifest, answer = find_checkpoint(place, request.get("step"))
    task.check_export(manifest.meta.get("export") or {})
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    with torch.device(device):
        model = task.build_model()
    # As the checkpoint has it: a later resume may have switched the average on or off.
    _fill(model, path, manifest, weights="model" if manifest.meta.get("ema_updates") is None else "ema")
    refuse_other_frozen(manifest, hash_frozen(model))
    model.eval()
    if request["do"] == "predict":
        made = task.predict(model, request["options"], Path(request["to"]))
        return {**answer, "text": made.text, "files": [str(path) for path in made.files]}
    refuse_empty(held_out := task.eval_data())
    sums = sum_measures(
        task,
        model,
        held_out,
        ranks=Ranks(0, 1, 0, device),
        precision=Precision(plan.precision, device),
        size=plan.micro_batch,
        total=request.get("samples") or config.eval.samples,
    )
    answer["measures"] = task.summarize(sums)
    tried = run_trial(task, model, ranks=Ranks(0, 1, 0, device), precision=Precision(plan.precision, device))
    if isinstance(tried, BaseException):
        raise tried
    return {**answer, "trial": tried or {}}


def _fill(model: nn.Module, path: Path, manifest: Manifest, *, weights: str) -> None:
    """Load weights, or their average, and the running statistics, which have none."""
    wanted = {f"{weights}/{name}": param for name, param in model.named_parameters() if param.requires_grad}
    kept = model.state_dict().keys()
    wanted.update({f"model/{name}": value for name, value in model.named_buffers() if name in kept})
    pieces = [piece for name, value in wanted.items() for piece in pieces_of_tensor(name, value.detach())]
    restore(path, manifest, pieces, partial=True)


if __name__ == "__main__":
    main()
