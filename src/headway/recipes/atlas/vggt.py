"""The visual geometry transformer (VGGT): images of one scene in, geometry out.

Parameter names and shapes are those of the published weights, so `facebook/VGGT-1B` loads as it is; a small size
with weights drawn from a seed is used where it is not on the disk. Pure: freezing and caching are laid over it.
"""

# B scenes, S views, P tokens of a view, C width, H heads, D head width, N tokens attended together

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from headway.recipes.atlas.vggt_heads import CameraHead, DenseHead

_MEAN, _STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
_ROPE_BASE = 100.0


@dataclass(frozen=True, slots=True, kw_only=True)
class VggtSize:
    """Everything that shapes the backbone; the defaults are VGGT-1B."""

    image_size: int = 518
    patch: int = 14
    width: int = 1024
    heads: int = 16
    vit_depth: int = 24
    """Blocks of the patch encoder (DINOv2)."""
    depth: int = 24
    """Alternating pairs: attention within a view, then over all views."""
    registers: int = 4
    dense_features: int = 256
    dense_channels: tuple[int, int, int, int] = (256, 512, 1024, 1024)
    dense_layers: tuple[int, int, int, int] = (4, 11, 17, 23)
    """Pairs whose output the depth and point heads read."""
    camera_depth: int = 4
    vit_scale: float = 1.0
    """LayerScale of the patch encoder at the start."""
    layer_scale: float = 0.01
    """LayerScale of the alternating pairs at the start."""

    @property
    def token_dim(self) -> int:
        """Width of an aggregated token: both streams side by side."""
        return 2 * self.width


@dataclass(frozen=True, slots=True)
class Geometry:
    """What VGGT says about the views of a scene."""

    tokens: Tensor
    """(B, S, P, 2C): mean of the last two aggregated layers."""
    pose: Tensor
    """(B, S, 9): translation 3, quaternion 4, field of view 2."""
    points: Tensor
    """(B, S, H, W, 3), in the world of the first view."""
    depth: Tensor | None = None
    """(B, S, H, W), only when asked for: Atlas does not read it."""


