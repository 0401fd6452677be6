"""Batches in the order of the run, loaded by the rank itself or by worker processes. Both give the same batches."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from headway.process import die_with_parent
from headway.task import Data
from headway.task.order import Int64, Order, Share, micro_batches

Key = tuple[Int64, Int64]


@dataclass(slots=True)
class Loaded:
    """One micro-batch and which samples it holds."""

    batch: dict[str, Tensor]
    ids: Int64
    epochs: Int64


class _ByKey(Dataset):
    """A data set that takes whole micro-batches by their key."""

    def __init__(self, data: Data) -> None:
        self._data = data

    def __getitem__(self, key: Key) -> dict[str, Tensor]:
        return self._data.batch(*key)


class _Keys:
    """The keys of a run from a position on, as often as they are asked for."""

    def __init__(self, order: Order, share: Share, position: int, skips: list[tuple[int, int]]) -> None:
        self._args = (order, share, position, skips)

    def __iter__(self) -> Iterator[Key]:
        return micro_batches(*self._args)


def _serve_rank(rank: int, _: int) -> None:
    """Let the kernel end a worker whose rank (a pid) is gone; Ctrl-C and stop signals are the rank's affair."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    die_with_parent(rank)


def load(
    data: Data,
    share: Share,
    *,
    seed: int,
    position: int,
    workers: int,
    device: torch.device,
    skips: list[tuple[int, int]],
    prefetch: int = 2,
) -> Iterator[Loaded]:
    """Yield this rank's micro-batches from a position on, without end."""
    keys = _Keys(Order(len(data), seed), share, position, skips)
    if workers == 0:
        return (Loaded(data.batch(ids, epochs), ids, epochs) for ids, epochs in keys)
    loader = DataLoader(
        _ByKey(data),
        sampler=keys,
        batch_size=None,
        num_workers=workers,
        prefetch_factor=prefetch,
        worker_init_fn=partial(_serve_rank, os.getpid()),
        pin_memory=device.type == "cuda",
        multiprocessing_context="fork",
        # Its own: a draw from the global generator here would make a resumed run differ from an undisturbed one.
        generator=torch.Generator(),
    )
    return (Loaded(batch, *key) for batch, key in zip(loader, keys, strict=True))
