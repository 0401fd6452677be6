"""What an exported checkpoint says about itself: the published `config.json`."""

from __future__ import annotations

from typing import Any

from headway.recipes.rdt.section import RdtSection
from headway.task import RunConfig


def describe_checkpoint(config: RunConfig, step: int) -> dict[str, Any]:
    """Return the arguments the published runner is built from, and the whole section that the model was trained as."""
    task: RdtSection = config.task
    return {
        "step": step,
        # `auto` would mean another norm where these weights are a start.
        "headway": {**task.model_dump(mode="json"), "norm": task.used_norm},
        "action_dim": 128,
        "pred_horizon": task.action_chunk_size,
        "lang_token_dim": task.lang_token_dim,
        "img_token_dim": task.img_token_dim,
        "state_token_dim": 128,
        "max_lang_cond_len": task.tokenizer_max_length,
        "img_cond_len": task.img_cond_len,
        "lang_pos_embed_config": [["lang", -task.tokenizer_max_length]],
        "img_pos_embed_config": [["image", [task.img_history_size, task.num_cameras, -task.img_patches]]],
        "config": {
            "lang_adaptor": task.lang_adaptor,
            "img_adaptor": task.img_adaptor,
            "state_adaptor": task.state_adaptor,
            "rdt": {"hidden_size": task.hidden_size, "depth": task.depth, "num_heads": task.num_heads},
            "noise_scheduler": {
                "type": "ddpm",
                "num_train_timesteps": task.num_train_timesteps,
                "num_inference_timesteps": task.sample.steps,
                "beta_schedule": "squaredcos_cap_v2",
                "prediction_type": "sample",
                "clip_sample": False,
            },
        },
    }
