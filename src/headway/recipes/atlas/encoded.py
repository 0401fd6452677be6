"""What encoders say of the data before training: features of frozen ones, words for the others, and their spread."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from headway.recipes.atlas.data import Index
from headway.recipes.atlas.encoders import is_frozen
from headway.recipes.atlas.features import feature_folder, make_features, open_features
from headway.recipes.atlas.frames import Frames, Texts
from headway.recipes.atlas.language import encode_texts
from headway.recipes.atlas.model import Atlas, measure_spread, see
from headway.recipes.atlas.section import AtlasSection
from headway.task import Ids

_SPREAD_FRAMES = 2048
"""Training frames whose features show how they are spread."""
_AT_ONCE = 64


@dataclass(frozen=True, slots=True)
class Encoded:
    """What the loader serves in place of pictures and words."""

    features: Mapping[str, np.memmap] | None
    """Of all frames; none: pictures are served."""
    texts: Texts


def encode_data(
    section: AtlasSection, model: Atlas, frames: Frames, index: Index, *, precision: Literal["fp32", "bf16", "fp16"]
) -> Encoded:
    """Run frozen encoders over the data, or read what they said; tell the model how the features are spread."""
    features = None
    if section.freeze_vggt and section.cache_features:
        folder = feature_folder(section, content=index.content, vision=model.vision, precision=precision)
        if not folder.is_dir():
            half = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(precision)
            device = next(model.vision.parameters()).device.type
            make_features(
                folder,
                frames=len(frames),
                vision=model.vision,
                stride=section.point_stride,
                look=frames.look,
                context=nullcontext if half is None else partial(torch.autocast, device, dtype=half),
            )
        features = open_features(folder)
    if section.whiten:
        ids = np.unique(np.linspace(0, index.train_frames - 1, _SPREAD_FRAMES).astype(np.int64))
        tokens = (
            _look_up(model, frames, ids) if features is None else torch.from_numpy(np.array(features["tokens"][ids]))
        )
        model.set_whitening(*measure_spread(tokens))
    return Encoded(features, _encode_texts(model, frames))


def _encode_texts(model: Atlas, frames: Frames) -> Texts:
    if not is_frozen(model.language):
        words, real = model.language.tokenize(frames.instructions)
        return Texts(words, real, is_encoded=False)
    values, real = encode_texts(model.language, frames.instructions)
    return Texts(values.cpu(), real.cpu(), is_encoded=True)


@torch.no_grad()
def _look_up(model: Atlas, frames: Frames, ids: Ids) -> Tensor:
    """Return the pooled tokens of frames from the encoder itself."""
    device = next(model.vision.parameters()).device
    parts = np.array_split(ids, -(-len(ids) // _AT_ONCE))
    return torch.cat(
        [see(model.vision, frames.look(part).to(device), model.point_stride)["tokens"] for part in parts]
    ).cpu()
