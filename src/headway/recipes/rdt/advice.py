"""The published guide's traps, said before a run starts: what a batch means, what fits a card, how far to drive."""

from __future__ import annotations

from headway.recipes.rdt.section import RdtSection
from headway.task import Forecast, Situation
from headway.units import size

Warning = tuple[str, dict[str, str]]


def advise(here: Situation) -> list[Warning]:
    """Return what is worth saying about a planned run."""
    section: RdtSection = here.config.task
    return [*_batch_meaning(here), *_memory(here, section), *_horizon(section)]


def weigh(
    section: RdtSection,
    *,
    per_device: int,
    has_ema: bool,
    ranks: int = 1,
    is_sharded: bool = False,
    is_half: bool = True,
) -> dict[str, float]:
    """Return about what training holds on one device, in bytes by name, without the trace a plan goes by.

    The activations are those of the picture tokens: every second block keeps its keys and values of all of them, twice
    (before and after their norm), and its adaptor its layers. Compared with the trace in the tests.
    """
    params, H, blocks = section.num_params, section.hidden_size, section.depth
    pictures = section.img_cond_len * (section.img_token_dim + 6 * H + (blocks // 2) * 4 * H)
    sentence = min(section.tokenizer_max_length, 64) * (section.lang_token_dim + 3 * H + (blocks - blocks // 2) * 4 * H)
    tokens = (section.action_chunk_size + 3) * blocks * 18 * H
    kept = (2 if is_half else 4) * per_device * (pictures + sentence + tokens)
    shards = ranks if is_sharded else 1
    whole = 4 * params
    return {
        "weights": whole / shards,
        "gradients": whole / shards + (whole / blocks if shards > 1 else 0),
        "optimizer-state": 2 * whole / shards,
        "moving-average": has_ema * whole / shards,
        "weights-in-compute-type": whole / 2 if is_half and shards == 1 else 0,
        "gathered-weights": 3 * whole / blocks / (2 if is_half else 1) if shards > 1 else 0,
        # Validation keeps nothing for a backward, but the weights are set aside while their average is in place.
        "activations": max(kept, has_ema * whole / shards),
    }


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
    have, ways = here.device_bytes, max(2, here.world_size)
    has_ema, is_half = here.config.ema.decay is not None, here.config.train.precision != "fp32"

    def at(batch: int, ranks: int, is_sharded: bool) -> Forecast:
        held = weigh(section, per_device=batch, has_ema=has_ema, ranks=ranks, is_sharded=is_sharded, is_half=is_half)
        return here.forecast(held, ranks)

    need = at(here.per_device, here.world_size, here.is_sharded)
    if need.judge(have) != "will-not-fit":
        return []
    each = here.per_device * here.accumulation
    # As the planner offers it: the largest that fits and keeps the effective batch; 1 where none does, with its number.
    smaller = [batch for batch in range(each, 0, -1) if each % batch == 0]
    fits = next((batch for batch in smaller if at(batch, ways, True).judge(have) == "fits"), 1)
    facts = {
        "need": size(need.used_bytes),
        "have": size(have),
        "batch": str(here.per_device),
        "fits": str(fits),
        "less": size(at(fits, ways, True).used_bytes),
        "ways": str(ways),
    }
    return [("rdt/does-not-fit", facts)]


def _horizon(section: RdtSection) -> list[Warning]:
    """Say when rollouts are asked to continue past the environment's own end."""
    facts = section.rollout.past_horizon()
    return [] if facts is None else [("rdt/past-horizon", facts)]
