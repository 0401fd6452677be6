"""What recipes ask of a model's parameters: groups for the optimizer, and the fingerprint of those that do not train.

torch is imported where a model comes in, and only there: a recipe's preset imports this package without a framework.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from headway.config import OptimizerConfig
from headway.errors import ConfigError
from headway.task.contract import ParamGroup

if TYPE_CHECKING:
    from torch import nn


def make_groups(
    model: nn.Module, blocks: Sequence[nn.Module], optimizer: OptimizerConfig, *, lr: float
) -> list[ParamGroup]:
    """Return all that trains as `optimizer.name` wants it: in one group, or for Muon in two.

    Muon takes the matrices and convolution kernels of the repeated blocks, and moves them as far as AdamW would at the
    same rate. What is outside of the blocks (inputs, outputs, embeddings), norms and biases are AdamW's.
    """
    trained = {name: param for name, param in model.named_parameters() if param.requires_grad}
    hidden = _hidden(blocks) if optimizer.name == "muon" else set()
    matrices = {name: param for name, param in trained.items() if id(param) in hidden}
    rest = {name: param for name, param in trained.items() if id(param) not in hidden}
    groups = [
        ParamGroup(
            params=rest,
            optimizer="adamw" if optimizer.name == "muon" else optimizer.name,
            lr=lr,
            beta1=optimizer.beta1,
            beta2=optimizer.beta2,
            eps=optimizer.eps,
            weight_decay=optimizer.weight_decay,
            momentum=optimizer.momentum,
            nesterov=optimizer.nesterov,
        )
    ]
    if matrices:
        decay = optimizer.weight_decay
        muon = ParamGroup(params=matrices, optimizer="muon", lr=lr, weight_decay=decay, is_like_adamw=True)
        groups.insert(0, muon)
    return groups


def _hidden(blocks: Sequence[nn.Module]) -> set[int]:
    """Return the ids of the blocks' matrices and kernels that are more than one row or column."""
    from torch import nn

    # Matrices that are none to Muon: tables of rows, and the stacked gates of a recurrent layer.
    elsewhere = (nn.Embedding, nn.EmbeddingBag, nn.RNNBase)
    return {
        id(param)
        for block in blocks
        for module in block.modules()
        if not isinstance(module, elsewhere)
        for param in module.parameters(recurse=False)
        if param.requires_grad and param.ndim >= 2 and 1 < len(param) < param.numel()
    }


def refuse_other_optimizer(groups: Sequence[ParamGroup], optimizer: OptimizerConfig) -> None:
    """Refuse groups of a recipe that leave out the optimizer the user has asked for."""
    used = sorted({group.optimizer for group in groups if group.params})
    # `adamw` is the default as well as a wish: a recipe may know better than the default.
    if optimizer.name not in (*used, "adamw"):
        raise ConfigError("engine/other-optimizer", name=optimizer.name, used=" ".join(used), instead=used[0])


def hash_frozen(model: nn.Module) -> str | None:
    """Return a fingerprint of the weights that do not train; they are not saved, and a resumed run needs the same."""
    import torch
    from blake3 import blake3

    frozen = [(name, param) for name, param in model.named_parameters() if not param.requires_grad]
    if not frozen:
        return None
    digest = blake3(max_threads=blake3.AUTO)
    for name, param in frozen:
        digest.update(name.encode())
        # In one row first: a single number, of no dimension, has no bytes to be viewed as.
        digest.update(param.detach().cpu().reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()[:16]
