"""Reads one pickle of trajectories and writes safetensors, in a process that can do nothing else.

Started by `convert` as a file of its own (`python -I unpickle.py`), the pickle on standard input, the answer on
standard output. Three walls, each enough alone against the ordinary attack:

1. An unpickler that knows eight names. None of them is the real thing: torch's and numpy's constructors are replaced by
   small ones below that take bytes and give arrays, so no code of theirs sees the file; torch is not even imported.
2. Limits of memory, time, processes, open files and written bytes.
3. A filter in the kernel (seccomp) that refuses to open files, make sockets, start programs or signal others. Where the
   kernel has none, the process refuses to begin.

Standard library, numpy and safetensors only, and one file of Headway that is run by its path: `weights/sealed.py`,
which builds the second and the third wall.
"""

from __future__ import annotations

import io
import json
import pickle
import runpy
import struct
import sys
import zipfile
from collections import OrderedDict
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from safetensors.numpy import save

_WALLS = runpy.run_path(str(Path(__file__).parents[2] / "weights" / "sealed.py"))
limit, seal = _WALLS["limit"], _WALLS["seal"]
_MOST_BYTES = 256 << 20
_LEGACY_MAGIC = 0x1950A86A20F9469CFC6C
_TYPES = {"Float": "<f4", "Double": "<f8", "Half": "<f2", "Long": "<i8", "Int": "<i4", "Bool": "?", "Byte": "u1"}


class Refused(Exception):  # noqa: N818 - not an error of this program
    """The file holds something trajectories do not need."""


class _Bytes:
    """A storage: raw bytes and their type."""

    def __init__(self, raw: bytes, dtype: str) -> None:
        self.raw, self.dtype = raw, dtype


class _DType:
    """Stands in for numpy.dtype."""

    def __init__(self, name: str, *_: Any) -> None:
        if name.lstrip("<|=") not in ("f2", "f4", "f8", "i4", "i8", "b1", "u1"):
            raise Refused(f"numbers of type {name[:20]!r}")
        self.name = name

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        if state[1] == ">":
            raise Refused("big-endian numbers")


class _Array:
    """Stands in for numpy.ndarray; its state is a shape and bytes."""

    value: np.ndarray | None = None

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        _, shape, dtype, is_fortran, raw = state
        if not isinstance(dtype, _DType) or not isinstance(raw, bytes) or is_fortran:
            raise Refused("an array that is not plain numbers")
        self.value = np.frombuffer(raw, np.dtype(dtype.name)).reshape(_shape(shape))


def _shape(shape: Any) -> tuple[int, ...]:
    if not isinstance(shape, tuple) or len(shape) > 4 or not all(type(n) is int and 0 <= n < 1 << 20 for n in shape):
        raise Refused(f"a shape of {str(shape)[:40]}")
    return shape


def _tensor(storage: Any, offset: int, shape: Any, stride: Any, *_: Any) -> np.ndarray:
    """Stands in for torch._utils._rebuild_tensor_v2: dense tensors only."""
    if not isinstance(storage, _Bytes) or type(offset) is not int or offset < 0:
        raise Refused("a tensor without plain numbers behind it")
    shape = _shape(shape)
    dense, size = [], 1
    for n in reversed(shape):
        dense.append(size)
        size *= n
    if size > 1 and tuple(stride) != tuple(reversed(dense)):
        raise Refused("a tensor that is a view of another")
    flat = np.frombuffer(storage.raw, np.dtype(storage.dtype))
    if offset + size > len(flat):
        raise Refused("a tensor larger than its numbers")
    return flat[offset : offset + size].reshape(shape)


class _StorageType:
    def __init__(self, dtype: str) -> None:
        self.dtype = dtype


