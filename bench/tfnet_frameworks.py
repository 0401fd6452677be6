"""Step times of TFNet in PyTorch and in MindSpore (GRAPH and PYNATIVE), side by side, from one config.

`python bench/tfnet_frameworks.py [--steps 10] [key=value …]`; each way runs in a process of its own, MindSpore in the
interpreter of .venv-mindspore where that is there. A step is forward and backward of one batch of the default size; the
first one, which compiles, is shown apart. The last line is JSON.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

WAYS = ("torch", "mindspore-graph", "mindspore-pynative")
MINDSPORE = Path(__file__).parent.parent / ".venv-mindspore" / "bin" / "python"


def main() -> int:
    """Measure every way and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--way", choices=WAYS, help=argparse.SUPPRESS)
    parser.add_argument("--data", help=argparse.SUPPRESS)
    parser.add_argument("words", nargs="*")
    asked = parser.parse_args()
    if asked.way:
        print(json.dumps(measure(asked.way, asked.data, asked.steps, asked.threads, asked.words)))
        return 0
    print(f"{'way':<20}{'first, s':>10}{'step, s':>10}{'cpu a step, s':>15}{'loss':>12}")
    ways = {}
    with tempfile.TemporaryDirectory() as folder:
        for way in WAYS:
            python = str(MINDSPORE) if way != "torch" and MINDSPORE.exists() else sys.executable
            options = ["--way", way, "--data", folder, "--steps", str(asked.steps), "--threads", str(asked.threads)]
            done = subprocess.run(
                [python, __file__, *options, *asked.words], stdout=subprocess.PIPE, text=True, check=True
            )
            found = ways[way] = json.loads(done.stdout.strip().splitlines()[-1])
            print(
                f"{way:<20}{found['first']:>10.2f}{found['step']:>10.3f}{found['cpu']:>15.3f}{found['loss']:>12.4f}",
                flush=True,
            )
    graph, lines = ways["mindspore-graph"], ways["mindspore-pynative"]
    holds = graph["cpu"] <= lines["cpu"]
    print(json.dumps({"schema": "tfnet-frameworks/1", "graph_is_not_slower": holds, "ways": ways}))
    return 0


def measure(way: str, data: str, steps: int, threads: int, words: list[str]) -> dict[str, float]:
    """Time forward and backward of one batch."""
    import numpy as np

    from headway.config import load_config
    from headway.recipes.tfnet.data import prepare
    from headway.recipes.tfnet.preset import RECIPE

    graph = f"task.graph_mode={str(way == 'mindspore-graph').lower()}"
    config = load_config(recipe=RECIPE, overrides=[f"task.data_dir={data}", graph, *words]).config
    prepare(config.task, lambda line: None)
    size = config.batch.per_device
    key = np.arange(size), np.zeros(size, np.int64)
    one = _torch_step(config, key, threads) if way == "torch" else _mindspore_step(config, key, threads, data)
    began = time.perf_counter()
    loss = one()
    first = time.perf_counter() - began
    wall, cpu = [], []
    for _ in range(steps):
        began, spent = time.perf_counter(), time.process_time()
        one()
        wall.append(time.perf_counter() - began)
        cpu.append(time.process_time() - spent)
    return {"first": first, "step": statistics.median(wall), "cpu": statistics.median(cpu), "loss": loss}


def _torch_step(config, key, threads):
    import torch

    from headway.recipes.tfnet.task import make_task

    torch.set_num_threads(threads)
    task = make_task(config)
    model, batch = task.build_model(), task.train_data().batch(*key)

    def step() -> float:
        model.zero_grad()
        loss = task.loss(model, batch)
        loss.total.backward()
        return loss.total.item() / loss.count

    return step


def _mindspore_step(config, key, threads, folder):
    import mindspore as ms

    from headway.engine.mindspore.context import set_up
    from headway.engine.mindspore.inputs import tensors_of
    from headway.recipes.tfnet.task_mindspore import make_task

    task = make_task(config)
    set_up(task.settings, device="cpu", local_rank=0, threads=threads, graphs=Path(folder) / "graphs")
    loss = task.build_loss()
    loss.set_train(True)
    gradient = ms.value_and_grad(loss, None, loss.trainable_params(), has_aux=True)
    batch = tensors_of(task, task.train_data().arrays(*key))

    def step() -> float:
        (total, _), grads = gradient(*batch)
        grads[0].asnumpy()
        return float(total.asnumpy()) / len(key[0])

    return step


if __name__ == "__main__":
    raise SystemExit(main())
