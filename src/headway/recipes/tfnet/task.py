"""TFNet's side of the bargain in PyTorch. Imported by ranks only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

from headway.recipes.tfnet.clips import Arrays, ClipData
from headway.recipes.tfnet.model import Tfnet, ctc_sum, distill_sum
from headway.recipes.tfnet.parts import TfnetParts
from headway.recipes.tfnet.section import PredictOptions
from headway.task import Batch, Ids, Loss, ParamGroup, Prediction, RunConfig, Task, make_groups


def make_task(config: RunConfig) -> TfnetTask:
    """Return the task of a resolved config."""
    return TfnetTask(config)


class TensorClips:
    """Clips as tensors."""

    def __init__(self, clips: ClipData) -> None:
        self._clips = clips

    def __len__(self) -> int:
        return len(self._clips)

    def batch(self, ids: Ids, epochs: Ids) -> dict[str, Tensor]:
        """Return the samples `ids`; `epochs` seeds augmentation."""
        return as_batch(self._clips.arrays(ids, epochs))


def as_batch(arrays: Arrays) -> dict[str, Tensor]:
    """Return arrays as tensors; the lengths twice, as the model asks for their order on the host."""
    batch = {name: torch.from_numpy(value) for name, value in arrays.items()}
    return {**batch, "host_lengths": batch["lengths"]}


class TfnetTask(Task):
    """The recipe, for one resolved config."""

    best: tuple[str, Literal["min", "max"]] = ("wer", "min")
    is_steady = False
    replaced = ("_ctc_loss_backward",)

    def __init__(self, config: RunConfig) -> None:
        self.parts = TfnetParts(config)
        self.config, self.section = config, self.parts.section

    def build_model(self) -> Tfnet:
        """Return the model with its initial weights; on the meta device, its shape alone."""
        model = Tfnet(self.section, len(self.parts.vocabulary))
        if not model.heads.get_parameter("time").is_meta:
            model.init_weights(self.config.seed)
        return model

    def train_data(self) -> TensorClips:
        """Return the augmented training clips."""
        return TensorClips(self.parts.data("train"))

    def eval_data(self) -> TensorClips:
        """Return the dev clips."""
        return TensorClips(self.parts.data("dev"))

    def example(self, samples: int) -> Batch:
        """Return clips of the most frames a clip may have: memory must do for the longest."""
        return as_batch(self.parts.longest_clips(samples))

    def data_id(self) -> dict[str, str]:
        """Return hashes of what is trained on."""
        return self.parts.data_id()

    def param_groups(self, model: nn.Module) -> list[ParamGroup]:
        """Return everything: nothing is frozen; Muon takes the kernels of the residual blocks."""
        return make_groups(model, self.blocks(model), self.config.optimizer, lr=self.config.lr.base)

    def blocks(self, model: nn.Module) -> Sequence[nn.Module]:
        """Return the residual blocks."""
        return [block for stage in model.get_submodule("frames.stages").children() for block in stage.children()]

    def loss(self, model: nn.Module, batch: Batch) -> Loss:
        """Return CTC of all heads and the distillation, added up over clips."""
        return Loss(self._total(model(batch["frames"], batch["host_lengths"]), batch), len(batch["lengths"]))

    def _total(self, logits: Mapping[str, Tensor], batch: Batch) -> Tensor:
        section = self.section
        heads = [head for head in logits if head != "fused" or section.frequency]
        total = torch.stack([ctc_sum(logits[head], batch) for head in heads]).sum()
        if section.distill == "off":
            return total
        for branch in ("time", "frequency") if section.frequency else ("time",):
            total = total + section.kd_weight * distill_sum(
                logits[f"{branch}_conv"],
                logits[f"{branch}_lstm"],
                batch["lengths"],
                temperature=section.kd_temperature,
                mode=section.distill,
            )
        return total

    def measures(self, model: nn.Module, batch: Batch) -> dict[str, Tensor]:
        """Return the sums behind the error rates and the loss."""
        logits = model(batch["frames"], batch["host_lengths"])
        host = {name: value.cpu().numpy() for name, value in batch.items() if name != "frames"}
        sums = self.parts.score(logits["fused"].float().cpu().numpy(), host)
        device = batch["lengths"].device
        counted = {name: torch.tensor(value, dtype=torch.float64, device=device) for name, value in sums.items()}
        return {**counted, "loss": self._total(logits, batch)}

    def summarize(self, sums: Mapping[str, float]) -> dict[str, float]:
        """Return word error rates in percent and the loss a clip."""
        return self.parts.summarize(sums)

    def describe(self, step: int, measures: Mapping[str, float]) -> dict[str, Any]:
        """Return the vocabulary and sizes that travel with the weights."""
        return self.parts.describe(step, measures)

    def check_export(self, described: Mapping[str, Any]) -> None:
        """Refuse a checkpoint whose words have other numbers."""
        self.parts.check_export(described)

    def predict(self, model: nn.Module, options: Mapping[str, Any], out: Path) -> Prediction:
        """Read clips, one row each."""
        asked = PredictOptions.model_validate(options)
        clips, found = self.parts.asked_clips(asked), []
        data = TensorClips(self.parts.open_clips(clips))
        device = next(model.parameters()).device
        for index in range(len(clips)):
            batch = data.batch(np.array([index]), np.array([0]))
            with torch.no_grad():
                logits = model(batch["frames"].to(device), batch["host_lengths"])["fused"]
            found += self.parts.decode(logits.float().cpu().numpy(), batch["lengths"].tolist(), asked.decoder)
        return Prediction(text=self.parts.table(clips, found))
