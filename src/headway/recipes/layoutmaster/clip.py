"""The image half of a CLIP model, from a folder in the Hugging Face form; transformers reads it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from torch import Tensor, nn
from torch._guards import detect_fake_mode

from headway.errors import CheckError

_PREFIXES = ("vision_model.", "visual_projection.")
Means = tuple[float, float, float]
_MEAN, _STD = (0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)
"""OpenAI's, which transformers takes too where a folder has no preprocessor_config.json."""


class ClipVision(nn.Module):
    """What CLIP calls `encode_image`."""

    def __init__(self, inner: Any) -> None:  # Any: transformers' CLIPVisionModelWithProjection
        super().__init__()
        self.vision_model, self.visual_projection = inner.vision_model, inner.visual_projection

    def forward(self, pixels: Tensor) -> Tensor:
        return self.visual_projection(self.vision_model(pixel_values=pixels).pooler_output)


def load_clip(path: str, image_size: int) -> tuple[ClipVision, int]:
    """Return the image half of a CLIP folder (config.json, model.safetensors) and the width of its features."""
    folder = Path(path).expanduser()
    try:
        # Seconds to import, and only this backbone needs it.
        from transformers import CLIPVisionConfig, CLIPVisionModelWithProjection
    except ImportError as err:
        raise CheckError("layoutmaster/no-transformers", folder=folder) from err
    try:
        told = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        config = CLIPVisionConfig(**{**told["vision_config"], "projection_dim": int(told["projection_dim"])})
        if config.image_size != image_size:
            raise CheckError("layoutmaster/clip-size", path=folder, clip=config.image_size, ours=image_size)
        model = ClipVision(CLIPVisionModelWithProjection(config))
        # A plan asks for the shapes alone, on tensors without values.
        if not model.visual_projection.weight.is_meta and detect_fake_mode() is None:
            _fill(model, folder / "model.safetensors")
    except (OSError, ValueError, KeyError, TypeError, SafetensorError) as err:
        raise CheckError("layoutmaster/bad-clip", path=folder, why=f"{type(err).__name__}: {err}") from err
    return model, config.projection_dim


def _fill(model: ClipVision, file: Path) -> None:
    """Read the weights; not `from_pretrained`, which leaves those a file lacks at random values with only a warning."""
    with safe_open(str(file), framework="pt") as opened:
        names = [name for name in opened.keys() if name.startswith(_PREFIXES)]  # noqa: SIM118 - not a dict
        weights = {name: opened.get_tensor(name) for name in names if not name.endswith("position_ids")}
    wrong = model.load_state_dict(weights, strict=False)
    if wrong.missing_keys or wrong.unexpected_keys:
        raise ValueError(f"missing {wrong.missing_keys[:3]}, unexpected {wrong.unexpected_keys[:3]}")


def read_colours(path: str) -> tuple[Means, Means]:
    """Return the mean and deviation of colours the model was trained with."""
    file = Path(path).expanduser() / "preprocessor_config.json"
    if not file.is_file():
        return _MEAN, _STD
    try:
        told = json.loads(file.read_text(encoding="utf-8"))
        found = tuple(
            tuple(map(float, told.get(name, usual))) for name, usual in (("image_mean", _MEAN), ("image_std", _STD))
        )
        (r, g, b), (dr, dg, db) = found
    except (OSError, ValueError, TypeError, AttributeError) as err:
        raise CheckError("layoutmaster/bad-clip", path=file, why=f"{type(err).__name__}: {err}") from err
    return (r, g, b), (dr, dg, db)
