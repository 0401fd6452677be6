"""Builds the two encoders: with weights from the disk, or small ones whose weights are drawn from a fixed seed."""

from __future__ import annotations

import math
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from torch import nn
from torch._subclasses.fake_tensor import FakeTensor

from headway.errors import CheckError
from headway.recipes.atlas.find import find_language, find_vggt
from headway.recipes.atlas.language import HubEncoder, WordEncoder
from headway.recipes.atlas.model import Atlas, AtlasSize, freeze
from headway.recipes.atlas.section import AtlasSection
from headway.recipes.atlas.vggt import Vggt, VggtSize
from headway.task import build_on_cpu

_SEED = 0x0A71A5
"""Of the built-in encoders, whatever the run's seed: their features are the same for every run, and cached once."""
_WORD_BUCKETS = 4096
_UNUSED = ("track_head.",)
"""Published weights that nothing here reads."""
_BUILT_IN_SCALE = 0.1


def build_vision(section: AtlasSection) -> Vggt:
    """Return VGGT, frozen if the section says so."""
    where = None if is_weightless() else find_vggt(section).path
    if where is not None:
        vision = load_vggt(section, where)
    elif is_weightless():
        vision = Vggt(vggt_size(section, section.image_size))
    else:
        vision = build_on_cpu(lambda: _draw_vision(section))
    if section.freeze_vggt:
        freeze(vision)
    return vision


def _draw_vision(section: AtlasSection) -> Vggt:
    vision = Vggt(vggt_size(section, section.image_size, layer_scale=_BUILT_IN_SCALE))
    vision.init_weights(_SEED)
    return vision


def build_language(section: AtlasSection) -> WordEncoder | HubEncoder:
    """Return the language encoder, frozen if the section says so."""
    where = None if is_weightless() else find_language(section).path
    language: WordEncoder | HubEncoder
    if where is not None:
        language = build_on_cpu(lambda: HubEncoder(where, longest=section.lang_max_length))
    else:
        language = build_on_cpu(lambda: _draw_language(section))
    if section.freeze_lang_encoder:
        freeze(language)
    return language


def _draw_language(section: AtlasSection) -> WordEncoder:
    heads = 4 if section.lang_dim % 4 == 0 else 1
    language = WordEncoder(section.lang_dim, buckets=_WORD_BUCKETS, heads=heads, longest=section.lang_max_length)
    if not is_weightless():
        language.init_weights(_SEED + 1)
    return language


def build_atlas(section: AtlasSection) -> Atlas:
    """Return encoders and trained part together."""
    vision, language = build_vision(section), build_language(section)
    size = AtlasSize(
        token_dim=vision.size.token_dim,
        lang_dim=language.width,
        token_features=section.vision_features,
        pose_features=section.pose_features,
        point_features=section.point_features,
        geom_dim=section.geom_output_dim,
        fusion_dim=section.fusion_hidden_dim,
        fusion_layers=section.fusion_layers,
        fusion_heads=section.fusion_heads,
        head_dims=section.head_dims,
        dropout=section.dropout,
        use_pointnet=section.use_pointnet,
        use_pose=section.use_pose,
        masks_padding=not section.is_original,
        starts_even=not section.is_original,
        whiten=section.whiten,
    )
    return Atlas(size, vision, language, point_stride=section.point_stride)


def vggt_size(section: AtlasSection, image_size: int, *, layer_scale: float = 0.01) -> VggtSize:
    """Return the shape of the backbone."""
    depth, dense = section.vggt_depth, section.vggt_dense_width
    is_published = depth == VggtSize().depth
    spread = tuple(round((depth - 1) * share) for share in (0.17, 0.48, 0.74, 1.0))
    return VggtSize(
        image_size=image_size,
        patch=section.vggt_patch,
        width=section.vggt_width,
        heads=section.vggt_heads,
        vit_depth=section.vggt_vit_depth,
        depth=depth,
        dense_features=dense,
        dense_channels=(dense, 2 * dense, 4 * dense, 4 * dense),
        dense_layers=VggtSize().dense_layers if is_published else (spread[0], spread[1], spread[2], spread[3]),
        camera_depth=VggtSize().camera_depth if is_published else 1,
        layer_scale=layer_scale,
    )


def load_vggt(section: AtlasSection, where: Path) -> Vggt:
    """Return VGGT with the weights of a safetensors file; pickles are not read."""
    file = where if where.is_file() else where / "model.safetensors"
    if not file.is_file() or file.suffix != ".safetensors":
        raise CheckError("atlas/not-safetensors", path=where)
    device = torch.get_default_device()
    try:
        with safe_open(str(file), framework="pt", device=str(device)) as opened:
            held = {name: opened.get_tensor(name) for name in opened.keys() if not name.startswith(_UNUSED)}  # noqa: SIM118
    except (SafetensorError, OSError) as err:
        raise CheckError("atlas/bad-file", file=file, why=err) from err
    places = held.get("aggregator.patch_embed.pos_embed")
    side = math.isqrt(places.size(1) - 1) if places is not None else 1
    # Built without memory: a billion numbers need not be drawn to be overwritten.
    with torch.device("meta"):
        vision = Vggt(vggt_size(section, side * section.vggt_patch))
    own = vision.state_dict()
    wrong = [name for name, value in own.items() if name not in held or held[name].shape != value.shape]
    if wrong or len(held) != len(own):
        raise CheckError("atlas/other-weights", file=file, have=len(held), want=len(own), name=(wrong or ["n/a"])[0])
    vision.load_state_dict({name: value.float() for name, value in held.items()}, assign=True)
    vision.aggregator.patch_embed.mask_token.requires_grad_(False)
    return vision


def is_weightless() -> bool:
    """Tell whether tensors made now have shapes only: a planner's trace, or the meta device."""
    probe = torch.empty(0)
    return isinstance(probe, FakeTensor) or probe.device.type == "meta"


def is_frozen(module: nn.Module) -> bool:
    """Tell whether nothing of a module trains."""
    return not any(param.requires_grad for param in module.parameters())
