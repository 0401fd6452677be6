"""The image half of a CLIP model, read from safetensors; module names are those of the published files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from headway.errors import CheckError

_PREFIXES = ("vision_model.", "visual_projection.")


class _Attention(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.q_proj, self.k_proj = nn.Linear(width, width), nn.Linear(width, width)
        self.v_proj, self.out_proj = nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (
            proj(x).unflatten(-1, (self.heads, -1)).transpose(1, 2) for proj in (self.q_proj, self.k_proj, self.v_proj)
        )
        return self.out_proj(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))


class _Mlp(nn.Module):
    def __init__(self, width: int, inner: int, is_quick: bool) -> None:
        super().__init__()
        self.fc1, self.fc2, self.is_quick = nn.Linear(width, inner), nn.Linear(inner, width), is_quick

    def forward(self, x: Tensor) -> Tensor:
        x = self.fc1(x)
        return self.fc2(x * torch.sigmoid(1.702 * x) if self.is_quick else F.gelu(x))


class _Layer(nn.Module):
    def __init__(self, shape: dict[str, Any]) -> None:
        super().__init__()
        width, eps = shape["hidden_size"], shape["layer_norm_eps"]
        self.self_attn = _Attention(width, shape["num_attention_heads"])
        self.mlp = _Mlp(width, shape["intermediate_size"], shape["hidden_act"] == "quick_gelu")
        self.layer_norm1, self.layer_norm2 = nn.LayerNorm(width, eps), nn.LayerNorm(width, eps)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.self_attn(self.layer_norm1(x))
        return x + self.mlp(self.layer_norm2(x))


class _Embeddings(nn.Module):
    def __init__(self, shape: dict[str, Any]) -> None:
        super().__init__()
        width, patch = shape["hidden_size"], shape["patch_size"]
        self.class_embedding = nn.Parameter(torch.empty(width))
        self.patch_embedding = nn.Conv2d(3, width, patch, stride=patch, bias=False)
        self.position_embedding = nn.Embedding((shape["image_size"] // patch) ** 2 + 1, width)

    def forward(self, pixels: Tensor) -> Tensor:
        patches = self.patch_embedding(pixels).flatten(2).transpose(1, 2)
        first = self.class_embedding.expand(len(patches), 1, -1)
        return torch.cat((first, patches), dim=1) + self.position_embedding.weight


class _VisionModel(nn.Module):
    def __init__(self, shape: dict[str, Any]) -> None:
        super().__init__()
        width, eps = shape["hidden_size"], shape["layer_norm_eps"]
        self.embeddings = _Embeddings(shape)
        self.pre_layrnorm = nn.LayerNorm(width, eps)  # spelt as in the published files
        self.encoder = nn.ModuleDict(
            {"layers": nn.ModuleList(_Layer(shape) for _ in range(shape["num_hidden_layers"]))}
        )
        self.post_layernorm = nn.LayerNorm(width, eps)

    def forward(self, pixels: Tensor) -> Tensor:
        x = self.pre_layrnorm(self.embeddings(pixels))
        for layer in self.encoder["layers"]:
            x = layer(x)
        return self.post_layernorm(x[:, 0])


class ClipVision(nn.Module):
    """What CLIP calls `encode_image`."""

    def __init__(self, shape: dict[str, Any], width: int) -> None:
        super().__init__()
        self.vision_model = _VisionModel(shape)
        self.visual_projection = nn.Linear(shape["hidden_size"], width, bias=False)

    def forward(self, pixels: Tensor) -> Tensor:
        return self.visual_projection(self.vision_model(pixels))


def load_clip(path: str, image_size: int) -> tuple[ClipVision, int]:
    """Return the image half of a CLIP folder (config.json, model.safetensors) and the width of its features."""
    folder = Path(path).expanduser()
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        told, width = config["vision_config"], int(config["projection_dim"])
        shape = {"hidden_act": "quick_gelu", "layer_norm_eps": 1e-5, "image_size": 224, "hidden_size": 768}
        shape |= {"patch_size": 32, "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3072}
        shape |= {key: told[key] for key in shape if key in told}
        if shape["image_size"] != image_size:
            raise CheckError("layoutmaster/clip-size", path=folder, clip=shape["image_size"], ours=image_size)
        model = ClipVision(shape, width)
        if not model.visual_projection.weight.is_meta:
            _fill(model, folder / "model.safetensors")
    except (OSError, ValueError, KeyError, TypeError, SafetensorError) as err:
        raise CheckError("layoutmaster/bad-clip", path=folder, why=f"{type(err).__name__}: {err}") from err
    return model, width


def _fill(model: ClipVision, file: Path) -> None:
    with safe_open(str(file), framework="pt") as opened:
        names = [name for name in opened.keys() if name.startswith(_PREFIXES)]  # noqa: SIM118 - not a dict
        weights = {name: opened.get_tensor(name) for name in names if not name.endswith("position_ids")}
    wrong = model.load_state_dict(weights, strict=False)
    if wrong.missing_keys or wrong.unexpected_keys:
        raise ValueError(f"missing {wrong.missing_keys[:3]}, unexpected {wrong.unexpected_keys[:3]}")
