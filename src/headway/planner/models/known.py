"""Published shapes of decoders, so that a model can be named instead of described."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

from headway.planner.models.decoder import Decoder


def _llama(layers: int, hidden: int, heads: int, kv_heads: int, ffn: int, vocab: int, **more: Any) -> Decoder:
    return Decoder(layers=layers, hidden=hidden, heads=heads, kv_heads=kv_heads, ffn=ffn, vocab=vocab, **more)


def _neox(layers: int, hidden: int, heads: int, vocab: int, **more: Any) -> Decoder:
    more = {"ffn": 4 * hidden, "mlp": "gelu", "norm": "layer", "parallel": True, **more}
    return Decoder(layers=layers, hidden=hidden, heads=heads, vocab=vocab, **more)


def _gpt2(layers: int, hidden: int, heads: int, vocab: int = 50257) -> Decoder:
    return Decoder(
        layers=layers, hidden=hidden, heads=heads, vocab=vocab, ffn=4 * hidden, mlp="gelu", norm="layer", tied=True
    )


def _bert(layers: int, hidden: int, heads: int, vocab: int, positions: int = 512) -> Decoder:
    """Return an encoder: positions and token types are tables, and so is the transform before its tied output."""
    more = (positions + 2) * hidden + hidden * hidden
    return replace(_gpt2(layers, hidden, heads, vocab), rotary=False, more_params=more)


def _mpt(layers: int, hidden: int, heads: int) -> Decoder:
    return _neox(layers, hidden, heads, 50432, parallel=False, tied=True, one_qkv=True, rotary=False)


DECODERS: dict[str, Decoder] = {
    "llama-7b": _llama(32, 4096, 32, 32, 11008, 32000),
    "llama-13b": _llama(40, 5120, 40, 40, 13824, 32000),
    "llama-30b": _llama(60, 6656, 52, 52, 17920, 32000),
    "llama-65b": _llama(80, 8192, 64, 64, 22016, 32000),
    "llama-2-7b": _llama(32, 4096, 32, 32, 11008, 32000),
    "llama-2-13b": _llama(40, 5120, 40, 40, 13824, 32000),
    "llama-2-70b": _llama(80, 8192, 64, 8, 28672, 32000),
    "codellama-7b": _llama(32, 4096, 32, 32, 11008, 32016),
    "codellama-13b": _llama(40, 5120, 40, 40, 13824, 32016),
    "codellama-34b": _llama(48, 8192, 64, 8, 22016, 32000),
    "llama-3-8b": _llama(32, 4096, 32, 8, 14336, 128256),
    "llama-3.1-8b": _llama(32, 4096, 32, 8, 14336, 128256),
    "llama-3-70b": _llama(80, 8192, 64, 8, 28672, 128256),
    "llama-3.1-70b": _llama(80, 8192, 64, 8, 28672, 128256),
    "llama-3.3-70b": _llama(80, 8192, 64, 8, 28672, 128256),
    "llama-3.1-405b": _llama(126, 16384, 128, 8, 53248, 128256),
    "llama-3.2-1b": _llama(16, 2048, 32, 8, 8192, 128256, tied=True),
    "llama-3.2-3b": _llama(28, 3072, 24, 8, 8192, 128256, tied=True),
    "mistral-7b": _llama(32, 4096, 32, 8, 14336, 32000),
    "mistral-nemo-12b": _llama(40, 5120, 32, 8, 14336, 131072, head_dim=128),
    "mistral-small-24b": _llama(40, 5120, 32, 8, 32768, 131072, head_dim=128),
    "mixtral-8x7b": _llama(32, 4096, 32, 8, 14336, 32000, experts=8, active=2),
    "tiny-llama": _llama(22, 2048, 32, 4, 5632, 32000),
    "tinyllama-1.1b": _llama(22, 2048, 32, 4, 5632, 32000),
    "smollm2-135m": _llama(30, 576, 9, 3, 1536, 49152, tied=True),
    "smollm2-360m": _llama(32, 960, 15, 5, 2560, 49152, tied=True),
    "smollm2-1.7b": _llama(24, 2048, 32, 32, 8192, 49152, tied=True),
    "qwen-1.8b": _llama(24, 2048, 16, 16, 5504, 151936, narrow_loss=True),
    "qwen-72b": _llama(80, 8192, 64, 64, 24576, 152064, narrow_loss=True),
    "qwen1.5-0.5b": _llama(24, 1024, 16, 16, 2816, 151936, tied=True),
    "qwen1.5-1.8b": _llama(24, 2048, 16, 16, 5504, 151936),
    "qwen1.5-7b": _llama(32, 4096, 32, 32, 11008, 151936),
    "qwen-7b": _llama(32, 4096, 32, 32, 11008, 151936, narrow_loss=True),
    "qwen-14b": _llama(40, 5120, 40, 40, 13696, 152064, narrow_loss=True),
    "qwen2-0.5b": _llama(24, 896, 14, 2, 4864, 151936, tied=True),
    "qwen2-1.5b": _llama(28, 1536, 12, 2, 8960, 151936, tied=True),
    "qwen2-7b": _llama(28, 3584, 28, 4, 18944, 152064),
    "qwen2-72b": _llama(80, 8192, 64, 8, 29568, 152064),
    "qwen2.5-0.5b": _llama(24, 896, 14, 2, 4864, 151936, tied=True),
    "qwen2.5-1.5b": _llama(28, 1536, 12, 2, 8960, 151936, tied=True),
    "qwen2.5-3b": _llama(36, 2048, 16, 2, 11008, 151936, tied=True),
    "qwen2.5-7b": _llama(28, 3584, 28, 4, 18944, 152064),
    "qwen2.5-14b": _llama(48, 5120, 40, 8, 13824, 152064),
    "qwen2.5-32b": _llama(64, 5120, 40, 8, 27648, 152064),
    "qwen2.5-72b": _llama(80, 8192, 64, 8, 29568, 152064),
    "qwen3-0.6b": _llama(28, 1024, 16, 8, 3072, 151936, head_dim=128, tied=True, qk_norm=True),
    "qwen3-1.7b": _llama(28, 2048, 16, 8, 6144, 151936, head_dim=128, tied=True, qk_norm=True),
    "qwen3-4b": _llama(36, 2560, 32, 8, 9728, 151936, head_dim=128, tied=True, qk_norm=True),
    "qwen3-8b": _llama(36, 4096, 32, 8, 12288, 151936, head_dim=128, qk_norm=True),
    "qwen3-14b": _llama(40, 5120, 40, 8, 17408, 151936, head_dim=128, qk_norm=True),
    "qwen3-32b": _llama(64, 5120, 64, 8, 25600, 151936, head_dim=128, qk_norm=True),
    "qwen3-30b-a3b": _llama(48, 2048, 32, 4, 768, 151936, head_dim=128, qk_norm=True, experts=128, active=8),
    "qwen3-235b-a22b": _llama(94, 4096, 64, 4, 1536, 151936, head_dim=128, qk_norm=True, experts=128, active=8),
    "bert-base": _bert(12, 768, 12, 30522),
    "bert-large": _bert(24, 1024, 16, 30522),
    "roberta-base": _bert(12, 768, 12, 50265),
    "roberta-large": _bert(24, 1024, 16, 50265),
    "yi-6b": _llama(32, 4096, 32, 4, 11008, 64000),
    "yi-34b": _llama(60, 7168, 56, 8, 20480, 64000),
    "baichuan2-7b": _llama(32, 4096, 32, 32, 11008, 125696),
    "baichuan2-13b": _llama(40, 5120, 40, 40, 13696, 125696),
    "internlm2-1.8b": _llama(24, 2048, 16, 8, 8192, 92544),
    "internlm2-7b": _llama(32, 4096, 32, 8, 14336, 92544),
    "internlm2-20b": _llama(48, 6144, 48, 8, 16384, 92544),
    "chatglm3-6b": _llama(28, 4096, 32, 2, 13696, 65024),
    "glm-4-9b": _llama(40, 4096, 32, 2, 13696, 151552),
    "deepseek-llm-7b": _llama(30, 4096, 32, 32, 11008, 102400),
    "deepseek-coder-1.3b": _llama(24, 2048, 16, 16, 5504, 32256),
    "deepseek-coder-6.7b": _llama(32, 4096, 32, 32, 11008, 32256),
    "olmo-1b": _llama(16, 2048, 16, 16, 8192, 50304, tied=True),
    "olmo-7b": _llama(32, 4096, 32, 32, 11008, 50304),
    "olmo-2-7b": _llama(32, 4096, 32, 32, 11008, 100352, qk_norm=True),
    "gemma-2b": _llama(18, 2048, 8, 1, 16384, 256000, head_dim=256, tied=True),
    "gemma-7b": _llama(28, 3072, 16, 16, 24576, 256000, head_dim=256, tied=True),
    "gemma-2-2b": _llama(26, 2304, 8, 4, 9216, 256000, head_dim=256, tied=True),
    "gemma-2-9b": _llama(42, 3584, 16, 8, 14336, 256000, head_dim=256, tied=True),
    "gemma-2-27b": _llama(46, 4608, 32, 16, 36864, 256000, head_dim=128, tied=True),
    "gemma-3-1b": _llama(26, 1152, 4, 1, 6912, 262144, head_dim=256, tied=True, qk_norm=True),
    "phi-1.5": _neox(24, 2048, 32, 51200),
    "phi-2": _neox(32, 2560, 32, 51200),
    "phi-3-mini": _llama(32, 3072, 32, 32, 8192, 32064),
    "phi-3.5-mini": _llama(32, 3072, 32, 32, 8192, 32064),
    "phi-3-medium": _llama(40, 5120, 40, 10, 17920, 32064),
    "phi-4": _llama(40, 5120, 40, 10, 17920, 100352),
    "falcon-7b": _neox(32, 4544, 71, 65024, kv_heads=1),
    "falcon-40b": _neox(60, 8192, 128, 65024, kv_heads=8),
    "stablelm-base-alpha-3b": _neox(16, 4096, 32, 50688),
    "stablelm-alpha-3b": _neox(16, 4096, 32, 50688),
    "stablelm-base-alpha-7b": _neox(16, 6144, 48, 50432),
    "stablelm-alpha-7b": _neox(16, 6144, 48, 50432),
    "pythia-70m": _neox(6, 512, 8, 50304),
    "pythia-160m": _neox(12, 768, 12, 50304),
    "pythia-410m": _neox(24, 1024, 16, 50304),
    "pythia-1b": _neox(16, 2048, 8, 50304),
    "pythia-1.4b": _neox(24, 2048, 16, 50304),
    "pythia-2.8b": _neox(32, 2560, 32, 50304),
    "pythia-6.9b": _neox(32, 4096, 32, 50432),
    "pythia-12b": _neox(36, 5120, 40, 50688),
    "gpt-neox-20b": _neox(44, 6144, 64, 50432),
    "gpt-j-6b": _neox(28, 4096, 16, 50400),
    "gpt2": _gpt2(12, 768, 12),
    "gpt2-medium": _gpt2(24, 1024, 16),
    "gpt2-large": _gpt2(36, 1280, 20),
    "gpt2-xl": _gpt2(48, 1600, 25),
    "gpt3-125m": _gpt2(12, 768, 12),
    "gpt3-355m": _gpt2(24, 1024, 16),
    "gpt3-760m": _gpt2(24, 1536, 16),
    "gpt3-1.3b": _gpt2(24, 2048, 16),
    "gpt3-2.7b": _gpt2(32, 2560, 32),
    "gpt3-6.7b": _gpt2(32, 4096, 32),
    "gpt3-13b": _gpt2(40, 5120, 40),
    "gpt3-175b": _gpt2(96, 12288, 96),
    "mpt-125m": _mpt(12, 768, 12),
    "mpt-350m": _mpt(24, 1024, 16),
    "mpt-760m": _mpt(24, 1536, 12),
    "mpt-1b": _mpt(24, 2048, 16),
    "mpt-3b": _mpt(32, 2560, 20),
    "mpt-7b": _mpt(32, 4096, 32),
    "mpt-13b": _mpt(40, 5120, 40),
    "mpt-30b": _mpt(48, 7168, 56),
    "mpt-70b": _mpt(80, 8192, 64),
    "opt-125m": _gpt2(12, 768, 12, vocab=50272),
    "opt-1.3b": _gpt2(24, 2048, 32, vocab=50272),
    "opt-2.7b": _gpt2(32, 2560, 32, vocab=50272),
    "opt-6.7b": _gpt2(32, 4096, 32, vocab=50272),
    "opt-13b": _gpt2(40, 5120, 40, vocab=50272),
    "opt-30b": _gpt2(48, 7168, 56, vocab=50272),
    "opt-66b": _gpt2(64, 9216, 72, vocab=50272),
    "bloom-560m": _gpt2(24, 1024, 16, vocab=250880),
    "bloom-1b7": _gpt2(24, 2048, 16, vocab=250880),
    "bloom-3b": _gpt2(30, 2560, 32, vocab=250880),
    "bloom-7b1": _gpt2(30, 4096, 32, vocab=250880),
}
_DROPPED = re.compile(
    r"-(instruct|it|chat|base|hf|deduped|uncased|cased|v0\.\d|\d+k)(?=-|$)|(?<=phi-1\.5)-1\.3-?b$|-step.*$|-intermediate.*$"
)


def find_decoder(name: str) -> Decoder | None:
    """Return the shape of a published model by its name: `Llama 3.1 8B`, `Phi-3-mini-4k-instruct`."""
    plain = re.sub(r"[\s_]+", "-", name.strip().lower()).rpartition("/")[2]
    plain = re.sub(r"^meta-(?=llama)", "", plain)
    plain = re.sub(r"(?<=\d)-b\b", "b", plain)
    plain = re.sub(r"\bllama(?=\d)", "llama-", plain)
    plain = re.sub(r"\bgemma(?=\d)", "gemma-", plain)
    plain = re.sub(r"\bqwen-(?=[23])", "qwen", plain)
    plain = re.sub(r"\bgpt-(?=[23]\b)", "gpt", plain)
    plain = re.sub(r"-(?:un)?cased$", "", plain)
    for candidate in (plain, _DROPPED.sub("", plain)):
        if candidate in DECODERS:
            return DECODERS[candidate]
    return None


_POSITIONS = (("gpt2", 1024), ("opt-", 2048), ("bert-", 512), ("roberta-", 512))
"""Models with a table of positions, and how many it has."""


def most_positions(name: str) -> int | None:
    """Return how many tokens a sample of a published model can have at most, where its own table of positions says."""
    plain = re.sub(r"[\s_]+", "-", name.strip().lower()).rpartition("/")[2]
    plain = re.sub(r"^gpt-2", "gpt2", plain)
    return next((most for start, most in _POSITIONS if plain.startswith(start)), None)


_GATED = frozenset(
    (
        *("llama", "mistral", "mixtral", "qwen2", "qwen3", "gemma", "gemma2", "phi3", "internlm2", "olmo2", "granite"),
        *("qwen3_moe", "olmoe"),
    )
)
"""Kinds of Hugging Face models whose blocks are Llama's: rotated queries and keys, RMS norms, a gated MLP."""


