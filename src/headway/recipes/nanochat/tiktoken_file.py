"""nanochat's own tokenizer files, both ways: `tokenizer.pkl` and `token_bytes.pt`, without tiktoken and torch.

A `tokenizer.pkl` is a pickled tiktoken encoding: a split pattern, the bytes of each token with its rank, and the
special tokens. It is read by the isolated reader of weights. Writing needs no library: both files are a few fixed
opcodes around plain values.
"""

from __future__ import annotations

import io
import pickle
import struct
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from headway.errors import CheckError
from headway.recipes.nanochat.section import SPECIALS
from headway.task import read_pickle

PICKLE_FILE, TORCH_BYTES_FILE = "tokenizer.pkl", "token_bytes.pt"
_BYTES: Final = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranks:
    """A byte-level BPE as tiktoken keeps it."""

    pattern: str
    """How text is split before anything is merged."""
    tokens: Mapping[bytes, int]
    """Bytes of each token, to its id, which is also its place in the order of merges."""


def read_ranks(path: Path) -> Ranks:
    """Return what a `tokenizer.pkl` holds; ids must be those nanochat gives: tokens from 0 on, special ones after."""
    told = read_pickle(path)
    pattern, held, specials = (told.get(name) for name in ("pat_str", "mergeable_ranks", "special_tokens"))
    if not isinstance(pattern, str) or not isinstance(held, Mapping) or not isinstance(specials, Mapping):
        raise CheckError("nanochat/bad-tokenizer", file=path, why="pat_str, mergeable_ranks, special_tokens")
    tokens = {bytes.fromhex(name): int(rank) for name, rank in held.items()}
    if sorted(tokens.values()) != list(range(len(tokens))) or not all(bytes([n]) in tokens for n in range(_BYTES)):
        raise CheckError("nanochat/bad-tokenizer", file=path, why=f"mergeable_ranks != 0..{len(tokens) - 1}")
    wanted = {name: len(tokens) + place for place, name in enumerate(SPECIALS)}
    if dict(specials) != wanted:
        raise CheckError("nanochat/bad-tokenizer", file=path, why=f"special_tokens != {wanted}")
    return Ranks(pattern=pattern, tokens=tokens)


def find_merges(tokens: Mapping[bytes, int]) -> list[tuple[bytes, bytes]]:
    """Return the merges that ranks stand for, in their order: every way in which a token is two earlier ones."""
    merges = []
    for token in sorted(tokens, key=tokens.__getitem__):
        cuts = ((token[:at], token[at:]) for at in range(1, len(token)))
        pairs = [(a, b) for a, b in cuts if a in tokens and b in tokens and max(tokens[a], tokens[b]) < tokens[token]]
        merges += sorted(pairs, key=lambda pair: (tokens[pair[0]], tokens[pair[1]]))
    return merges


def write_ranks(folder: Path, ranks: Ranks) -> None:
    """Write `tokenizer.pkl` as nanochat's scripts load it."""
    state = {
        "name": "rustbpe",
        "pat_str": ranks.pattern,
        "mergeable_ranks": dict(ranks.tokens),
        "special_tokens": {name: len(ranks.tokens) + place for place, name in enumerate(SPECIALS)},
    }
    plain = pickle.dumps(state, protocol=2)[2:-1]
    # Protocol 2, the class by its name, made without arguments, and its state.
    (folder / PICKLE_FILE).write_bytes(b"\x80\x02ctiktoken.core\nEncoding\n)\x81" + plain + b"b.")


def write_token_bytes(folder: Path, lengths: npt.NDArray[np.int32]) -> None:
    """Write `token_bytes.pt`: the bytes of each token as a torch file of one tensor."""
    size = b"J" + struct.pack("<i", len(lengths))
    storage = b"(X\x07\x00\x00\x00storagectorch\nIntStorage\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpu" + size + b"tQ"
    layout = b"K\x00" + size + b"\x85K\x01\x85\x89ccollections\nOrderedDict\n)R"
    table = b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n(" + storage + layout + b"tR."
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("token_bytes/data.pkl", table)
        archive.writestr("token_bytes/byteorder", "little")
        archive.writestr("token_bytes/data/0", lengths.astype("<i4").tobytes())
        archive.writestr("token_bytes/version", "3\n")
    (folder / TORCH_BYTES_FILE).write_bytes(held.getvalue())
