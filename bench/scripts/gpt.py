"""A small GPT on a file of tokens, in the manner of single-file trainers: memmap, autocast, scaler, DDP."""

import argparse
import contextlib
import inspect
import math
import os
import time

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel as DDP  # noqa: N817 - as everybody writes it

parser = argparse.ArgumentParser()
parser.add_argument("--data", required=True)
parser.add_argument("--out", default="out")
parser.add_argument("--batch", type=int, default=12)
parser.add_argument("--block", type=int, default=256)
parser.add_argument("--layers", type=int, default=6)
parser.add_argument("--width", type=int, default=384)
parser.add_argument("--vocab", type=int, default=50304)
parser.add_argument("--dropout", type=float, default=0.0)
parser.add_argument("--accumulate", type=int, default=4)
parser.add_argument("--steps", type=int, default=1000)
parser.add_argument("--eval-batches", type=int, default=20)
parser.add_argument("--dtype", default="bfloat16")
parser.add_argument("--compile", action="store_true")
given = parser.parse_args()


class Block(nn.Module):
    def __init__(self, width, heads, dropout):
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        b, t, c = x.size()
        parts = self.attention(self.norm1(x)).split(c, dim=2)
        q, k, v = (one.view(b, t, self.heads, c // self.heads).transpose(1, 2) for one in parts)
        p = self.dropout if self.training else 0.0
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=None, dropout_p=p, is_causal=True)
        x = x + self.out(y.transpose(1, 2).contiguous().view(b, t, c))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Gpt(nn.Module):
    def __init__(self):
        super().__init__()
        width = given.width
        self.tokens, self.places = nn.Embedding(given.vocab, width), nn.Embedding(given.block, width)
        self.blocks = nn.ModuleList(Block(width, width // 64, given.dropout) for _ in range(given.layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, given.vocab, bias=False)
        self.tokens.weight = self.head.weight
        self.apply(self.init)
        for name, param in self.named_parameters():
            if name.endswith("down.weight"):
                nn.init.normal_(param, mean=0.0, std=0.02 / math.sqrt(2 * given.layers))
        print(f"parameters: {sum(p.numel() for p in self.parameters()) / 1e6:.2f} M")

    def init(self, module):
        if isinstance(module, nn.Linear | nn.Embedding):
            nn.init.normal_(module.weight, mean=0.0, std=0.02)

    def forward(self, idx, targets=None):
        _, t = idx.size()
        x = self.tokens(idx) + self.places(torch.arange(0, t, dtype=torch.long, device=idx.device))
        for block in self.blocks:
            x = block(x)
        logits = self.head(self.norm(x))
        return logits, F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1), ignore_index=-1)


is_many = int(os.environ.get("RANK", -1)) != -1
if torch.cuda.is_available():
    device = f"cuda:{os.environ.get('LOCAL_RANK', 0)}"
    torch.cuda.set_device(device)
else:
    device = "cpu"
if is_many:
    dist.init_process_group(backend="nccl" if device != "cpu" else "gloo")
    assert given.accumulate % dist.get_world_size() == 0
    given.accumulate //= dist.get_world_size()
is_main = not is_many or dist.get_rank() == 0
os.makedirs(given.out, exist_ok=True)
torch.manual_seed(1337)
torch.backends.cuda.matmul.allow_tf32 = True
kind = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}[given.dtype]
device_type = "cuda" if "cuda" in device else "cpu"
context = contextlib.nullcontext() if device_type == "cpu" else torch.amp.autocast(device_type=device_type, dtype=kind)


def get_batch():
    data = np.memmap(given.data, dtype=np.uint16, mode="r")
    ix = torch.randint(len(data) - given.block, (given.batch,))
    x = torch.stack([torch.from_numpy(data[i : i + given.block].astype(np.int64)) for i in ix])
    y = torch.stack([torch.from_numpy(data[i + 1 : i + 1 + given.block].astype(np.int64)) for i in ix])
    if device_type == "cuda":
        return x.pin_memory().to(device, non_blocking=True), y.pin_memory().to(device, non_blocking=True)
    return x, y


model = Gpt().to(device)
raw = model
scaler = torch.amp.GradScaler(device_type, enabled=given.dtype == "float16")
groups = [
    {"params": [p for p in model.parameters() if p.dim() >= 2], "weight_decay": 0.1},
    {"params": [p for p in model.parameters() if p.dim() < 2], "weight_decay": 0.0},
]
fused = {"fused": True} if "fused" in inspect.signature(torch.optim.AdamW).parameters and device_type == "cuda" else {}
optimizer = torch.optim.AdamW(groups, lr=6e-4, betas=(0.9, 0.95), **fused)
if given.compile:
    model = torch.compile(model)
if is_many:
    model = DDP(model, device_ids=[int(os.environ["LOCAL_RANK"])] if device_type == "cuda" else None)
    raw = model.module


@torch.no_grad()
def estimate_loss():
    model.eval()
    losses = torch.zeros(given.eval_batches)
    for k in range(given.eval_batches):
        x, y = get_batch()
        with context:
            _, loss = model(x, y)
        losses[k] = loss.item()
    model.train()
    return losses.mean()


best, began = 1e9, time.time()
x, y = get_batch()
for step in range(given.steps):
    for group in optimizer.param_groups:
        group["lr"] = 6e-4 * min(1.0, (step + 1) / 100)
    if step % 200 == 0 and is_main and given.eval_batches:
        loss = estimate_loss()
        print(f"step {step}: validation loss {loss:.4f}")
        if loss < best:
            best = loss
            torch.save({"model": raw.state_dict(), "optimizer": optimizer.state_dict()}, f"{given.out}/ckpt.pt")
    for micro in range(given.accumulate):
        if is_many:
            model.require_backward_grad_sync = micro == given.accumulate - 1
        with context:
            _, loss = model(x, y)
            loss = loss / given.accumulate
        x, y = get_batch()
        scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad(set_to_none=True)
    print(f"iter {step}: loss {loss.item() * given.accumulate:.4f}, time {(time.time() - began) * 1000:.1f} ms")
if is_many:
    dist.destroy_process_group()
