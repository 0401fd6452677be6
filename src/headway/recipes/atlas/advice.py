"""The guide's arithmetic, said before a run starts: what a batch is, what the rate becomes, what does not fit."""

from __future__ import annotations

from headway.recipes.atlas.section import AtlasSection
from headway.task import Situation
from headway.units import size

Warning = tuple[str, dict[str, str]]

GUIDE_BATCH = 8
"""Samples of the one GPU the guide's learning rate is for."""
_FP32 = 4
_TRAINED_COPIES = 4
"""Weights, gradients and both moments of AdamW."""
_VGGT_PARAMS, _LLAMA_PARAMS = 1_190_596_120, 8_030_261_248
"""Of the published encoders: VGGT-1B without its track head, and Llama-3-8B."""


def advise(here: Situation) -> list[Warning]:
    """Return what is worth saying about a planned run."""
    return [*_batch_meaning(here), *_rate_meaning(here), *_memory(here)]


def _batch_meaning(here: Situation) -> list[Warning]:
    """Say what accumulation makes of the batch: the guide calls 4 × 8 GPUs × 4 "the same as 8 on 8 GPUs"."""
    one_gpu = here.per_device * here.accumulation
    if not _is_guides(here) or here.accumulation == 1 or one_gpu == GUIDE_BATCH:
        return []
    turns = max(1, GUIDE_BATCH // here.per_device)
    facts = {
        "per_device": str(here.per_device),
        "ranks": str(here.world_size),
        "accumulation": str(here.accumulation),
        "total": str(one_gpu * here.world_size),
        "usual": str(GUIDE_BATCH * here.world_size),
        "guide": str(GUIDE_BATCH),
        "same": str(here.per_device if here.per_device * turns == GUIDE_BATCH else GUIDE_BATCH),
        "turns": str(turns if here.per_device * turns == GUIDE_BATCH else 1),
    }
    return [("atlas/batch-meaning", facts)]


def _rate_meaning(here: Situation) -> list[Warning]:
    """Say which rule the rate follows where the two differ: the guide scales by GPUs and forgets accumulation."""
    one_gpu, lr = here.per_device * here.accumulation, here.config.lr
    total = one_gpu * here.world_size
    if not _is_guides(here) or one_gpu == GUIDE_BATCH or lr.scaling == "none":
        return []
    power = {"linear": 1.0, "sqrt": 0.5}[lr.scaling]
    facts = {
        "rate": f"{lr.base * (total / (lr.base_batch or total)) ** power:.3g}",
        "base": f"{lr.base:.3g}",
        "by_gpus": f"{lr.base * here.world_size**power:.3g}",
        "by_samples": f"{lr.base * (total / GUIDE_BATCH) ** power:.3g}",
        "total": str(total),
        "guide": str(GUIDE_BATCH),
        "one_gpu": str(one_gpu),
    }
    return [("atlas/rate-meaning", facts)]


def _is_guides(here: Situation) -> bool:
    return here.guide_names.get("batch.per_device") == "data.batch_size"


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
