"""TFNet in PyTorch through the real engine: it learns to read, and continues bit for bit after a stop."""

import os
import sys

import pytest
import torch

from fakes.engine_run import read_tensors, reports
from fakes.tfnet_set import SMALL, write_small
from headway.ask import ask
from headway.config import load_config
from headway.engine.loop import train
from headway.engine.rank import prepare
from headway.engine.reporter import Reporter
from headway.machine import inspect_machine
from headway.planner import make_plan
from headway.recipes.tfnet import data
from headway.task import find_recipe
from headway.telemetry import RunDir, write_json

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def one_thread():
    """Two threads on busy cores wait for each other most of the time."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def _run(place, root, *words):
    fixed = ("recipe=tfnet", "task.framework=torch", f"task.data_dir={root}", "task.synthetic=true", f"out={place}")
    loaded = load_config(None, recipe=find_recipe, overrides=[*fixed, "parallel.threads=1", *words])
    data.prepare(loaded.config.task, lambda line: None)
    plan = make_plan(loaded, inspect_machine(place, config=loaded.config), loaded.recipe)
    run = RunDir(place)
    run.checkpoints.mkdir(parents=True, exist_ok=True)
    stored = {"recipe": "tfnet", "config": loaded.config.model_dump(mode="json"), "plan": plan.to_json()}
    write_json(run.job, stored)
    fd = os.open(place / "reports", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    job = {"run_dir": str(place), "rank": 0, "local_rank": 0, "world_size": 1, "attempt": 1, "lang": "en"}
    return prepare({**job, "report_fd": fd, "listen_fd": None, "master_port": 0}, Reporter(fd))


@pytest.mark.timeout(1200)  # half a minute on a quiet machine
def test_the_default_run_reads_signs_far_better_than_a_constant_answer(tmp_path):
    run = _run(tmp_path / "run", tmp_path / "data", "train.steps=150", "eval.every=25", "lr.schedule=constant")
    assert train(run) == "done"
    floor = data.baseline(run.config.task)["constant_wer"]
    found = [event["measures"]["wer"] for event in reports(tmp_path / "run", "validation")]
    assert min(found) < 50 < floor


def test_a_resumed_run_is_bit_equal_to_one_that_was_never_stopped(tmp_path):
    root = write_small(tmp_path / "data")
    words = (*SMALL, "save.every=2", "eval.every=2", "lr.schedule=constant")
    train(_run(tmp_path / "whole", root, *words, "train.steps=4"))
    train(_run(tmp_path / "parts", root, *words, "train.steps=2"))
    again = _run(tmp_path / "parts", root, *words, "train.steps=4")
    assert again.progress.step == 2
    train(again)
    assert read_tensors(RunDir(tmp_path / "parts")) == read_tensors(RunDir(tmp_path / "whole"))


def test_weights_are_refused_where_the_words_have_other_numbers(tmp_path):
    root = write_small(tmp_path / "data")
    train(_run(tmp_path / "run", root, *SMALL, "train.steps=1"))
    labels = root / "label" / "dev.csv"
    labels.write_text(labels.read_text(encoding="utf-8").replace("罕见", "常见"), encoding="utf-8")
    request = {"do": "eval", "run_dir": str(tmp_path / "run"), "lang": "en"}
    answer = ask(sys.executable, request, module="headway.engine.trained", within_s=250)
    assert answer.value is not None, answer.why
    assert answer.value["error"]["code"] == "tfnet/vocabulary"
