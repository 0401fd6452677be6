"""A batch and sentences of true shapes without any data: a plan is made before there are demonstrations."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from headway.recipes.rdt import slots
from headway.recipes.rdt.encoders import BUILT_IN_TEXT, encode_sentences
from headway.recipes.rdt.samples import GREY, make_batch
from headway.recipes.rdt.section import RdtSection
from headway.recipes.rdt.world import TASKS

_SIDE = 128
"""Pixels of a side in LIBERO's published demonstrations."""
_LONGEST = 64
"""Tokens of a long sentence; LIBERO's have fewer, and the model's limit is far above them."""


def example_batch(section: RdtSection, samples: int) -> dict[str, Tensor]:
    """Return samples with every picture there; their values do not matter to a trace."""
    picture = np.full((_SIDE, _SIDE, 3), GREY, np.uint8)
    shown = [picture] * (section.img_history_size * section.num_cameras)
    conditions = make_batch(
        section,
        states=np.zeros((samples, len(slots.STATE_SLOTS)), np.float32),
        lang=np.ones(samples, np.int64),
        pictures=[shown] * samples,
    )
    return conditions | {"actions": torch.zeros(samples, section.action_chunk_size, slots.WIDTH)}


def example_sentences(section: RdtSection) -> tuple[Tensor, Tensor]:
    """Return tokens and mask of sentences: the built-in tasks' where they need no files, else long ones."""
    if section.lang_embed is None and section.text_encoder == BUILT_IN_TEXT:
        return encode_sentences(section, ["", *TASKS])
    length = min(section.tokenizer_max_length, _LONGEST)
    return torch.zeros(2, length, section.lang_token_dim), torch.ones(2, length, dtype=torch.bool)
