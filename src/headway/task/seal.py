"""Prepared data keeps a hash of every block, so that data that has changed since is never trained on unnoticed.

A quick look at every start reads small files whole and of large ones some blocks, others each time; the whole is read
while a run trains.
"""

from __future__ import annotations

import functools
import json
import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from blake3 import blake3

from headway.errors import CheckError

NAME: Final = "seal.json"
_BLOCK_BYTES: Final = 1 << 22
_QUICK_BYTES: Final = 1 << 26
"""Files up to this size are read whole at every start: a twentieth of a second."""
_QUICK_BLOCKS: Final = 16
"""Blocks of a larger file that a quick look reads, beside the first and the last."""


def write_seal(folder: Path) -> None:
    """Write the hashes of all files of a folder beside them."""
    files = {file.name: _hash_file(file) for file in sorted(folder.iterdir()) if file.is_file() and file.name != NAME}
    record = {"schema": "seal/1", "block_bytes": _BLOCK_BYTES, "files": files}
    (folder / NAME).write_text(json.dumps(record) + "\n", encoding="utf-8")


def is_sealed(folder: Path) -> bool:
    """Say whether a folder has a seal; what was prepared before there were seals is prepared again."""
    return (folder / NAME).is_file()


def look_quickly(folder: Path) -> None:
    """Refuse data that has changed since it was prepared, as far as a quick look can tell; once per process."""
    stamp = tuple(sorted((file.name, file.stat().st_size, file.stat().st_mtime_ns) for file in folder.iterdir()))
    _look_once(folder, stamp)


@functools.cache
def _look_once(folder: Path, stamp: tuple[tuple[str, int, int], ...]) -> None:
    """`stamp` tells one state of the folder from the next."""
    for name, sealed, block in _files(folder):
        last = len(sealed["blocks"]) - 1
        chosen = set(range(last + 1))
        if sealed["bytes"] > _QUICK_BYTES:
            chosen = {0, last, *random.SystemRandom().sample(range(last + 1), min(_QUICK_BLOCKS, last + 1))}
        _compare(folder, name, sealed, block, sorted(chosen))


def look_at_all(folder: Path) -> int:
    """Refuse data of which any byte has changed since it was prepared; return how many bytes were read."""
    done = 0
    for name, sealed, block in _files(folder):
        _compare(folder, name, sealed, block, list(range(len(sealed["blocks"]))))
        done += sealed["bytes"]
    return done


def _files(folder: Path) -> Iterator[tuple[str, dict[str, Any], int]]:
    try:
        record = json.loads((folder / NAME).read_text(encoding="utf-8"))
        files, block = dict(record["files"]), int(record["block_bytes"])
        assert all(len(one["blocks"]) == -(-one["bytes"] // block) for one in files.values())
    except (OSError, ValueError, TypeError, KeyError, AssertionError, ZeroDivisionError) as err:
        raise CheckError("recipes/seal-unread", file=folder / NAME, why=err, folder=folder) from err
    for name, sealed in files.items():
        yield name, sealed, block


def _compare(folder: Path, name: str, sealed: dict[str, Any], block_bytes: int, chosen: list[int]) -> None:
    path = folder / name
    have = path.stat().st_size if path.is_file() else 0
    if have != sealed["bytes"]:
        raise CheckError("recipes/data-size", file=path, have=have, want=sealed["bytes"], folder=folder)
    with path.open("rb") as file:
        for number in chosen:
            content = os.pread(file.fileno(), block_bytes, number * block_bytes)
            if _hash(content) != sealed["blocks"][number]:
                raise CheckError("recipes/data-changed", file=path, offset=number * block_bytes, folder=folder)


def _hash_file(path: Path) -> dict[str, Any]:
    with path.open("rb") as file:
        blocks = [_hash(content) for content in iter(lambda: file.read(_BLOCK_BYTES), b"")]
    return {"bytes": path.stat().st_size, "blocks": blocks}


def _hash(content: bytes) -> str:
    return blake3(content, max_threads=blake3.AUTO).hexdigest(length=16)