class _Reader(pickle.Unpickler):
    """An unpickler that knows only what trajectories are made of."""

    storages: dict[str, _Bytes]
    archive: zipfile.ZipFile | None = None

    def __init__(self, file: Any) -> None:
        super().__init__(file)
        self.storages = {}

    def find_class(self, module: str, name: str) -> Any:
        """Return our own stand-in of a name, or refuse it."""
        if module == "torch" and name.endswith("Storage") and name[:-7] in _TYPES:
            return _StorageType(_TYPES[name[:-7]])
        known = {
            ("collections", "OrderedDict"): OrderedDict,
            ("torch._utils", "_rebuild_tensor_v2"): _tensor,
            ("torch.storage", "_load_from_bytes"): _storage_from_bytes,
            ("numpy", "dtype"): _DType,
            ("numpy", "ndarray"): _Array,
            ("numpy.core.multiarray", "_reconstruct"): lambda *_: _Array(),
            ("numpy._core.multiarray", "_reconstruct"): lambda *_: _Array(),
        }
        if (module, name) not in known:
            raise Refused(f"it names {module}.{name}")
        return known[module, name]

    def persistent_load(self, pid: Any) -> Any:
        """Return a storage that a torch file keeps beside its pickle."""
        if not isinstance(pid, tuple) or len(pid) < 5 or pid[0] != "storage" or not isinstance(pid[1], _StorageType):
            raise Refused("an unknown reference")
        _, kind, key, _, num = pid[:5]
        if self.archive is not None:
            root = self.archive.namelist()[0].split("/")[0]
            return _Bytes(_member(self.archive, f"{root}/data/{key}"), kind.dtype)
        # The old format brings the bytes after the pickle, so they are filled in later.
        if type(num) is not int or not 0 <= num < _MOST_BYTES:
            raise Refused("a storage without a size")
        return self.storages.setdefault(str(key), _Bytes(b"", kind.dtype))


def _storage_from_bytes(raw: Any) -> _Bytes:
    """Stands in for torch.storage._load_from_bytes: the old torch file format, four pickles and then numbers."""
    if not isinstance(raw, bytes):
        raise Refused("a storage that is not bytes")
    file = io.BytesIO(raw)
    if _Reader(file).load() != _LEGACY_MAGIC:
        raise Refused("a storage in an unknown format")
    _Reader(file).load()
    _Reader(file).load()
    reader = _Reader(file)
    storage = reader.load()
    keys = _Reader(file).load()
    if not isinstance(storage, _Bytes) or not isinstance(keys, list) or len(keys) != 1 or len(reader.storages) != 1:
        raise Refused("a storage in an unknown format")
    (num,) = struct.unpack("<q", file.read(8))
    if not 0 <= num < _MOST_BYTES:
        raise Refused("a storage without a size")
    storage.raw = file.read(num * np.dtype(storage.dtype).itemsize)
    return storage


def _member(archive: zipfile.ZipFile, name: str) -> bytes:
    info = archive.getinfo(name)
    if info.file_size > _MOST_BYTES or info.compress_type != zipfile.ZIP_STORED:
        raise Refused(f"{name[:40]!r} is {info.file_size} bytes or packed")
    return archive.read(info)


def read(raw: bytes) -> Any:
    """Return what a pickle or a torch file holds; tensors as arrays."""
    if raw[:4] != b"PK\x03\x04":
        return _Reader(io.BytesIO(raw)).load()
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        name = next((name for name in archive.namelist() if name.endswith("/data.pkl")), None)
        if name is None:
            raise Refused("an archive without data.pkl")
        reader = _Reader(io.BytesIO(_member(archive, name)))
        reader.archive = archive
        return reader.load()


def flatten(found: Any) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """Return the arrays of every noise level by name, and the metadata as JSON."""
    if not isinstance(found, dict):
        raise Refused("it is not a table of noise levels")
    tensors: dict[str, np.ndarray] = {}
    told: dict[str, str] = {}
    for level, parts in found.items():
        if (
            not isinstance(level, str)
            or not level.startswith("noise_")
            or len(level) > 20
            or not isinstance(parts, dict)
        ):
            raise Refused(f"{str(level)[:20]!r} is not a noise level")
        for name, part in parts.items():
            value = part.value if isinstance(part, _Array) else part
            if isinstance(value, np.ndarray):
                tensors[f"{level}/{str(name)[:40]}"] = np.ascontiguousarray(value, np.float32)
            elif name == "metadata":
                told[level] = json.dumps(value, default=lambda other: str(type(other).__name__))[:10_000]
    return tensors, told


def _leave(code: int, answer: bytes) -> NoReturn:
    sys.stdout.buffer.write(answer)
    sys.stdout.buffer.flush()
    raise SystemExit(code)


def main() -> NoReturn:
    """Answer with safetensors and 0, or with a sentence and 3 (not sealed) or 4 (refused)."""
    try:
        limit()
        seal()
    except (OSError, ValueError) as err:
        _leave(3, str(err).encode())
    try:
        raw = sys.stdin.buffer.read(_MOST_BYTES + 1)
        if len(raw) > _MOST_BYTES:
            raise Refused(f"it has more than {_MOST_BYTES} bytes")
        tensors, told = flatten(read(raw))
        answer = save(tensors, told)
    except Exception as err:  # border: whatever a hostile file brings about is an answer, not a traceback
        _leave(4, f"{type(err).__name__}: {err}"[:300].encode("utf-8", "replace"))
    _leave(0, answer)


if __name__ == "__main__":
    main()
