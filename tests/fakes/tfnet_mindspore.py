"""What the MindSpore tests run in a process of their own: `python tfnet_mindspore.py DO RUN_DIR DATA WORD…`."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parent


def load(place: Path, root: str, words: list[str]):
    """Write a job for these words; return it and the config."""
    from headway.config import load_config
    from headway.machine import inspect_machine
    from headway.plan import make_plan
    from headway.recipes import find_recipe
    from headway.telemetry import RunDir, write_json

    fixed = ["recipe=tfnet", f"task.data_dir={root}", "task.synthetic=true", f"out={place}", "parallel.threads=1"]
    loaded = load_config(None, recipe=find_recipe, overrides=[*fixed, *words])
    plan = make_plan(loaded, inspect_machine(place, config=loaded.config), loaded.recipe)
    run = RunDir(place)
    run.checkpoints.mkdir(parents=True, exist_ok=True)
    (place / "ranks" / "0").mkdir(parents=True, exist_ok=True)
    write_json(run.job, {"recipe": "tfnet", "config": loaded.config.model_dump(mode="json"), "plan": plan.to_json()})
    return loaded.config


def train(place: Path, root: str, words: list[str]) -> dict:
    """Train one rank to its end by the worker's own entry."""
    from headway.engine.mindspore.worker import main

    load(place, root, words)
    fd = os.open(place / "reports", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    job = {"run_dir": str(place), "rank": 0, "local_rank": 0, "world_size": 1, "attempt": 1, "lang": "en"}
    return {"code": main({**job, "report_fd": fd, "listen_fd": None, "master_port": 0})}


def compare(place: Path, root: str, words: list[str]) -> dict:
    """Give one batch to both frameworks' models with the same weights."""
    import mindspore as ms
    import torch

    from headway.recipes.tfnet import task as in_torch
    from headway.recipes.tfnet import task_mindspore as in_mindspore

    config = load(place, root, words)
    ms.set_context(mode=ms.GRAPH_MODE if config.task.graph_mode else ms.PYNATIVE_MODE, save_graphs_path=str(place))
    ms.set_device("CPU")
    one, other = in_torch.make_task(config), in_mindspore.make_task(config)
    model, loss = one.build_model().eval(), other.build_loss()
    loss.set_train(False)
    named = other.names(loss)
    for name, value in model.state_dict().items():
        named[name].set_data(ms.Tensor(value.numpy()))
    batch = other.eval_data().arrays(np.arange(2), np.zeros(2, np.int64))
    tensors = [batch[name] if name == "frames" else batch[name].astype(np.int32) for name in other.inputs]
    total, fused = loss(*(ms.Tensor(value) for value in tensors))
    with torch.no_grad():
        given = {name: torch.from_numpy(value) for name, value in batch.items()}
        want = model(given["frames"], given["lengths"])["fused"].numpy()
        wanted_total = one.loss(model, given).total.item()
    return {
        "names": sorted(named) == sorted(model.state_dict()),
        "difference": float(np.abs(fused.asnumpy() - want).max()),
        "size": float(np.abs(want).max()),
        "loss": [float(total.asnumpy()), wanted_total],
        "params": [sum(int(p.size) for p in loss.trainable_params()), sum(p.numel() for p in model.parameters())],
    }


if __name__ == "__main__":
    do, place, root, *words = sys.argv[1:]
    print(json.dumps({"train": train, "compare": compare}[do](Path(place), root, words)))
