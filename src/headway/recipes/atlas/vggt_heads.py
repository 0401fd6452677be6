"""The heads of VGGT: the camera of each view, and one value a pixel (depth, world points) after DPT."""

# B scenes, S views, P patches of a view, C token width, F features of a map

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

_REFINEMENTS = 4
_PLACE_SHARE = 0.1
_PLACE_BASE = 100.0


class CameraHead(nn.Module):
    """The camera of each view from its camera token, refined a few times from its own last answer."""

    def __init__(self, width: int, trunk: nn.Module, branch: nn.Module) -> None:
        super().__init__()
        self.trunk = trunk
        self.token_norm = nn.LayerNorm(width)
        self.trunk_norm = nn.LayerNorm(width)
        self.empty_pose_tokens = nn.Parameter(torch.zeros(1, 1, 9))
        self.embed_pose = nn.Linear(9, width)
        self.poseLN_modulation = nn.Sequential(nn.SiLU(), nn.Linear(width, 3 * width))
        self.pose_branch = branch

    def forward(self, tokens_BSC: Tensor) -> Tensor:
        tokens_BSC = self.token_norm(tokens_BSC)
        plain_BSC = F.layer_norm(tokens_BSC, tokens_BSC.shape[-1:], eps=1e-6)
        pose_BS9: Tensor | None = None
        for _ in range(_REFINEMENTS):
            before = self.empty_pose_tokens.expand(*tokens_BSC.shape[:2], -1) if pose_BS9 is None else pose_BS9.detach()
            shift, scale, gate = self.poseLN_modulation(self.embed_pose(before)).chunk(3, dim=-1)
            x_BSC = self.trunk(tokens_BSC + gate * (plain_BSC * (1 + scale) + shift))
            move_BS9 = self.pose_branch(self.trunk_norm(x_BSC))
            pose_BS9 = move_BS9 if pose_BS9 is None else before + move_BS9
        assert pose_BS9 is not None
        # A field of view is not negative.
        return torch.cat((pose_BS9[..., :7], pose_BS9[..., 7:].relu()), dim=-1)


