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


class _Unpacker(Protocol):
    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, /) -> bytes: ...


def _gunzip() -> _Unpacker:
    return zlib.decompressobj(wbits=31)


_PACKED: Final[dict[bytes, Callable[[], _Unpacker]]] = {
    b"\x1f\x8b": _gunzip,
    b"BZh": bz2.BZ2Decompressor,
    b"\xfd7zXZ": lzma.LZMADecompressor,
}


class _Unpacked:
    """A compressed log; one that is cut off or damaged gives what is before that place."""

    def __init__(self, file: BinaryIO, make: Callable[[], _Unpacker]) -> None:
        self._file, self._make, self._unpacker = file, make, make()

    def read(self, _size: int = -1, /) -> bytes:
        """Return further bytes, as many as one piece holds; none at the end."""
        while piece := self._file.read(_PIECE):
            try:
                plain = self._unpack(piece)
            except (OSError, EOFError, zlib.error, lzma.LZMAError):
                return b""
            if plain:
                return plain
        return b""

    def _unpack(self, piece: bytes) -> bytes:
        plain = b""
        while piece:
            if self._unpacker.eof:  # several packed logs, one behind the other
                self._unpacker = self._make()
            plain += self._unpacker.decompress(piece)
            piece = self._unpacker.unused_data
        return plain


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