def read_shape(config: Mapping[str, Any]) -> Decoder | None:
    """Return the shape a Hugging Face `config.json` describes; none: of another kind, or a number is missing."""
    sizes: dict[str, Any] = {
        "layers": config.get("num_hidden_layers"),
        "hidden": config.get("hidden_size"),
        "heads": config.get("num_attention_heads"),
        "ffn": config.get("moe_intermediate_size") or config.get("intermediate_size"),
        "vocab": config.get("vocab_size"),
    }
    more = {"kv_heads": config.get("num_key_value_heads"), "head_dim": config.get("head_dim")}
    given: dict[str, Any] = {name: size for name, size in more.items() if size is not None}
    if config.get("model_type") not in _GATED or not all(
        isinstance(size, int) and size > 0 for size in [*sizes.values(), *given.values()]
    ):
        return None
    experts = config.get("num_local_experts") or config.get("num_experts")
    if isinstance(experts, int) and experts > 1:
        given |= {"experts": experts, "active": config.get("num_experts_per_tok") or 1}
    tied = bool(config.get("tie_word_embeddings", config["model_type"].startswith("gemma")))
    return Decoder(**sizes, **given, tied=tied, qk_norm=config["model_type"] in ("qwen3", "qwen3_moe", "olmo2"))


_VITS = {
    "tiny": (12, 192, 3),
    "small": (12, 384, 6),
    "base": (12, 768, 12),
    "large": (24, 1024, 16),
    "huge": (32, 1280, 16),
    "giant": (40, 1408, 16),
}
"""Layers, width and heads of the sizes of timm's vision transformers."""
VITS = (
    *(f"vit_{size}_patch{patch}_224" for size in ("tiny", "small", "base", "large") for patch in (16, 32)),
    "vit_huge_patch14_224",
    "vit_giant_patch14_224",
)
"""Names of vision transformers that are understood; others of their form are too."""
_TORCHVISION_VIT = re.compile(r"vit_([blh])_(14|16|32)")
_VIT = re.compile(r"(?:vit|deit3?|beit)_(\w+?)_(?:distilled_)?patch(\d+)_(\d+)(?:_|$)")


