"""Reads shards, trains the tokenizer and writes the token files; imported only when something has to be made."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import IO

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from blake3 import blake3

from headway.errors import CheckError
from headway.messages import say as line
from headway.recipes.nanochat.data import SYNTHETIC_MARK, Index, Say, index_json
from headway.recipes.nanochat.section import NUM_SPECIALS, NanochatSection
from headway.recipes.nanochat.synthetic import GRAMMAR, write_documents
from headway.recipes.nanochat.tiktoken_file import read_ranks, write_ranks, write_token_bytes
from headway.recipes.nanochat.tokenizer import TextTokenizer, from_ranks, save_token_bytes, train_tokenizer
from headway.units import count

SHARDS, ROW_GROUPS, ROW_GROUP_DOCUMENTS = 3, 8, 256
_DOCUMENT_CHARS = 10_000  # of one document the tokenizer sees no more, so that one odd file cannot shape it


def write_shard(path: Path, texts: list[str], *, row_group: int) -> None:
    """Write one shard as nanochat's own packer does: one `text` column, zstd, row groups of a given size."""
    table = pa.table({"text": pa.array(texts, pa.string())})
    pq.write_table(
        table, path, row_group_size=row_group, compression="zstd", use_dictionary=False, write_statistics=False
    )


def write_synthetic(folder: Path, seed: int = 0) -> None:
    """Write the synthetic set: two training shards and one for validation, in the format of the real ones."""
    each = ROW_GROUPS * ROW_GROUP_DOCUMENTS
    texts = write_documents(SHARDS * each, seed=seed)
    for number in range(SHARDS):
        part = texts[number * each : (number + 1) * each]
        write_shard(folder / f"shard_{number:05d}.parquet", part, row_group=ROW_GROUP_DOCUMENTS)
    (folder / SYNTHETIC_MARK).write_text(json.dumps({"grammar": GRAMMAR, "seed": seed}) + "\n", encoding="utf-8")


def read_row_groups(shard: Path) -> Iterator[list[str]]:
    """Yield the documents of a shard, a row group at a time; rows without text are passed over."""
    try:
        with pq.ParquetFile(shard) as file:
            names = file.schema_arrow.names
            if "text" not in names:
                raise CheckError("nanochat/bad-shard", file=shard, why=line("nanochat/why-columns", names=names))
            if not pa.types.is_string(kind := file.schema_arrow.field("text").type) and not pa.types.is_large_string(
                kind
            ):
                raise CheckError("nanochat/bad-shard", file=shard, why=line("nanochat/why-type", kind=kind))
            for group in range(file.num_row_groups):
                column = file.read_row_group(group, columns=["text"]).column("text")
                yield [text for text in column.to_pylist() if text]
    except (pa.ArrowException, OSError, UnicodeDecodeError) as err:
        raise CheckError("nanochat/bad-shard", file=shard, why=str(err).splitlines()[0]) from err


def tokenise(section: NanochatSection, shards: list[Path], folder: Path, *, mark: str, say: Say) -> None:
    """Train the tokenizer on all but the last shard, write every token, and write the index last."""
    train_shards, val_shard = shards[:-1], shards[-1]
    tokenizer = _make_tokenizer(section, train_shards, say)
    tokenizer.save(folder)
    token_bytes = tokenizer.token_bytes(section.vocab_size)
    save_token_bytes(folder, token_bytes)
    ranks = tokenizer.ranks()
    if len(ranks.tokens) + NUM_SPECIALS == section.vocab_size:  # else nanochat would count another vocabulary
        write_ranks(folder, ranks)
        write_token_bytes(folder, token_bytes)

    dtype = "uint16" if section.vocab_size <= 1 << 16 else "uint32"
    train, val = _Split(section.vocab_size), _Split(section.vocab_size)
    for split, name, files in ((train, "train.bin", train_shards), (val, "val.bin", [val_shard])):
        with (folder / name).open("wb") as out:
            for shard in files:
                say(line("nanochat/tokenising", shard=shard.name, number=shards.index(shard) + 1, shards=len(shards)))
                for texts in read_row_groups(shard):
                    split.add(texts, tokenizer, out, dtype)
    index = Index(
        fingerprint=mark,
        dtype=dtype,
        vocab_size=section.vocab_size,
        bos=tokenizer.bos,
        train_tokens=int(train.counts.sum()),
        val_tokens=int(val.counts.sum()),
        train_documents=train.documents,
        val_documents=val.documents,
        val_bytes=int((val.counts * token_bytes).sum()),
        unigram_bpb=unigram_bpb(train.counts, val.counts, token_bytes, vocab=tokenizer.size),
        content={"train.bin": train.hash.hexdigest(), "val.bin": val.hash.hexdigest()},
    )
    (folder / "index.json").write_text(index_json(index), encoding="utf-8")


def _make_tokenizer(section: NanochatSection, shards: list[Path], say: Say) -> TextTokenizer:
    """Return the tokenizer of a file, or one trained on the shards."""
    if section.tokenizer_file is None:
        say(line("nanochat/training-tokenizer", vocab=count(section.vocab_size), shards=len(shards)))
        return train_tokenizer(_sample(shards, section.tokenizer_chars), vocab_size=section.vocab_size)
    file = Path(section.tokenizer_file).expanduser()
    tokenizer = from_ranks(read_ranks(file))
    if tokenizer.size != section.vocab_size:
        raise CheckError("nanochat/tokenizer-size", file=file, have=tokenizer.size, want=section.vocab_size)
    return tokenizer


class _Split:
    """The running totals of one token file."""

    def __init__(self, vocab_size: int) -> None:
        self.counts: npt.NDArray[np.int64] = np.zeros(vocab_size, np.int64)
        self.documents = 0
        self.hash = blake3()

    def add(self, texts: list[str], tokenizer: TextTokenizer, out: IO[bytes], dtype: str) -> None:
        """Append documents, each after its bos."""
        if not texts:
            return
        ids = np.fromiter(chain.from_iterable(tokenizer.encode_documents(texts)), dtype=dtype)
        self.counts += np.bincount(ids, minlength=len(self.counts))
        self.documents += len(texts)
        data = ids.tobytes()
        self.hash.update(data)
        out.write(data)


def _sample(shards: list[Path], max_chars: int) -> Iterator[str]:
    """Yield the text the tokenizer is trained on."""
    seen = 0
    for shard in shards:
        for texts in read_row_groups(shard):
            for text in texts:
                yield text[:_DOCUMENT_CHARS]
                seen += min(len(text), _DOCUMENT_CHARS)
                if seen >= max_chars:
                    return


def unigram_bpb(
    train: npt.NDArray[np.int64], val: npt.NDArray[np.int64], token_bytes: npt.NDArray[np.int32], *, vocab: int
) -> float:
    """Return the bits per validation byte of training frequencies (add-one smoothed), which know no context at all."""
    nats = -np.log((train + 1) / (train.sum() + vocab))
    num_bytes = float((val * token_bytes).sum())
    return float((val * nats)[token_bytes > 0].sum() / (math.log(2) * num_bytes)) if num_bytes else math.inf
