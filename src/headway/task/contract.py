"""What a recipe gives to the loop: its model, its batches, its loss and its measures."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

from headway.errors import TrainError

if TYPE_CHECKING:
    # Only names of types: a recipe's preset imports this package on the control side, where no framework is loaded.
    import numpy as np
    import torch
    from torch import Tensor, nn

Batch: TypeAlias = "Mapping[str, Tensor]"
Ids: TypeAlias = "np.ndarray"
"""int64, one entry per sample."""


@dataclass(frozen=True, slots=True)
class Loss:
    """A loss as sum and count. Only the loop divides, over all ranks and micro-batches."""

    total: Tensor
    """Scalar sum over the batch, in fp32, with its graph."""
    count: Tensor | int
    """What the sum runs over: samples, tokens."""


class Data(Protocol):
    """Samples by index. A sample is a pure function of (index, epoch), so order and workers cannot change it."""

    def __len__(self) -> int:
        """Return how many samples there are."""
        ...

    def batch(self, ids: Ids, epochs: Ids) -> dict[str, Tensor]:
        """Return the samples `ids`; `epochs` seeds augmentation, together with the index."""
        ...


@dataclass(slots=True, kw_only=True)
class ParamGroup:
    """Parameters that share an optimizer and its numbers."""

    params: dict[str, nn.Parameter]
    """By their name in the model."""
    optimizer: Literal["adamw", "adam", "muon", "sgd"]
    lr: float
    """Rate before the plan's factor and the schedule."""
    beta1: float = 0.9
    beta2: float = 0.999
    eps: float = 1e-8
    weight_decay: float = 0.0
    momentum: float = 0.95
    """Muon: Nesterov momentum after the ramp. SGD: momentum, 0 for none."""
    nesterov: bool = False
    """SGD: use Nesterov momentum."""
    momentum_start: float = 0.95
    """Muon: momentum at step 0."""
    momentum_ramp_steps: int = 0
    """Muon: steps over which the momentum rises from start to its value."""
    is_like_adamw: bool = False
    """Muon: a move is as large as AdamW's usually is (RMS 0.2 of the rate), so both can share a rate; otherwise it is
    of length one in every direction, as the rates of the original expect."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """What a trained model produced: words for the screen, and files."""

    text: str
    files: tuple[Path, ...] = ()


class Task(ABC):
    """One recipe's side of the bargain. The loop owns accumulation, clipping, precision, checkpoints and events."""

    best: tuple[str, Literal["min", "max"]]
    """The measure that decides which checkpoint is best."""
    is_steady: bool = True
    """Whether batches have the same shape in every step, so that trying GPU kernels for a shape pays."""
    replaced: Sequence[str] = ()
    """Operations of the CPU that the task does otherwise on a GPU: a trace on the CPU takes them for its own."""

    @abstractmethod
    def build_model(self) -> nn.Module:
        """Return the model with its initial weights, on the default device."""

    @abstractmethod
    def train_data(self) -> Data:
        """Return the training samples."""

    @abstractmethod
    def eval_data(self) -> Data:
        """Return the held-out samples."""

    @abstractmethod
    def data_id(self) -> Mapping[str, str]:
        """Return a fingerprint of the training data; a resumed run with another one is refused."""

    @abstractmethod
    def param_groups(self, model: nn.Module) -> Sequence[ParamGroup]:
        """Return every trainable parameter in exactly one group."""

    @abstractmethod
    def blocks(self, model: nn.Module) -> Sequence[nn.Module]:
        """Return the repeated parts: units of sharding and of activation checkpointing."""

    @abstractmethod
    def loss(self, model: nn.Module, batch: Batch) -> Loss:
        """Return the sum and count of the loss over one micro-batch; random draws come from torch's own generator."""

    @abstractmethod
    def measures(self, model: nn.Module, batch: Batch) -> dict[str, Tensor]:
        """Return named sums over one validation batch; they are added over batches and ranks.

        Draws from torch's generator are seeded by the batch, so a validation is the same whenever it runs.
        """

    @abstractmethod
    def summarize(self, sums: Mapping[str, float]) -> dict[str, float]:
        """Turn the added-up sums into the measures people read; must contain `best`'s."""

    def example(self, samples: int) -> Batch:
        """Return a training batch of so many samples whose shapes and types are true; the planner traces a step on it.

        Override it where the data may not be there yet.
        """
        import numpy as np

        ids = np.arange(samples, dtype=np.int64) % len(data := self.train_data())
        return data.batch(ids, np.zeros(samples, np.int64))

    def frozen(self, model: nn.Module) -> Sequence[nn.Module]:
        """Return modules that stay in eval mode through training; parameters without gradient are never saved."""
        return ()

    def trial(self, model: nn.Module, *, part: int, parts: int) -> dict[str, Tensor]:
        """Use the model as its users will (sample, roll out), this rank's part of it; return named sums, or nothing.

        Too slow for every validation: it runs at the end of a run, every `eval.trial_every` steps, and in
        `headway eval`. Whatever it raises costs the run only this trial.
        """
        return {}

    def summarize_trial(self, sums: Mapping[str, float]) -> dict[str, float]:
        """Turn a trial's added-up sums into the measures people read."""
        return dict(sums)

    def describe(self, step: int, measures: Mapping[str, float]) -> dict[str, Any]:
        """Return what an exported checkpoint says about itself in the guide's own words; kept in every manifest."""
        return {}

    def check_export(self, described: Mapping[str, Any]) -> None:  # noqa: B027  # most checkpoints fit by their shapes
        """Refuse a checkpoint that does not fit this task, from what `describe` said when it was written."""

    def predict(self, model: nn.Module, options: Mapping[str, Any], out: Path) -> Prediction:
        """Produce something with the trained model; `options` passed the recipe's `predict` section."""
        raise TrainError("engine/cannot-predict", task=type(self).__name__)


def to_device(batch: Batch, device: torch.device) -> dict[str, Tensor]:
    """Move a batch; on CUDA without waiting for the copy. What a task calls `host_…` stays where the host reads it."""
    return {
        name: value if name.startswith("host_") else value.to(device, non_blocking=True)
        for name, value in batch.items()
    }
