"""The published guide's traps, said before a run starts: what a batch means, what fits a card, how far to drive."""

from __future__ import annotations

from headway.config import Situation
from headway.recipes.rdt.section import RdtSection
from headway.units import size

_LIVE_STATES = 4
"""Copies of the weights in fp32: themselves, gradients, two moments of AdamW; one more with a moving average."""
_CONTEXT_BYTES = 1 << 30
"""What a process takes before its first tensor, and buffers to other ranks."""

Warning = tuple[str, dict[str, str]]


def advise(here: Situation) -> list[Warning]:
    """Return what is worth saying about a planned run."""
    section: RdtSection = here.config.task
    return [*_batch_meaning(here), *_memory(here, section), *_horizon(section)]


def train_bytes(section: RdtSection, *, per_device: int, has_ema: bool, shards: int = 1) -> int:
    """Return about what training holds on one device: states of the weights, and activations in bf16.

    The activations are those of the picture tokens: every second block keeps its keys and values of all of them, twice
    (before and after their norm), and its adaptor its two layers.
    """
    states = section.num_params * 4 * (_LIVE_STATES + has_ema) // shards
    H, blocks = section.hidden_size, section.depth
    pictures = section.img_cond_len * (section.img_token_dim + 3 * H + (blocks // 2) * 4 * H)
    sentence = min(section.tokenizer_max_length, 64) * (section.lang_token_dim + 3 * H + (blocks - blocks // 2) * 4 * H)
    tokens = (section.action_chunk_size + 3) * blocks * 18 * H
    return states + 2 * per_device * (pictures + sentence + tokens) + _CONTEXT_BYTES


def _batch_meaning(here: Situation) -> list[Warning]:
    """Say both numbers when the batch has the guide's name, which means one thing there and another in the code."""
    config = here.config
    if here.guide_names.get("batch.all_devices") != "train_batch_size" or here.world_size == 1:
        return []
    whole = here.world_size * here.per_device
    facts = {
        "given": str(config.batch.all_devices),
        "ranks": str(here.world_size),
        "per_device": str(here.per_device),
        "total": str(whole * here.accumulation),
        "accumulation": str(here.accumulation),
        "other": str(whole * here.world_size * here.accumulation),
    }
    return [("rdt/batch-meaning", facts)]


def _memory(here: Situation, section: RdtSection) -> list[Warning]:
    """Say when the run needs more than the card has: the guide itself asks for 35 GB on a 24 GB card."""
    if here.device_bytes is None:
        return []
    has_ema = here.config.ema.decay is not None
    shards = here.world_size if here.is_sharded else 1
    need = train_bytes(section, per_device=here.per_device, has_ema=has_ema, shards=shards)
    if need <= here.device_bytes:
        return []
    ways = max(2, here.world_size)

    def spread(batch: int) -> int:
        return train_bytes(section, per_device=batch, has_ema=has_ema, shards=ways)

    # The largest batch that fits when the state is spread; 1 where none does, with its number.
    fits = next((batch for batch in range(here.per_device, 0, -1) if spread(batch) <= here.device_bytes), 1)
    facts = {
        "need": size(need),
        "have": size(here.device_bytes),
        "batch": str(here.per_device),
        "fits": str(fits),
        "less": size(spread(fits)),
        "ways": str(ways),
    }
    return [("rdt/does-not-fit", facts)]


def _horizon(section: RdtSection) -> list[Warning]:
    """Say when rollouts are asked to go on past the environment's own end."""
    facts = section.rollout.past_horizon()
    return [] if facts is None else [("rdt/past-horizon", facts)]
