"""How often the host waits for the device in one step of each recipe, without a GPU.

The real loop takes real steps on a stand-in device (tests/fakes/stand_in_device.py): every value that is read, every
shape that depends on values and every copy that is waited for counts. Printed is each place that waits, then one line:
the waits of a step by recipe, for one rank and for one of two, and the worst of all.

    python bench/gpu_waits.py [--recipe rdt …] [--steps 3]
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections import Counter
from dataclasses import replace
from pathlib import Path
from unittest import mock

import torch
import torch.distributed as dist

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from fakes.stand_in_device import DEVICE, HostWaits, count_waits, move_module
from headway.engine import rank
from headway.engine.loop import take_step
from headway.engine.meter import Meter
from headway.engine.parallel import Ranks, Replicated
from headway.engine.rank_state import Run
from headway.engine.reporter import Reporter
from headway.task import RECIPES
from recipe_speed import stored_run

WORDS = {"tfnet": ["task.framework=torch"]}


def on_device(task, config, plan, ranks):
    """Return the model on the stand-in device, with its replicas' buffers."""
    model = task.build_model()
    move_module(model)
    return model, Replicated(ranks, model.parameters())


def open_run(name: str, place: Path, ranks: Ranks) -> Run:
    """Return one rank of a recipe's run whose model is on the stand-in device."""
    run_dir = stored_run(name, place, ["train.precision=fp32", "batch.accumulation=2", *WORDS.get(name, [])])
    ends = {"report_fd": os.open(os.devnull, os.O_WRONLY), "listen_fd": None, "master_port": 0}
    who = {"rank": 0, "local_rank": 0, "world_size": 1, "attempt": 1, "lang": "en"}
    replaced = {
        "build_model": on_device,
        "join": lambda *_, **__: ranks,
        "hash_frozen": lambda _: None,
        "prepare_save": lambda _: None,
        "go_back": lambda *_: False,
        "resume": lambda _: [],
        "Meter": lambda beat, _: Meter(beat, torch.device("cpu")),
    }
    with mock.patch.multiple(rank, **replaced):
        run = rank.prepare({"run_dir": str(run_dir.root), **ends, **who}, Reporter(ends["report_fd"]))
    run.plan = replace(run.plan, world_size=ranks.world_size)
    return run


def waits_of(name: str, place: Path, *, world_size: int, steps: int) -> HostWaits:
    """Take steps and return the waits of all but the first."""
    with count_waits() as waits:
        run = open_run(name, place, Ranks(0, world_size, 0, DEVICE))
        for module in run.task.frozen(run.model.train()):
            module.eval()
        run.open_data()
        run.meter.restart()
        take_step(run)
        waits.places.clear()
        for _ in range(steps):
            take_step(run)
        run.close_data()
    return waits


def measure(names: list[str], steps: int) -> dict[str, float]:
    """Return the waits of a step by recipe, the larger of one rank and of one of two."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            places: Counter[str] = Counter()
            for world_size in (1, 2):
                if world_size > 1:
                    from torch.testing._internal.distributed.fake_pg import FakeStore

                    dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=world_size)
                waits = waits_of(name, Path(folder), world_size=world_size, steps=steps)
                if world_size > 1:
                    dist.destroy_process_group()
                for place, count in waits.places.items():
                    print(f"{name}, {world_size} rank(s): {count / steps:g} a step at {place}", file=sys.stderr)
                places[name] = max(places[name], waits.num)
            found[name] = places[name] / steps
    return found


def main() -> None:
    """Print the waits of a step."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--recipe", nargs="*", default=sorted(RECIPES))
    parser.add_argument("--steps", type=int, default=3)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    found = measure(asked.recipe, asked.steps)
    print(json.dumps({**found, "worst": max(found.values())}))


if __name__ == "__main__":
    main()
