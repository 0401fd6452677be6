"""Sharded parameters: FSDP2 under the same layout interface. Imported only by runs that shard."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import (
    CPUOffloadPolicy,
    FSDPModule,
    MixedPrecisionPolicy,
    OffloadPolicy,
    fully_shard,
)
from torch.distributed.tensor import DTensor

from headway.engine.parallel import Layout, Ranks


class Sharded(Layout):
    """Every rank holds a slice of each parameter, its gradient and its optimizer state (FSDP2)."""

    is_sharded = True

    def __init__(
        self,
        ranks: Ranks,
        model: nn.Module,
        blocks: Sequence[nn.Module],
        precision: str,
        *,
        is_offloaded: bool = False,
    ) -> None:
        """Shard a model.

        Args:
            is_offloaded: each rank's part of weights, gradients and optimizer state is in host memory, and the update
                is made there; the device holds what one block needs at a time.
        """
        super().__init__(ranks)
        offload = CPUOffloadPolicy(pin_memory=ranks.device.type == "cuda") if is_offloaded else OffloadPolicy()
        mesh = init_device_mesh(ranks.device.type, (ranks.world_size,))
        policy = MixedPrecisionPolicy()
        if precision == "bf16":
            policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
        # Frozen weights stay whole on every rank: they have no gradients or optimizer state to spread, and are hashed.
        frozen = {param for param in model.parameters() if not param.requires_grad}
        for param in model.parameters():
            # FSDP2 refuses any other memory order; what the model computes does not depend on it.
            if param.requires_grad and not param.is_contiguous():
                param.data = param.data.contiguous()
        if precision == "bf16":
            _shard_running_norms(model, mesh, frozen)
        for block in (block for block in blocks if not isinstance(block, FSDPModule)):
            fully_shard(block, mesh=mesh, mp_policy=policy, offload_policy=offload, ignored_params=frozen)
        fully_shard(model, mesh=mesh, mp_policy=policy, offload_policy=offload, ignored_params=frozen)
        self._modules = [module for module in model.modules() if isinstance(module, FSDPModule)]
        for module in self._modules:
            # Only the loop divides: the reduction must be a plain sum.
            module.set_gradient_divide_factor(1.0)
            module.set_force_sum_reduction_for_comms(True)
        self._params = [param for param in model.parameters() if param.requires_grad]

    def zero_grad(self) -> None:
        """Forget all gradients."""
        for param in self._params:
            param.grad = None

    def begin_micro(self, *, is_last: bool) -> None:
        """Do nothing: every backward reduces and scatters its gradients, which are added up as shards.

        Summed only after the last one, they would be kept whole on every rank until then, 4 bytes for each parameter:
        what does not fit there is why a run shards.
        """

    def finish_backward(self) -> None:
        """Give parameters that no gradient reached a zero one, so that every rank updates the same set."""
        for param in self._params:
            if param.grad is None:
                param.grad = torch.zeros_like(param)

    def grad_norm(self) -> Tensor:
        """Return the global norm: the root of the squares summed over all shards."""
        norms = torch._foreach_norm([self.local(_grad(param)).float() for param in self._params])
        squares = torch.stack(norms).square().sum().to(self.device)
        dist.all_reduce(squares)
        return squares.sqrt()

    def scale_grads(self, factor: float) -> None:
        """Multiply all gradients."""
        torch._foreach_mul_([self.local(_grad(param)) for param in self._params], factor)

    def reshard(self) -> None:
        """Free gathered weights: after a forward without a backward FSDP2 leaves those of the root in the model."""
        for module in self._modules:
            module.reshard()

    def local(self, tensor: Tensor) -> Tensor:
        """Return this rank's shard."""
        return tensor.to_local() if isinstance(tensor, DTensor) else tensor


def _shard_running_norms(model: nn.Module, mesh: DeviceMesh, frozen: set[nn.Parameter]) -> None:
    """Leave the weights of batch norm in fp32, as replicas do under autocast: its running statistics are, and torch
    refuses the two in different types.
    """
    norms = [module for module in model.modules() if isinstance(module, nn.modules.batchnorm._NormBase)]
    for module in norms:
        if module.running_mean is not None and any(param.requires_grad for param in module.parameters()):
            # So few that to gather them again for the backward would cost more than to keep them.
            fully_shard(module, mesh=mesh, ignored_params=frozen, reshard_after_forward=False)


def _grad(param: nn.Parameter) -> Tensor:
    assert param.grad is not None
    return param.grad
