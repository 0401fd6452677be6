"""MindSpore on the CPU: ranks meet through msrun, gradients are summed by AllReduce."""

import os

import mindspore as ms
import numpy as np
from mindspore import nn, ops
from mindspore.communication import get_group_size, get_rank, init


def main():
    ms.set_context(mode=ms.PYNATIVE_MODE)
    ms.set_device("CPU")
    is_many = "MS_ROLE" in os.environ
    if is_many:
        init("mccl")
    rank, world = (get_rank(), get_group_size()) if is_many else (0, 1)
    ms.set_seed(4)
    net = nn.Dense(8, 1, weight_init=ms.Tensor(np.full((1, 8), 0.1, np.float32)), bias_init="zeros")
    optimizer = nn.SGD(net.trainable_params(), learning_rate=0.05)
    measure = nn.MSELoss()
    gradients = ms.value_and_grad(lambda x, y: measure(net(x), y), None, optimizer.parameters)
    reduce = ops.AllReduce() if is_many else (lambda tensor: tensor)
    noise = np.random.default_rng(50 + rank)
    for step in range(1, 21):
        x = noise.standard_normal((16, 8)).astype(np.float32)
        loss, grads = gradients(ms.Tensor(x), ms.Tensor(x.sum(axis=1, keepdims=True)))
        optimizer(tuple(reduce(grad) / world for grad in grads))
        if rank == 0 and step % 5 == 0:
            print(f"epoch: 1 step: {step}, loss is {float(loss):.6f}", flush=True)
    total = float(reduce(loss))
    if rank == 0:
        print(f"RESULT {total:.9f} {world}", flush=True)


if __name__ == "__main__":
    main()
