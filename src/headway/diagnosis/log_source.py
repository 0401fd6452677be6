"""The plain bytes of a log: unpacked, and in UTF-8 where a Windows shell has written it."""

from __future__ import annotations

import bz2
import codecs
import io
import lzma
import zlib
from collections.abc import Callable
from typing import BinaryIO, Final, Protocol, cast

_PEEK: Final = 4096
_PIECE: Final = 1 << 18
_MOST_PLAIN: Final = 4 << 20


class _Unpacker(Protocol):
    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int = -1, /) -> bytes: ...


class _Gunzip:
    """What zlib calls otherwise."""

    def __init__(self) -> None:
        self._inner = zlib.decompressobj(wbits=31)

    @property
    def eof(self) -> bool:
        return self._inner.eof

    @property
    def needs_input(self) -> bool:
        return not self._inner.unconsumed_tail

    @property
    def unused_data(self) -> bytes:
        return self._inner.unused_data

    def decompress(self, data: bytes, max_length: int = -1, /) -> bytes:
        return self._inner.decompress(self._inner.unconsumed_tail + data, max_length)


_PACKED: Final[dict[bytes, Callable[[], _Unpacker]]] = {
    b"\x1f\x8b": _Gunzip,
    b"BZh": bz2.BZ2Decompressor,
    b"\xfd7zXZ": lzma.LZMADecompressor,
}


class _Unpacked:
    """A compressed log; one that is cut off or damaged gives what is before that place.

    What is unpacked at once is bounded: 300 KB of zeros, packed, are 300 MB.
    """

    def __init__(self, file: BinaryIO, make: Callable[[], _Unpacker]) -> None:
        self._file, self._make, self._unpacker = file, make, make()
        self._is_over = False

    def read(self, _size: int = -1, /) -> bytes:
        """Return further bytes, as many as one piece holds; none at the end."""
        while not self._is_over:
            try:
                if plain := self._unpack():
                    return plain
            except (OSError, EOFError, zlib.error, lzma.LZMAError):
                self._is_over = True
        return b""

    def _unpack(self) -> bytes:
        piece = b""
        if self._unpacker.eof:  # several packed logs, one behind the other
            piece = self._unpacker.unused_data or self._file.read(_PIECE)
            self._is_over = not piece
            self._unpacker = self._make()
        elif self._unpacker.needs_input:
            piece = self._file.read(_PIECE)
            self._is_over = not piece  # zlib may hold back some bytes: they are asked for with nothing
        return self._unpacker.decompress(piece, _MOST_PLAIN)


def readable(file: BinaryIO) -> BinaryIO:
    """Return the plain bytes of an open log; what its beginning is decides."""
    buffered: BinaryIO = file if hasattr(file, "peek") else io.BufferedReader(cast(io.RawIOBase, file))
    head = cast(io.BufferedReader, buffered).peek(_PEEK)[:_PEEK]
    for magic, make in _PACKED.items():
        if head.startswith(magic):
            return cast(BinaryIO, _Unpacked(buffered, make))
    encoding = _wide_encoding(head)
    if encoding:
        return cast(BinaryIO, codecs.EncodedFile(buffered, "utf-8", encoding, "replace"))
    return buffered


def _wide_encoding(head: bytes) -> str:
    """Return the UTF-16 that a text begins in: by its mark, or because every second byte is zero."""
    if head[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return "utf-16"
    half = len(head) // 2
    zeros_even, zeros_odd = head[0::2].count(0), head[1::2].count(0)
    if half < 16 or max(zeros_even, zeros_odd) < half * 3 // 4 or min(zeros_even, zeros_odd) > half // 20:
        return ""
    return "utf-16-le" if zeros_odd > zeros_even else "utf-16-be"
