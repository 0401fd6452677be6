"""What Atlas learns: geometry features, their fusion with the instruction, and the action head.

Pure: freezing, sharding, compilation and precision are laid over it from outside.
"""

# B batch, S views, T text tokens, N points, C token width of VGGT, G geometry width, F fusion width

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from headway.recipes.atlas.vggt import Geometry

POSE_DIM = 6
_EVEN_START = 0.05
"""What is left of queries and keys of the attention to views at the start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AtlasSize:
    """Everything that shapes the trained part; the defaults are the published widths."""

    token_dim: int = 2048
    lang_dim: int = 4096
    token_features: int = 256
    pose_features: int = 128
    point_features: tuple[int, int, int] = (64, 128, 256)
    geom_dim: int = 512
    fusion_dim: int = 1024
    fusion_layers: int = 4
    fusion_heads: int = 16
    head_dims: tuple[int, int] = (512, 256)
    dropout: float = 0.1
    use_pointnet: bool = True
    use_pose: bool = True
    masks_padding: bool = True
    """Padding of short instructions is left out of attention and mean; the published model takes it in."""
    starts_even: bool = True
    """Attention to views starts nearly even; the published model starts as torch draws it."""
    whiten: bool = False
    """Features of VGGT's tokens get equal spread in all directions before anything reads them."""


class PointNet(nn.Module):
    """A feature of a set of points, whatever their order."""

    def __init__(self, widths: tuple[int, int, int]) -> None:
        super().__init__()
        pairs = list(zip((3, *widths[:2]), widths, strict=True))
        self.convs = nn.ModuleList(nn.Conv1d(a, b, 1) for a, b in pairs)
        self.norms = nn.ModuleList(nn.BatchNorm1d(width) for width in widths)

    def forward(self, points_B3N: Tensor) -> Tensor:
        x = points_B3N
        for index, (conv, norm) in enumerate(zip(self.convs, self.norms, strict=True)):
            x = norm(conv(x))
            x = x.relu() if index < 2 else x
        return x.amax(dim=-1)


class GeometryExtractor(nn.Module):
    """One vector a view: what VGGT's tokens, points and camera say."""

    def __init__(self, size: AtlasSize) -> None:
        super().__init__()
        features = size.token_features
        self.token_proj = nn.Sequential(nn.Linear(size.token_dim, features), nn.LayerNorm(features), nn.GELU())
        # Published, counted and never used; it only keeps the number of parameters what people know.
        self.token_query = nn.Parameter(torch.zeros(size.token_dim))
        self.pointnet = PointNet(size.point_features) if size.use_pointnet else None
        width = features + (size.point_features[-1] if size.use_pointnet else 0)
        self.pose_proj: nn.Module | None = None
        if size.use_pose:
            self.pose_proj = nn.Sequential(
                nn.Linear(9, size.pose_features), nn.LayerNorm(size.pose_features), nn.GELU()
            )
            width += size.pose_features
        self.out = nn.Linear(width, size.geom_dim)

    def forward(self, tokens_BSC: Tensor, points_BSN3: Tensor, pose_BS9: Tensor) -> Tensor:
        B, S = tokens_BSC.shape[:2]
        parts = [self.token_proj(tokens_BSC)]
        if self.pointnet is not None:
            parts.append(self.pointnet(points_BSN3.flatten(0, 1).transpose(1, 2)).unflatten(0, (B, S)))
        if self.pose_proj is not None:
            parts.append(self.pose_proj(pose_BS9))
        return self.out(torch.cat(parts, dim=-1))


