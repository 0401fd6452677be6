"""Instructions as numbers: a small built-in encoder of hashed words, and whatever transformer lies on the disk."""

# B texts, T tokens, C width

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from headway.errors import CheckError

PAD = 0
_WORD = re.compile(r"\w+")


def hash_words(text: str, buckets: int) -> list[int]:
    """Return the words of a text as numbers from 1 on; the same word has the same number on every machine."""
    words = _WORD.findall(text.casefold())
    return [1 + int.from_bytes(hashlib.sha256(word.encode()).digest()[:8], "big") % (buckets - 1) for word in words]


def pad(rows: Sequence[Sequence[int]], *, filler: int, longest: int) -> tuple[Tensor, Tensor]:
    """Return tokens (B, T) and which of them are real, both as wide as the longest row."""
    rows = [list(row[:longest]) or [filler] for row in rows]
    width = max(map(len, rows))
    tokens_BT = torch.tensor([[*row, *[filler] * (width - len(row))] for row in rows], device="cpu")
    real_BT = torch.tensor([[True] * len(row) + [False] * (width - len(row)) for row in rows], device="cpu")
    return tokens_BT, real_BT


class WordEncoder(nn.Module):
    """Hashed words, their place, and one transformer layer."""

    def __init__(self, width: int, *, buckets: int, heads: int, longest: int) -> None:
        super().__init__()
        self.width, self.buckets, self.longest = width, buckets, longest
        self.words = nn.Embedding(buckets, width)
        self.places = nn.Parameter(torch.zeros(longest, width))
        self.layer = nn.TransformerEncoderLayer(
            width, heads, 4 * width, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
        )
        self.norm = nn.LayerNorm(width)

    def tokenize(self, texts: Sequence[str]) -> tuple[Tensor, Tensor]:
        """Return tokens (B, T) and which of them are real."""
        return pad([hash_words(text, self.buckets) for text in texts], filler=PAD, longest=self.longest)

    def forward(self, tokens_BT: Tensor, real_BT: Tensor) -> Tensor:
        x_BTC = self.words(tokens_BT) + self.places[: tokens_BT.size(1)]
        # As an additive mask: torch's fast path for bool masks warns that it is a prototype.
        hidden = torch.zeros_like(real_BT, dtype=x_BTC.dtype).masked_fill(~real_BT, float("-inf"))
        return self.norm(self.layer(x_BTC, src_key_padding_mask=hidden))

    @torch.no_grad()
    def init_weights(self, seed: int) -> None:
        """Draw weights from a seed."""
        dice = torch.Generator(self.places.device).manual_seed(seed)
        for name, weight in self.named_parameters():
            if name.startswith("words"):
                weight.normal_(generator=dice)
            elif weight.ndim == 2:
                weight.normal_(std=weight.size(1) ** -0.5 if "weight" in name else 0.1, generator=dice)
            elif name.endswith("bias"):
                weight.zero_()
            else:
                weight.fill_(1.0)


class HubEncoder(nn.Module):
    """A transformer of the hub's format in a folder on this disk: its last hidden state."""

    def __init__(self, folder: Path, *, longest: int) -> None:
        super().__init__()
        self.longest = longest
        hub = _import_transformers(folder)
        self._tokenizer = hub.AutoTokenizer.from_pretrained(str(folder), local_files_only=True)
        self.inner = hub.AutoModel.from_pretrained(
            str(folder), local_files_only=True, use_safetensors=True, torch_dtype="auto"
        )
        self.width: int = self.inner.config.hidden_size
        # Llama has no padding token of its own, and Atlas pads with the end of the sequence.
        own = self._tokenizer.pad_token_id
        self._filler: int = own if own is not None else self._tokenizer.eos_token_id

    def tokenize(self, texts: Sequence[str]) -> tuple[Tensor, Tensor]:
        """Return tokens (B, T) and which of them are real."""
        rows = [self._tokenizer(text, truncation=True, max_length=self.longest)["input_ids"] for text in texts]
        return pad(rows, filler=self._filler, longest=self.longest)

    def forward(self, tokens_BT: Tensor, real_BT: Tensor) -> Tensor:
        return self.inner(input_ids=tokens_BT, attention_mask=real_BT.long()).last_hidden_state.float()


def _import_transformers(folder: Path) -> Any:  # Any: an optional library, imported only for weights that need it
    try:
        import transformers
    except ModuleNotFoundError as err:
        raise CheckError("atlas/no-transformers", folder=folder) from err
    return transformers


def encode_texts(encoder: nn.Module, texts: Sequence[str]) -> tuple[Tensor, Tensor]:
    """Return the features (B, T, C) of texts on the encoder's device, and which tokens are real."""
    tokens_BT, real_BT = encoder.tokenize(texts)
    device = next(encoder.parameters()).device
    with torch.no_grad():
        return encoder(tokens_BT.to(device), real_BT.to(device)), real_BT.to(device)
