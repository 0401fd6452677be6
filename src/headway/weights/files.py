"""Weights in a file that is not a checkpoint: which tensors it holds and where their bytes are. No torch here.

safetensors   FILE.safetensors
torch         FILE.pt, .pth, .bin, .ckpt: what torch.save writes, today's zip or the format before it; the pickle is
              read by `pickle_table.py` in isolation. A trainer's file has its weights in one of several dicts (`PARTS`)
folder        FOLDER/model.safetensors, and ema/model.safetensors where there is an average; or one torch file

Both kinds of file keep each tensor's numbers in one piece, so both come down to the same record: names, and for each
its type, its shape and a span of bytes of the file. Nothing of the numbers is read before somebody wants them.
"""

from __future__ import annotations

import os
import struct
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO, Final, NoReturn

from headway.errors import CheckpointError, UsageError
from headway.weights.layout import ITEM_BYTES, Span, num_bytes
from headway.weights.reading import fill_from, open_folder, open_inside, read_at, read_header
from headway.weights.strict import Reader, parse_json

SUFFIXES: Final = (".safetensors", ".pt", ".pth", ".bin", ".ckpt")
PARTS: Final = ("model_state_dict", "moduleNet_state_dict", "state_dict", "module", "model", "net", "weights")
"""Names under which trainers keep weights beside other things; DeepSpeed's is `module`."""
_IN_FOLDERS: Final = ("pytorch_model.bin", "pytorch_model/mp_rank_00_model_states.pt", "mp_rank_00_model_states.pt")
"""What Transformers, and Accelerate with DeepSpeed, call the weights of a folder."""
_WRAPPERS: Final = ("module.", "_orig_mod.")
"""Prefixes that data parallel and compiled models put before every name."""
_WHOLE: Final = "/"
"""Path of a file that is itself a dict of tensors."""
_MODEL: Final = "model.safetensors"
_READER: Final = Path(__file__).with_name("pickle_table.py")
_WAIT_S: Final = 120.0
_MOST_TABLE: Final = 64 << 20
_LOCAL: Final = struct.Struct("<4s22xHH")
"""A member's own header in a zip: its mark, and the lengths of the name and the rest before the bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """The tensors of one file."""

    path: Path
    spans: Mapping[str, Span]
    """By name; `start` and `end` are places in the file."""
    aliases: Mapping[str, str] = field(default_factory=dict)
    """Other names of tied weights."""
    average: Weights | None = None
    """Their moving average, where the folder has one."""
    part: str = ""
    """Dict of the file that they are in; empty: they are all there is."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """What the file says beside the tensors, as far as it is plain. Any: JSON of a stranger."""

    @property
    def bytes(self) -> int:
        """Bytes of all tensors."""
        return sum(span.end - span.start for span in self.spans.values())


def read_weights(path: Path) -> Weights:
    """Return what a file, or a folder that `headway ckpt export` wrote, holds; the numbers are left where they are."""
    if path.is_dir():
        return _read_folder(path)
    if not path.is_file():
        raise UsageError("checkpoint/import-absent", path=path)
    if path.suffix == ".safetensors":
        return _read_safetensors(path)
    if path.suffix in SUFFIXES:
        return _read_torch(path)
    raise UsageError("checkpoint/import-form", path=path, known=", ".join(SUFFIXES))


@contextmanager
def open_weights(weights: Weights) -> Iterator[Any]:
    """Yield a function `fill(name, buffer)` that reads a tensor's bytes into a buffer of their size."""
    with _open(weights.path) as fd:

        def fill(name: str, into: memoryview) -> None:
            fill_from(fd, weights.spans[name].start, into, where=weights.path)

        yield fill


def _read_folder(path: Path) -> Weights:
    if (path / _MODEL).is_file():
        average = path / "ema" / _MODEL
        return replace(
            _read_safetensors(path / _MODEL), average=_read_safetensors(average) if average.is_file() else None
        )
    for name in _IN_FOLDERS:
        if (path / name).is_file():
            return read_weights(path / name)
    found = sorted(file for file in path.iterdir() if file.is_file() and file.suffix in SUFFIXES)
    if len(found) == 1:
        return read_weights(found[0])
    inside = sorted(place for place in path.glob("checkpoint-*") if (place / _MODEL).is_file())
    if not found and len(inside) == 1:
        return _read_folder(inside[0])
    names = ", ".join(place.name for place in (*found, *inside)[:5]) or "n/a"
    raise UsageError("checkpoint/import-folder", path=path, num=len(found) + len(inside), names=names)