class FusionLayer(nn.Module):
    """Text attends to itself, then to the views, then an MLP; each after its norm and added to the stream."""

    def __init__(self, size: AtlasSize) -> None:
        super().__init__()
        width, heads = size.fusion_dim, size.fusion_heads
        self.self_norm = nn.LayerNorm(width)
        self.self_attn = nn.MultiheadAttention(width, heads, dropout=size.dropout, batch_first=True)
        self.cross_norm = nn.LayerNorm(width)
        self.cross_attn = nn.MultiheadAttention(width, heads, dropout=size.dropout, batch_first=True)
        # All views count alike at first: with two of them, early noise would settle on one and drop the other.
        if size.starts_even:
            with torch.no_grad():
                self.cross_attn.in_proj_weight[: 2 * width] *= _EVEN_START
        self.mlp_norm = nn.LayerNorm(width)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Dropout(size.dropout), nn.Linear(4 * width, width)
        )
        self.drop = nn.Dropout(size.dropout)

    def forward(self, x_BTF: Tensor, views_BSF: Tensor, hidden_BT: Tensor | None) -> Tensor:
        y = self.self_norm(x_BTF)
        x_BTF = x_BTF + self.drop(self.self_attn(y, y, y, key_padding_mask=hidden_BT, need_weights=False)[0])
        y = self.cross_norm(x_BTF)
        x_BTF = x_BTF + self.drop(self.cross_attn(y, views_BSF, views_BSF, need_weights=False)[0])
        return x_BTF + self.drop(self.mlp(self.mlp_norm(x_BTF)))


class Fusion(nn.Module):
    """One vector of an instruction and its views."""

    def __init__(self, size: AtlasSize) -> None:
        super().__init__()
        width = size.fusion_dim
        self.masks_padding = size.masks_padding
        self.lang_proj = nn.Sequential(nn.Linear(size.lang_dim, width), nn.LayerNorm(width), nn.Dropout(size.dropout))
        self.geom_proj = nn.Sequential(nn.Linear(size.geom_dim, width), nn.LayerNorm(width), nn.Dropout(size.dropout))
        self.layers = nn.ModuleList(FusionLayer(size) for _ in range(size.fusion_layers))
        self.norm = nn.LayerNorm(width)
        self.out = nn.Linear(width, width)

    def forward(self, text_BTC: Tensor, real_BT: Tensor, geometry_BSG: Tensor) -> Tensor:
        x_BTF, views_BSF = self.lang_proj(text_BTC), self.geom_proj(geometry_BSG)
        hidden_BT = ~real_BT if self.masks_padding else None
        for layer in self.layers:
            x_BTF = layer(x_BTF, views_BSF, hidden_BT)
        weight_BT1 = (real_BT if self.masks_padding else torch.ones_like(real_BT)).to(x_BTF.dtype)[..., None]
        return self.out(self.norm((x_BTF * weight_BT1).sum(1) / weight_BT1.sum(1)))


class ActionHead(nn.Module):
    """A change of pose, and how far the gripper is closed, in (0, 1)."""

    def __init__(self, size: AtlasSize) -> None:
        super().__init__()
        first, second = size.head_dims
        self.trunk = nn.Sequential(
            *(nn.Linear(size.fusion_dim, first), nn.LayerNorm(first), nn.GELU(), nn.Dropout(size.dropout)),
            *(nn.Linear(first, second), nn.LayerNorm(second), nn.GELU()),
        )
        self.pose = nn.Sequential(nn.Linear(second, second), nn.ReLU(), nn.Linear(second, POSE_DIM))
        self.gripper = nn.Sequential(nn.Linear(second, second), nn.ReLU(), nn.Linear(second, 1))

    def forward(self, x_BF: Tensor) -> Tensor:
        x = self.trunk(x_BF)
        return torch.cat((self.pose(x), self.gripper(x).sigmoid()), dim=-1)


