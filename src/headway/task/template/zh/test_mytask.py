"""配方的测试，不需要启动训练：pytest"""

import importlib
from pathlib import Path

import numpy as np
import torch

from headway.config import load_config
from headway.task import find_recipe


def make_task(*settings):
    """返回采用这些设置（如 `task.width=8`）的任务。"""
    recipe = find_recipe(str(Path(__file__).parent))
    config = load_config(recipe=recipe, overrides=settings).config
    return importlib.import_module(recipe.task).make_task(config)


def read_batch(data, size=64):
    """返回第一轮的前几个样本。"""
    return data.batch(np.arange(size), np.zeros(size, np.int64))


def test_the_loss_falls():
    torch.manual_seed(0)
    task = make_task("task.width=16")
    model, batch = task.build_model(), read_batch(task.train_data())
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    losses = []
    for _ in range(200):
        loss = task.loss(model, batch)
        optimizer.zero_grad()
        (loss.total / loss.count).backward()
        optimizer.step()
        losses.append(float(loss.total))
    assert losses[-1] < losses[0] / 4


def test_a_sample_is_the_same_whenever_it_is_read():
    task = make_task()
    first, again = read_batch(task.train_data(), 8), read_batch(task.train_data(), 4)
    assert torch.equal(first["x"][:4], again["x"])


def test_every_parameter_is_in_one_group_and_the_best_measure_exists():
    task = make_task()
    model = task.build_model()
    names = [name for group in task.param_groups(model) for name in group.params]
    assert sorted(names) == sorted(name for name, _ in model.named_parameters())
    with torch.no_grad():
        sums = task.measures(model, read_batch(task.eval_data()))
    assert task.best[0] in task.summarize({name: float(value) for name, value in sums.items()})
