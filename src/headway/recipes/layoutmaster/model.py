"""The layout diffusion transformer and its action head.

Module names are those of the original, so weights go from one to the other under their own names. `fixed` repairs what
kept the original from learning, without a parameter more or less: padded slots get no attention, an element sees its
own image beside those of the others (in the original nothing ties an image to its element but the slot order), and the
head answers without tanh and sigmoid, which cannot reach noise beyond 1.
"""

# B batch, N elements, H width, V width of image features, D numbers of an element, M valid elements of a batch

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from headway.recipes.layoutmaster.section import STATE_DIM, LayoutMasterSection


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutSize:
    """Everything that shapes the transformer."""

    visual_dim: int
    hidden_dim: int
    num_layers: int
    num_heads: int = 8
    max_elements: int = 25
    dropout: float = 0.1
    is_fixed: bool = True


def size_of(section: LayoutMasterSection) -> LayoutSize:
    """Return the shape a section asks for."""
    return LayoutSize(
        visual_dim=section.visual_dim,
        hidden_dim=section.hidden_dim,
        num_layers=section.num_layers,
        num_heads=section.num_heads,
        max_elements=section.max_elements,
        dropout=section.dropout,
        is_fixed=section.head_mode == "fixed",
    )


def embed_time(timesteps_B: Tensor, width: int) -> Tensor:
    """Return sines then cosines of the timestep at falling frequencies, (B, width)."""
    half = width // 2
    places = torch.arange(half, device=timesteps_B.device, dtype=torch.float32)
    frequencies = torch.exp(places * (-math.log(10_000) / (half - 1)))
    angles = timesteps_B[:, None].float() * frequencies
    return torch.cat((angles.sin(), angles.cos()), dim=-1)


class CrossAttentionBlock(nn.Module):
    """Attention over the elements, attention to the images, and a feed-forward part, each after a norm."""

    def __init__(self, size: LayoutSize) -> None:
        super().__init__()
        H, heads, dropout = size.hidden_dim, size.num_heads, size.dropout
        self.norm1, self.norm2, self.norm3 = nn.LayerNorm(H), nn.LayerNorm(H), nn.LayerNorm(H)
        self.self_attn = nn.MultiheadAttention(H, heads, dropout=dropout, batch_first=True)
        self.cross_attn = nn.MultiheadAttention(H, heads, dropout=dropout, batch_first=True)
        self.ffn = nn.Sequential(
            nn.Linear(H, 4 * H), nn.GELU(), nn.Dropout(dropout), nn.Linear(4 * H, H), nn.Dropout(dropout)
        )

    def forward(self, x_BNH: Tensor, visual_BNH: Tensor, is_padded_BN: Tensor | None) -> Tensor:
        ask: dict[str, Any] = {"key_padding_mask": is_padded_BN, "need_weights": False}
        normed = self.norm1(x_BNH)
        x_BNH = x_BNH + self.self_attn(normed, normed, normed, **ask)[0]
        x_BNH = x_BNH + self.cross_attn(self.norm2(x_BNH), visual_BNH, visual_BNH, **ask)[0]
        return x_BNH + self.ffn(self.norm3(x_BNH))


class ActionHead(nn.Module):
    """Three small heads: box, layer, confidence."""

    def __init__(self, width: int, dropout: float, *, is_bounded: bool) -> None:
        super().__init__()
        self.continuous_head = nn.Sequential(
            nn.Linear(width, width // 2),
            nn.GELU(),
            nn.Dropout(dropout),
            nn.Linear(width // 2, 4),
            nn.Tanh() if is_bounded else nn.Identity(),
        )
        self.layer_head = nn.Sequential(
            nn.Linear(width, width // 2), nn.GELU(), nn.Dropout(dropout), nn.Linear(width // 2, 1)
        )
        self.confidence_head = nn.Sequential(
            nn.Linear(width, width // 4),
            nn.GELU(),
            nn.Linear(width // 4, 1),
            nn.Sigmoid() if is_bounded else nn.Identity(),
        )

    def forward(self, x_BNH: Tensor) -> Tensor:
        return torch.cat((self.continuous_head(x_BNH), self.layer_head(x_BNH), self.confidence_head(x_BNH)), dim=-1)


class LayoutDiffusionTransformer(nn.Module):
    """From a noisy layout, its timestep and the images' features to the noise, or to the clean layout."""

    def __init__(self, size: LayoutSize) -> None:
        super().__init__()
        self.size = size
        H = size.hidden_dim
        self.time_mlp = nn.Sequential(nn.Linear(H, 4 * H), nn.GELU(), nn.Linear(4 * H, H))
        self.visual_projection = nn.Linear(size.visual_dim, H)
        self.layout_projection = nn.Linear(STATE_DIM, H)
        self.position_embedding = nn.Parameter(torch.randn(size.max_elements, H))
        self.transformer_layers = nn.ModuleList(CrossAttentionBlock(size) for _ in range(size.num_layers))
        self.output_norm = nn.LayerNorm(H)
        self.action_head = ActionHead(H, size.dropout, is_bounded=not size.is_fixed)

    def forward(self, visual_BNV: Tensor, layout_BND: Tensor, timesteps_B: Tensor, mask_BN: Tensor) -> Tensor:
        N, is_fixed = layout_BND.size(1), self.size.is_fixed
        is_real_BN1 = mask_BN[..., None].to(layout_BND.dtype)
        time_BH = self.time_mlp(embed_time(timesteps_B, self.size.hidden_dim).to(layout_BND.dtype))
        visual_BNH = self.visual_projection(visual_BNV)
        x_BNH = self.layout_projection(layout_BND) + self.position_embedding[:N] + time_BH[:, None]
        if is_fixed:
            x_BNH = x_BNH + visual_BNH
        x_BNH, visual_BNH = x_BNH * is_real_BN1, visual_BNH * is_real_BN1
        is_padded_BN = ~mask_BN if is_fixed else None
        for layer in self.transformer_layers:
            x_BNH = layer(x_BNH, visual_BNH, is_padded_BN)
        return self.action_head(self.output_norm(x_BNH)) * is_real_BN1


class LayoutMaster(nn.Module):
    """The backbone and the transformer, one module, so that layouts over ranks see one forward."""

    def __init__(self, visual: nn.Module, layout: LayoutDiffusionTransformer) -> None:
        super().__init__()
        self.visual, self.layout = visual, layout

    def forward(
        self,
        mask_BN: Tensor,
        *,
        images_M: Tensor | None = None,
        features_BNV: Tensor | None = None,
        noisy_BND: Tensor | None = None,
        timesteps_B: Tensor | None = None,
    ) -> Tensor:
        """Return the answer for a noisy layout; without one, the images' features, for a sampler to use many times."""
        if features_BNV is None:
            assert images_M is not None, "images or their features are needed"
            features_BNV = spread(self.visual(images_M), mask_BN)
        if noisy_BND is None or timesteps_B is None:
            return features_BNV
        return self.layout(features_BNV, noisy_BND, timesteps_B, mask_BN)


def spread(features_MV: Tensor, mask_BN: Tensor) -> Tensor:
    """Return the features of the valid elements in their slots, zero elsewhere; padded slots cost no backbone."""
    if not len(features_MV):
        return features_MV.new_zeros(*mask_BN.shape, features_MV.size(-1))
    # By the number of each valid slot: backward through a masked copy would have to count them on the host first.
    number = (mask_BN.flatten().cumsum(0) - 1).clamp(min=0)
    rows_BNV = features_MV.index_select(0, number).view(*mask_BN.shape, -1)
    return torch.where(mask_BN[..., None], rows_BNV, 0.0)