class Atlas(nn.Module):
    """Views and an instruction to one action. A batch holds either images or VGGT's features, and text alike."""

    def __init__(self, size: AtlasSize, vision: nn.Module, language: nn.Module, *, point_stride: int = 1) -> None:
        super().__init__()
        self.vision, self.language = vision, language
        self.point_stride, self.is_whitened = point_stride, size.whiten
        self.geometry = GeometryExtractor(size)
        self.fusion = Fusion(size)
        self.head = ActionHead(size)
        # How frozen features are spread on the training set; the identity until `set_whitening`.
        if size.whiten:
            self.register_buffer("token_mean", torch.zeros(size.token_dim))
            self.register_buffer("token_map", torch.eye(size.token_dim))

    @torch.no_grad()
    def set_whitening(self, mean_C: Tensor, map_CC: Tensor) -> None:
        """Take over how frozen features are spread."""
        self.token_mean.copy_(mean_C)
        self.token_map.copy_(map_CC)

    def forward(self, batch: Mapping[str, Tensor]) -> Tensor:
        """Return actions (B, 7): six of the pose, one of the gripper."""
        seen = batch if "tokens" in batch else see(self.vision, batch["images"], self.point_stride)
        text_BTC = batch["text"] if "text" in batch else _run(self.language, batch["words"], batch["real"])
        tokens_BSC = seen["tokens"]
        if self.is_whitened:
            tokens_BSC = (tokens_BSC - self.token_mean) @ self.token_map
        geometry_BSG = self.geometry(tokens_BSC, seen["points"], seen["pose"])
        action_B7 = self.head(self.fusion(text_BTC, batch["real"], geometry_BSG))
        return action_B7.float()


def see(vision: nn.Module, images_BSHW3: Tensor, stride: int) -> dict[str, Tensor]:
    """Run VGGT over images of bytes, once; return all that the trained part reads of it.

    The mean over tokens comes before anything that learns, so it belongs to the frozen half: 8 KB a view are kept
    instead of 11 MB.
    """
    images_BS3HW = images_BSHW3.movedim(-1, 2).float() / 255
    geometry: Geometry = _run(vision, images_BS3HW)
    start = stride // 2
    points = geometry.points[:, :, start::stride, start::stride]
    return {
        "tokens": geometry.tokens.float().mean(2),
        "points": points.flatten(2, 3).float(),
        "pose": geometry.pose.float(),
    }


def _run(encoder: nn.Module, *inputs: Tensor):  # type: ignore[no-untyped-def]  # whatever the encoder returns
    """Run an encoder; one without a trained parameter needs no graph."""
    with torch.set_grad_enabled(torch.is_grad_enabled() and any(p.requires_grad for p in encoder.parameters())):
        return encoder(*inputs)


@torch.no_grad()
def measure_spread(tokens_NSC: Tensor, floor: float = 1e-3) -> tuple[Tensor, Tensor]:
    """Return the mean of features and the map that gives them equal spread in all directions (ZCA).

    The spread is that of one view; the distance between the views stays in, as it tells them apart. Directions with
    less than `floor` of the widest one's variance are noise and stay small.
    """
    tokens = tokens_NSC.double()
    own = (tokens - tokens.mean(0)).flatten(0, 1)
    power, axes = torch.linalg.eigh(own.T @ own / max(1, len(own) - 1))
    power = power.clamp(min=0)
    map_CC = axes @ torch.diag((power + floor * power.max() + 1e-12).rsqrt()) @ axes.T
    return tokens.mean((0, 1)).float(), map_CC.float()


def freeze(module: nn.Module) -> None:
    """Take every gradient from a module and put it into eval mode; the loop keeps it there through `train()`."""
    module.requires_grad_(False).eval()


def gripper_target(raw_B: Tensor, *, original: bool) -> Tensor:
    """Return what the gripper head should say for LIBERO's -1 (open) and +1 (closed).

    The head ends in a sigmoid, so the published target of -1 is out of its reach and costs at least 1 a frame.
    """
    return raw_B if original else (raw_B + 1) / 2


def pose_loss(pose: Tensor, target: Tensor, kind: str) -> Tensor:
    """Return the loss of each sample's pose, a mean over its six numbers."""
    one = {"smooth_l1": F.smooth_l1_loss, "l1": F.l1_loss, "l2": F.mse_loss}[kind]
    return one(pose, target, reduction="none").mean(-1)


def gripper_loss(gripper_B: Tensor, target_B: Tensor, kind: str) -> Tensor:
    """Return the loss of each sample's gripper."""
    if kind == "l1":
        return (gripper_B - target_B).abs()
    with torch.autocast(gripper_B.device.type, enabled=False):
        return F.binary_cross_entropy(gripper_B.clamp(1e-6, 1 - 1e-6), target_B.clamp(0, 1), reduction="none")
