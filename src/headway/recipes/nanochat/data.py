"""nanochat's data on disk: parquet shards in, memory-mapped tokens out.

    <data_dir>/base_data/shard_00000.parquet …   one column `text`; the last file is to validate on; also as
                                                 base_data_climbmix/
    <data_dir>/prepared/<fingerprint>/           train.bin val.bin tokenizer.json token_bytes.npy index.json, and for
                                                 nanochat's own scripts tokenizer.pkl token_bytes.pt

Shards are tokenised once, so that a sample has an index: sample i is tokens[i*T : i*T+T+1]. The original deals row
groups to ranks, and a rank without one waits forever; here the order is over indexes, so both numbers are free.
A prepared folder is named after what it was made from and never changes: changed shards get a new folder from
`prepare`, and a rank that meets them without one refuses. Neither pyarrow nor tokenizers is imported when all is ready.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from headway.errors import CheckError
from headway.messages import say as line
from headway.recipes.nanochat.section import NanochatSection
from headway.task import hold, install, is_sealed, look_quickly
from headway.units import count, size

FORMAT = 1
"""Raised when the prepared files change their meaning."""
SYNTHETIC_MARK = "synthetic.json"
# Published shards: 250 M characters in 100 MB, 4.8 characters a token of 2 bytes, so 1.04 bytes a byte; small
# vocabularies take up to twice that.
_PREPARED_A_SHARD_BYTE = 2.0
_SYNTHETIC_BYTES = 4e6

Say = Callable[[str], None]
"""Shows one line to the person who waits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Index:
    """What a prepared folder holds; `index.json`."""

    fingerprint: str
    """Names, sizes, times and footers of the shards, the tokenizer's settings and the format, as one hash."""
    dtype: str
    """Type of one token in the .bin files."""
    vocab_size: int
    bos: int
    """Token before each document."""
    train_tokens: int
    val_tokens: int
    train_documents: int
    val_documents: int
    val_bytes: int
    """UTF-8 bytes of the validation documents."""
    unigram_bpb: float
    """Bits per byte on validation of always answering with the training frequencies of tokens."""
    content: dict[str, str]
    """BLAKE3 of the .bin files: the same data gives the same hash on any machine."""


def base_dir(section: NanochatSection) -> Path:
    """Return the folder above the shards."""
    return Path(section.data_dir).expanduser().absolute()


def shard_dir(section: NanochatSection) -> Path:
    """Return the folder of the shards, by its older or its newer name."""
    older, newer = base_dir(section) / "base_data", base_dir(section) / "base_data_climbmix"
    return newer if any(newer.glob("*.parquet")) and not any(older.glob("*.parquet")) else older


def list_shards(folder: Path) -> list[Path]:
    """Return the shards in order; the last is for validation. Unfinished downloads (.tmp) are not among them."""
    shards = sorted(folder.glob("*.parquet"))
    if not shards:
        raise CheckError("nanochat/no-shards", folder=folder)
    if len(shards) < 2:
        raise CheckError("nanochat/few-shards", folder=folder, have=len(shards))
    return shards


def fingerprint(section: NanochatSection, shards: list[Path]) -> str:
    """Return a hash of everything the prepared files depend on, without reading the shards' text."""
    digest = hashlib.sha256(f"{FORMAT} {section.vocab_size} {section.tokenizer_chars}".encode())
    if section.tokenizer_file is not None:
        digest.update(_read_tokenizer(section.tokenizer_file))
    for shard in shards:
        status = shard.stat()
        digest.update(f"\n{shard.name} {status.st_size} {status.st_mtime_ns} ".encode())
        digest.update(_footer(shard))
    return digest.hexdigest()[:20]


def _read_tokenizer(name: str) -> bytes:
    file = Path(name).expanduser()
    try:
        return file.read_bytes()
    except OSError as err:
        raise CheckError("nanochat/bad-tokenizer", file=file, why=err.strerror or err) from err


def _footer(shard: Path) -> bytes:
    """Return the parquet footer: schema, row groups, their places and sizes."""
    with shard.open("rb") as file:
        end = file.seek(0, os.SEEK_END)
        file.seek(max(0, end - 8))
        tail = file.read()
        length = int.from_bytes(tail[:4], "little")
        if len(tail) < 8 or tail[4:] != b"PAR1" or length > end - 12:
            raise CheckError("nanochat/bad-shard", file=shard, why=line("nanochat/why-footer", size=count(end)))
        file.seek(end - 8 - length)
        return file.read(length)


def prepared_dir(section: NanochatSection) -> Path:
    """Return where the prepared files of these shards are, or would be."""
    return base_dir(section) / "prepared" / fingerprint(section, list_shards(shard_dir(section)))


