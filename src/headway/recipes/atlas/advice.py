"""The guide's arithmetic, said before a run starts: what a batch is, what the rate becomes, what more GPUs do not do."""

from __future__ import annotations

from headway.config import Situation
from headway.recipes.atlas.section import AtlasSection
from headway.units import size

Warning = tuple[str, dict[str, str]]

_FP32 = 4
_TRAINED_COPIES = 4
"""Weights, gradients and both moments of AdamW."""
_VGGT_PARAMS, _LLAMA_PARAMS = 1_190_596_120, 8_030_261_248
"""Of the published encoders: VGGT-1B without its track head, and Llama-3-8B."""


def advise(here: Situation) -> list[Warning]:
    """Return what is worth saying about a planned run."""
    return [*_batch_meaning(here), *_memory(here)]


def _batch_meaning(here: Situation) -> list[Warning]:
    """Say what accumulation makes of batch and rate: the guide calls 4 × 8 GPUs × 4 "the same as 8 on 8 GPUs"."""
    config = here.config
    if here.guide_names.get("batch.per_device") != "data.batch_size" or here.accumulation == 1:
        return []
    total = here.per_device * here.world_size * here.accumulation
    base = config.lr.base_batch or total
    ratio = total / base
    factor = {"linear": ratio, "sqrt": ratio**0.5, "none": 1.0}[config.lr.scaling]
    facts = {
        "per_device": str(here.per_device),
        "ranks": str(here.world_size),
        "accumulation": str(here.accumulation),
        "total": str(total),
        "rate": f"{config.lr.base * factor:.3g}",
        "base": f"{config.lr.base:.3g}",
        "base_batch": str(base),
        "other": f"{config.lr.base * here.world_size:.3g}",
        "other_batch": str(here.per_device * here.accumulation),
    }
    return [("atlas/batch-meaning", facts)]


def _memory(here: Situation) -> list[Warning]:
    """Say when encoders that train need more than a card has; every GPU holds all of them."""
    section: AtlasSection = here.config.task
    is_real = section.vggt_checkpoint is not None and not section.builtin_encoders
    if here.device_bytes is None or here.is_sharded or not is_real:
        return []
    need = sum(
        params * _FP32 * (1 if is_frozen else _TRAINED_COPIES)
        for params, is_frozen in (
            (_VGGT_PARAMS, section.freeze_vggt),
            (_LLAMA_PARAMS if section.lang_encoder_name else 0, section.freeze_lang_encoder),
        )
    )
    if need <= here.device_bytes:
        return []
    return [("atlas/encoders-too-large", {"need": size(need), "have": size(here.device_bytes)})]
