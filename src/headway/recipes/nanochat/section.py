"""What a nanochat run may ask for beside the general keys, and the sizes that follow from the depth."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator

from headway.errors import ConfigError
from headway.task import Count, PathText, Positive, Section, Whole

SPECIALS = (
    "<|bos|>",
    "<|user_start|>",
    "<|user_end|>",
    "<|assistant_start|>",
    "<|assistant_end|>",
    "<|python_start|>",
    "<|python_end|>",
    "<|output_start|>",
    "<|output_end|>",
)
"""Tokens that are in no text; they take the last ids, in this order."""
NUM_SPECIALS = len(SPECIALS)
SMALLEST_VOCAB = 256 + NUM_SPECIALS
"""Every byte and every special token; a tokenizer of this size has no merges."""


class NanochatSection(Section):
    """Model size, data and learning rates of nanochat."""

    depth: Count = 20
    """Number of blocks; width, heads and parameters follow from it."""
    aspect: Count = 64
    """Width per block: the model's width is depth * aspect."""
    head_dim: Count = 128
    """Widest attention head; the number of heads is the width divided by this, rounded up."""
    n_kv_head: Count | None = None
    """Key and value heads, shared by groups of query heads; none: as many as query heads."""
    max_seq_len: Annotated[int, Field(ge=2)] = 2048
    """Tokens per sample."""
    vocab_size: Annotated[int, Field(ge=SMALLEST_VOCAB, le=1 << 24)] = 65_536
    """Vocabulary size of the tokenizer, including 9 special tokens."""
    rope_base: Positive = 10_000.0
    """Base of the rotary angles."""
    softcap: Positive = 15.0
    """Logits are limited to plus and minus this value by a tanh."""
    loss_chunk: Whole = 4096
    """Tokens whose fp32 logits exist at one time; longer batches are split, recomputed in backward; 0: never."""
    embedding_lr: Positive = 0.2
    """AdamW learning rate of the token embedding at width 768; falls with the square root of the width."""
    unembedding_lr: Positive = 0.004
    """AdamW learning rate of the output matrix at width 768; falls with the square root of the width."""
    matrix_lr: Positive = 0.02
    """Muon learning rate of the matrices inside the blocks."""
    wte_bf16: bool = False
    """Keep the token embedding in bf16, as the original does; saves 2 bytes per weight but loses small updates."""
    data_dir: PathText = "~/.cache/headway/nanochat"
    """Folder that contains base_data/shard_00000.parquet and so on; prepared files are written next to it."""
    synthetic: bool = False
    """If data_dir has no shards, create small synthetic ones instead of stopping."""
    tokenizer_chars: Count = 2_000_000_000
    """How many characters of the training shards the tokenizer is trained on."""
    tokenizer_file: PathText | None = None
    """A tokenizer.pkl of nanochat, used as it is; none: a tokenizer is trained on the shards."""
    eval_tokens: Count | None = None
    """Tokens per validation, from the start of the last shard; none: the entire shard."""

    @property
    def width(self) -> int:
        """Channels of the residual stream."""
        return self.depth * self.aspect

    @property
    def n_head(self) -> int:
        """Query heads: the width over `head_dim`, rounded up."""
        return max(1, -(-self.width // self.head_dim))

    @property
    def kv_heads(self) -> int:
        """Key and value heads."""
        return self.n_kv_head or self.n_head

    @property
    def num_params(self) -> int:
        """Parameters of the model, in closed form: two vocabulary matrices, and twelve squares of the width a block."""
        keys_and_values = 2 * self.width * self.width * self.kv_heads // self.n_head
        return 2 * self.vocab_size * self.width + self.depth * (10 * self.width**2 + keys_and_values)

    @property
    def flops_per_token(self) -> int:
        """Forward and backward operations a token, counted as nanochat counts them."""
        return 6 * (self.num_params - self.vocab_size * self.width) + 12 * self.depth * self.width * self.max_seq_len

    @model_validator(mode="after")
    def _heads_divide_the_width(self) -> Self:
        if not _fits(self.width, self.n_head):
            near = [d for d in _outwards(self.depth) if _fits(d * self.aspect, -(-d * self.aspect // self.head_dim))]
            raise ConfigError(
                "nanochat/heads",
                width=self.width,
                heads=self.n_head,
                depth=self.depth,
                near=", ".join(map(str, sorted(near[:3]))),
            )
        if self.n_head % self.kv_heads:
            ways = [n for n in range(1, self.n_head + 1) if self.n_head % n == 0]
            raise ConfigError("nanochat/kv-heads", kv=self.kv_heads, heads=self.n_head, ways=", ".join(map(str, ways)))
        return self


def horizon_steps(section: NanochatSection, *, total_tokens: int, ratio: float = 20.0) -> int:
    """Return the steps that show each parameter `ratio` tokens (Chinchilla: 20), rounded down as nanochat does."""
    return max(1, int(ratio * section.num_params) // total_tokens)


def _fits(width: int, heads: int) -> bool:
    # Rotary pairs the first half of a head with its second half, so a head has an even width.
    return width % heads == 0 and (width // heads) % 2 == 0


def _outwards(depth: int) -> list[int]:
    """Return the depths around one, nearest first."""
    around = [*range(max(1, depth - 8), depth), *range(depth + 1, depth + 9)]
    return sorted(around, key=lambda other: abs(other - depth))


class PredictOptions(Section):
    """What `headway predict` may ask of a trained model."""

    prompt: str = ""
    """What the text begins with."""
    max_tokens: Count = 64
    """Most tokens to add."""
    temperature: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.8
    """0: always the likeliest token; 1: the model's own variety."""
    top_k: Whole = 0
    """Draw among this many likeliest tokens; 0: among all."""
    seed: Whole = 0
    """Seed of the draw."""
