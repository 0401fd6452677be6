"""Proof that a checkpoint is whole: every byte of every file, every offset, every tensor covered exactly once."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Final

from blake3 import blake3

from headway.checkpoint.manifest import MANIFEST_CAP, Manifest, PieceEntry, TensorEntry, parse_manifest
from headway.checkpoint.names import MANIFEST, MANIFEST_HASH, parse_final, parse_shard
from headway.errors import CheckpointError
from headway.weights.layout import Header
from headway.weights.reading import hash_file, open_folder, open_inside, read_header, read_small
from headway.weights.strict import shown

ALL_THREADS: Final = blake3.AUTO
_HASH_LINE_BYTES: Final = 65
_READERS: Final = 4


def read_manifest(path: Path) -> Manifest:
    """Read a checkpoint's manifest and check it against its hash; the shards are not looked at."""
    with open_folder(path) as folder:
        return _read_manifest(folder, path)


def verify_checkpoint(path: Path, *, threads: int = ALL_THREADS, is_fresh: bool = False) -> Manifest:
    """Check everything and return the manifest; the first thing wrong is raised with its file and both values.

    Args:
        path: the checkpoint's folder.
        threads: threads that hash; a save in the background takes one.
        is_fresh: read back from the disk where possible, not from the page cache.
    """
    with open_folder(path) as folder:
        manifest = _read_manifest(folder, path)
        _check_names(set(os.listdir(folder)), manifest, path)
        _check_files(folder, manifest, path, threads=threads, is_fresh=is_fresh)
        headers = {}
        for name in manifest.files:
            with open_inside(folder, name, where=path) as fd:
                headers[name] = read_header(fd, where=path / name)
    _check_pieces(manifest, headers, path)
    return manifest


def verify_bytes(path: Path, manifest: Manifest, data: bytes) -> None:
    """Check that the disk holds what was just written, every byte of it; what it means is known.

    Args:
        path: the checkpoint's folder.
        manifest: what was written.
        data: the manifest's file.
    """
    with open_folder(path) as folder:
        for name, want in ((MANIFEST_HASH, hash_line(data)), (MANIFEST, data)):
            have = read_small(folder, name, where=path, cap=MANIFEST_CAP)
            if have != want:
                raise _wrong_hash(path / name, blake3(have).hexdigest(), blake3(want).hexdigest())
        _check_names(set(os.listdir(folder)), manifest, path)
        _check_files(folder, manifest, path, threads=1, is_fresh=True)


def check_outline(path: Path) -> Manifest:
    """Check what costs no time, whatever the size: the manifest, the names and the sizes of the files."""
    with open_folder(path) as folder:
        manifest = _read_manifest(folder, path)
        _check_names(set(os.listdir(folder)), manifest, path)
        for name, entry in manifest.files.items():
            with open_inside(folder, name, where=path) as fd:
                size = os.fstat(fd).st_size
            if size != entry.bytes:
                raise CheckpointError("checkpoint/wrong-size", path=path / name, have=size, want=entry.bytes)
    return manifest


def hash_line(manifest: bytes) -> bytes:
    """Return what `manifest.b3` holds for a manifest."""
    return f"{blake3(manifest).hexdigest()}\n".encode()


def _read_manifest(folder: int, path: Path) -> Manifest:
    line = read_small(folder, MANIFEST_HASH, where=path, cap=1 << 10)
    if len(line) != _HASH_LINE_BYTES or not line.endswith(b"\n") or set(line[:-1]) - set(b"0123456789abcdef"):
        raise CheckpointError("checkpoint/hash-form", path=path / MANIFEST_HASH, have=len(line), want=_HASH_LINE_BYTES)
    data = read_small(folder, MANIFEST, where=path, cap=MANIFEST_CAP)
    have = hash_line(data)
    if have != line:
        raise _wrong_hash(path / MANIFEST, have.decode().strip(), line.decode().strip())
    manifest = parse_manifest(data, where=str(path / MANIFEST))
    named = parse_final(path.name)
    if named is not None and named.step != manifest.step:
        raise CheckpointError("checkpoint/wrong-step", path=path, have=manifest.step, want=named.step)
    return manifest


def _check_names(have: set[str], manifest: Manifest, path: Path) -> None:
    want = {MANIFEST, MANIFEST_HASH, *manifest.files}
    if missing := sorted(want - have):
        raise CheckpointError("checkpoint/missing-file", path=path / missing[0])
    if extra := sorted(have - want):
        raise CheckpointError("checkpoint/extra-file", path=path / shown(extra[0]), num=len(extra))


def _check_files(folder: int, manifest: Manifest, path: Path, *, threads: int, is_fresh: bool) -> None:
    check = partial(_check_file, folder, manifest=manifest, path=path, threads=threads, is_fresh=is_fresh)
    names = sorted(manifest.files)
    if len(names) < 2:
        list(map(check, names))
        return
    # Files of several ranks are read side by side: one reader alone does not keep a disk busy.
    with ThreadPoolExecutor(min(_READERS, len(names))) as pool:
        list(pool.map(check, names))


def _check_file(folder: int, name: str, *, manifest: Manifest, path: Path, threads: int, is_fresh: bool) -> None:
    entry = manifest.files[name]
    with open_inside(folder, name, where=path) as fd:
        size = os.fstat(fd).st_size
        size, digest = (size, "") if size != entry.bytes else hash_file(fd, threads=threads, is_fresh=is_fresh)
        if (size, digest) == (entry.bytes, entry.blake3):
            return
        _check_owner(fd, name, manifest, path)
    if size != entry.bytes:
        raise CheckpointError("checkpoint/wrong-size", path=path / name, have=size, want=entry.bytes)
    raise _wrong_hash(path / name, digest, entry.blake3)


def _check_owner(fd: int, name: str, manifest: Manifest, path: Path) -> None:
    """Say whose shard a wrong file is, when it is a whole one in the wrong place."""
    try:
        found = read_header(fd, where=path / name).metadata
    except CheckpointError:
        return  # not a whole shard: its size or hash says enough
    want = {"step": str(manifest.step), "rank": str(parse_shard(name)), "attempt": str(manifest.attempt)}
    have = {key: shown(found.get(key, "n/a")) for key in want}
    if have != want:
        facts = {**{f"have_{key}": value for key, value in have.items()}, **{f"want_{k}": v for k, v in want.items()}}
        raise CheckpointError("checkpoint/foreign-shard", path=path / name, **facts)


def _check_pieces(manifest: Manifest, headers: dict[str, Header], path: Path) -> None:
    used: dict[str, int] = dict.fromkeys(headers, 0)
    for name, tensor in manifest.tensors.items():
        for piece in tensor.pieces:
            _check_piece(name, tensor, piece, headers[piece.file], path)
            used[piece.file] += 1
    for file, num in used.items():
        if num != len(headers[file].spans):
            raise CheckpointError("checkpoint/unlisted", path=path / file, have=len(headers[file].spans), want=num)


def _check_piece(name: str, tensor: TensorEntry, piece: PieceEntry, header: Header, path: Path) -> None:
    span = header.spans.get(piece.key)
    have = "n/a" if span is None else f"{span.dtype} {list(span.shape)}"
    want = f"{tensor.dtype} {list(piece.shape)}"
    if have != want:
        raise CheckpointError(
            "checkpoint/piece-differs", path=path / piece.file, key=piece.key, name=name, have=have, want=want
        )


def _wrong_hash(path: Path, have: str, want: str) -> CheckpointError:
    return CheckpointError("checkpoint/wrong-hash", path=path, have=have[:16], want=want[:16])
