"""Reads the pickle inside a torch file and says which tensors it names, in a process that can do nothing else.

Started by `weights.py` as a file of its own (`python -I pickle_table.py`): `data.pkl` on standard input, on standard
output one JSON object, name to [type, storage, first item, shape]. The numbers themselves never pass through here: they
are beside the pickle in the archive, and whoever asked reads them from there. The unpickler knows a few names, and none
of them is the real thing; the walls around it are those of `sealed.py`. Standard library only.
"""

from __future__ import annotations

import io
import json
import pickle
import runpy
import sys
from collections import OrderedDict
from pathlib import Path
from typing import Any, NoReturn

_WALLS = runpy.run_path(str(Path(__file__).with_name("sealed.py")))
_MOST_BYTES = 64 << 20
"""Of the pickle alone: about half a million tensors."""
_TYPES = {
    "Double": "F64", "Float": "F32", "Half": "F16", "BFloat16": "BF16",
    "Long": "I64", "Int": "I32", "Short": "I16", "Char": "I8", "Byte": "U8", "Bool": "BOOL",
}  # fmt: skip
"""Torch's kinds of storage and their names in safetensors."""


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

    def __init__(self, storage: _Storage, first: int, shape: tuple[int, ...]) -> None:
        self.row = [storage.dtype, storage.key, first, list(shape)]


def _is_size(value: Any) -> bool:
    return isinstance(value, tuple) and len(value) <= 16 and all(type(n) is int and 0 <= n < 1 << 48 for n in value)


def _rebuild_tensor(storage: Any, first: Any, shape: Any, stride: Any, *_: Any) -> _Tensor:
    """Stands in for torch._utils._rebuild_tensor_v2: dense tensors only."""
    if not isinstance(storage, _Storage) or not _is_size((first,)) or not _is_size(shape) or not _is_size(stride):
        raise Refused("a tensor without plain numbers behind it")
    dense, size = [], 1
    for n in reversed(shape):
        dense.append(size)
        size *= n
    # The step along an axis of length 1 is never taken, and torch writes any number there.
    is_dense = all(n == 1 or a == b for n, a, b in zip(shape, stride, reversed(dense), strict=True))
    if size and not is_dense:
        raise Refused("a tensor that is a view of another")
    return _Tensor(storage, first, shape)


class _Reader(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        """Return our own stand-in of a name, or refuse it."""
        if module == "torch" and name.endswith("Storage") and name[:-7] in _TYPES:
            return _Kind(_TYPES[name[:-7]])
        known = {
            ("collections", "OrderedDict"): OrderedDict,
            ("torch._utils", "_rebuild_tensor_v2"): _rebuild_tensor,
            ("torch._utils", "_rebuild_parameter"): lambda tensor, *_: tensor,
        }
        if (module, name) not in known:
            raise Refused(f"it names {module}.{name}")
        return known[module, name]

    def persistent_load(self, pid: Any) -> Any:
        """Return the name of the numbers that the archive keeps beside the pickle."""
        if not isinstance(pid, tuple) or len(pid) < 5 or pid[0] != "storage" or not isinstance(pid[1], _Kind):
            raise Refused("an unknown reference")
        if not isinstance(pid[2], str) or not pid[2].isalnum():
            raise Refused("an unknown storage")
        return _Storage(pid[1].dtype, pid[2])


def read_table(raw: bytes) -> dict[str, list[Any]]:
    """Return the rows of a pickled dict of tensors."""
    found = _Reader(io.BytesIO(raw)).load()
    if not isinstance(found, dict) or not found:
        raise Refused("it is not a dict of tensors")
    for name, value in found.items():
        if not isinstance(name, str) or not isinstance(value, _Tensor):
            raise Refused(f"{str(name)[:80]!r} is not a tensor")
    return {name: value.row for name, value in found.items()}


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
        raw = sys.stdin.buffer.read(_MOST_BYTES + 1)
        if len(raw) > _MOST_BYTES:
            raise Refused(f"its table has more than {_MOST_BYTES} bytes")
        answer = json.dumps(read_table(raw)).encode()
    except Exception as err:  # border: whatever a hostile file brings about is an answer, not a traceback
        _leave(4, f"{type(err).__name__}: {err}"[:300].encode("utf-8", "replace"))
    _leave(0, answer)


if __name__ == "__main__":
    main()
