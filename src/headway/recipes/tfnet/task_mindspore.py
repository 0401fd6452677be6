"""TFNet's side of the bargain in MindSpore. Imported by ranks only."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np
from mindspore import Parameter, Tensor, amp, nn
from numpy.typing import NDArray

from headway.recipes.tfnet.clips import ClipData
from headway.recipes.tfnet.model_mindspore import Tfnet, TfnetLoss, portable_names
from headway.recipes.tfnet.parts import TfnetParts
from headway.recipes.tfnet.section import PredictOptions
from headway.recipes.tfnet.weights import start_weights
from headway.task import RunConfig
from headway.task.mindspore import Arrays, MindTask, Settings


def make_task(config: RunConfig) -> TfnetMindTask:
    """Return the task of a resolved config."""
    return TfnetMindTask(config)


class TfnetMindTask(MindTask):
    """The recipe, for one resolved config."""

    best: tuple[str, Literal["min", "max"]] = ("wer", "min")
    inputs = ("frames", "lengths", "labels", "label_lengths")
    measure_names = ("sentences", "words", "ratio", "sub", "dele", "ins", "loss")

    def __init__(self, config: RunConfig) -> None:
        self.parts = TfnetParts(config)
        self.config, self.section = config, self.parts.section
        own = self.section
        self.settings = Settings(
            device_target=own.device_target,
            device_id=own.device_id,
            is_graph=own.graph_mode and not own.force_pynative,
            has_graph_kernel=own.graph_kernel,
            max_memory=own.max_device_memory,
            block_size=own.mempool_block_size,
            has_offload=own.memory_offload,
            loss_scale=1.0 if own.amp_level == "O0" else own.loss_scale,
            prefetch=own.prefetch,
            has_sink=own.data_sink,
            is_profiled=own.profiling,
            is_dumped=own.dump,
        )

    def build_loss(self) -> TfnetLoss:
        """Return the loss around a model with its initial weights."""
        model = Tfnet(self.section, len(self.parts.vocabulary))
        named = portable_names(model)
        shapes = {name: tuple(param.shape) for name, param in named.items()}
        start = start_weights(shapes, seed=self.config.seed, frames_file=self.section.frames_file)
        for name, param in named.items():
            param.set_data(Tensor(start[name]))
        loss = TfnetLoss(model, self.section)
        if self.section.amp_level != "O0":
            # The model alone: CTC and the distillation stay in fp32, which they ask for themselves.
            loss.model = amp.auto_mixed_precision(model, self.section.amp_level)
        return loss

    def names(self, loss: nn.Cell) -> Mapping[str, Parameter]:
        """Return the model's weights and statistics by their names in any framework."""
        return portable_names(loss.model)

    def train_data(self) -> ClipData:
        """Return the augmented training clips."""
        return self.parts.data("train")

    def eval_data(self) -> ClipData:
        """Return the dev clips."""
        return self.parts.data("dev")

    def data_id(self) -> dict[str, str]:
        """Return hashes of what is trained on."""
        return self.parts.data_id()

    def measures(self, total: float, output: NDArray[Any], batch: Arrays) -> dict[str, float]:
        """Return the sums behind the error rates and the loss."""
        return {**self.parts.score(output.astype(np.float32), batch), "loss": total}

    def summarize(self, sums: Mapping[str, float]) -> dict[str, float]:
        """Return word error rates in percent and the loss a clip."""
        return self.parts.summarize(sums)

    def describe(self, step: int, measures: Mapping[str, float]) -> dict[str, Any]:
        """Return the vocabulary and sizes that travel with the weights."""
        return self.parts.describe(step, measures)

    def check_export(self, described: Mapping[str, Any]) -> None:
        """Refuse a checkpoint whose words have other numbers."""
        self.parts.check_export(described)

    def predict(self, loss: nn.Cell, options: Mapping[str, Any], out: Path) -> str:
        """Read clips, one row each."""
        asked = PredictOptions.model_validate(options)
        clips, found = self.parts.asked_clips(asked), []
        data = self.parts.open_clips(clips)
        for index in range(len(clips)):
            batch = data.arrays(np.array([index]), np.array([0]))
            logits = loss.model(Tensor(batch["frames"]), Tensor(batch["lengths"].astype(np.int32)))[-1]
            found += self.parts.decode(logits.asnumpy(), batch["lengths"].tolist(), asked.decoder)
        return self.parts.table(clips, found)
