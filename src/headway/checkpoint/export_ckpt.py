"""Weights as a MindSpore checkpoint, `best_model.ckpt`; written without MindSpore, read by `mindspore.load_checkpoint`.

The file is a row of protobuf messages, one a tensor:
Checkpoint{value=1: Value{tag=1: name, tensor=2: TensorProto{dims=1, tensor_type=2, tensor_content=3}}}.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Container, Iterator, Mapping
from pathlib import Path
from typing import Final

from headway.checkpoint.disk import RealDisk, write_file
from headway.checkpoint.export import Export, Select, export_safetensors, plan_export, refuse_existing
from headway.errors import CheckpointError
from headway.weights.layout import Span
from headway.weights.reading import open_folder, open_inside, read_at, read_header

_TYPES: Final[Mapping[str, str]] = {
    "F64": "Float64", "F32": "Float32", "F16": "Float16", "BF16": "BFloat16",
    "I64": "Int64", "I32": "Int32", "I16": "Int16", "I8": "Int8", "U8": "UInt8", "BOOL": "Bool",
}  # fmt: skip
"""MindSpore's names of the data types."""
_NORM: Final[Mapping[str, str]] = {
    "weight": "gamma", "bias": "beta", "running_mean": "moving_mean", "running_var": "moving_variance",
}  # fmt: skip
_MOST_BYTES: Final = 512 << 20
"""Larger tensors go into several messages of one name, as MindSpore itself does: protobuf ends at 2 GiB."""


def export_ckpt(path: Path, out: Path, *, select: Select = "model") -> Export:
    """Verify a checkpoint and write its weights under the names MindSpore's cells have for them."""
    planned = plan_export(path, out, select=select, form="ckpt")
    refuse_existing(planned.files)
    weights, temp = (out.with_name(f".{out.name}.{os.getpid()}.{kind}") for kind in ("weights", "ckpt"))
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        export_safetensors(path, weights, select=select)
        write_file(RealDisk(), temp, _messages(weights))
        os.replace(temp, out)
    except OSError as err:
        raise CheckpointError("checkpoint/export-failed", path=out, why=err.strerror or str(err)) from err
    finally:
        for file in (weights, temp):
            with contextlib.suppress(OSError):  # a parent that is a file was reported already
                file.unlink()
    return planned


def mindspore_name(name: str, names: Container[str]) -> str:
    """Return MindSpore's name of a tensor: the parts of a norm, known by its running statistics, have others."""
    place, _, leaf = name.rpartition(".")
    return f"{place}.{_NORM[leaf]}" if f"{place}.running_mean" in names and leaf in _NORM else name


def _messages(weights: Path) -> Iterator[memoryview]:
    with open_folder(weights.parent) as folder, open_inside(folder, weights.name, where=weights.parent) as fd:
        header = read_header(fd, where=weights)
        for name in sorted(header.spans):
            span = header.spans[name]
            for start in range(span.start, max(span.end, span.start + 1), _MOST_BYTES):
                length = min(_MOST_BYTES, span.end - start)
                data = read_at(fd, header.data_start + start, length, where=weights)
                yield memoryview(_head(mindspore_name(name, header.spans), span, len(data)))
                yield memoryview(data)


def _head(name: str, span: Span, content: int) -> bytes:
    """Return everything of a message before the tensor's bytes, which come last."""
    kind = _TYPES.get(span.dtype)
    if kind is None:
        raise CheckpointError("checkpoint/export-type", name=name, kind=span.dtype, known=", ".join(_TYPES))
    tensor = b"".join(b"\x08" + _varint(size) for size in span.shape) + _field(2, kind.encode())
    tensor += b"\x1a" + _varint(content)
    value = _field(1, name.encode()) + b"\x12" + _varint(len(tensor) + content) + tensor
    return b"\x0a" + _varint(len(value) + content) + value


def _field(number: int, data: bytes) -> bytes:
    return bytes((number << 3 | 2,)) + _varint(len(data)) + data


def _varint(number: int) -> bytes:
    """Return a number seven bits at a time, the lowest first."""
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)
