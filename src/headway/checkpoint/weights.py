"""Weights in a file that is not a checkpoint: which tensors it holds and where their bytes are. No torch here.

safetensors   FILE.safetensors
torch         FILE.pt, .pth, .bin: the zip that torch.save writes; its pickle is read by `pickle_table.py` in isolation
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

from headway.checkpoint.layout import ITEM_BYTES, Span, num_bytes
from headway.checkpoint.reading import fill_from, open_folder, open_inside, read_at, read_header
from headway.checkpoint.strict import Reader, parse_json
from headway.errors import CheckpointError, UsageError

SUFFIXES: Final = (".safetensors", ".pt", ".pth", ".bin")
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
    return Weights(path=path, spans=spans, aliases=aliases)


def _read_torch(path: Path) -> Weights:
    """Return the spans of a torch file: its table says which numbers, the archive's directory where they are."""
    try:
        with path.open("rb") as file, zipfile.ZipFile(file) as archive:
            members = {info.filename: info for info in archive.infolist()}
            table = next((info for name, info in members.items() if name.endswith("/data.pkl")), None)
            if table is None or table.file_size > _MOST_TABLE or table.compress_type != zipfile.ZIP_STORED:
                _refuse(path, "it has no table of tensors")
            root = table.filename.removesuffix("data.pkl")
            if (order := members.get(f"{root}byteorder")) and archive.read(order) != b"little":
                _refuse(path, "its numbers are big-endian")
            rows = _ask_table(path, archive.read(table))
            places: dict[str, tuple[int, int]] = {}
            for row in rows.values():
                if row.key not in places:
                    places[row.key] = _place(path, file, members.get(f"{root}data/{row.key}"))
    except zipfile.BadZipFile as err:
        raise CheckpointError("checkpoint/import-torch", path=path, why=str(err)) from err
    except OSError as err:
        raise CheckpointError("checkpoint/unreadable", path=path, why=err.strerror or str(err)) from err
    return Weights(path=path, spans={name: row.span(path, *places[row.key]) for name, row in rows.items()})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    """What the pickle says about a tensor."""

    dtype: str
    key: str
    """Storage its numbers are in."""
    first: int
    """Its first item there."""
    shape: tuple[int, ...]

    def span(self, path: Path, start: int, length: int) -> Span:
        """Return its place in the file, given that of its storage."""
        size = num_bytes(self.dtype, self.shape)
        at = self.first * num_bytes(self.dtype, ())
        if at + size > length:
            _refuse(path, f"a tensor of {size} bytes is outside of its numbers ({length} bytes)")
        return Span(self.dtype, self.shape, start + at, start + at + size)


def _ask_table(path: Path, pickled: bytes) -> dict[str, _Row]:
    """Let the isolated reader say what a pickle holds, and believe nothing of it."""
    line = [sys.executable, "-I", "-B", str(_READER)]
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
    rows = {}
    for name, row in reader.mapping(parse_json(child.stdout, where=str(path)), "table").items():
        dtype, key, first, shape = reader.items(row, name)
        rows[name] = _Row(
            dtype=reader.choice(dtype, name, ITEM_BYTES),
            key=reader.text(key, name),
            first=reader.number(first, name),
            shape=reader.shape(shape, name),
        )
    return rows


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
