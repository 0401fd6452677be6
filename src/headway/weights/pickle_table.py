"""Reads the pickle inside a torch file and says which tensors it names, in a process that can do nothing else.

Started by `files.py` as a file of its own (`python -I pickle_table.py zip|legacy|object`), the pickle on standard
input. On standard output one JSON object:

    parts   path of a dict of tensors -> name -> [type, storage, first item, shape, is dense]; that of the file is /
    facts   what else is in the file, as far as it is plain: numbers, texts, lists and dicts of them
    keys    the numbers after the pickles in their order, as [storage, type], and `end`, where these begin: of the
            old torch format only

The numbers themselves never pass through here: they are beside the pickle in the file, and whoever asked reads them
from there. The unpickler knows a few names, and none of them is the real thing; names of optimizers, schedulers and
argument parsers become objects that hold nothing. Every other name is refused. The walls around it are those of
`sealed.py`. Standard library only.
"""

from __future__ import annotations

import io
import json
import math
import pickle
import re
import runpy
import struct
import sys
from collections import OrderedDict
from pathlib import Path
from typing import Any, NoReturn

_WALLS = runpy.run_path(str(Path(__file__).with_name("sealed.py")))
_MOST_BYTES = 64 << 20
"""Of the pickle alone: about half a million tensors."""
_MOST_DEPTH, _MOST_ITEMS = 6, 1 << 20
_LEGACY_MAGIC = 0x1950A86A20F9469CFC6C
_TYPES = {
    "Double": "F64", "Float": "F32", "Half": "F16", "BFloat16": "BF16",
    "Long": "I64", "Int": "I32", "Short": "I16", "Char": "I8", "Byte": "U8", "Bool": "BOOL",
}  # fmt: skip
"""Torch's kinds of storage and their names in safetensors."""
_SCALARS = {"f8": "d", "f4": "f", "i8": "q", "i4": "i", "b1": "?"}
_INERT = re.compile(
    r"argparse\.Namespace|collections\.(defaultdict|Counter)|pathlib\.\w+|torch\.(Size|device|optim\..*|nn\..*)"
    r"|torch\.(b?float|u?int|complex|float8_)\w*|torch\.(double|half|long|short|bool)|torch\.serialization\._get_layout"
    r"|(deepspeed|accelerate|omegaconf|transformers)\..*|(builtins|__builtin__)\.(set|frozenset|slice|complex|bytearray|int|dict|list)"
)
"""What trainers put beside the weights; it is not needed here, so it becomes nothing."""


class Refused(Exception):  # noqa: N818 - not an error of this program
    """The file holds something weights do not need."""


class _Kind:
    def __init__(self, dtype: str) -> None:
        self.dtype = dtype


class _Storage:
    def __init__(self, dtype: str, key: str) -> None:
        self.dtype, self.key = dtype, key


class _Tensor:
    """Where a tensor's numbers are."""

    def __init__(self, storage: _Storage, first: int, shape: tuple[int, ...], *, is_dense: bool) -> None:
        self.row = [storage.dtype, storage.key, first, list(shape), is_dense]


class _Nothing:
    """Stands in for an object that is not needed; takes whatever a pickle gives it and keeps none of it."""

    def __init__(self, *_: Any, **__: Any) -> None:
        """Forget everything."""

    def __setstate__(self, _: Any) -> None:
        """Forget everything."""

    def __setitem__(self, _: Any, __: Any) -> None:
        """Forget everything."""

    def append(self, _: Any) -> None:
        """Forget everything."""

    def extend(self, _: Any) -> None:
        """Forget everything."""


class _Encoding(_Nothing):
    """Stands in for tiktoken's Encoding, whose state is plain."""

    state: Any = None

    def __setstate__(self, state: Any) -> None:
        self.state = state


class _DType(_Nothing):
    """Stands in for numpy.dtype."""

    def __init__(self, name: Any = "", *_: Any) -> None:
        self.name = str(name).lstrip("<|=")


def _scalar(dtype: Any, raw: Any = b"") -> Any:
    """Stands in for numpy's constructor of single numbers."""
    code = _SCALARS.get(getattr(dtype, "name", ""))
    if code is None or not isinstance(raw, bytes) or len(raw) != struct.calcsize("<" + code):
        return None
    return struct.unpack("<" + code, raw)[0]


def _encode(text: Any, code: Any = "utf-8") -> bytes:
    """Stands in for _codecs.encode, by which old pickles write bytes."""
    if not isinstance(text, str) or code != "latin1":
        raise Refused("a text in an unknown coding")
    return text.encode("latin1")


def _is_size(value: Any) -> bool:
    return isinstance(value, tuple) and len(value) <= 16 and all(type(n) is int and 0 <= n < 1 << 48 for n in value)


def _rebuild_tensor(storage: Any, first: Any, shape: Any, stride: Any, *_: Any) -> _Tensor:
    """Stands in for torch._utils._rebuild_tensor_v2."""
    if not isinstance(storage, _Storage) or not _is_size((first,)) or not _is_size(shape) or not _is_size(stride):
        raise Refused("a tensor without plain numbers behind it")
    dense, size = [], 1
    for n in reversed(shape):
        dense.append(size)
        size *= n
    # The step along an axis of length 1 is never taken, and torch writes any number there.
    is_dense = all(n == 1 or a == b for n, a, b in zip(shape, stride, reversed(dense), strict=True))
    return _Tensor(storage, first, shape, is_dense=is_dense or not size)