class Attention(nn.Module):
    """Self-attention; queries and keys may be normed and rotated by their place in the image."""

    def __init__(self, width: int, heads: int, *, qk_norm: bool) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.q_norm = nn.LayerNorm(width // heads) if qk_norm else nn.Identity()
        self.k_norm = nn.LayerNorm(width // heads) if qk_norm else nn.Identity()
        self.proj = nn.Linear(width, width)

    def forward(self, x_BNC: Tensor, turn: tuple[Tensor, Tensor] | None = None) -> Tensor:
        B, N, C = x_BNC.shape
        q, k, v = self.qkv(x_BNC).view(B, N, 3, self.heads, C // self.heads).permute(2, 0, 3, 1, 4)
        q, k = self.q_norm(q), self.k_norm(k)
        if turn is not None:
            q, k = rotate(q, *turn), rotate(k, *turn)
        y_BHND = F.scaled_dot_product_attention(q, k, v)
        return self.proj(y_BHND.transpose(1, 2).reshape(B, N, C))


class Mlp(nn.Module):
    """Two layers with a GELU between them."""

    def __init__(self, width: int, hidden: int, out: int) -> None:
        super().__init__()
        self.fc1 = nn.Linear(width, hidden)
        self.fc2 = nn.Linear(hidden, out)

    def forward(self, x: Tensor) -> Tensor:
        return self.fc2(F.gelu(self.fc1(x)))


class LayerScale(nn.Module):
    """A learned factor a channel."""

    def __init__(self, width: int, start: float) -> None:
        super().__init__()
        self.gamma = nn.Parameter(torch.full((width,), start))

    def forward(self, x: Tensor) -> Tensor:
        return x * self.gamma


class Block(nn.Module):
    """Pre-norm attention and MLP, each scaled and added to the stream."""

    def __init__(self, width: int, heads: int, *, scale: float, qk_norm: bool = False, eps: float = 1e-5) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(width, eps=eps)
        self.attn = Attention(width, heads, qk_norm=qk_norm)
        self.ls1 = LayerScale(width, scale)
        self.norm2 = nn.LayerNorm(width, eps=eps)
        self.mlp = Mlp(width, 4 * width, width)
        self.ls2 = LayerScale(width, scale)

    def forward(self, x_BNC: Tensor, turn: tuple[Tensor, Tensor] | None = None) -> Tensor:
        x_BNC = x_BNC + self.ls1(self.attn(self.norm1(x_BNC), turn))
        return x_BNC + self.ls2(self.mlp(self.norm2(x_BNC)))


def rotate(x_BHND: Tensor, cos_ND: Tensor, sin_ND: Tensor) -> Tensor:
    """Turn the first half of each head by its row and the second half by its column."""
    rows, columns = x_BHND.chunk(2, dim=-1)
    turned = [torch.cat((-b, a), dim=-1) for a, b in (rows.chunk(2, dim=-1), columns.chunk(2, dim=-1))]
    return x_BHND * cos_ND.to(x_BHND.dtype) + torch.cat(turned, dim=-1) * sin_ND.to(x_BHND.dtype)


def rotary_tables(side: int, head_dim: int, *, special: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Return cosines and sines for the special tokens (which are at 0, 0) and a grid of patches from 1, 1 on."""
    places = torch.arange(1, side + 1, device=device, dtype=torch.float32)
    places_P2 = F.pad(torch.cartesian_prod(places, places), (0, 0, special, 0))
    quarter = torch.arange(0, head_dim // 2, 2, device=device, dtype=torch.float32) / (head_dim // 2)
    angles_P2F = places_P2[..., None] * _ROPE_BASE**-quarter
    angles_PD = torch.cat((angles_P2F, angles_P2F), dim=-1).flatten(1)
    return angles_PD.cos(), angles_PD.sin()


class PatchProjection(nn.Module):
    """One linear map of each patch's pixels."""

    def __init__(self, size: VggtSize) -> None:
        super().__init__()
        self.proj = nn.Conv2d(3, size.width, kernel_size=size.patch, stride=size.patch)

    def forward(self, x: Tensor) -> Tensor:
        return self.proj(x).flatten(2).transpose(1, 2)


class PatchEncoder(nn.Module):
    """DINOv2 with registers; only its patch tokens are kept."""

    def __init__(self, size: VggtSize) -> None:
        super().__init__()
        self.side = size.image_size // size.patch
        self.patch_embed = PatchProjection(size)
        self.cls_token = nn.Parameter(torch.zeros(1, 1, size.width))
        self.pos_embed = nn.Parameter(torch.zeros(1, 1 + self.side**2, size.width))
        self.register_tokens = nn.Parameter(torch.zeros(1, size.registers, size.width))
        # Part of the published weights, used by DINOv2's own training only.
        self.mask_token = nn.Parameter(torch.zeros(1, size.width), requires_grad=False)
        self.blocks = nn.ModuleList(
            Block(size.width, size.heads, scale=size.vit_scale, eps=1e-6) for _ in range(size.vit_depth)
        )
        self.norm = nn.LayerNorm(size.width, eps=1e-6)

    def forward(self, images: Tensor) -> Tensor:
        x = self.patch_embed(images) + self._places(images.size(-1) // self.patch_embed.proj.stride[0])
        first = self.cls_token + self.pos_embed[:, :1]
        x = torch.cat((first.expand(len(x), -1, -1), self.register_tokens.expand(len(x), -1, -1), x), dim=1)
        for block in self.blocks:
            x = block(x)
        return self.norm(x)[:, 1 + self.register_tokens.size(1) :]

    def _places(self, side: int) -> Tensor:
        """Return the position of each patch, stretched when the image is not of the size it was trained at."""
        places = self.pos_embed[:, 1:]
        if side == self.side:
            return places
        grid = places.float().reshape(1, self.side, self.side, -1).permute(0, 3, 1, 2)
        grid = F.interpolate(grid, size=(side, side), mode="bicubic", antialias=True)
        return grid.flatten(2).transpose(1, 2).to(places.dtype)


class Aggregator(nn.Module):
    """Attention within each view and over all views in turn, over camera, register and patch tokens."""

    def __init__(self, size: VggtSize) -> None:
        super().__init__()
        self.size = size
        self.patch_embed = PatchEncoder(size)
        self.frame_blocks, self.global_blocks = (
            nn.ModuleList(
                Block(size.width, size.heads, scale=size.layer_scale, qk_norm=True) for _ in range(size.depth)
            )
            for _ in range(2)
        )
        # Two of each: one for the first view, which is the origin of the world, one for all others.
        self.camera_token = nn.Parameter(torch.zeros(1, 2, 1, size.width))
        self.register_token = nn.Parameter(torch.zeros(1, 2, size.registers, size.width))

    @property
    def num_special(self) -> int:
        """Tokens before the patches."""
        return 1 + self.size.registers

    def forward(self, images_BS3HW: Tensor) -> dict[int, Tensor]:
        """Return the aggregated tokens (B, S, P, 2C) of the layers that somebody reads, by their index."""
        B, S = images_BS3HW.shape[:2]
        mean, std = (images_BS3HW.new_tensor(values).view(3, 1, 1) for values in (_MEAN, _STD))
        pixels = (images_BS3HW - mean) / std
        patches = self.patch_embed(pixels.flatten(0, 1))
        special = torch.cat((_per_view(self.camera_token, B, S), _per_view(self.register_token, B, S)), dim=1)
        x = torch.cat((special, patches), dim=1)
        P, C = x.shape[1:]
        head_dim = C // self.size.heads
        side = images_BS3HW.size(-1) // self.size.patch
        cos, sin = rotary_tables(side, head_dim, special=self.num_special, device=x.device)
        wide = cos.repeat(S, 1), sin.repeat(S, 1)
        # The last two for Atlas, and what the dense heads read: all 24 would be 270 MB a view in fp32.
        wanted = {*self.size.dense_layers, self.size.depth - 2, self.size.depth - 1}
        layers = {}
        for index, (frame, world) in enumerate(zip(self.frame_blocks, self.global_blocks, strict=True)):
            within = frame(x.view(B * S, P, C), (cos, sin))
            x = world(within.view(B, S * P, C), wide)
            if index in wanted:
                layers[index] = torch.cat((within.view(B, S, P, C), x.view(B, S, P, C)), dim=-1)
        return layers


def _per_view(token_12NC: Tensor, B: int, S: int) -> Tensor:
    """Return a token's first form for the first view and its second for the rest, a row a view."""
    first, rest = token_12NC[:, :1].expand(B, 1, -1, -1), token_12NC[:, 1:].expand(B, S - 1, -1, -1)
    return torch.cat((first, rest), dim=1).flatten(0, 1)


class Vggt(nn.Module):
    """Aggregator and its three heads. Tracks are not built: nothing here follows points."""

    def __init__(self, size: VggtSize) -> None:
        super().__init__()
        self.size = size
        self.aggregator = Aggregator(size)
        trunk = nn.Sequential(*(Block(size.token_dim, size.heads, scale=0.01) for _ in range(size.camera_depth)))
        self.camera_head = CameraHead(size.token_dim, trunk, Mlp(size.token_dim, size.token_dim // 2, 9))
        dense = (size.token_dim, size.dense_features, size.dense_channels)
        self.point_head = DenseHead(*dense, outputs=4)
        self.depth_head = DenseHead(*dense, outputs=2)

    def forward(self, images_BS3HW: Tensor, *, with_depth: bool = False) -> Geometry:
        """Return the geometry of scenes; images are square, in [0, 1]."""
        layers, special = self.aggregator(images_BS3HW), self.aggregator.num_special
        last = layers[self.size.depth - 1]
        before = layers.get(self.size.depth - 2, last)
        # The heads were trained in fp32 and lose centimetres in half precision.
        with torch.autocast(images_BS3HW.device.type, enabled=False):
            maps = [layers[index].float()[:, :, special:] for index in self.size.dense_layers]
            pixels = images_BS3HW.size(-1)
            points, _ = self.point_head(maps, pixels=pixels, activation="inv_log")
            depth = self.depth_head(maps, pixels=pixels, activation="exp")[0][..., 0] if with_depth else None
            pose = self.camera_head(last.float()[:, :, 0])
        return Geometry((last + before) / 2, pose, points, depth)

    @torch.no_grad()
    def init_weights(self, seed: int) -> None:
        """Draw the weights of an encoder that nobody has trained, so that its features still tell scenes apart.

        Published starting weights would not: with their small scales the mean over tokens holds the mean colour and
        no place at all. Here a token is a smooth random function of colour *and* place, so the mean over tokens holds
        where each colour is; and the point map begins as a flat table under the camera.
        """
        dice = torch.Generator(self.aggregator.camera_token.device).manual_seed(seed)
        for name, weight in self.named_parameters():
            if name.endswith("gamma") or (name.endswith("weight") and weight.ndim == 1):
                continue
            if weight.ndim == 1 or name.endswith(("mask_token", "empty_pose_tokens")):
                weight.zero_()
            elif name.endswith(("token", "tokens")):
                weight.normal_(std=0.1, generator=dice)
            else:
                # Transposed convolutions keep their inputs first.
                fan_in = len(weight) if name.endswith(("resize_layers.0.weight", "resize_layers.1.weight")) else None
                weight.normal_(std=(fan_in or weight[0].numel()) ** -0.5, generator=dice)
        patches = self.aggregator.patch_embed
        places = smooth_places(patches.side, device=patches.pos_embed.device)
        mix = torch.randn(places.size(1), self.size.width, generator=dice, device=places.device)
        patches.pos_embed[0, 1:] = places @ mix
        # Mean colour of a patch and a little of its slopes; finer detail would be noise to a mean over tokens.
        line = (torch.arange(self.size.patch, device=places.device) + 0.5) / self.size.patch * 2 - 1
        flat = torch.ones_like(line)
        shapes = (torch.outer(flat, flat), 0.3 * torch.outer(flat, line), 0.3 * torch.outer(line, flat))
        shapes_KHW = torch.stack(shapes) / self.size.patch**2
        colours_C3K = 1.5 * torch.randn(self.size.width, 3, len(shapes), generator=dice, device=places.device)
        patches.patch_embed.proj.weight.copy_(torch.einsum("cik,khw->cihw", colours_C3K, shapes_KHW))
        self.point_head.lay_flat()


def smooth_places(side: int, *, device: torch.device) -> Tensor:
    """Return slow functions of the place of each patch (P, 10): neighbours are alike."""
    line = (torch.arange(side, device=device) + 0.5) / side * 2 - 1
    places_P2 = torch.cartesian_prod(line, line)
    slow, fast = math.pi / 2 * places_P2, math.pi * places_P2
    return torch.cat((2 * places_P2, 0.7 * slow.sin(), 0.7 * slow.cos(), 0.35 * fast.sin(), 0.35 * fast.cos()), dim=1)
