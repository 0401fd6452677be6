"""What a LayoutMaster run may ask for beside the general keys, and what must agree."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from headway.errors import ConfigError
from headway.task import Count, PathText, Positive, Section, Share, Whole

STATE_DIM = 6
"""Numbers of one element: x, y, w, h, layer, confidence."""
LEVELS = (0.1, 0.2, 0.3, 0.4, 0.5)
"""How far the start layouts of a poster are disturbed."""
QWEN = "Qwen-VL-2.5-3B-Instruct"

Weight = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class LossWeights(Section):
    """Factors of the seven terms of the loss."""

    noise: Weight = 1.0
    """Weight of the Huber loss of what the network predicts; the original ignores it, so there it must stay 1."""
    position: Weight = 1.0
    """Weight of the loss of the boxes: squared error plus half of 1 - IoU."""
    layer: Weight = 0.5
    """Weight of the loss of the layers: squared error plus 0.3 times the cross-entropy of each pair's order."""
    confidence: Weight = 0.3
    """Weight of the squared error of the confidence."""
    aesthetic: Weight = 0.2
    """Weight of the aesthetic loss: golden ratio, equal areas, centre of gravity."""
    overlap: Weight = 0.8
    """Weight of the overlap loss: the overlap of each pair as a share of the smaller box."""
    alignment: Weight = 0.4
    """Weight of the alignment loss: edges that are almost, but not quite, aligned."""


class LayoutMasterSection(Section):
    """Model size, data, diffusion and loss of LayoutMaster."""

    head_mode: Literal["fixed", "original"] = "fixed"
    """fixed: the corrected maths; original: the published maths, whose loss explodes and never falls."""
    hidden_dim: Annotated[int, Field(ge=8)] = 512
    """Width of the transformer."""
    num_layers: Count = 12
    """Number of blocks, each with attention over elements, attention to the images and a feed-forward part."""
    num_heads: Count = 8
    """Attention heads."""
    max_elements: Annotated[int, Field(ge=2)] = 25
    """Most elements of a poster; if there are more, the lowest layers are kept."""
    layer_scale: Count | None = None
    """Layers are divided by this to reach -1 to 1 (the guide's top-level max_elements); none: max_elements."""
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.1
    """Dropout of attention, feed-forward part and head."""
    visual_backbone: Literal["small", "simple-cnn", "clip", "Qwen-VL-2.5-3B-Instruct"] = "simple-cnn"
    """Network that encodes the images; only clip has weights to load."""
    visual_dim: Count = 768
    """Width of the image features."""
    backbone_path: PathText | None = None
    """Folder with config.json and model.safetensors of a CLIP model, for `clip` (needs transformers)."""
    freeze_visual: bool = True
    """Do not train the backbone; false: train it with the rest."""
    data_dir: PathText = "~/.cache/headway/layoutmaster"
    """Folder with one directory per poster (the guide's data-action_head)."""
    synthetic: bool = False
    """If data_dir has no posters, create small synthetic ones instead of stopping."""
    train_ratio: Annotated[float, Field(gt=0, lt=1)] = 0.8
    """Share of the posters, sorted by name, used for training; the rest is held out."""
    image_size: Annotated[int, Field(ge=8, le=1024)] = 224
    """Height and width, in pixels, of an element's image as the backbone sees it."""
    canvas_size: tuple[Count, Count] = (1024, 1024)
    """Width and height every poster is scaled to."""
    use_trajectory_dataset: bool = True
    """The folder format; the older JSONL format is not read."""
    num_timesteps: Annotated[int, Field(ge=2)] = 1000
    """Steps of the diffusion."""
    beta_start: Positive = 1e-4
    """Noise of the first step; linear schedule."""
    beta_end: Positive = 0.02
    """Noise of the last step; linear schedule."""
    schedule_type: Literal["linear", "cosine"] = "linear"
    """How the noise grows."""
    prediction_type: Literal["sample", "epsilon"] | None = None
    """What the network predicts: the clean layout or the noise; none: sample when fixed, epsilon when original."""
    trajectory_steps: Annotated[int, Field(ge=2)] = 50
    """Number of points in each trajectory that the generator writes."""
    loss: LossWeights = Field(default_factory=LossWeights)
    """Factors of the seven terms."""
    betas: tuple[Share, Share] | None = None
    """Both decays of AdamW as the guide writes them; none: optimizer.beta1 and optimizer.beta2."""
    num_steps: Count = 50
    """DDIM steps of a trial and of `headway predict`."""
    eval_steps: Count = 10
    """DDIM steps of a validation."""

    @property
    def predicts_noise(self) -> bool:
        """Whether the network answers with the noise."""
        return self.prediction_type == "epsilon" or (self.prediction_type is None and self.head_mode == "original")

    @property
    def layers(self) -> int:
        """What layers are divided by."""
        return self.layer_scale or self.max_elements

    @model_validator(mode="after")
    def _parts_agree(self) -> Self:
        if self.hidden_dim % self.num_heads or self.hidden_dim % 4:
            step = self.num_heads * (4 if self.num_heads % 4 else 1)
            near = max(step, round(self.hidden_dim / step) * step)
            raise ConfigError("layoutmaster/heads", width=self.hidden_dim, heads=self.num_heads, near=near)
        if self.layers < self.max_elements:
            raise ConfigError("layoutmaster/layer-scale", scale=self.layers, elements=self.max_elements)
        if self.visual_backbone == "clip" and self.backbone_path is None:
            raise ConfigError("layoutmaster/backbone-not-set")
        if not self.use_trajectory_dataset:
            raise ConfigError("layoutmaster/jsonl")
        self._check_diffusion()
        return self

    def _check_diffusion(self) -> None:
        if self.head_mode == "original" and not self.predicts_noise:
            raise ConfigError("layoutmaster/original-predicts-noise")
        if self.head_mode == "original" and self.loss.noise != 1.0:
            raise ConfigError("layoutmaster/noise-weight", weight=self.loss.noise)
        if self.beta_end >= 1 or self.beta_start > self.beta_end:
            raise ConfigError("layoutmaster/betas", start=self.beta_start, end=self.beta_end)
        for key, steps in (("num_steps", self.num_steps), ("eval_steps", self.eval_steps)):
            if steps > self.num_timesteps:
                raise ConfigError("layoutmaster/too-many-steps", key=key, steps=steps, most=self.num_timesteps)


class PredictOptions(Section):
    """What `headway predict` may ask of a trained model."""

    num_samples: Count = 10
    """Held-out posters to lay out."""
    poster_dir: PathText = ""
    """One poster's folder instead; empty: held-out posters."""
    steps: Whole = 0
    """DDIM steps; 0: task.num_steps."""
    start: Literal["noise", "given"] = "noise"
    """noise: from the images alone; given: repair the disturbed layout."""
    strength: Annotated[float, Field(gt=0, le=1)] = 0.3
    """With start=given: how much of the diffusion the disturbed layout goes through."""
    seed: Whole = 0
    """Seed of the noise."""
