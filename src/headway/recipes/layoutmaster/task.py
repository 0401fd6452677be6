"""LayoutMaster's side of the bargain: its model, its posters, its loss and its measures. Imported by ranks only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

from headway.recipes.layoutmaster.data import Index, open_index
from headway.recipes.layoutmaster.diffusion import Diffusion, as_published, in_pixels, make_diffusion, normalized
from headway.recipes.layoutmaster.export import meta_json
from headway.recipes.layoutmaster.losses import Answer, Terms, fixed_terms, original_terms
from headway.recipes.layoutmaster.metrics import metric_sums, summarize_metrics
from headway.recipes.layoutmaster.model import LayoutDiffusionTransformer, LayoutMaster, size_of
from headway.recipes.layoutmaster.samples import PosterData, Range, example_batch
from headway.recipes.layoutmaster.section import LayoutMasterSection, PredictOptions
from headway.recipes.layoutmaster.visual import batch_norms, build_visual
from headway.task import Batch, Loss, ParamGroup, Prediction, RunConfig, Task, build_on_cpu, make_groups, to_device

_TRIAL_BATCH = 32


def make_task(config: RunConfig) -> LayoutMasterTask:
    """Return the task of a resolved config."""
    return LayoutMasterTask(config)


class LayoutMasterTask(Task):
    """The recipe, for one resolved config."""

    best: tuple[str, Literal["min", "max"]] = ("mean_iou", "max")

    def __init__(self, config: RunConfig) -> None:
        self.config = config
        self.section: LayoutMasterSection = config.task
        self.is_fixed = self.section.head_mode == "fixed"
        self._diffusions: dict[torch.device, Diffusion] = {}

    def build_model(self) -> LayoutMaster:
        """Return the model; weights that do not train come from the seed, so a restart sees the same features."""
        device = torch.get_default_device()
        with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
            torch.manual_seed(self.config.seed)
            visual = build_on_cpu(lambda: build_visual(self.section))
            return LayoutMaster(visual, LayoutDiffusionTransformer(size_of(self.section)))

    def train_data(self) -> PosterData:
        """Return the first posters by name."""
        folder, index = self._prepared
        return PosterData(folder, index, Range(0, index.num_train), is_shuffled=self.is_fixed)

    def eval_data(self) -> PosterData:
        """Return the posters that are held out."""
        folder, index = self._prepared
        return PosterData(folder, index, Range(index.num_train, len(index.names)), is_shuffled=self.is_fixed)

    def example(self, samples: int) -> Batch:
        """Return full posters."""
        return example_batch(self.section, samples)

    def data_id(self) -> dict[str, str]:
        """Return a hash of the arrays themselves: equal where, and only where, the data is equal."""
        return dict(self._prepared[1].content)

    def param_groups(self, model: nn.Module) -> list[ParamGroup]:
        """Return all that trains; Muon takes the matrices of the blocks."""
        own = self.config.optimizer
        beta1, beta2 = self.section.betas or (own.beta1, own.beta2)
        own = own.model_copy(update={"beta1": beta1, "beta2": beta2})
        return make_groups(model, self.blocks(model), own, lr=self.config.lr.base)

    def blocks(self, model: nn.Module) -> Sequence[nn.Module]:
        """Return the transformer blocks."""
        return list(model.get_submodule("layout.transformer_layers").children())

    def frozen(self, model: nn.Module) -> Sequence[nn.Module]:
        """Return the backbone when it does not train, and batch norms always: no replica's statistics may drift."""
        return [model.get_submodule("visual")] if self.section.freeze_visual else batch_norms(model)

    def loss(self, model: nn.Module, batch: Batch) -> Loss:
        """Return the weighted sum of the seven terms over the posters."""
        terms = self.terms(model, batch)
        return Loss(self._weighted(terms).sum(), len(batch["mask"]))

    def terms(self, model: nn.Module, batch: Batch) -> Terms:
        """Return the seven terms of each poster at timesteps and noise drawn from torch's generator."""
        mask, target = batch["mask"], batch["target"]
        diffusion = self._diffusion(target.device)
        clean = normalized(target, self.section)
        timesteps = torch.randint(self.section.num_timesteps, (len(mask),), device=mask.device)
        noise = torch.randn_like(clean)
        noisy = diffusion.noised(clean, noise, timesteps) * mask[..., None]
        said = model(mask, images_M=batch["images"], noisy_BND=noisy, timesteps_B=timesteps).float()
        is_noise = self.section.predicts_noise
        layout = diffusion.clean_from_noise(noisy, said, timesteps) if is_noise else said
        answer = Answer(
            said=said,
            wanted=noise if is_noise else clean,
            layout=in_pixels(layout.clamp(-1, 1), self.section)
            if self.is_fixed
            else as_published(layout, self.section),
            target=target,
            mask=mask,
            canvas=self.section.canvas_size,
            layers=self.section.layers,
        )
        if not self.is_fixed:
            return original_terms(answer)
        # What is left of the layout in the noise is what its terms can be asked for.
        kept = diffusion.kept[timesteps]
        return {name: term if name == "noise" else kept * term for name, term in fixed_terms(answer).items()}

    def _in_pixels(self, layout: Tensor) -> Tensor:
        return in_pixels(layout.clamp(-1, 1), self.section) if self.is_fixed else as_published(layout, self.section)

    def _weighted(self, terms: Terms) -> Tensor:
        weights = self.section.loss.model_dump()
        return torch.stack([weights[name] * term for name, term in terms.items()]).sum(0)

    def measures(self, model: nn.Module, batch: Batch) -> dict[str, Tensor]:
        """Return the sums behind the loss and the metrics of layouts sampled from the images alone."""
        loss = self._weighted(self.terms(model, batch)).double().sum()
        return {"loss": loss, **self._measure(model, batch, self.section.eval_steps)}

    def summarize(self, sums: Mapping[str, float]) -> dict[str, float]:
        """Return the metrics and the mean loss a poster."""
        return {**summarize_metrics(sums), "loss": sums["loss"] / sums["layouts"]}

    def trial(self, model: nn.Module, *, part: int, parts: int) -> dict[str, Tensor]:
        """Lay out this rank's part of the held-out posters with all DDIM steps."""
        data = self.eval_data()
        ids = np.arange(len(data), dtype=np.int64)[part::parts]
        sums: dict[str, Tensor] = {}
        for start in range(0, max(1, len(ids)), _TRIAL_BATCH):
            some = ids[start : start + _TRIAL_BATCH]
            # A rank without a poster still answers with the same names.
            real = len(some) > 0
            some = some if real else np.zeros(1, np.int64)
            batch = to_device(data.batch(some, np.zeros_like(some)), next(model.parameters()).device)
            for name, value in self._measure(model, batch, self.section.num_steps).items():
                sums[name] = sums.get(name, torch.zeros_like(value)) + (value if real else torch.zeros_like(value))
        return sums

    def summarize_trial(self, sums: Mapping[str, float]) -> dict[str, float]:
        """Return the metrics under names that tell them from those of a validation."""
        return {f"sampled_{name}": value for name, value in summarize_metrics(sums).items()}

    def describe(self, step: int, measures: Mapping[str, float]) -> dict[str, Any]:
        """Return what the original keeps in a checkpoint beside the weights."""
        return meta_json(self.config, step, measures, self._prepared[1].num_train)

    def predict(self, model: nn.Module, options: Mapping[str, Any], out: Path) -> Prediction:
        """Lay out held-out posters, or one poster's folder; write a JSON and three pictures of each."""
        # Only here: training never draws, and ranks start faster without pillow.
        from headway.recipes.layoutmaster.predict import predict_posters

        return predict_posters(self, model, PredictOptions.model_validate(options), out)

    def sample(
        self, model: nn.Module, batch: Batch, noise: Tensor, steps: int, *, strength: float | None = None
    ) -> Tensor:
        """Return sampled layouts (B, N, 6) in pixels: from pure noise, or from the start layouts with some noise."""
        mask = batch["mask"]
        diffusion = self._diffusion(mask.device)
        features = model(mask, images_M=batch["images"])

        def denoise(noisy: Tensor, timesteps: Tensor) -> Tensor:
            noisy = noisy * mask[..., None]
            said = model(mask, features_BNV=features, noisy_BND=noisy, timesteps_B=timesteps).float()
            return diffusion.clean_from_noise(noisy, said, timesteps) if self.section.predicts_noise else said

        first = None if strength is None else max(0, round(strength * self.section.num_timesteps) - 1)
        if first is not None:
            given = normalized(batch["start"], self.section)
            noise = diffusion.noised(given, noise, torch.full((len(mask),), first, device=mask.device))
        return in_pixels(diffusion.sample(denoise, noise, steps, first=first), self.section) * mask[..., None]

    def _measure(self, model: nn.Module, batch: Batch, steps: int) -> dict[str, Tensor]:
        layout = self.sample(model, batch, torch.randn_like(batch["target"]), steps)
        truth = (batch["target"], batch["start"], batch["mask"], batch["backdrop"])
        return metric_sums(layout, *truth, self.section.canvas_size)

    def _diffusion(self, device: torch.device) -> Diffusion:
        if device not in self._diffusions:
            self._diffusions[device] = make_diffusion(self.section, device)
        return self._diffusions[device]

    @cached_property
    def _prepared(self) -> tuple[Path, Index]:
        return open_index(self.section)
