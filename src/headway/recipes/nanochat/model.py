"""The GPT of nanochat: rotary positions, norms without parameters, relu squared, untied output, soft-capped logits.

Module names are those of the original, so weights go from one to the other under their own names.
Pure: sharding, compilation, precision and activation checkpointing are laid over it from outside.
"""

# B batch, T time, C width, H query heads, K key and value heads, D head width, N tokens of a chunk, V vocabulary

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

IGNORED = -1
"""Target of a position that is not predicted."""
_ROTARY_REACH = 10
"""Rotary tables reach this many times the training length, for prompts longer than that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GptSize:
    """Everything that shapes the model."""

    seq_len: int
    vocab_size: int
    n_layer: int
    n_head: int
    n_kv_head: int
    width: int
    rope_base: float = 10_000.0
    softcap: float = 15.0
    loss_chunk: int = 0
    """Tokens whose logits exist at one time; 0: all."""
    wte_bf16: bool = False


def norm(x: Tensor) -> Tensor:
    """RMSNorm without parameters."""
    return F.rms_norm(x, (x.size(-1),))


def rotate(x_BTHD: Tensor, cos_T1D: Tensor, sin_T1D: Tensor) -> Tensor:
    """Turn each pair (first half, second half) of a head by minus its angle."""
    first, second = x_BTHD.chunk(2, dim=-1)
    return torch.cat((first * cos_T1D + second * sin_T1D, second * cos_T1D - first * sin_T1D), dim=-1)


class Attention(nn.Module):
    """Causal attention; queries and keys are normed after the rotation."""

    def __init__(self, size: GptSize) -> None:
        super().__init__()
        self.n_head, self.n_kv_head = size.n_head, size.n_kv_head
        self.head_dim = size.width // size.n_head
        kv_width = size.n_kv_head * self.head_dim
        self.c_q = nn.Linear(size.width, size.width, bias=False)
        self.c_k = nn.Linear(size.width, kv_width, bias=False)
        self.c_v = nn.Linear(size.width, kv_width, bias=False)
        self.c_proj = nn.Linear(size.width, size.width, bias=False)

    def forward(self, x_BTC: Tensor, cos_T1D: Tensor, sin_T1D: Tensor) -> Tensor:
        B, T, C = x_BTC.shape
        q_BTHD = self.c_q(x_BTC).view(B, T, self.n_head, self.head_dim)
        k_BTKD = self.c_k(x_BTC).view(B, T, self.n_kv_head, self.head_dim)
        v_BTKD = self.c_v(x_BTC).view(B, T, self.n_kv_head, self.head_dim)
        q_BTHD = norm(rotate(q_BTHD, cos_T1D, sin_T1D))
        k_BTKD = norm(rotate(k_BTKD, cos_T1D, sin_T1D))
        y_BHTD = F.scaled_dot_product_attention(
            q_BTHD.transpose(1, 2),
            k_BTKD.transpose(1, 2),
            v_BTKD.transpose(1, 2),
            is_causal=True,
            enable_gqa=self.n_kv_head != self.n_head,
        )
        return self.c_proj(y_BHTD.transpose(1, 2).reshape(B, T, C))


class Mlp(nn.Module):
    """Four times as wide, relu squared."""

    def __init__(self, size: GptSize) -> None:
        super().__init__()
        self.c_fc = nn.Linear(size.width, 4 * size.width, bias=False)
        self.c_proj = nn.Linear(4 * size.width, size.width, bias=False)

    def forward(self, x_BTC: Tensor) -> Tensor:
        return self.c_proj(F.relu(self.c_fc(x_BTC)).square())


class Block(nn.Module):
    """Attention and MLP, each added to the stream."""

    def __init__(self, size: GptSize) -> None:
        super().__init__()
        self.attn = Attention(size)
        self.mlp = Mlp(size)

    def forward(self, x_BTC: Tensor, cos_T1D: Tensor, sin_T1D: Tensor) -> Tensor:
        x_BTC = x_BTC + self.attn(norm(x_BTC), cos_T1D, sin_T1D)
        return x_BTC + self.mlp(norm(x_BTC))


class Gpt(nn.Module):
    """Tokens to logits, or with targets to the nats of each target."""

    def __init__(self, size: GptSize) -> None:
        super().__init__()
        self.size = size
        wte = nn.Embedding(size.vocab_size, size.width, dtype=torch.bfloat16 if size.wte_bf16 else None)
        blocks = nn.ModuleList(Block(size) for _ in range(size.n_layer))
        self.transformer = nn.ModuleDict({"wte": wte, "h": blocks})
        self.lm_head = nn.Linear(size.width, size.vocab_size, bias=False)
        cos_T1D, sin_T1D = rotary_tables(size)
        self.register_buffer("cos", cos_T1D, persistent=False)
        self.register_buffer("sin", sin_T1D, persistent=False)

    @property
    def blocks(self) -> nn.ModuleList:
        """The repeated part."""
        return self.transformer["h"]

    def forward(self, tokens_BT: Tensor, targets_BT: Tensor | None = None) -> Tensor:
        """Return logits (B, T, V) in fp32; with targets, nats (B, T) in fp32, zero where a target is ignored."""
        x_BTC = self._stream(tokens_BT)
        if targets_BT is None:
            return self._logits(x_BTC)
        x_NC, targets_N = x_BTC.flatten(0, 1), targets_BT.flatten()
        chunk = self.size.loss_chunk
        if not chunk or len(targets_N) <= chunk:
            return self._nats(x_NC, targets_N).view_as(targets_BT)
        # B*T*V fp32 logits (6.4 GB at 12 x 2048 x 65,536) and their gradient never exist at once: each chunk's are
        # made, reduced to its nats, dropped, and made again in backward.
        parts = [
            checkpoint(self._nats, x, targets, use_reentrant=False, preserve_rng_state=False)
            for x, targets in zip(x_NC.split(chunk), targets_N.split(chunk), strict=True)
        ]
        return torch.cat(parts).view_as(targets_BT)

    def _stream(self, tokens_BT: Tensor) -> Tensor:
        T = tokens_BT.size(1)
        x_BTC = norm(self.transformer["wte"](tokens_BT))
        if not torch.is_autocast_enabled(x_BTC.device.type):
            # A bf16 embedding before fp32 matrices: autocast matches them, outside of it we must.
            x_BTC = x_BTC.to(self.lm_head.weight.dtype)
        # In the stream's own type, else fp32 tables would lift queries and keys back out of bf16.
        cos_T1D, sin_T1D = self.cos[:T].to(x_BTC.dtype), self.sin[:T].to(x_BTC.dtype)
        for block in self.blocks:
            x_BTC = block(x_BTC, cos_T1D, sin_T1D)
        return norm(x_BTC)

    def _logits(self, x: Tensor) -> Tensor:
        cap = self.size.softcap
        return cap * torch.tanh(self.lm_head(x).float() / cap)

    def _nats(self, x_NC: Tensor, targets_N: Tensor) -> Tensor:
        return F.cross_entropy(self._logits(x_NC), targets_N, ignore_index=IGNORED, reduction="none")

    @torch.no_grad()
    def init_weights(self, seed: int) -> None:
        """Set the initial weights from a seed, and the rotary tables, which a model moved off meta does not have."""
        device = self.lm_head.weight.device
        dice = torch.Generator(device).manual_seed(seed)
        for name, weight in self.named_parameters():
            if name.endswith(("c_proj.weight", "lm_head.weight")):
                weight.zero_()
            elif name.endswith("wte.weight"):
                weight.normal_(generator=dice)
            else:
                fan_out, fan_in = weight.shape
                weight.normal_(std=fan_in**-0.5 * min(1.0, (fan_out / fan_in) ** 0.5), generator=dice)
        with torch.device(device):
            cos_T1D, sin_T1D = rotary_tables(self.size)
        self.cos.copy_(cos_T1D)
        self.sin.copy_(sin_T1D)


def rotary_tables(size: GptSize) -> tuple[Tensor, Tensor]:
    """Return cosines and sines of position times frequency, (10 T, 1, D/2)."""
    head_dim = size.width // size.n_head
    frequencies_D = size.rope_base ** (-torch.arange(0, head_dim, 2, dtype=torch.float32) / head_dim)
    angles_TD = torch.outer(torch.arange(_ROTARY_REACH * size.seq_len, dtype=torch.float32), frequencies_D)
    return angles_TD.cos()[:, None], angles_TD.sin()[:, None]


@torch.no_grad()
def generate(
    model: nn.Module, tokens: list[int], max_tokens: int, *, window: int, draw: Callable[[Tensor], int]
) -> Iterator[int]:
    """Yield tokens that follow the given ones, each drawn from the logits after the last `window` tokens."""
    tokens, device = list(tokens), next(model.parameters()).device
    model.eval()
    for _ in range(max_tokens):
        logits_V = model(torch.tensor([tokens[-window:]], device=device))[0, -1]
        tokens.append(draw(logits_V))
        yield tokens[-1]


def draw_token(logits_V: Tensor, *, temperature: float, top_k: int, dice: torch.Generator) -> int:
    """Draw one token, from the `top_k` likeliest if that is not 0; temperature 0: the likeliest."""
    if temperature <= 0:
        return int(logits_V.argmax())
    if 0 < top_k < len(logits_V):
        logits_V = logits_V.masked_fill(logits_V < logits_V.topk(top_k).values[-1], -math.inf)
    return int(torch.multinomial((logits_V / temperature).softmax(0), 1, generator=dice))
