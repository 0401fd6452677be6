"""What the MindSpore tests run in an interpreter that has it: `python tfnet_mindspore.py DO RUN_DIR DATA WORD…`.

The answer is the last line, as JSON. `python_of_mindspore` is for the tests themselves.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from pathlib import Path

import numpy as np


def python_of_mindspore() -> str | None:
    """Return an interpreter with MindSpore: this one, or the one the set-up makes for it."""
    if importlib.util.find_spec("mindspore") is not None:
        return sys.executable
    beside = Path(__file__).parents[2] / ".venv-mindspore" / "bin" / "python"
    is_whole = (beside.parents[1] / ".headway").exists()
    return str(beside) if is_whole else None


def load(place: Path, root: str, words: list[str]):
    """Write a job for these words; return the config."""
    from headway.config import load_config
    from headway.machine import inspect_machine
    from headway.planner import make_plan
    from headway.task import find_recipe
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
    from headway.engine.mindspore.rank import main

    load(place, root, words)
    fd = os.open(place / "reports", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    job = {"run_dir": str(place), "rank": 0, "local_rank": 0, "world_size": 1, "attempt": 1, "lang": "en"}
    return {"code": main({**job, "report_fd": fd, "listen_fd": None, "master_port": 0})}


def sink(place: Path, root: str, words: list[str]) -> dict:
    """Train with a stand-in for the device's queue, which a CPU does not have; tell how MindSpore was asked."""
    import mindspore as ms

    from headway.engine.mindspore import context

    asked: dict = {}

    def stand_in(gradient, dataset, sink_size):
        asked.update(size=sink_size, columns=dataset.get_col_names(), num=dataset.get_dataset_size())
        batches = dataset.create_tuple_iterator(num_epochs=1)
        return lambda: gradient(*next(batches))

    ms.data_sink = stand_in
    context.refuse_sink = lambda target: None
    return {**train(place, root, words), **asked, "prefetch": ms.dataset.config.get_prefetch_size()}


def logits(place: Path, root: str, words: list[str]) -> dict:
    """Read one batch with a run's exported weights, by MindSpore's own loader; keep logits and loss."""
    import mindspore as ms

    from headway.recipes.tfnet.task_mindspore import make_task

    config = load(place / "again", root, words)
    ms.set_context(mode=ms.PYNATIVE_MODE)
    ms.set_device("CPU")
    task = make_task(config)
    loss = task.build_loss()
    loss.set_train(False)
    absent, unread = ms.load_param_into_net(loss.model, ms.load_checkpoint(str(place / "best_model.ckpt")))
    batch = task.eval_data().arrays(np.arange(2), np.zeros(2, np.int64))
    tensors = [batch[name] if name == "frames" else batch[name].astype(np.int32) for name in task.inputs]
    total, fused = loss(*(ms.Tensor(value) for value in tensors))
    np.save(place / "logits.npy", fused.asnumpy())
    params = sum(int(param.size) for param in loss.trainable_params())
    return {"absent": absent, "unread": unread, "loss": float(total.asnumpy()), "params": params}


def settings(place: Path, root: str, words: list[str]) -> dict:
    """Tell how MindSpore is set up for devices that are not here, and what its errors become."""
    import mindspore as ms

    from headway.engine.mindspore import context
    from headway.engine.mindspore.explain import explain
    from headway.errors import CheckError
    from headway.task.mindspore import Settings

    calls: list = []
    ms.set_context = lambda **values: calls.append(values)
    ms.set_device = lambda target, number=None: calls.append({"device": target, "number": number})
    graphs = place / "graphs"
    own = Settings(
        device_target="GPU", device_id=3, has_graph_kernel=True, max_memory="8GB", block_size="512MB",
        has_offload=True, is_dumped=True,
    )  # fmt: skip
    target = context.set_up(own, device="cuda", local_rank=1, threads=1, graphs=graphs)
    found = {"target": target, "graph": ms.GRAPH_MODE, "calls": list(calls), "dump": os.environ["MS_DEV_SAVE_GRAPHS"]}
    calls.clear()
    context.set_up(
        Settings(device_target="Ascend", is_graph=False), device="cuda", local_rank=1, threads=1, graphs=graphs
    )
    found["ascend"] = list(calls)
    try:
        context.set_up(Settings(has_sink=True), device="cpu", local_rank=0, threads=1, graphs=graphs)
    except CheckError as refused:
        found["sink"] = refused.code
    os.environ.pop("ONEDNN_MAX_CPU_ISA", None)
    context.set_up(Settings(), device="cpu", local_rank=0, threads=1, graphs=graphs)
    found["limits"] = [os.environ.pop("ONEDNN_MAX_CPU_ISA", None)]
    os.environ["DNNL_MAX_CPU_ISA"] = "AVX512_CORE"
    context.limit_onednn()
    found["limits"].append(os.environ.get("ONEDNN_MAX_CPU_ISA"))
    told = json.loads(words[-1])
    found["codes"] = [getattr(explain(RuntimeError(text)), "code", None) for text in told]
    return found


if __name__ == "__main__":
    do, place, root, *words = sys.argv[1:]
    ways = {"train": train, "sink": sink, "logits": logits, "settings": settings}
    print(json.dumps(ways[do](Path(place), root, words)))
