"""What looks at the images: a small network that learns, the original's two random ones, and a real CLIP.

Images come as bytes (M, 3, S, S), features go out (M, V). The original runs its projection without gradient and does
not save any of this, so a restarted run sees other features; here weights that do not train come from the run's seed,
and a checkpoint remembers their hash.
"""

from __future__ import annotations

from torch import Tensor, nn

from headway.recipes.layoutmaster.clip import Means, load_clip, read_colours
from headway.recipes.layoutmaster.diffusion import numbers_like
from headway.recipes.layoutmaster.section import QWEN, LayoutMasterSection

_IMAGENET: tuple[Means, Means] = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
"""Mean and deviation of colours."""


class VisualFeatureExtractor(nn.Module):
    """A backbone and its projection to the width the transformer takes."""

    def __init__(self, backbone: nn.Module, width: int, visual_dim: int, colours: tuple[Means, Means]) -> None:
        super().__init__()
        self.backbone, self._colours = backbone, colours
        self.projection = nn.Linear(width, visual_dim)

    def forward(self, images_M: Tensor) -> Tensor:
        weight = self.projection.weight
        pixels = images_M.float() / 255
        mean, std = (numbers_like(part, pixels)[:, None, None] for part in self._colours)
        pixels = (pixels - mean) / std
        return self.projection(self.backbone(pixels.to(weight.dtype)))


class SmallCnn(nn.Sequential):
    """Three strided convolutions with norms that know no batch, and the features of a 4 x 4 grid."""

    def __init__(self) -> None:
        super().__init__(
            nn.Conv2d(3, 16, 3, stride=2, padding=1),
            nn.GroupNorm(4, 16),
            nn.GELU(),
            nn.Conv2d(16, 32, 3, stride=2, padding=1),
            nn.GroupNorm(4, 32),
            nn.GELU(),
            nn.Conv2d(32, 32, 3, stride=2, padding=1),
            nn.GroupNorm(4, 32),
            nn.GELU(),
            nn.AdaptiveAvgPool2d(4),
            nn.Flatten(),
        )


class SimpleCnn(nn.Sequential):
    """The original's fallback: four convolutions with batch norms, averaged over the image."""

    def __init__(self) -> None:
        layers: list[nn.Module] = []
        for inner, outer, side, stride in ((3, 64, 7, 2), (64, 128, 3, 1), (128, 256, 3, 1), (256, 512, 3, 1)):
            layers += [nn.Conv2d(inner, outer, side, stride, side // 2), nn.BatchNorm2d(outer), nn.ReLU()]
            if outer == 64:
                layers.append(nn.MaxPool2d(3, 2, 1))
            else:
                layers += [nn.MaxPool2d(2)] if outer < 512 else [nn.AdaptiveAvgPool2d(1), nn.Flatten()]
        super().__init__(*layers)


class QwenLike(nn.Module):
    """The original's re-creation of a Qwen vision tower: its shape, none of its weights, no positions."""

    def __init__(self) -> None:
        super().__init__()
        self.patch_embed = nn.Conv2d(3, 1280, 14, stride=14)
        self.layers = nn.Sequential(
            *(nn.TransformerEncoderLayer(1280, 16, 3420, activation="gelu", batch_first=True) for _ in range(4))
        )
        self.norm = nn.LayerNorm(1280)
        self.out = nn.Linear(1280, 2048)

    def forward(self, pixels: Tensor) -> Tensor:
        patches = self.patch_embed(pixels).flatten(2).transpose(1, 2)
        return self.out(self.norm(self.layers(patches))).mean(1)


def build_visual(section: LayoutMasterSection) -> VisualFeatureExtractor:
    """Return the backbone a section asks for, frozen if it says so."""
    backbone: nn.Module
    colours = _IMAGENET
    if section.visual_backbone == "clip":
        assert section.backbone_path is not None, "the section has checked it"
        backbone, width = load_clip(section.backbone_path, section.image_size)
        if section.head_mode != "original":  # the original gives every backbone ImageNet's
            colours = read_colours(section.backbone_path)
    else:
        kind, width = {"small": (SmallCnn, 512), "simple-cnn": (SimpleCnn, 512), QWEN: (QwenLike, 2048)}[
            section.visual_backbone
        ]
        backbone = kind()
    visual = VisualFeatureExtractor(backbone, width, section.visual_dim, colours)
    if section.freeze_visual:
        visual.requires_grad_(False)
    return visual


def batch_norms(model: nn.Module) -> list[nn.Module]:
    """Return the norms that would keep running statistics; they stay as they are, so no replica's can differ."""
    return [module for module in model.modules() if isinstance(module, nn.BatchNorm2d)]
