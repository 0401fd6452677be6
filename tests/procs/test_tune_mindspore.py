"""Probes on MindSpore's engine: timed, with a validation batch, and a search over what that engine reads."""

from __future__ import annotations

import json

import pytest

from fakes.tfnet_mindspore import python_of_mindspore
from fakes.tfnet_set import SMALL, write_small
from headway.config import load_config
from headway.launch import start_nursery
from headway.machine import inspect_machine
from headway.planner import make_plan
from headway.task import find_recipe
from headway.tune import MINDSPORE_ENTRY, Effort, Question, tune

PYTHON = python_of_mindspore()
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(PYTHON is None, reason="MindSpore is not installed"),
    pytest.mark.timeout(1200),
]


_SIZES = [word for word in SMALL if not word.startswith("batch.")]


class Silent:
    def begin(self, settings, number):
        pass

    def begin_rates(self):
        pass

    def tick(self):
        pass

    def end(self, probe):
        pass


def test_a_search_times_mindspores_steps_and_leaves_nothing_behind(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    root = write_small(tmp_path / "data")
    # Line by line: a few steps take less time than compiling them.
    words = ["task.graph_mode=false", "task.prefetch=2", "parallel.threads=1", "parallel.cpus=1", "parallel.gpus=0"]
    fixed = ["recipe=tfnet", f"task.data_dir={root}", f"out={tmp_path}", f"env.python={PYTHON}"]
    (tmp_path / "run.yaml").write_text("batch: {per_device: 1, total: 2}\n")
    loaded = load_config(tmp_path / "run.yaml", recipe=find_recipe, overrides=[*fixed, *_SIZES, *words])
    assert loaded.framework == "mindspore"
    machine = inspect_machine(tmp_path, config=loaded.config)
    question = Question(
        loaded=loaded,
        machine=machine,
        plan=make_plan(loaded, machine, loaded.recipe),
        place=tmp_path,
        budget_s=900.0,
        effort=Effort(warmup=1, least=1, most=2, seconds=0.05, limit_s=600.0),
    )
    assert dict(question.start().own) == {"task.graph_mode": False, "task.prefetch": 2}
    assert question.space().values["compile"] == (False,)

    def nursery():
        return start_nursery(PYTHON, ["headway.engine.mindspore.timed_steps"], MINDSPORE_ENTRY)

    found, _ = tune(question, start_nursery=nursery, watcher=Silent())
    assert [probe.settings.micro_batch for probe in found.probes] == [1, 2]
    assert all(probe.is_ok and probe.samples_s > 0 and probe.peak_bytes > 0 for probe in found.probes)
    assert found.probes[0].more_s is not None and found.probes[0].parts["backward"] > 0
    line = json.loads((tmp_path / "tune.jsonl").read_text().splitlines()[0])
    assert line["settings"]["own"] == [["task.graph_mode", False], ["task.prefetch", 2]]
    assert not list(tmp_path.glob("probes/*/checkpoints"))