def find_index(section: NanochatSection) -> Index | None:
    """Return what is prepared, or None when there are no shards or they have not been tokenised as they are now."""
    if not any(shard_dir(section).glob("*.parquet")):
        return None
    return _read_index(prepared_dir(section))


def _read_index(folder: Path) -> Index | None:
    if not is_sealed(folder):
        return None
    try:
        data = json.loads((folder / "index.json").read_text(encoding="utf-8"))
        index = Index(**data)
    except FileNotFoundError:
        return None
    except (ValueError, TypeError) as err:
        raise CheckError("nanochat/bad-index", file=folder / "index.json", why=err, folder=folder) from err
    width = {"uint16": 2, "uint32": 4}[index.dtype]
    for name, tokens in (("train.bin", index.train_tokens), ("val.bin", index.val_tokens)):
        have = (folder / name).stat().st_size if (folder / name).exists() else 0
        if have != tokens * width:
            raise CheckError("nanochat/damaged", file=folder / name, have=have, want=tokens * width, folder=folder)
    look_quickly(folder)
    return index


def open_index(section: NanochatSection) -> tuple[Path, Index]:
    """Return the prepared folder and what it holds; a rank calls this and never prepares anything itself."""
    folder = prepared_dir(section)
    index = _read_index(folder)
    if index is None:
        raise CheckError("nanochat/not-prepared", folder=shard_dir(section))
    return folder, index


def count_samples(tokens: int, seq_len: int) -> int:
    """Return how many samples fit: each takes `seq_len` tokens and looks one further."""
    return max(0, (tokens - 1) // seq_len)


def count_train_samples(section: NanochatSection) -> int | None:
    """Return the training samples of one epoch, or None when the data is not prepared."""
    index = find_index(section)
    return None if index is None else count_samples(index.train_tokens, section.max_seq_len)


def baseline(section: NanochatSection) -> dict[str, float]:
    """Return what constant answers score, by measure name; empty when the data is not prepared."""
    index = find_index(section)
    return {} if index is None else {"unigram_bpb": index.unigram_bpb}


def prepare(section: NanochatSection, say: Say) -> dict[str, int]:
    """Make or check everything ranks read; return the counts. Safe when several processes call it at once."""
    folder = shard_dir(section)
    if not section.synthetic:
        list_shards(folder)
        if (folder / SYNTHETIC_MARK).exists():
            raise CheckError("nanochat/only-synthetic", folder=folder)
    index = find_index(section) or _prepare_locked(section, say)
    for split, tokens in (("train", index.train_tokens), ("val", index.val_tokens)):
        if tokens <= section.max_seq_len:
            need = section.max_seq_len + 1
            raise CheckError("nanochat/too-few-tokens", split=split, tokens=count(tokens), need=count(need))
    return {
        "train_samples": count_samples(index.train_tokens, section.max_seq_len),
        "val_samples": count_samples(index.val_tokens, section.max_seq_len),
        "train_tokens": index.train_tokens,
        "val_tokens": index.val_tokens,
    }


def _prepare_locked(section: NanochatSection, say: Say) -> Index:
    base = base_dir(section)
    try:
        with hold(base, say):
            # Another process may have finished while this one waited.
            return find_index(section) or _make(section, say)
    except OSError as err:
        shards = sum(shard.stat().st_size for shard in shard_dir(section).glob("*.parquet"))
        need = max(_SYNTHETIC_BYTES, shards * _PREPARED_A_SHARD_BYTE)
        raise CheckError("nanochat/cannot-write", folder=base, why=err.strerror or err, need=size(need)) from err


def _make(section: NanochatSection, say: Say) -> Index:
    # Only here: pyarrow and tokenizers take most of a second to import, and a second start does not need them.
    try:
        from headway.recipes.nanochat import build
    except ModuleNotFoundError as err:
        raise CheckError("nanochat/missing-library", package=err.name) from err

    folder = shard_dir(section)
    if section.synthetic and not any(folder.glob("*.parquet")):
        install(folder, build.write_synthetic)
        made = sum(file.stat().st_size for file in folder.iterdir())
        say(line("nanochat/made-shards", shards=len(list_shards(folder)), size=size(made), folder=folder))
    shards = list_shards(folder)
    mark = fingerprint(section, shards)
    ready = base_dir(section) / "prepared" / mark
    install(ready, lambda temp: build.tokenise(section, shards, temp, mark=mark, say=say), seal=True)
    index = _read_index(ready)
    assert index is not None, "the builder writes index.json"
    say(line("nanochat/prepared", train=count(index.train_tokens), val=count(index.val_tokens), folder=ready))
    return index


def index_json(index: Index) -> str:
    """Return the text of `index.json`."""
    return json.dumps(asdict(index), indent=1) + "\n"
