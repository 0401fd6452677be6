"""Published shapes of decoders, so that a model can be named instead of described."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any, Literal

from headway.plan.decoder import Decoder


def _llama(layers: int, hidden: int, heads: int, kv_heads: int, ffn: int, vocab: int, **more: Any) -> Decoder:
    return Decoder(layers=layers, hidden=hidden, heads=heads, kv_heads=kv_heads, ffn=ffn, vocab=vocab, **more)


def _neox(layers: int, hidden: int, heads: int, vocab: int, **more: Any) -> Decoder:
    more = {"ffn": 4 * hidden, "mlp": "gelu", "norm": "layer", "parallel": True, **more}
    return Decoder(layers=layers, hidden=hidden, heads=heads, vocab=vocab, **more)


def _gpt2(layers: int, hidden: int, heads: int) -> Decoder:
    return Decoder(
        layers=layers, hidden=hidden, heads=heads, vocab=50257, ffn=4 * hidden, mlp="gelu", norm="layer", tied=True
    )


DECODERS: dict[str, Decoder] = {
    "llama-2-7b": _llama(32, 4096, 32, 32, 11008, 32000),
    "llama-2-13b": _llama(40, 5120, 40, 40, 13824, 32000),
    "llama-2-70b": _llama(80, 8192, 64, 8, 28672, 32000),
    "codellama-7b": _llama(32, 4096, 32, 32, 11008, 32016),
    "llama-3-8b": _llama(32, 4096, 32, 8, 14336, 128256),
    "llama-3.1-8b": _llama(32, 4096, 32, 8, 14336, 128256),
    "llama-3-70b": _llama(80, 8192, 64, 8, 28672, 128256),
    "llama-3.1-70b": _llama(80, 8192, 64, 8, 28672, 128256),
    "llama-3.2-1b": _llama(16, 2048, 32, 8, 8192, 128256, tied=True),
    "llama-3.2-3b": _llama(28, 3072, 24, 8, 8192, 128256, tied=True),
    "mistral-7b": _llama(32, 4096, 32, 8, 14336, 32000),
    "mixtral-8x7b": _llama(32, 4096, 32, 8, 14336, 32000),
    "tiny-llama": _llama(22, 2048, 32, 4, 5632, 32000),
    "tinyllama-1.1b": _llama(22, 2048, 32, 4, 5632, 32000),
    "qwen2.5-0.5b": _llama(24, 896, 14, 2, 4864, 151936, tied=True),
    "qwen2.5-1.5b": _llama(28, 1536, 12, 2, 8960, 151936, tied=True),
    "qwen2.5-3b": _llama(36, 2048, 16, 2, 11008, 151936, tied=True),
    "qwen2.5-7b": _llama(28, 3584, 28, 4, 18944, 152064),
    "gemma-2b": _llama(18, 2048, 8, 1, 16384, 256000, head_dim=256, tied=True),
    "gemma-7b": _llama(28, 3072, 16, 16, 24576, 256000, head_dim=256, tied=True),
    "gemma-2-2b": _llama(26, 2304, 8, 4, 9216, 256000, head_dim=256, tied=True),
    "gemma-2-9b": _llama(42, 3584, 16, 8, 14336, 256000, head_dim=256, tied=True),
    "gemma-2-27b": _llama(46, 4608, 32, 16, 36864, 256000, head_dim=128, tied=True),
    "phi-1.5": _neox(24, 2048, 32, 51200),
    "phi-2": _neox(32, 2560, 32, 51200),
    "phi-3-mini": _llama(32, 3072, 32, 32, 8192, 32064),
    "falcon-7b": _neox(32, 4544, 71, 65024, kv_heads=1),
    "falcon-40b": _neox(60, 8192, 128, 65024, kv_heads=8),
    "stablelm-base-alpha-3b": _neox(16, 4096, 32, 50688),
    "stablelm-alpha-3b": _neox(16, 4096, 32, 50688),
    "stablelm-base-alpha-7b": _neox(16, 6144, 48, 50432),
    "stablelm-alpha-7b": _neox(16, 6144, 48, 50432),
    "pythia-410m": _neox(24, 1024, 16, 50304),
    "pythia-1b": _neox(16, 2048, 8, 50304),
    "pythia-6.9b": _neox(32, 4096, 32, 50432),
    "gpt2": _gpt2(12, 768, 12),
    "gpt2-medium": _gpt2(24, 1024, 16),
    "gpt2-large": _gpt2(36, 1280, 20),
    "gpt2-xl": _gpt2(48, 1600, 25),
}
_DROPPED = re.compile(r"-(instruct|it|chat|base|hf|v0\.\d|4k|128k|\d+k)(?=-|$)|-1\.3-?b$|-step.*$|-intermediate.*$")


def find_decoder(name: str) -> Decoder | None:
    """Return the shape of a published model by its name: `Llama 3.1 8B`, `Phi-3-mini-4k-instruct`."""
    plain = re.sub(r"[\s_]+", "-", name.strip().lower())
    plain = re.sub(r"(?<=\d)-b\b", "b", plain)
    plain = re.sub(r"\bllama(?=\d)", "llama-", plain)
    plain = re.sub(r"\bgemma2\b", "gemma-2", plain)
    for candidate in (plain, _DROPPED.sub("", plain)):
        if candidate in DECODERS:
            return DECODERS[candidate]
    return None


def nanochat(
    depth: int, *, vocab: int = 65536, aspect: int = 64, head_dim: int = 128, mlp: Literal["relu2", "swiglu"] = "relu2"
) -> Decoder:
    """Return the shape of a nanochat model from its depth."""
    width = depth * aspect
    heads = max(1, -(-width // head_dim))
    return Decoder(
        layers=depth, hidden=width, heads=heads, vocab=vocab, ffn=4 * width, mlp=mlp, qk_norm=True, norm="rms"
    )


def retie(shape: Decoder, *, tied: bool) -> Decoder:
    """Return the shape with input and output embedding shared or apart."""
    return replace(shape, tied=tied)
