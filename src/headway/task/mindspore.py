"""What a recipe gives to the MindSpore loop."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from mindspore import Parameter, nn

Arrays = dict[str, NDArray[np.generic]]
Ids = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How MindSpore itself is set up."""

    device_target: Literal["auto", "CPU", "GPU", "Ascend"] = "auto"
    device_id: int | None = None
    is_graph: bool = True
    has_graph_kernel: bool = False
    max_memory: str | None = None
    block_size: str | None = None
    has_offload: bool = False
    loss_scale: float = 1.0
    prefetch: int = 2
    has_sink: bool = False
    is_profiled: bool = False
    is_dumped: bool = False


class ArrayData(Protocol):
    """Samples by index, as arrays; a sample is a pure function of (index, epoch)."""

    def __len__(self) -> int:
        """Return how many samples there are."""
        ...

    def arrays(self, ids: Ids, epochs: Ids) -> Arrays:
        """Return the samples `ids`."""
        ...


class MindTask(ABC):
    """One recipe's side of the bargain, in MindSpore."""

    best: tuple[str, Literal["min", "max"]]
    """The measure that decides which checkpoint is best."""
    inputs: Sequence[str]
    """Arrays of a batch the loss takes, in order."""
    measure_names: Sequence[str]
    """Names of the sums `measures` returns."""
    settings: Settings

    @abstractmethod
    def build_loss(self) -> nn.Cell:
        """Return a cell that takes `inputs` and returns the sum of the loss and what `measures` needs."""

    @abstractmethod
    def names(self, loss: nn.Cell) -> Mapping[str, Parameter]:
        """Return every weight and statistic by its name in checkpoints."""

    @abstractmethod
    def train_data(self) -> ArrayData:
        """Return the training samples."""

    @abstractmethod
    def eval_data(self) -> ArrayData:
        """Return the held-out samples."""

    @abstractmethod
    def data_id(self) -> Mapping[str, str]:
        """Return a fingerprint of the training data."""

    @abstractmethod
    def measures(self, total: float, output: NDArray[Any], batch: Arrays) -> dict[str, float]:
        """Return named sums over one validation batch."""

    @abstractmethod
    def summarize(self, sums: Mapping[str, float]) -> dict[str, float]:
        """Turn the added-up sums into the measures people read."""

    @abstractmethod
    def describe(self, step: int, measures: Mapping[str, float]) -> dict[str, Any]:
        """Return what an exported checkpoint says about itself."""

    @abstractmethod
    def check_export(self, described: Mapping[str, Any]) -> None:
        """Refuse a checkpoint that does not fit this task, from what `describe` said when it was written."""

    @abstractmethod
    def predict(self, loss: nn.Cell, options: Mapping[str, Any], out: Path) -> str:
        """Produce something with the trained model; return the words for the screen."""
