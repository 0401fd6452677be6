"""Which framework a run trains with, where its recipe has two and only one of them can use the GPUs."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace

from headway.config import LoadedConfig, Origin
from headway.errors import CheckError
from headway.machine import apply_visible, read_mindspore, try_mindspore
from headway.messages import say
from headway.start.devices import read_gpus

_KEY = "task.framework"
_OPEN = ("default", "recipe ")
"""Beginnings of origins that say nobody has chosen."""


def settle_framework(loaded: LoadedConfig, tell: Callable[[str], None]) -> LoadedConfig:
    """Return the config with PyTorch where MindSpore cannot use the NVIDIA GPUs here and nobody has asked for it.

    Its GPU plugin is built for CUDA 11, whose libraries no set-up brings; without a look at it the plan would take GPUs
    and the ranks would end with `only supports CPU`.

    Raises:
        CheckError: MindSpore was asked for, and cannot use the GPUs that the run would take.
    """
    if loaded.framework != "mindspore" or loaded.config.parallel.gpus == 0:
        return loaded
    if getattr(loaded.config.task, "device_target", "auto") not in ("auto", "GPU"):
        return loaded
    gpus = [gpu for gpu in apply_visible(read_gpus(), os.environ.get("CUDA_VISIBLE_DEVICES")) if not gpu.lost]
    if not gpus:
        return loaded
    mindspore = read_mindspore(loaded.config.env.python)
    if mindspore.mindspore is None:
        return loaded  # refused with its own reason, whatever the device
    tried = try_mindspore(mindspore, "GPU")
    if tried.level == "ok":
        return loaded
    if not str(loaded.origins.get(_KEY, "default")).startswith(_OPEN):
        raise CheckError(tried.code, **tried.facts)
    tell(say("mindspore/uses-torch", gpu=gpus[0].name or "GPU", why=tried.facts["why"]))
    config = loaded.config
    task = config.task.model_copy(update={"framework": "torch"})
    env = config.env
    if str(loaded.origins.get("env.python", "default")).startswith("found"):
        env = env.model_copy(update={"python": None})  # it was looked for because of MindSpore
    return replace(
        loaded,
        config=config.model_copy(update={"task": task, "env": env}),
        origins={**loaded.origins, _KEY: Origin("MindSpore cannot use the GPU", "machine")},
    )
