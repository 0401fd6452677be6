"""The manifest: what a checkpoint holds, file by file and tensor by tensor, in one strict JSON file."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from headway.checkpoint.disk import FileEntry
from headway.checkpoint.names import parse_shard
from headway.errors import CheckpointError
from headway.weights.layout import ITEM_BYTES
from headway.weights.strict import Reader, finite_json, no_collection, parse_json

SCHEMA: Final = "checkpoint/1"
MANIFEST_CAP: Final = 64 << 20
"""Largest manifest read, in bytes: about half a million pieces."""

_KEYS: Final = (
    "schema", "step", "samples", "ledger", "world_size", "strategy", "attempt", "time", "measures", "suspect",
    "best_step", "meta", "files", "tensors",
)  # fmt: skip
_ENCODE: Final = json.JSONEncoder(ensure_ascii=False).encode
_MOST_COMPARISONS: Final = 200_000
"""Pairs of pieces of one tensor compared before it is refused as hostile; rows take none, an 8 x 8 mesh 448."""


@dataclass(frozen=True, slots=True)
class PieceEntry:
    """A box of a global tensor and where its bytes are."""

    file: str
    key: str
    """Name in the file's header."""
    offset: tuple[int, ...]
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TensorEntry:
    """A global tensor; its pieces cover it exactly once."""

    dtype: str
    shape: tuple[int, ...]
    pieces: tuple[PieceEntry, ...]

    def encode(self) -> str:
        """Return it as JSON: text at once, since objects of 100,000 pieces would be made and looked at for nothing."""
        pieces = ", ".join(
            f'{{"file": {_ENCODE(p.file)}, "key": {_ENCODE(p.key)}, "offset": {list(p.offset)}, '
            f'"shape": {list(p.shape)}}}'
            for p in self.pieces
        )
        return f'{{"dtype": {_ENCODE(self.dtype)}, "shape": {list(self.shape)}, "pieces": [{pieces}]}}'


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """What a checkpoint holds."""

    step: int
    samples: int
    """Data position: samples of finished steps, all ranks."""
    ledger: str
    """Hash over the ids of all samples consumed so far, in hex."""
    world_size: int
    """Ranks that wrote it; any number can load it."""
    strategy: str
    attempt: int
    time: float
    """Unix seconds."""
    measures: Mapping[str, float]
    suspect: bool
    """A guard has fired since the checkpoint before; never the best one."""
    best_step: int | None
    """Step with the best validation so far, as the loop knew it."""
    meta: Mapping[str, Any]
    """The loop's own state, free JSON."""
    files: Mapping[str, FileEntry]
    tensors: Mapping[str, TensorEntry]

    @property
    def total_bytes(self) -> int:
        """Bytes of all shards."""
        return sum(entry.bytes for entry in self.files.values())


def encode_manifest(manifest: Manifest) -> bytes:
    """Return the manifest's one file, byte for byte: one line for each of its parts and each tensor."""
    tensors = encode_tensors(manifest.tensors)
    small = {
        field.name: getattr(manifest, field.name) for field in dataclasses.fields(manifest) if field.name != "tensors"
    }
    small["files"] = {name: asdict(entry) for name, entry in manifest.files.items()}
    lines = [f'"schema": {_dumps(SCHEMA)}', *(f"{_dumps(name)}: {_dumps(value)}" for name, value in small.items())]
    return ("{\n" + ",\n".join([*lines, f'"tensors": {tensors}']) + "\n}\n").encode()


def encode_tensors(tensors: Mapping[str, TensorEntry]) -> str:
    """Return the table of tensors as JSON, one line each."""
    return "{\n" + ",\n".join(f"{_ENCODE(name)}: {tensor.encode()}" for name, tensor in tensors.items()) + "\n}"


def _dumps(value: object) -> str:
    return json.dumps(finite_json(value), ensure_ascii=False, allow_nan=False)


@no_collection()
def parse_manifest(data: bytes, *, where: str) -> Manifest:
    """Read a manifest; anything unknown, missing, out of range or not covering its tensors is refused."""
    if len(data) > MANIFEST_CAP:
        raise CheckpointError("checkpoint/manifest-large", path=where, have=len(data), cap=MANIFEST_CAP)
    reader = Reader(where)
    top = reader.mapping(parse_json(data, where=where), "manifest")
    if top.get("schema") != SCHEMA:
        reader.refuse("schema", top.get("schema"), SCHEMA)
    fields = reader.mapping(top, "manifest", _KEYS)
    best = fields["best_step"]
    manifest = Manifest(
        step=reader.number(fields["step"], "step"),
        samples=reader.number(fields["samples"], "samples"),
        ledger=reader.text(fields["ledger"], "ledger"),
        world_size=reader.number(fields["world_size"], "world_size"),
        strategy=reader.text(fields["strategy"], "strategy"),
        attempt=reader.number(fields["attempt"], "attempt"),
        time=reader.real(fields["time"], "time"),
        measures=_parse_measures(reader, fields["measures"]),
        suspect=reader.flag(fields["suspect"], "suspect"),
        best_step=None if best is None else reader.number(best, "best_step"),
        meta=reader.mapping(fields["meta"], "meta"),
        files=parse_files(reader, fields["files"]),
        tensors=parse_tensors(reader, fields["tensors"]),
    )
    check_cover(manifest, where=where)
    return manifest