def _read_safetensors(path: Path) -> Weights:
    with _open(path) as fd:
        header = read_header(fd, where=path)
    at = header.data_start
    spans = {name: replace(span, start=span.start + at, end=span.end + at) for name, span in header.spans.items()}
    aliases = {alias: name for alias, name in header.metadata.items() if name in spans and alias not in spans}
    facts = {name: value for name, value in header.metadata.items() if name not in aliases}
    return Weights(path=path, spans=spans, aliases=aliases, facts=facts)


def read_pickle(path: Path) -> Mapping[str, Any]:
    """Return the plain facts of a pickle, such as a tokenizer's: texts, numbers, bytes as hex; nothing of it is run."""
    if not path.is_file():
        raise UsageError("checkpoint/import-absent", path=path)
    if path.stat().st_size > _MOST_TABLE:
        _refuse(path, f"it has more than {_MOST_TABLE} bytes")
    return _ask_table(path, path.read_bytes(), "object").facts


def _read_torch(path: Path) -> Weights:
    """Return the spans of a torch file: its table says which numbers, the file's own order where they are."""
    try:
        with path.open("rb") as file:
            if file.read(4) == b"PK\x03\x04":
                table, places = _read_zip(path, file)
            else:
                table, places = _read_legacy(path, file)
    except zipfile.BadZipFile as err:
        raise CheckpointError("checkpoint/import-torch", path=path, why=str(err)) from err
    except OSError as err:
        raise CheckpointError("checkpoint/unreadable", path=path, why=err.strerror or str(err)) from err
    part = _choose_part(path, table)
    rows = table.parts[part]
    return Weights(
        path=path,
        spans=_unwrap({name: row.span(path, *places[row.key]) for name, row in rows.items()}),
        part="" if part == _WHOLE else part,
        facts=table.facts,
    )


def _choose_part(path: Path, table: _Table) -> str:
    """Return the dict of a file that holds its weights: the file itself, a known name, or the only one there is."""
    for name in (_WHOLE, *PARTS):
        if name in table.parts:
            return name
    found = [name for name in table.parts if "optim" not in name.lower()]
    known = [name for name in found if name.rpartition("/")[2] in PARTS]
    if len(known or found) != 1:
        _refuse(path, f"weights are in one of these dicts, and none has a known name: {', '.join(sorted(found)[:8])}")
    return (known or found)[0]


def _unwrap(spans: dict[str, Span]) -> dict[str, Span]:
    """Take off what wrapping a model put before every name, in whatever order."""
    while prefix := next((one for one in _WRAPPERS if spans and all(name.startswith(one) for name in spans)), ""):
        spans = {name.removeprefix(prefix): span for name, span in spans.items()}
    return spans


def _read_zip(path: Path, file: BinaryIO) -> tuple[_Table, dict[str, tuple[int, int]]]:
    with zipfile.ZipFile(file) as archive:
        members = {info.filename: info for info in archive.infolist()}
        info = next((info for name, info in members.items() if name.endswith("/data.pkl")), None)
        if info is None or info.file_size > _MOST_TABLE or info.compress_type != zipfile.ZIP_STORED:
            _refuse(path, "it has no table of tensors")
        root = info.filename.removesuffix("data.pkl")
        if (order := members.get(f"{root}byteorder")) and archive.read(order) != b"little":
            _refuse(path, "its numbers are big-endian")
        table = _ask_table(path, archive.read(info), "zip")
        wanted = {row.key for row in table.parts[_choose_part(path, table)].values()}
        return table, {key: _place(path, file, members.get(f"{root}data/{key}")) for key in wanted}


def _read_legacy(path: Path, file: BinaryIO) -> tuple[_Table, dict[str, tuple[int, int]]]:
    """Return the table and places of the format before the zip: storages follow the pickles, each after its length."""
    file.seek(0)
    table = _ask_table(path, file.read(_MOST_TABLE), "legacy")
    places: dict[str, tuple[int, int]] = {}
    at, length = table.end, os.fstat(file.fileno()).st_size
    for key, dtype in table.keys:
        (num,) = struct.unpack("<q", read_at(file.fileno(), at, 8, where=path))
        size = num * num_bytes(dtype, ())
        if num < 0 or at + 8 + size > length:
            _refuse(path, "its numbers are missing")
        places[key] = at + 8, size
        at += 8 + size
    return table, places