class ResidualUnit(nn.Module):
    """Two convolutions beside the rectified input (the published one rectifies its input in place)."""

    def __init__(self, features: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(features, features, 3, padding=1)
        self.conv2 = nn.Conv2d(features, features, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        x = x.relu()
        return self.conv2(self.conv1(x).relu()) + x


class Refine(nn.Module):
    """Adds a finer map to a coarser one and stretches the sum."""

    def __init__(self, features: int, *, has_residual: bool) -> None:
        super().__init__()
        self.out_conv = nn.Conv2d(features, features, 1)
        if has_residual:
            self.resConfUnit1 = ResidualUnit(features)
        self.resConfUnit2 = ResidualUnit(features)

    def forward(self, coarse: Tensor, fine: Tensor | None, size: tuple[int, int]) -> Tensor:
        x = coarse if fine is None else coarse + self.resConfUnit1(fine)
        x = self.resConfUnit2(x)
        return self.out_conv(F.interpolate(x, size=size, mode="bilinear", align_corners=True))


class Scratch(nn.Module):
    """The pyramid of DPT, coarse to fine."""

    def __init__(self, channels: Sequence[int], features: int, outputs: int) -> None:
        super().__init__()
        self.layer1_rn, self.layer2_rn, self.layer3_rn, self.layer4_rn = (
            nn.Conv2d(width, features, 3, padding=1, bias=False) for width in channels
        )
        self.refinenet1 = Refine(features, has_residual=True)
        self.refinenet2 = Refine(features, has_residual=True)
        self.refinenet3 = Refine(features, has_residual=True)
        self.refinenet4 = Refine(features, has_residual=False)
        self.output_conv1 = nn.Conv2d(features, features // 2, 3, padding=1)
        self.output_conv2 = nn.Sequential(
            nn.Conv2d(features // 2, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, outputs, 1)
        )

    def forward(self, maps: Sequence[Tensor]) -> Tensor:
        one, two, three = self.layer1_rn(maps[0]), self.layer2_rn(maps[1]), self.layer3_rn(maps[2])
        x = self.refinenet4(self.layer4_rn(maps[3]), None, _size(three))
        x = self.refinenet3(x, three, _size(two))
        x = self.refinenet2(x, two, _size(one))
        x = self.refinenet1(x, one, (2 * one.size(-2), 2 * one.size(-1)))
        return self.output_conv1(x)


class DenseHead(nn.Module):
    """DPT: four layers of tokens become maps of four sizes, and these one value a pixel with its confidence."""

    def __init__(self, width: int, features: int, channels: Sequence[int], *, outputs: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.projects = nn.ModuleList(nn.Conv2d(width, out, 1) for out in channels)
        self.resize_layers = nn.ModuleList(
            [
                nn.ConvTranspose2d(channels[0], channels[0], 4, stride=4),
                nn.ConvTranspose2d(channels[1], channels[1], 2, stride=2),
                nn.Identity(),
                nn.Conv2d(channels[3], channels[3], 3, stride=2, padding=1),
            ]
        )
        self.scratch = Scratch(channels, features, outputs)

    def forward(
        self, layers: Sequence[Tensor], *, pixels: int, activation: Literal["inv_log", "exp"]
    ) -> tuple[Tensor, Tensor]:
        """Return values (B, S, H, W, outputs - 1) and confidence (B, S, H, W)."""
        B, S, P = layers[0].shape[:3]
        side = int(P**0.5)
        maps = []
        for tokens, project, resize in zip(layers, self.projects, self.resize_layers, strict=True):
            grid = self.norm(tokens.reshape(B * S, P, -1)).transpose(1, 2).reshape(B * S, -1, side, side)
            maps.append(resize(_with_places(project(grid))))
        x = F.interpolate(self.scratch(maps), size=(pixels, pixels), mode="bilinear", align_corners=True)
        x = self.scratch.output_conv2(_with_places(x)).permute(0, 2, 3, 1).unflatten(0, (B, S))
        value, confidence = x[..., :-1], x[..., -1].exp() + 1
        return value.exp() if activation == "exp" else value.sign() * value.abs().expm1(), confidence

    @torch.no_grad()
    def lay_flat(self) -> None:
        """Make the two first values the place in the image, with a faint relief of the content in the rest."""
        inner, outer = self.scratch.output_conv2[0], self.scratch.output_conv2[2]
        self.scratch.output_conv1.weight *= 0.01
        outer.weight *= 0.1
        # The slowest wave across is channel 0 of what `_with_places` adds, the slowest down is halfway.
        for value, wave in enumerate((0, inner.in_channels // 2)):
            for channel, sign in ((2 * value, 1.0), (2 * value + 1, -1.0)):
                inner.weight[channel] = 0
                inner.weight[channel, wave, 1, 1] = sign / _PLACE_SHARE
            outer.weight[value] = 0
            outer.weight[value, 2 * value, 0, 0], outer.weight[value, 2 * value + 1, 0, 0] = 1.0, -1.0


def _with_places(x_BFHW: Tensor) -> Tensor:
    """Add a faint picture of where each place is."""
    side, features = x_BFHW.size(-1), x_BFHW.size(1)
    edge = 0.5**0.5 * (side - 1) / side
    places = torch.linspace(-edge, edge, side, dtype=torch.float64, device=x_BFHW.device)
    rates = _PLACE_BASE ** -(torch.arange(features // 4, dtype=torch.float64, device=x_BFHW.device) / (features / 4))
    angles_LF = torch.outer(places, rates)
    waves_FL = torch.cat((angles_LF.sin(), angles_LF.cos()), dim=1).T.to(x_BFHW.dtype)
    columns = waves_FL[:, None, :].expand(-1, side, -1)
    rows = waves_FL[:, :, None].expand(-1, -1, side)
    return x_BFHW + _PLACE_SHARE * torch.cat((columns, rows))


def _size(x: Tensor) -> tuple[int, int]:
    return x.size(-2), x.size(-1)