def parse_files(reader: Reader, value: object) -> dict[str, FileEntry]:
    """Read the table of files; only shard names are known, so no path can hide in one."""
    files = {}
    for name, fields in reader.mapping(value, "files").items():
        if parse_shard(name) is None:
            reader.refuse("files", name, "rank-00000.safetensors")
        entry = reader.mapping(fields, f"files.{name}", ("bytes", "blake3"))
        digest = reader.text(entry["blake3"], f"files.{name}.blake3")
        if len(digest) != 64 or set(digest) - set("0123456789abcdef"):
            reader.refuse(f"files.{name}.blake3", digest, "[0-9a-f]{64}")
        files[name] = FileEntry(reader.number(entry["bytes"], f"files.{name}.bytes"), digest)
    return files


def parse_tensors(reader: Reader, value: object) -> dict[str, TensorEntry]:
    """Read the table of tensors and their pieces."""
    tensors = {}
    for name, fields in reader.mapping(value, "tensors").items():
        place = f"tensors.{name}"
        entry = reader.mapping(fields, place, ("dtype", "shape", "pieces"))
        tensors[name] = TensorEntry(
            dtype=reader.choice(entry["dtype"], f"{place}.dtype", ITEM_BYTES),
            shape=reader.shape(entry["shape"], f"{place}.shape"),
            pieces=tuple(
                _parse_piece(reader, piece, f"{place}.pieces[{index}]")
                for index, piece in enumerate(reader.items(entry["pieces"], f"{place}.pieces"))
            ),
        )
    return tensors


def check_cover(manifest: Manifest, *, where: str) -> None:
    """Prove that every tensor is covered exactly once, by pieces in known files, no two from the same bytes."""
    seen: set[tuple[str, str]] = set()
    for name, tensor in manifest.tensors.items():
        for piece in tensor.pieces:
            if piece.file not in manifest.files:
                raise CheckpointError("checkpoint/piece-file", path=where, name=name, file=piece.file)
            if (piece.file, piece.key) in seen:
                raise CheckpointError("checkpoint/piece-twice", path=where, key=piece.key, file=piece.file)
            seen.add((piece.file, piece.key))
            _check_inside(tensor, piece, name=name, where=where)
        have, want = sum(math.prod(piece.shape) for piece in tensor.pieces), math.prod(tensor.shape)
        if have != want or not tensor.pieces:
            raise CheckpointError("checkpoint/not-covered", path=where, name=name, have=have, want=want)
        _check_apart(tensor, name=name, where=where)


def _parse_measures(reader: Reader, value: object) -> dict[str, float]:
    return {key: reader.real(inner, f"measures.{key}") for key, inner in reader.mapping(value, "measures").items()}


def _parse_piece(reader: Reader, value: object, place: str) -> PieceEntry:
    fields = reader.mapping(value, place, ("file", "key", "offset", "shape"))
    return PieceEntry(
        file=reader.text(fields["file"], f"{place}.file"),
        key=reader.text(fields["key"], f"{place}.key"),
        offset=reader.numbers(fields["offset"], f"{place}.offset"),
        shape=reader.shape(fields["shape"], f"{place}.shape"),
    )


def _check_inside(tensor: TensorEntry, piece: PieceEntry, *, name: str, where: str) -> None:
    dims = len(tensor.shape)
    fits = len(piece.offset) == len(piece.shape) == dims and all(
        at + size <= whole for at, size, whole in zip(piece.offset, piece.shape, tensor.shape, strict=True)
    )
    if not fits:
        raise CheckpointError(
            "checkpoint/piece-outside",
            path=where,
            name=name,
            offset=list(piece.offset),
            have=list(piece.shape),
            want=list(tensor.shape),
        )


def _check_apart(tensor: TensorEntry, *, name: str, where: str) -> None:
    """Compare pieces that meet on the axis with the most cuts."""
    pieces, budget = [piece for piece in tensor.pieces if math.prod(piece.shape)], _MOST_COMPARISONS
    if len(pieces) < 2:
        return
    axis = max(range(len(tensor.shape)), key=lambda dim: len({piece.offset[dim] for piece in pieces}))
    pieces.sort(key=lambda piece: piece.offset[axis])
    open_pieces: list[PieceEntry] = []
    for piece in pieces:
        at = piece.offset[axis]
        open_pieces = [other for other in open_pieces if other.offset[axis] + other.shape[axis] > at]
        budget -= len(open_pieces)
        if budget < 0:
            raise CheckpointError("checkpoint/too-many-pieces", path=where, name=name, have=len(pieces))
        for other in open_pieces:
            if _do_meet(piece, other):
                raise CheckpointError(
                    "checkpoint/pieces-overlap", path=where, name=name, first=other.key, second=piece.key
                )
        open_pieces.append(piece)


def _do_meet(one: PieceEntry, other: PieceEntry) -> bool:
    for a, n, b, m in zip(one.offset, one.shape, other.offset, other.shape, strict=True):
        if a >= b + m or b >= a + n:
            return False
    return True


def overlap(
    offset: Sequence[int], shape: Sequence[int], other_offset: Sequence[int], other_shape: Sequence[int]
) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """Return offset and shape of the box two boxes share, or None when they share nothing."""
    low = tuple(max(a, b) for a, b in zip(offset, other_offset, strict=True))
    high = tuple(min(a + n, b + m) for a, n, b, m in zip(offset, shape, other_offset, other_shape, strict=True))
    size = tuple(b - a for a, b in zip(low, high, strict=True))
    return None if any(length <= 0 for length in size) else (low, size)
