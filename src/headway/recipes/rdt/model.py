"""RDT: tokens of state and noisy actions, which look in turns at the sentence and at the pictures.

Modules bear the published names, so that published weights load and ours load there.

B batch · N tokens [timestep, frequency, state, actions] · L condition tokens · H width · T actions of a chunk
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from headway.recipes.rdt.section import RdtSection, adaptor_layers
from headway.recipes.rdt.slots import WIDTH

_FREQUENCIES = 256


@dataclass(frozen=True, slots=True)
class Conditions:
    """What a chunk depends on, adapted to the transformer's width; worked out once, used at every solver step."""

    lang: Tensor
    """(B, L, H)."""
    lang_mask: Tensor
    """(B, L), true for real tokens."""
    img: Tensor
    """(B, L, H)."""
    state: Tensor
    """(B, 1, H)."""
    mask: Tensor
    """(B, 128), 1 for the slots an action fills, as the model is told: 0 everywhere where it was hidden from it."""
    freq: Tensor
    """(B,)."""


class VarNorm(nn.Module):
    """The norm that timm 1.0.3 calls RMS: it divides by the root of the variance, and keeps the mean in."""

    def __init__(self, width: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self._eps = eps

    def forward(self, x: Tensor) -> Tensor:
        """Return x over its spread along the last axis."""
        return x * torch.rsqrt(x.var(-1, keepdim=True) + self._eps) * self.weight


def _norm(width: int, kind: str) -> nn.Module:
    return VarNorm(width, 1e-6) if kind == "timm_var" else nn.RMSNorm(width, eps=1e-6)


class TimestepEmbedder(nn.Module):
    """A number as a vector: cosines and sines of it, then a small network."""

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.mlp = nn.Sequential(nn.Linear(_FREQUENCIES, hidden), nn.SiLU(), nn.Linear(hidden, hidden))

    def forward(self, t_B: Tensor) -> Tensor:
        """Return (B, H)."""
        half = _FREQUENCIES // 2
        freqs = torch.exp(-math.log(10_000) / half * torch.arange(half, dtype=torch.float32, device=t_B.device))
        angles = t_B[:, None].float() * freqs
        waves = torch.cat([angles.cos(), angles.sin()], dim=-1)
        return self.mlp(waves.to(self.mlp[0].weight.dtype))


class Attention(nn.Module):
    """Self-attention whose queries and keys are normed head by head."""

    def __init__(self, hidden: int, heads: int, norm: str) -> None:
        super().__init__()
        self._heads = heads
        self.qkv = nn.Linear(hidden, 3 * hidden)
        self.q_norm = _norm(hidden // heads, norm)
        self.k_norm = _norm(hidden // heads, norm)
        self.proj = nn.Linear(hidden, hidden)

    def forward(self, x_BNH: Tensor) -> Tensor:
        """Return (B, N, H)."""
        B, N, H = x_BNH.shape
        q, k, v = self.qkv(x_BNH).view(B, N, 3, self._heads, -1).permute(2, 0, 3, 1, 4).unbind(0)
        out = F.scaled_dot_product_attention(self.q_norm(q), self.k_norm(k), v)
        return self.proj(out.transpose(1, 2).reshape(B, N, H))


class CrossAttention(nn.Module):
    """Attention from the tokens to a condition, which is not normed."""

    def __init__(self, hidden: int, heads: int, norm: str) -> None:
        super().__init__()
        self._heads = heads
        self.q = nn.Linear(hidden, hidden)
        self.kv = nn.Linear(hidden, 2 * hidden)
        self.q_norm = _norm(hidden // heads, norm)
        self.k_norm = _norm(hidden // heads, norm)
        self.proj = nn.Linear(hidden, hidden)

    def forward(self, x_BNH: Tensor, c_BLH: Tensor, mask_BL: Tensor | None) -> Tensor:
        """Return (B, N, H); masked condition tokens are not looked at."""
        B, N, H = x_BNH.shape
        q = self.q(x_BNH).view(B, N, self._heads, -1).transpose(1, 2)
        k, v = self.kv(c_BLH).view(B, c_BLH.shape[1], 2, self._heads, -1).permute(2, 0, 3, 1, 4).unbind(0)
        mask = None if mask_BL is None else mask_BL[:, None, None, :]
        out = F.scaled_dot_product_attention(self.q_norm(q), self.k_norm(k), v, attn_mask=mask)
        return self.proj(out.transpose(1, 2).reshape(B, N, H))


class Mlp(nn.Module):
    """Two layers as wide as the transformer itself."""

    def __init__(self, hidden: int, out: int) -> None:
        super().__init__()
        self.fc1 = nn.Linear(hidden, hidden)
        self.fc2 = nn.Linear(hidden, out)

    def forward(self, x: Tensor) -> Tensor:
        """Return (…, out)."""
        return self.fc2(F.gelu(self.fc1(x), approximate="tanh"))


class Block(nn.Module):
    """Self-attention, cross-attention, MLP."""

    def __init__(self, hidden: int, heads: int, norm: str) -> None:
        super().__init__()
        self.norm1 = _norm(hidden, norm)
        self.attn = Attention(hidden, heads, norm)
        self.cross_attn = CrossAttention(hidden, heads, norm)
        self.norm2 = _norm(hidden, norm)
        self.ffn = Mlp(hidden, hidden)
        self.norm3 = _norm(hidden, norm)

    def forward(self, x_BNH: Tensor, c_BLH: Tensor, mask_BL: Tensor | None) -> Tensor:
        """Return (B, N, H)."""
        x = x_BNH + self.attn(self.norm1(x_BNH))
        x = x + self.cross_attn(self.norm2(x), c_BLH, mask_BL)
        return x + self.ffn(self.norm3(x))


class FinalLayer(nn.Module):
    """From tokens to slots."""

    def __init__(self, hidden: int, norm: str) -> None:
        super().__init__()
        self.norm_final = _norm(hidden, norm)
        self.ffn_final = Mlp(hidden, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        """Return (…, 128)."""
        return self.ffn_final(self.norm_final(x))


class Rdt(nn.Module):
    """The transformer alone, on adapted tokens."""

    def __init__(self, size: RdtSection) -> None:
        super().__init__()
        H = size.hidden_size
        self._horizon = size.action_chunk_size
        self.t_embedder = TimestepEmbedder(H)
        self.freq_embedder = TimestepEmbedder(H)
        self.x_pos_embed = nn.Parameter(torch.zeros(1, size.action_chunk_size + 3, H))
        self.lang_cond_pos_embed = nn.Parameter(torch.zeros(1, size.tokenizer_max_length, H))
        self.img_cond_pos_embed = nn.Parameter(torch.zeros(1, size.img_cond_len, H))
        self.blocks = nn.ModuleList([Block(H, size.num_heads, size.used_norm) for _ in range(size.depth)])
        self.final_layer = FinalLayer(H, size.used_norm)

    def forward(self, x_BMH: Tensor, t_B: Tensor, on: Conditions) -> Tensor:
        """Return the clean chunk (B, T, 128) of state and noisy actions (B, 1+T, H)."""
        t, freq = self.t_embedder(t_B)[:, None], self.freq_embedder(on.freq)[:, None]
        x = torch.cat([t, freq, x_BMH], dim=1) + self.x_pos_embed
        lang = on.lang + self.lang_cond_pos_embed[:, : on.lang.shape[1]]
        seen = ((lang, on.lang_mask), (on.img + self.img_cond_pos_embed, None))
        for place, block in enumerate(self.blocks):
            x = block(x, *seen[place % 2])
        return self.final_layer(x)[:, -self._horizon :]


class RdtRunner(nn.Module):
    """Adaptors, transformer and the frozen picture encoder. The encoder's weights are not trained and not saved."""

    def __init__(self, size: RdtSection, vision: nn.Module) -> None:
        super().__init__()
        self.model = Rdt(size)
        self.lang_adaptor = _adaptor(size.lang_adaptor, size.lang_token_dim, size.hidden_size)
        self.img_adaptor = _adaptor(size.img_adaptor, size.img_token_dim, size.hidden_size)
        self.state_adaptor = _adaptor(size.state_adaptor, 2 * WIDTH, size.hidden_size)
        self.vision_model = vision
        self._size = size

    def init_weights(self) -> None:
        """Set the published initial weights; the adaptors keep torch's own."""
        size, model = self._size, self.model
        H = size.hidden_size
        for module in model.modules():
            if isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight)
                nn.init.zeros_(module.bias)
        for layer in (model.t_embedder.mlp, model.freq_embedder.mlp):
            for linear in (layer[0], layer[2]):
                nn.init.normal_(linear.weight, std=0.02)
        nn.init.zeros_(model.final_layer.ffn_final.fc2.weight)
        _fill(model.x_pos_embed, _token_positions(H, size.action_chunk_size))
        # No code on the place of a word: the published initial value is the same for all.
        _fill(model.lang_cond_pos_embed, np.tile(sines(H, np.zeros(1)), (size.tokenizer_max_length, 1)))
        _fill(model.img_cond_pos_embed, _picture_positions(size))

    def encode_images(self, images_BKCHW: Tensor) -> Tensor:
        """Return frozen tokens (B, K·patches, width) of raw pictures with bytes 0 to 255."""
        with torch.no_grad():
            pixels = images_BKCHW.flatten(0, 1).float().div(127.5).sub(1)
            return self.vision_model(pixels).view(len(images_BKCHW), -1, self._size.img_token_dim)

    def adapt(
        self,
        *,
        lang: Tensor,
        lang_mask: Tensor,
        images: Tensor,
        state: Tensor,
        masks: tuple[Tensor, Tensor],
        freq: Tensor,
    ) -> Conditions:
        """Return the conditions of chunks; `masks` are the slots of the state and of the actions."""
        told = torch.cat([state, masks[0]], dim=-1)[:, None]
        return Conditions(
            lang=self.lang_adaptor(lang),
            lang_mask=lang_mask,
            # The frozen encoder keeps its own type where the rest computes in another.
            img=self.img_adaptor(self.encode_images(images).to(lang.dtype)),
            state=self.state_adaptor(told),
            mask=masks[1],
            freq=freq,
        )

    def denoise(self, noisy_BTD: Tensor, t_B: Tensor, on: Conditions) -> Tensor:
        """Return the clean chunk the model sees behind the noise."""
        told = torch.cat([noisy_BTD, on.mask[:, None].expand_as(noisy_BTD)], dim=-1)
        x = torch.cat([on.state, self.state_adaptor(told)], dim=1)
        return self.model(x, t_B, on)

    def forward(self, noisy_BTD: Tensor, t_B: Tensor, **given: Tensor | tuple[Tensor, Tensor]) -> Tensor:
        """Return the clean chunk in one call: what a training step needs."""
        return self.denoise(noisy_BTD, t_B, self.adapt(**given))


def _adaptor(kind: str, width: int, hidden: int) -> nn.Module:
    if kind == "linear":
        return nn.Linear(width, hidden)
    layers: list[nn.Module] = [nn.Linear(width, hidden)]
    for _ in range(1, adaptor_layers(kind)):
        layers += [nn.GELU(approximate="tanh"), nn.Linear(hidden, hidden)]
    return nn.Sequential(*layers)


def sines(width: int, places: np.ndarray) -> np.ndarray:
    """Return sines, then cosines, of places (M,) as (M, width)."""
    omega = 1.0 / 10_000 ** (np.arange(width // 2) / (width / 2.0))
    angles = np.outer(places, omega)
    return np.concatenate([np.sin(angles), np.cos(angles)], axis=1)


def _token_positions(width: int, horizon: int) -> np.ndarray:
    """Return codes of the four kinds of token: the kind in the first half, the place within it in the second."""
    kinds = sines(width // 2, np.arange(4))
    parts = []
    for kind, length in enumerate((1, 1, 1, horizon)):
        parts.append(np.concatenate([np.tile(kinds[kind], (length, 1)), sines(width // 2, np.arange(length))], axis=1))
    return np.concatenate(parts)


def _picture_positions(size: RdtSection) -> np.ndarray:
    """Return codes of moment and camera; the patches of one picture share theirs."""
    grid = (size.img_history_size, size.num_cameras)
    axes = [axis for axis in (0, 1) if grid[axis] > 1]
    code = np.zeros((*grid, size.hidden_size))
    share = size.hidden_size // max(1, len(axes)) // 2 * 2
    for place, axis in enumerate(axes):
        shape = [1, 1, share]
        shape[axis] = grid[axis]
        code[..., place * share : (place + 1) * share] += sines(share, np.arange(grid[axis])).reshape(shape)
    return np.repeat(code.reshape(-1, size.hidden_size), size.img_patches, axis=0)


def _fill(param: nn.Parameter, values: np.ndarray) -> None:
    with torch.no_grad():
        param.copy_(torch.as_tensor(values, dtype=param.dtype)[None])
