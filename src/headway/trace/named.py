"""A model that only a library knows, trained for two steps on made-up data: what `plan --model` traces.

    python -m headway.trace.named '{"name": "…", "settings": {…}}'

Run as the script of `headway.trace.script`, in the ranks' interpreter, whose transformers or timm build the model.
Nothing is fetched: a name is one of timm's, a folder or `config.json`, or in the Hugging Face cache.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import json
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

Step = tuple[nn.Module, Callable[[nn.Module], Tensor]]
_TEXT = ("CausalLM", "MaskedLM", "LMHeadModel", "ConditionalGeneration", "PreTraining")
_ONE_LABEL = ("SequenceClassification", "ImageClassification", "AudioClassification")


class UnknownModelError(LookupError):
    """Neither timm nor transformers knows the name here."""


def build(name: str, settings: Mapping[str, Any]) -> Step:
    """Return the model of a name and the loss of one made-up batch of it."""
    if importlib.util.find_spec("timm") is not None:
        timm = importlib.import_module("timm")
        if timm.is_model(name):
            return _build_timm(timm, name, settings)
    if importlib.util.find_spec("transformers") is not None:
        return _build_transformers(name, settings)
    raise UnknownModelError(name)


def _build_timm(timm: Any, name: str, settings: Mapping[str, Any]) -> Step:
    model = timm.create_model(name, pretrained=False)
    if settings["recompute"] == "full":
        model.set_grad_checkpointing(True)
    channels, side, _ = model.default_cfg["input_size"]
    side = settings["image"] or side
    images = torch.zeros(settings["batch"], channels, side, side)
    labels = torch.zeros(settings["batch"], dtype=torch.int64)
    return model, lambda model: nn.functional.cross_entropy(model(images.cuda()), labels.cuda())


def _build_transformers(name: str, settings: Mapping[str, Any]) -> Step:
    transformers = importlib.import_module("transformers")
    place = Path(name).parent if name.endswith(".json") else name
    try:
        config = transformers.AutoConfig.from_pretrained(place, local_files_only=True)
    except (OSError, ValueError) as err:
        raise UnknownModelError(name) from err
    kind = next(iter(getattr(config, "architectures", None) or ()), "")
    home = getattr(transformers, kind, None)
    model = home(config) if home is not None else transformers.AutoModel.from_config(config)
    if settings["recompute"] == "full":
        model.gradient_checkpointing_enable()
    model.train()
    batch = _batch(model, config, settings)
    batch |= _labels(type(model).__name__, batch, settings)

    def loss(model: nn.Module) -> Tensor:
        out = model(**{key: value.cuda() for key, value in batch.items()})
        found = getattr(out, "loss", None)
        return found if found is not None else out[0].float().mean()

    return model, loss


def _batch(model: Any, config: Any, settings: Mapping[str, Any]) -> dict[str, Tensor]:
    """Return zeros in the shape of the model's main input."""
    samples, wanted = settings["batch"], model.main_input_name
    if wanted == "pixel_values":
        vision = getattr(config, "vision_config", config)
        side = settings["image"] or getattr(vision, "image_size", 224)
        height, width = side if isinstance(side, list | tuple) else (side, side)
        return {wanted: torch.zeros(samples, getattr(vision, "num_channels", 3), height, width)}
    if wanted == "input_features":
        return {wanted: torch.zeros(samples, config.num_mel_bins, 2 * config.max_source_positions)}
    if wanted == "input_values":
        return {wanted: torch.zeros(samples, settings["seq"])}
    most = getattr(config, "max_position_embeddings", None) or settings["seq"]
    return {wanted: torch.zeros(samples, min(settings["seq"], most), dtype=torch.int64)}


def _labels(kind: str, batch: Mapping[str, Tensor], settings: Mapping[str, Any]) -> dict[str, Tensor]:
    """Return the labels a model of this class makes its loss with."""
    if any(word in kind for word in _ONE_LABEL):
        return {"labels": torch.zeros(settings["batch"], dtype=torch.int64)}
    if any(word in kind for word in _TEXT):
        ids = batch.get("input_ids")
        return {"labels": torch.zeros(settings["batch"], 448, dtype=torch.int64) if ids is None else ids}
    return {}


def train(name: str, settings: Mapping[str, Any]) -> None:
    """Train two steps, as the settings say."""
    model, loss = build(name, settings)
    dtype = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(settings["precision"])
    if settings["precision"] == "bf16-pure":
        model = model.to(torch.bfloat16)
    model = model.cuda()
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        torch.distributed.init_process_group("nccl")
        model = nn.parallel.DistributedDataParallel(model, device_ids=[0])
    trained = [param for param in model.parameters() if param.requires_grad]
    if settings["optimizer"] == "sgd":
        optimizer: torch.optim.Optimizer = torch.optim.SGD(trained, lr=0.1, momentum=0.9)
    else:
        optimizer = torch.optim.AdamW(trained, fused=settings["optimizer"] == "adamw-fused")
    for _ in range(2):
        for _ in range(settings["accumulation"]):
            with torch.autocast("cuda", dtype=dtype) if dtype else contextlib.nullcontext():
                value = loss(model)
            value.backward()
        optimizer.step()
        optimizer.zero_grad()


if __name__ == "__main__":
    _question = json.loads(sys.argv[1])
    train(_question["name"], _question["settings"])