def vit(layers: int, hidden: int, heads: int) -> Decoder:
    """Return a plain vision transformer: an encoder whose vocabulary are its 1000 classes."""
    more: dict[str, Any] = {"mlp": "gelu", "norm": "layer", "tied": True, "one_qkv": True}
    return Decoder(layers=layers, hidden=hidden, heads=heads, vocab=1000, ffn=4 * hidden, **more)


def find_vit(name: str) -> tuple[Decoder, int, int] | None:
    """Return shape, side of a patch and side of an image by a name like `vit_base_patch16_224` or `vit_b_16`."""
    if short := _TORCHVISION_VIT.fullmatch(name):
        name = f"vit_{ {'b': 'base', 'l': 'large', 'h': 'huge'}[short[1]] }_patch{short[2]}_224"
    found = _VIT.match(name)
    if found is None or found[1] not in _VITS:
        return None
    return vit(*_VITS[found[1]]), int(found[2]), int(found[3])


def nanochat(
    depth: int, *, vocab: int = 65536, aspect: int = 64, head_dim: int = 128, mlp: Literal["relu2", "swiglu"] = "relu2"
) -> Decoder:
    """Return the shape of a nanochat model from its depth."""
    width = depth * aspect
    heads = max(1, -(-width // head_dim))
    ffn = 4 * width if mlp == "relu2" else 8 * width // 3  # a gate's third matrix is paid for in width
    return Decoder(layers=depth, hidden=width, heads=heads, vocab=vocab, ffn=ffn, mlp=mlp, qk_norm=True, norm="rms")


def retie(shape: Decoder, *, tied: bool) -> Decoder:
    """Return the shape with input and output embedding shared or apart."""
    return replace(shape, tied=tied)
