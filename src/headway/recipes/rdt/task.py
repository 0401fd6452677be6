"""RDT's side of the bargain: its model, its samples, its loss and its measures. Imported by ranks only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor, nn

from headway.recipes.rdt import slots
from headway.recipes.rdt.data import Index, choose_statistics, open_index
from headway.recipes.rdt.diffusion import add_noise, alphas_cumprod
from headway.recipes.rdt.encoders import encode_sentences, make_vision
from headway.recipes.rdt.example import example_batch, example_sentences
from headway.recipes.rdt.export import describe_checkpoint
from headway.recipes.rdt.model import RdtRunner
from headway.recipes.rdt.policy import Policy, action_slots, live_slots
from headway.recipes.rdt.pretrained import load_pretrained
from headway.recipes.rdt.samples import ChunkData
from headway.recipes.rdt.section import PredictOptions, RdtSection
from headway.recipes.rdt.trial import sample_chunks, summarize_sums, try_episodes, watch
from headway.recipes.rdt.world import TASKS
from headway.task import Batch, Loss, ParamGroup, Prediction, RunConfig, Task, make_groups


def make_task(config: RunConfig) -> RdtTask:
    """Return the task of a resolved config."""
    return RdtTask(config)


class RdtTask(Task):
    """The recipe, for one resolved config."""

    best: tuple[str, Literal["min", "max"]] = ("loss", "min")

    def __init__(self, config: RunConfig) -> None:
        self.config = config
        self.section: RdtSection = config.task
        self._is_sketch = False
        self._moved: dict[tuple[str, torch.device], Tensor] = {}

    def build_model(self) -> RdtRunner:
        """Return the model with its initial or pretrained weights; on the meta device, its shape alone."""
        model = RdtRunner(self.section, make_vision(self.section))
        if not model.model.x_pos_embed.is_meta:
            model.init_weights()
            if self.section.pretrained:
                load_pretrained(model, Path(self.section.pretrained).expanduser())
        return model

    def train_data(self) -> ChunkData:
        """Return every step of the training demonstrations."""
        return self._data(held_out=False, seed=self.config.seed)

    def eval_data(self) -> ChunkData:
        """Return every step of the held-out demonstrations, nothing hidden, no noise."""
        return self._data(held_out=True, seed=None)

    def _data(self, *, held_out: bool, seed: int | None) -> ChunkData:
        return ChunkData(self.section, self._index, held_out=held_out, statistics=self._statistics, seed=seed)

    def example(self, samples: int) -> Batch:
        """Return a batch of the right shapes, without the data; from here on the sentences are an example's too."""
        self._is_sketch = True
        self._moved.clear()
        return example_batch(self.section, samples)

    def data_id(self) -> dict[str, str]:
        """Return a hash of the demonstrations, and which of their steps are samples."""
        return {"demos": self._index.content, "holdout": str(self.section.holdout), "tail": self.section.tail}

    def param_groups(self, model: nn.Module) -> list[ParamGroup]:
        """Return all trained parameters; Muon takes the matrices of the blocks."""
        return make_groups(model, self.blocks(model), self.config.optimizer, lr=self.config.lr.base)

    def blocks(self, model: nn.Module) -> Sequence[nn.Module]:
        """Return the transformer blocks."""
        return list(model.get_submodule("model.blocks").children())

    def frozen(self, model: nn.Module) -> Sequence[nn.Module]:
        """Return the picture encoder."""
        return [model.get_submodule("vision_model")]

    def loss(self, model: nn.Module, batch: Batch) -> Loss:
        """Return the squared error of the clean chunk, over this robot's slots; in the original over all 128."""
        clean = batch["actions"]
        error = self._predict_clean(model, batch) - clean
        if self.section.loss == "original":
            return Loss(error.float().square().sum(), clean.numel())
        live = error[..., self._there("slots", clean.device)].float()
        return Loss(live.square().sum(), live.numel())

    def _predict_clean(self, model: nn.Module, batch: Batch) -> Tensor:
        clean = batch["actions"]
        noise = torch.randn_like(clean)
        levels = torch.randint(self.section.num_train_timesteps, (len(clean),), device=clean.device)
        noisy = add_noise(clean, noise, levels, self._there("kept", clean.device)) * self._there("live", clean.device)
        return model(noisy, levels, **self._give(batch))

    def _there(self, name: str, device: torch.device) -> Tensor:
        """Return what never changes on a device; it is moved once, for the host waits until such a copy has arrived."""
        if (name, device) not in self._moved:
            made = {
                "slots": lambda: self._slots,
                "kept": lambda: self._kept,
                "live": lambda: live_slots(self.section, device),
                "sentences": lambda: self._sentences[0],
                "sentence-masks": lambda: self._sentences[1],
            }[name]()
            self._moved[name, device] = made.to(device)
        return self._moved[name, device]

    def _give(self, batch: Batch) -> dict[str, Tensor | tuple[Tensor, Tensor]]:
        """Return the model's conditions from a batch."""
        device = batch["lang"].device
        return {
            "lang": self._there("sentences", device)[batch["lang"]],
            "lang_mask": self._there("sentence-masks", device)[batch["lang"]],
            "images": batch["images"],
            "state": batch["state"],
            "masks": (batch["state_mask"], batch["action_mask"]),
            "freq": batch["freq"],
        }

    def measures(self, model: nn.Module, batch: Batch) -> dict[str, Tensor]:
        """Return the squared errors over this robot's slots and over all 128, whichever of them is trained on."""
        error = (self._predict_clean(model, batch) - batch["actions"]).double().square()
        live = error * action_slots(error.device)
        num = torch.tensor(len(error) * self.section.action_chunk_size, dtype=torch.float64)
        return {"live": live.sum(), "all": error.sum(), "actions": num.to(error.device)}

    def summarize(self, sums: Mapping[str, float]) -> dict[str, float]:
        """Return the mean squared error a live slot, and as the published log shows it, a slot of all 128."""
        num = sums["actions"]
        return {"loss": sums["live"] / (num * len(self._slots)), "diluted_loss": sums["all"] / (num * slots.WIDTH)}

    def trial(self, model: nn.Module, *, part: int, parts: int) -> dict[str, Tensor]:
        """Draw whole chunks for held-out steps, then drive the arm where there is a world to drive it in."""
        policy = self._policy(model)
        found = sample_chunks(policy, self.eval_data(), self._statistics, part=part, parts=parts)
        found |= try_episodes(policy, part=part, parts=parts)
        return {name: torch.tensor(value, dtype=torch.float64) for name, value in found.items()}

    def _policy(self, model: nn.Module) -> Policy:
        assert isinstance(model, RdtRunner)
        sentences = list(self._index.instructions.values())
        places = {task: 1 + sentences.index(text) for task, text in enumerate(TASKS) if text in sentences}
        return Policy(self.section, model, self._give, places)

    def summarize_trial(self, sums: Mapping[str, float]) -> dict[str, float]:
        """Return the published sampling measures, and the rate of success with its 95% interval."""
        return summarize_sums(sums)

    def describe(self, step: int, measures: Mapping[str, float]) -> dict[str, Any]:
        """Return what the published loader reads beside the weights."""
        return describe_checkpoint(self.config, step)

    def predict(self, model: nn.Module, options: Mapping[str, Any], out: Path) -> Prediction:
        """Drive the arm and write the videos and the result."""
        return watch(self._policy(model), PredictOptions.model_validate(options), out)

    @cached_property
    def _index(self) -> Index:
        return open_index(self.section)

    @cached_property
    def _statistics(self) -> Mapping[str, Any]:
        return choose_statistics(self.section, self._index)

    @cached_property
    def _sentences(self) -> tuple[Tensor, Tensor]:
        if self._is_sketch:
            return example_sentences(self.section)
        return encode_sentences(self.section, ["", *self._index.instructions.values()])

    @cached_property
    def _kept(self) -> Tensor:
        return alphas_cumprod(self.section.num_train_timesteps)

    @cached_property
    def _slots(self) -> Tensor:
        return torch.from_numpy(slots.ACTION_SLOTS)
