"""Measure or use a trained MindSpore model outside of training; the twin of engine/trained.py.

Asked by the command line, by module name (`headway/ask.py`).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from headway.engine.mindspore.checkpoint_arrays import read_arrays
from headway.engine.mindspore.context import set_up
from headway.engine.mindspore.loop import sum_measures
from headway.engine.mindspore.rank import load_task
from headway.engine.mindspore.rank_state import fill
from headway.engine.mindspore.ranks import Ranks
from headway.engine.policy import refuse_empty
from headway.engine.request import answer_request, find_checkpoint
from headway.planner import Plan
from headway.telemetry import RunDir, read_json


def main() -> None:
    """Answer one request."""
    answer_request(_answer)


def _answer(request: dict[str, Any]) -> dict[str, Any]:
    place = RunDir(Path(request["run_dir"]))
    stored = read_json(place.job)
    plan = Plan.from_json(stored["plan"])
    config, task = load_task(stored)
    path, manifest, answer = find_checkpoint(place, request.get("step"))
    task.check_export(manifest.meta["export"])
    graphs = place.root / "graphs"
    set_up(task.settings, device=plan.device, local_rank=0, threads=plan.threads, graphs=graphs)
    loss = task.build_loss()
    loss.set_train(False)
    named = {f"model/{name}": param for name, param in task.names(loss).items()}
    fill(named, read_arrays(path, manifest, {name: tuple(param.shape) for name, param in named.items()}))
    if request["do"] == "predict":
        return {**answer, "text": task.predict(loss, request["options"], Path(request["to"])), "files": []}
    total = request.get("samples") or config.eval.samples
    refuse_empty(held_out := task.eval_data())
    sums = sum_measures(task, loss, held_out, ranks=Ranks(0, 1), size=plan.micro_batch, total=total)
    return {**answer, "measures": task.summarize(sums), "trial": {}}


if __name__ == "__main__":
    main()
