"""A small character model in one file: reads RANK where it is set, prints `iter N: loss X`, keeps a checkpoint."""

import math
import os
import time

import torch
import torch.distributed as dist
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel

max_iters, batch_size, block_size, width = 40, 8, 32, 32
is_ddp = int(os.environ.get("RANK", -1)) != -1


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.LayerNorm(width), torch.nn.LayerNorm(width)
        self.attention = torch.nn.MultiheadAttention(width, 2, batch_first=True)
        self.mlp = torch.nn.Sequential(
            torch.nn.Linear(width, 4 * width), torch.nn.GELU(), torch.nn.Linear(4 * width, width)
        )

    def forward(self, x):
        mask = torch.triu(torch.ones(x.shape[1], x.shape[1], dtype=torch.bool), diagonal=1)
        y = self.first(x)
        x = x + self.attention(y, y, y, attn_mask=mask, need_weights=False)[0]
        return x + self.mlp(self.second(x))


class Model(torch.nn.Module):
    def __init__(self, vocabulary):
        super().__init__()
        self.tokens = torch.nn.Embedding(vocabulary, width)
        self.places = torch.nn.Embedding(block_size, width)
        self.blocks = torch.nn.Sequential(Block(), Block())
        self.head = torch.nn.Linear(width, vocabulary)

    def forward(self, x, y):
        h = self.blocks(self.tokens(x) + self.places(torch.arange(x.shape[1])))
        return functional.cross_entropy(self.head(h).flatten(0, 1), y.flatten())


def main():
    rank, world = 0, 1
    if is_ddp:
        dist.init_process_group("gloo")
        rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    torch.manual_seed(1337)
    text = "the quick brown fox jumps over the lazy dog. " * 50
    letters = sorted(set(text))
    data = torch.tensor([letters.index(letter) for letter in text])
    model = Model(len(letters))
    if is_ddp:
        model = DistributedDataParallel(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.95))
    noise = torch.Generator().manual_seed(7 + rank)
    for number in range(max_iters):
        began = time.time()
        for group in optimizer.param_groups:
            group["lr"] = 1e-3 * (0.1 + 0.9 * 0.5 * (1 + math.cos(math.pi * number / max_iters)))
        starts = torch.randint(len(data) - block_size - 1, (batch_size,), generator=noise)
        x = torch.stack([data[at : at + block_size] for at in starts])
        y = torch.stack([data[at + 1 : at + 1 + block_size] for at in starts])
        loss = model(x, y)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if number % 10 == 0 and rank == 0:
            print(f"iter {number}: loss {loss.item():.4f}, time {(time.time() - began) * 1000:.2f}ms")
    if rank == 0:
        torch.save(model.state_dict(), "ckpt.pt")
        print(f"RESULT {loss.item():.9f} {world}")
    if is_ddp:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
