"""Byte-level BPE with nanochat's split pattern and special tokens."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

from headway.recipes.nanochat.section import NUM_SPECIALS, SPECIALS
from headway.recipes.nanochat.tiktoken_file import Ranks, find_merges

# GPT-4's pattern, but numbers are cut after two digits instead of three: a small vocabulary is not spent on numbers.
SPLIT_PATTERN = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,2}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+"
)
TOKENIZER_FILE, TOKEN_BYTES_FILE = "tokenizer.json", "token_bytes.npy"


class TextTokenizer:
    """Text to tokens and back. Special tokens are never read out of a text, only put there by us."""

    def __init__(self, inner: Any) -> None:  # Any: tokenizers ships no types
        self._inner = inner
        # Else a document that happens to contain "<|bos|>" could forge one.
        self._inner.encode_special_tokens = True
        self.bos: int = inner.token_to_id(SPECIALS[0])
        self.size: int = inner.get_vocab_size()

    def encode_documents(self, texts: list[str]) -> Iterator[list[int]]:
        """Yield the tokens of each document, bos first."""
        for encoding in self._inner.encode_batch_fast(texts, add_special_tokens=False):
            yield [self.bos, *encoding.ids]

    def encode(self, text: str) -> list[int]:
        """Return the tokens of a text, bos first."""
        return next(self.encode_documents([text]))

    def decode(self, ids: list[int]) -> str:
        """Return the text of tokens, special ones left out."""
        text: str = self._inner.decode(ids, skip_special_tokens=True)
        return text

    def token_bytes(self, vocab_size: int) -> npt.NDArray[np.int32]:
        """Return the UTF-8 bytes of each token; 0 for special tokens and for ids the training did not need."""
        lengths = np.zeros(vocab_size, np.int32)
        for token, number in self._inner.get_vocab(with_added_tokens=False).items():
            # Byte-level BPE writes each byte as one character, so half a Chinese character counts right too.
            lengths[number] = len(token)
        return lengths

    def save(self, folder: Path) -> None:
        """Write `tokenizer.json`."""
        self._inner.save(str(folder / TOKENIZER_FILE))

    def ranks(self) -> Ranks:
        """Return the tokens as tiktoken keeps them."""
        vocab = self._inner.get_vocab(with_added_tokens=False)
        bytes_of = {letter: byte for byte, letter in _letters().items()}
        tokens = {bytes(bytes_of[letter] for letter in token): number for token, number in vocab.items()}
        return Ranks(pattern=self.pattern, tokens=tokens)

    @property
    def pattern(self) -> str:
        """How text is split before anything is merged."""
        return str(json.loads(self._inner.to_str())["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"])


def _letters() -> dict[int, str]:
    """Return the letter by which byte-level BPE writes each byte: itself where it can be seen, else one from 256 on."""
    seen = [*range(33, 127), *range(161, 173), *range(174, 256)]
    rest = [byte for byte in range(256) if byte not in seen]
    return {**{byte: chr(byte) for byte in seen}, **{byte: chr(256 + place) for place, byte in enumerate(rest)}}


def _byte_level(model: Any, pattern: str) -> Any:  # Any: tokenizers ships no types
    inner = Tokenizer(model)
    inner.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(pattern), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    inner.decoder = decoders.ByteLevel()
    return inner


def from_ranks(ranks: Ranks) -> TextTokenizer:
    """Return the tokenizer that a `tokenizer.pkl` describes."""
    letters = _letters()

    def spell(token: bytes) -> str:
        return "".join(letters[byte] for byte in token)

    vocab = {spell(token): number for token, number in ranks.tokens.items()}
    merges = [(spell(first), spell(second)) for first, second in find_merges(ranks.tokens)]
    inner = _byte_level(models.BPE(vocab=vocab, merges=merges), ranks.pattern)
    inner.add_special_tokens(list(SPECIALS))
    return TextTokenizer(inner)


def train_tokenizer(texts: Iterator[str], *, vocab_size: int) -> TextTokenizer:
    """Train on texts; the special tokens take the last ids."""
    inner = _byte_level(models.BPE(), SPLIT_PATTERN)
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size - NUM_SPECIALS,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    inner.train_from_iterator(texts, trainer)
    inner.add_special_tokens(list(SPECIALS))
    return TextTokenizer(inner)


def load_tokenizer(folder: Path) -> TextTokenizer:
    """Read the tokenizer of a prepared folder."""
    return TextTokenizer(Tokenizer.from_file(str(folder / TOKENIZER_FILE)))


def save_token_bytes(folder: Path, lengths: npt.NDArray[np.int32]) -> None:
    """Write the bytes of each token."""
    np.save(folder / TOKEN_BYTES_FILE, lengths, allow_pickle=False)