@dataclass(frozen=True, slots=True, kw_only=True)
class _Table:
    """What the isolated reader says of a file."""

    parts: Mapping[str, Mapping[str, _Row]]
    facts: Mapping[str, Any]  # Any: JSON of a stranger
    keys: tuple[tuple[str, str], ...] = ()
    end: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    """What the pickle says about a tensor."""

    dtype: str
    key: str
    """Storage its numbers are in."""
    first: int
    """Its first item there."""
    shape: tuple[int, ...]
    is_dense: bool

    def span(self, path: Path, start: int, length: int) -> Span:
        """Return its place in the file, given that of its storage."""
        if not self.is_dense:
            _refuse(path, "a tensor that is a view of another")
        size = num_bytes(self.dtype, self.shape)
        at = self.first * num_bytes(self.dtype, ())
        if at + size > length:
            _refuse(path, f"a tensor of {size} bytes is outside of its numbers ({length} bytes)")
        return Span(self.dtype, self.shape, start + at, start + at + size)


def _ask_table(path: Path, pickled: bytes, form: str) -> _Table:
    """Let the isolated reader say what a pickle holds, and believe nothing of it."""
    line = [sys.executable, "-I", "-B", str(_READER), form]
    try:
        child = subprocess.run(
            line, input=pickled, capture_output=True, timeout=_WAIT_S, check=False, cwd="/", env={"LANG": "C.UTF-8"}
        )
    except subprocess.TimeoutExpired:
        _refuse(path, f"its table was not read within {_WAIT_S:g} s")
    if child.returncode != 0:
        told = child.stdout.decode("utf-8", "replace")[:300] or f"the reader ended with {child.returncode}"
        _refuse(path, told)
    reader = Reader(str(path))
    said = reader.mapping(parse_json(child.stdout, where=str(path)), "table")
    return _Table(
        parts={
            part: {name: _read_row(reader, name, row) for name, row in reader.mapping(rows, part).items()}
            for part, rows in reader.mapping(said["parts"], "parts").items()
        },
        facts=reader.mapping(said["facts"], "facts"),
        keys=tuple(_read_key(reader, key) for key in reader.items(said.get("keys", []), "keys")),
        end=reader.number(said.get("end", 0), "end"),
    )


def _read_key(reader: Reader, key: object) -> tuple[str, str]:
    name, dtype = reader.items(key, "keys")
    return reader.text(name, "keys"), reader.choice(dtype, "keys", ITEM_BYTES)


def _read_row(reader: Reader, name: str, row: object) -> _Row:
    dtype, key, first, shape, is_dense = reader.items(row, name)
    return _Row(
        dtype=reader.choice(dtype, name, ITEM_BYTES),
        key=reader.text(key, name),
        first=reader.number(first, name),
        shape=reader.shape(shape, name),
        is_dense=reader.flag(is_dense, name),
    )


def _place(path: Path, file: BinaryIO, info: zipfile.ZipInfo | None) -> tuple[int, int]:
    """Return where a member's bytes begin in the archive, and how many there are."""
    if info is None or info.compress_type != zipfile.ZIP_STORED or info.compress_size != info.file_size:
        _refuse(path, "numbers are missing or packed")
    mark, name, extra = _LOCAL.unpack(read_at(file.fileno(), info.header_offset, _LOCAL.size, where=path))
    start = info.header_offset + _LOCAL.size + name + extra
    if mark != b"PK\x03\x04" or start + info.file_size > os.fstat(file.fileno()).st_size:
        _refuse(path, "its directory does not fit its contents")
    return start, info.file_size


@contextmanager
def _open(path: Path) -> Iterator[int]:
    place = path.resolve()  # a link that the user has named is theirs to follow
    with open_folder(place.parent) as folder, open_inside(folder, place.name, where=place.parent) as fd:
        yield fd


def _refuse(path: Path, why: str) -> NoReturn:
    raise CheckpointError("checkpoint/import-torch", path=path, why=why)
