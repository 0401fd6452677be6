"""The safetensors layout: 8 bytes of header length, a JSON header padded with spaces, raw data without holes.

Written here, not by the library, because a save streams from a host buffer that already has the file's layout, and
because a reader must be sure of every offset before it trusts one. The library reads what this writes.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from headway.errors import CheckpointError
from headway.weights.strict import Reader, no_collection, parse_json

ITEM_BYTES: Final[Mapping[str, int]] = {
    "F64": 8, "I64": 8, "U64": 8, "C64": 8,
    "F32": 4, "I32": 4, "U32": 4,
    "F16": 2, "BF16": 2, "I16": 2, "U16": 2,
    "I8": 1, "U8": 1, "BOOL": 1, "F8_E4M3": 1, "F8_E5M2": 1, "F8_E4M3FNUZ": 1, "F8_E5M2FNUZ": 1,
}  # fmt: skip
"""Data types of the format and their sizes."""

HEADER_CAP: Final = 100_000_000
"""Largest header read, in bytes; the same limit as the library's."""

_LENGTH: Final = struct.Struct("<Q")
_ALIGN: Final = 4096
"""Data begin at a multiple of this, so that they can be written to the disk directly; see stream.py."""


@dataclass(frozen=True, slots=True)
class Span:
    """One tensor of a safetensors file: its type, its shape and its bytes in the data section."""

    dtype: str
    shape: tuple[int, ...]
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Header:
    """Everything before the data of a safetensors file."""

    spans: Mapping[str, Span]
    metadata: Mapping[str, str]
    data_start: int
    """Where the data section begins in the file."""


def num_bytes(dtype: str, shape: Sequence[int]) -> int:
    """Return the size of a tensor."""
    return ITEM_BYTES[dtype] * math.prod(shape)


def lay_out(tensors: Mapping[str, tuple[str, tuple[int, ...]]]) -> dict[str, Span]:
    """Give every tensor its place; wide types first, so that each starts at a multiple of its own item."""
    order = sorted(tensors, key=lambda key: (-ITEM_BYTES[tensors[key][0]], key))
    spans, at = {}, 0
    for key in order:
        dtype, shape = tensors[key]
        end = at + num_bytes(dtype, shape)
        spans[key] = Span(dtype, shape, at, end)
        at = end
    return spans


def encode_header(spans: Mapping[str, Span], metadata: Mapping[str, str]) -> bytes:
    """Return everything before the data."""
    dumps = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode
    lines = [f'"__metadata__":{dumps(dict(metadata))}'] if metadata else []
    # Text at once, not objects first: of 10,000 tensors the collector of garbage would look at each of those.
    lines += [
        f'{dumps(key)}:{{"dtype":"{span.dtype}","shape":[{",".join(map(str, span.shape))}],'
        f'"data_offsets":[{span.start},{span.end}]}}'
        for key, span in spans.items()
    ]
    text = ("{" + ",".join(lines) + "}").encode()
    text += b" " * (-(_LENGTH.size + len(text)) % _ALIGN)
    return _LENGTH.pack(len(text)) + text


def header_bytes(first: bytes, *, where: str, file_bytes: int) -> int:
    """Return how many bytes come before the data, from the first eight."""
    if len(first) < _LENGTH.size:
        raise CheckpointError("checkpoint/header-short", path=where, have=len(first), want=_LENGTH.size)
    (length,) = _LENGTH.unpack(first[: _LENGTH.size])
    cap = min(HEADER_CAP, file_bytes - _LENGTH.size)
    if length > cap:
        raise CheckpointError("checkpoint/header-large", path=where, have=length, cap=cap)
    return _LENGTH.size + int(length)


@no_collection()
def parse_header(data: bytes, *, where: str, file_bytes: int) -> Header:
    """Read a header and prove that its tensors fill the data section exactly, without a gap or an overlap."""
    reader = Reader(where)
    fields = reader.mapping(parse_json(data[_LENGTH.size :], where=where), "header")
    given = fields.pop("__metadata__", {})
    metadata = {
        key: reader.text(value, f"__metadata__.{key}") for key, value in reader.mapping(given, "__metadata__").items()
    }
    spans = {key: _parse_span(reader, key, value) for key, value in fields.items()}
    at = 0
    for key, span in sorted(spans.items(), key=lambda item: (item[1].start, item[1].end)):
        if span.start != at:
            raise CheckpointError("checkpoint/header-offsets", path=where, name=key, have=span.start, want=at)
        at = span.end
    if len(data) + at != file_bytes:
        raise CheckpointError("checkpoint/wrong-size", path=where, have=file_bytes, want=len(data) + at)
    return Header(spans, metadata, len(data))


def _parse_span(reader: Reader, key: str, value: object) -> Span:
    fields = reader.mapping(value, key, keys=("dtype", "shape", "data_offsets"))
    dtype = reader.choice(fields["dtype"], f"{key}.dtype", ITEM_BYTES)
    shape = reader.shape(fields["shape"], f"{key}.shape")
    # Two places in a file, not sizes to be multiplied: the end of one tensor times the start of another means nothing.
    offsets = [reader.number(at, f"{key}.data_offsets") for at in reader.items(fields["data_offsets"], key)]
    want = num_bytes(dtype, shape)
    if len(offsets) != 2 or offsets[1] - offsets[0] != want:
        reader.refuse(f"{key}.data_offsets", offsets, f"[n, n+{want}]")
    return Span(dtype, shape, offsets[0], offsets[1])
