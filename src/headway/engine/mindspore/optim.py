"""What is done to all gradients at once, and Adam over named parameters. All are cells, so GRAPH_MODE compiles them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any  # MindSpore's primitives are untyped

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, nn, ops

from headway.config import OptimizerConfig

Grads = tuple[Tensor, ...]


_square, _add, _reduce, _move = (ops.MultitypeFuncGraph(name) for name in ("square", "add", "reduce", "move"))


@_square.register("Tensor")
def _square_one(grad: Tensor) -> Tensor:
    """Return a gradient's sum of squares."""
    return ops.square(grad.astype(ms.float32)).sum()


@_add.register("Tensor", "Tensor")
def _add_one(one: Tensor, other: Tensor) -> Tensor:
    """Return the sum of two gradients."""
    return one + other


@_reduce.register("Function", "Tensor")
def _reduce_one(all_reduce: Any, grad: Tensor) -> Tensor:
    """Return a gradient's sum over the ranks."""
    return all_reduce(grad)


@_move.register("Function", *["Tensor"] * 7, "Number", "Number", *["Tensor"] * 4)
def _move_one(
    adam: Any,
    factor: Tensor,
    power1: Tensor,
    power2: Tensor,
    lr: Tensor,
    beta1: Tensor,
    beta2: Tensor,
    eps: Tensor,
    l2: float,
    shrink: float,
    grad: Tensor,
    param: Tensor,
    first: Tensor,
    second: Tensor,
) -> bool:
    """Move one parameter; either kind of decay may be 0."""
    grad = grad * factor + l2 * param
    # The decay comes before the move: the move waits for the gradient, and the gradient for the decay.
    grad = ops.depend(grad, ops.assign(param, param * (1 - lr * shrink)))
    adam(param, first, second, power1, power2, lr, beta1, beta2, eps, grad)
    return True


class Scaled(nn.Cell):
    """A loss times a factor: in half precision the gradients of the plain loss would become zero."""

    def __init__(self, loss: nn.Cell, scale: float) -> None:
        super().__init__(auto_prefix=False)
        self.loss, self.scale = loss, scale

    def construct(self, *inputs: Tensor) -> tuple[Tensor, Tensor]:
        """Return the loss times the factor, and what comes with it as it is."""
        total, output = self.loss(*inputs)
        return total * self.scale, output


class Norm(nn.Cell):
    """The length of all gradients together."""

    def __init__(self) -> None:
        super().__init__()
        self.over_all = ops.HyperMap()

    def construct(self, grads: Grads) -> Tensor:
        """Return the root of the sum of squares."""
        return ops.sqrt(ops.stack(self.over_all(_square, grads)).sum())


class Add(nn.Cell):
    """Gradients of two micro-batches."""

    def __init__(self) -> None:
        super().__init__()
        self.over_all = ops.HyperMap()

    def construct(self, one: Grads, other: Grads) -> Grads:
        """Return their sums."""
        return self.over_all(_add, one, other)


class Reduce(nn.Cell):
    """Gradients summed over the ranks; MindSpore sends them together where the device can."""

    def __init__(self) -> None:
        super().__init__()
        self.over_all, self.all_reduce = ops.HyperMap(), ops.AllReduce(ops.ReduceOp.SUM)

    def construct(self, grads: Grads) -> Grads:
        """Return the sums."""
        return self.over_all(ops.partial(_reduce, self.all_reduce), grads)


class Adam(nn.Cell):
    """Adam (L2 decay) and AdamW (decoupled decay), with both moments as parameters of their own."""

    def __init__(self, params: Sequence[Parameter], config: OptimizerConfig) -> None:
        super().__init__(auto_prefix=False)
        self.params = ms.ParameterTuple(params)
        self.first = ms.ParameterTuple([_zeros(param, "exp_avg") for param in params])
        self.second = ms.ParameterTuple([_zeros(param, "exp_avg_sq") for param in params])
        is_decoupled = config.name == "adamw"
        self.l2 = 0.0 if is_decoupled else config.weight_decay
        self.shrink = config.weight_decay if is_decoupled else 0.0
        self.over_all = ops.HyperMap()
        self.betas = (config.beta1, config.beta2)
        self.beta1, self.beta2 = Tensor(config.beta1, ms.float32), Tensor(config.beta2, ms.float32)
        self.eps = Tensor(config.eps, ms.float32)
        self.adam = ops.Adam()

    def step(self, grads: Grads, factor: float, lr: float, updates: int) -> None:
        """Move the parameters by their gradients, times a factor, after so many updates."""
        powers = [Tensor(np.float32(beta ** (updates + 1))) for beta in self.betas]
        self(grads, Tensor(np.float32(factor)), Tensor(np.float32(lr)), *powers)

    def construct(self, grads: Grads, factor: Tensor, lr: Tensor, power1: Tensor, power2: Tensor) -> tuple[bool, ...]:
        """Update all parameters."""
        # Spelt out: the compiler cannot unpack a tuple into a partial. A loop over parameters is slow to compile.
        one = ops.partial(
            _move, self.adam, factor, power1, power2, lr, self.beta1, self.beta2, self.eps, self.l2, self.shrink
        )
        return self.over_all(one, grads, self.params, self.first, self.second)


def _zeros(param: Parameter, slot: str) -> Parameter:
    return Parameter(Tensor(np.zeros(param.shape, np.float32)), name=f"{param.name}/{slot}", requires_grad=False)