_KNOWN: dict[tuple[str, str], Any] = {
    ("collections", "OrderedDict"): OrderedDict,
    ("torch._utils", "_rebuild_tensor_v2"): _rebuild_tensor,
    ("torch._utils", "_rebuild_parameter"): lambda tensor, *_: tensor,
    ("tiktoken.core", "Encoding"): _Encoding,
    ("numpy", "dtype"): _DType,
    ("numpy.core.multiarray", "scalar"): _scalar,
    ("numpy._core.multiarray", "scalar"): _scalar,
    ("_codecs", "encode"): _encode,
}


class _Reader(pickle.Unpickler):
    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file)
        self.kinds: dict[str, str] = {}

    def find_class(self, module: str, name: str) -> Any:
        """Return our own stand-in of a name, or refuse it."""
        if module == "torch" and name.endswith("Storage") and name[:-7] in _TYPES:
            return _Kind(_TYPES[name[:-7]])
        if (module, name) in _KNOWN:
            return _KNOWN[module, name]
        if _INERT.fullmatch(f"{module}.{name}"):
            return _Nothing
        raise Refused(f"it names {module}.{name}")

    def persistent_load(self, pid: Any) -> Any:
        """Return the name of the numbers that the file keeps beside the pickle."""
        if not isinstance(pid, tuple) or len(pid) < 5 or pid[0] != "storage" or not isinstance(pid[1], _Kind):
            raise Refused("an unknown reference")
        if not isinstance(pid[2], str) or not pid[2].isalnum() or (len(pid) > 5 and pid[5] is not None):
            raise Refused("an unknown storage")
        if self.kinds.setdefault(pid[2], pid[1].dtype) != pid[1].dtype:
            raise Refused("numbers of two types at once")
        return _Storage(pid[1].dtype, pid[2])


def _load(file: io.BytesIO) -> Any:
    return _Reader(file).load()


def read_legacy(raw: bytes) -> dict[str, Any]:
    """Return the table of torch's format from before it was a zip: five pickles, then the numbers."""
    file = io.BytesIO(raw)
    if _load(file) != _LEGACY_MAGIC:
        raise Refused("it is not a torch file")
    _load(file)
    system = _load(file)
    if isinstance(system, dict) and system.get("little_endian") is False:
        raise Refused("its numbers are big-endian")
    reader = _Reader(file)
    table, keys = reader.load(), _load(file)
    if not isinstance(keys, list) or not all(isinstance(key, str) and key in reader.kinds for key in keys):
        raise Refused("it does not say where its numbers are")
    return {**read_table(table), "keys": [[key, reader.kinds[key]] for key in keys], "end": file.tell()}


def read_table(found: Any) -> dict[str, Any]:
    """Return the dicts of tensors of what was unpickled, and its plain facts."""
    parts: dict[str, dict[str, list[Any]]] = {}
    if isinstance(found, _Tensor):
        found = {"tensor": found}
    if not isinstance(found, dict | _Encoding):
        raise Refused("it is not a dict of tensors")
    _collect(found, "", parts, 0)
    if not parts and not isinstance(found, _Encoding):
        odd = next((name for name, one in found.items() if not isinstance(one, _Tensor)), "") if found else ""
        raise Refused(f"{str(odd)[:80]!r} is not a tensor")
    facts = _plain(found.state if isinstance(found, _Encoding) else found, 0)
    return {"parts": parts, "facts": facts if isinstance(facts, dict) else {}}


def _collect(value: Any, path: str, parts: dict[str, dict[str, list[Any]]], depth: int) -> None:
    """Note every dict that holds tensors alone."""
    if not isinstance(value, dict) or depth > _MOST_DEPTH:
        return
    if value and all(isinstance(name, str) and isinstance(one, _Tensor) for name, one in value.items()):
        parts[path or "/"] = {name: one.row for name, one in value.items()}
        return
    for name, one in value.items():
        if isinstance(name, str):
            _collect(one, f"{path}/{name}" if path else name, parts, depth + 1)


def _plain(value: Any, depth: int) -> Any:
    """Return a value as JSON can hold it, None where it cannot."""
    if isinstance(value, str | bool | int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    if depth > _MOST_DEPTH:
        return None
    if isinstance(value, list | tuple) and len(value) <= 1000:
        return [_plain(one, depth + 1) for one in value]
    if not isinstance(value, dict) or len(value) > _MOST_ITEMS:
        return None
    if value and all(isinstance(name, bytes) and type(one) is int for name, one in value.items()):
        return {name.hex(): one for name, one in value.items()}
    named = {
        name: one for name, one in value.items() if isinstance(name, str) and name and not isinstance(one, _Tensor)
    }
    return {name: _plain(one, depth + 1) for name, one in named.items()}


def _leave(code: int, answer: bytes) -> NoReturn:
    sys.stdout.buffer.write(answer)
    sys.stdout.buffer.flush()
    raise SystemExit(code)


def main() -> NoReturn:
    """Answer with JSON and 0, or with a sentence and 3 (no walls) or 4 (refused)."""
    try:
        _WALLS["limit"]()
        _WALLS["seal"]()
    except (OSError, ValueError) as err:
        _leave(3, str(err).encode())
    try:
        is_legacy = sys.argv[1:] == ["legacy"]
        raw = sys.stdin.buffer.read(_MOST_BYTES + 1)
        if len(raw) > _MOST_BYTES and not is_legacy:
            raise Refused(f"its table has more than {_MOST_BYTES} bytes")
        answer = json.dumps(read_legacy(raw) if is_legacy else read_table(_load(io.BytesIO(raw)))).encode()
    except Exception as err:  # border: whatever a hostile file brings about is an answer, not a traceback
        _leave(4, f"{type(err).__name__}: {err}"[:300].encode("utf-8", "replace"))
    _leave(0, answer)


if __name__ == "__main__":
    main()
