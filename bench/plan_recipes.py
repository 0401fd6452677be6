"""Does the traced memory of a step agree with what the allocator really gave out?

    python bench/plan_recipes.py [--only tfnet] [--json]

Every recipe at three sizes, on CPU: the forecast is the trace on fake tensors; the truth is one real step (forward,
backward, update, average, validation of one batch) with every allocation and release of torch's CPU allocator added
up. Each in a process of its own. Last line: {"worst_error": …, "median_error": …, "rows": …, "recipes": …}.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from dataclasses import replace

SIZES: dict[str, list[tuple[int, tuple[str, ...]]]] = {
    "nanochat": [
        (4, ()),
        (6, ("task.depth=6", "task.max_seq_len=256", "train.activation_checkpoint=true", "ema.decay=0.99")),
        (8, ("task.depth=3", "task.vocab_size=4096", "train.precision=bf16", "optimizer.name=adamw")),
    ],
    "layoutmaster": [
        (8, ()),
        (8, ("task.hidden_dim=128", "task.num_layers=4", "ema.decay=0.999")),
        (4, ("task.image_size=64", "task.hidden_dim=256", "train.activation_checkpoint=true")),
    ],
    "rdt": [
        (16, ()),
        (8, ("task.hidden_size=128", "task.depth=6", "train.activation_checkpoint=true")),
        (4, ("task.hidden_size=256", "task.depth=4", "task.action_chunk_size=64", "train.precision=bf16")),
    ],
    "atlas": [
        (16, ()),
        (8, ("task.fusion_hidden_dim=128", "task.fusion_layers=4", "ema.decay=0.999")),
        (4, ("task.freeze_vggt=false", "task.whiten=false")),
    ],
    "tfnet": [
        (4, ("task.framework=torch",)),
        (2, ("task.framework=torch", "task.channels=[16,32,64,128]", "task.hidden_size=256", "ema.decay=0.999")),
        (4, ("task.framework=torch", "task.hidden_size=128", "train.activation_checkpoint=true")),
    ],
}
"""Recipe to micro-batch and settings."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=tuple(SIZES))
    parser.add_argument("--one", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        print(json.dumps(answer(json.loads(given.one))))
        return
    errors, named = [], set()
    for recipe, sizes in SIZES.items():
        if given.only and recipe != given.only:
            continue
        for micro_batch, words in sizes:
            row = compare(recipe, micro_batch, words)
            print(row["text"], flush=True)
            if row["error"] is not None:
                errors.append(abs(row["error"]))
                named.add(recipe)
    print(
        json.dumps(
            {
                "worst_error": round(max(errors), 4) if errors else None,
                "median_error": round(statistics.median(errors), 4) if errors else None,
                "rows": len(errors),
                "recipes": len(named),
            }
        )
    )


def compare(recipe: str, micro_batch: int, words: tuple[str, ...]) -> dict:
    """Trace in one process, train in another."""
    question = {"recipe": recipe, "micro_batch": micro_batch, "words": words}
    foreseen, real = (ask({**question, "do": do}) for do in ("trace", "real"))
    title = f"{recipe:13s} {micro_batch:3d}  {' '.join(words)[:70]:70s}"
    if "trouble" in foreseen or "trouble" in real:
        return {"text": f"{title} {foreseen.get('trouble') or real.get('trouble')}", "error": None}
    error = foreseen["peak_bytes"] / real["peak_bytes"] - 1
    sizes = f"{foreseen['peak_bytes'] / 1e6:9.2f} MB foreseen {real['peak_bytes'] / 1e6:9.2f} MB true"
    return {"text": f"{title} {sizes} {error:+.1%}  ({foreseen['took_s']:.1f} s)", "error": error}


def ask(question: dict) -> dict:
    """Let a child answer."""
    done = subprocess.run(
        [sys.executable, __file__, "--one", json.dumps(question)], capture_output=True, text=True, check=False
    )
    try:
        return json.loads(done.stdout.strip().splitlines()[-1])
    except (ValueError, IndexError):
        return {"trouble": (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]}


def answer(question: dict) -> dict:
    """Answer one question, in the child."""
    import torch

    from headway.config import load_config
    from headway.machine import inspect_machine
    from headway.planner import make_plan
    from headway.task import find_recipe

    torch.set_num_threads(1)
    overrides = [f"recipe={question['recipe']}", "parallel.cpus=1", *question["words"]]
    loaded = load_config(None, recipe=find_recipe, overrides=overrides)
    if loaded.recipe.prepare is not None:
        __import__(loaded.recipe.prepare, fromlist=["prepare"]).prepare(loaded.config.task, lambda _: None)
    plan = make_plan(loaded, inspect_machine(None or __import__("pathlib").Path(), config=loaded.config), loaded.recipe)
    stored = {
        "recipe": loaded.config.recipe,
        "config": loaded.config.model_dump(mode="json"),
        "plan": plan.to_json(),
    }
    began = time.monotonic()
    if question["do"] == "trace":
        from headway.trace.recipe import answer as trace

        found = trace({"job": stored, "micro_batches": [question["micro_batch"]]})
        if "traces" not in found:
            return {"trouble": f"{found.get('where', '')} {found['text']}"}
        return {**found["traces"][0], "took_s": time.monotonic() - began}
    return {"peak_bytes": real_peak(stored, question["micro_batch"])}


def real_peak(stored: dict, micro_batch: int) -> int:
    """Do one real step and one validation batch; return the most that torch's allocator had given out."""
    import torch
    from torch.profiler import ProfilerActivity, profile

    from headway.engine.ema import Ema
    from headway.engine.optim import make_optimizers
    from headway.engine.parallel import Ranks
    from headway.engine.precision import Precision
    from headway.engine.rank import build_model, load_task
    from headway.planner import Plan
    from headway.trace.recipe import set_train_mode

    config, task = load_task(stored)
    plan = replace(Plan.from_json(stored["plan"]), strategy="single", world_size=1)
    ranks = Ranks(0, 1, 0, torch.device("cpu"))
    precision = Precision(plan.precision, ranks.device)
    example = task.example(micro_batch)
    from contextlib import nullcontext

    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as watched:
        model, layout = build_model(task, config, plan, ranks)
        optimizers = make_optimizers(task.param_groups(model), layout)
        ema = Ema(model, layout, config.ema) if config.ema.decay else None
        start_ns = time.time_ns()
        batch = {name: value.clone() for name, value in example.items()}
        set_train_mode(task, model)
        with precision.context():
            loss = task.loss(model, batch)
        loss.total.backward()
        del loss
        layout.scale_grads(1.0)
        for optimizer in optimizers:
            optimizer.step(1e-3, 1)
        if ema is not None:
            ema.update()
        model.eval()
        with ema.applied() if ema is not None else nullcontext(), torch.no_grad(), precision.context():
            task.measures(model, batch)
    events = [one for one in watched.profiler.kineto_results.events() if one.name() == "[memory]"]
    live = most = 0
    for event in sorted(events, key=lambda one: one.start_ns()):
        live += event.nbytes()
        if event.start_ns() >= start_ns:  # what building took is gone before the first step
            most = max(most, live)
    return most


if __name__ == "__main__":
    main()
