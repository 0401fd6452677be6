"""An ordinary torch Dataset in a recipe: the same samples in every order, process and attempt."""

import random

import numpy as np
import torch
from torch.utils.data import Dataset

from headway.engine.loader import load
from headway.task import Samples
from headway.task.order import Share


class Noisy(Dataset):
    """Every kind of generator an augmentation may use."""

    def __len__(self):
        return 7

    def __getitem__(self, index):
        noise = random.random() + float(np.random.rand()) + float(torch.rand(()))
        return torch.tensor([index + noise]), index


def test_a_sample_depends_on_seed_epoch_and_index_only():
    data = Samples(Noisy(), seed=3)
    ids, epochs = np.array([0, 1, 2, 0]), np.array([0, 0, 0, 1])
    together = data.batch(ids, epochs)
    alone = data.batch(ids[2:3], epochs[2:3])
    assert torch.equal(together["0"][2:3], alone["0"]) and together["1"].tolist() == [0, 1, 2, 0]
    assert not torch.equal(together["0"][0], together["0"][3])
    assert not torch.equal(together["0"], Samples(Noisy(), seed=4).batch(ids, epochs)["0"])


def test_reading_samples_leaves_the_loops_generators_alone():
    data = Samples(Noisy(), seed=3)
    for seed in (random.seed, np.random.seed, torch.manual_seed):
        seed(5)
    wanted = random.random(), np.random.rand(), float(torch.rand(()))
    for seed in (random.seed, np.random.seed, torch.manual_seed):
        seed(5)
    data.batch(np.array([1]), np.array([0]))
    assert (random.random(), np.random.rand(), float(torch.rand(()))) == wanted


def test_workers_and_a_resumed_position_give_the_same_batches():
    data = Samples(Noisy(), seed=3)

    def batches(position, workers, num):
        loaded = load(
            data,
            Share(0, 1, 2, 1),
            seed=3,
            position=position,
            workers=workers,
            device=torch.device("cpu"),
            skips=[],
        )
        return [next(loaded).batch["0"].tolist() for _ in range(num)]

    whole = batches(0, 0, 6)
    assert batches(0, 2, 6) == whole
    assert batches(6, 0, 3) == whole[3:]
