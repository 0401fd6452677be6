"""A folder on another disk, or on a mounted share."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from blake3 import blake3

from headway.config import MirrorAddress
from headway.errors import CheckpointError

_CHUNK: Final = 8 << 20


class FolderStore:
    """Files are written under another name, synced, read back, and renamed."""

    def __init__(self, address: MirrorAddress, top: Path) -> None:
        self._root, self._top = Path(address.path), top
        self.address = str(address)

    def sizes(self, folder: str = "") -> dict[str, int]:
        """Return name and bytes of every file below a folder of it."""
        self._refuse_missing()
        found = {}
        try:
            for place, _, names in os.walk(self._root / folder):
                for name in names:
                    file = Path(place, name)
                    if not name.startswith(".part-"):
                        found[file.relative_to(self._root).as_posix()] = file.lstat().st_size
        except OSError as err:
            raise self._failed(err) from err
        return found

    def put(self, source: Path, name: str) -> None:
        """Copy a file there; its name appears only with all bytes, compared with ours."""
        self._refuse_missing()
        final = self._root / name
        part = final.with_name(f".part-{secrets.token_hex(4)}")
        try:
            final.parent.mkdir(parents=True, exist_ok=True)
            try:
                want = _copy(source, part)
                if _hash(part) != want:
                    raise CheckpointError("mirror/differs", address=self.address, name=name)
                part.rename(final)
            finally:
                part.unlink(missing_ok=True)
            _sync(final.parent)
        except OSError as err:
            raise self._failed(err) from err

    def get(self, name: str, target: Path) -> None:
        """Copy a file from there."""
        try:
            _copy(self._root / name, target)
        except OSError as err:
            raise self._failed(err) from err

    def remove(self, names: Sequence[str]) -> None:
        """Delete files in this order; a file that is already gone is not an error."""
        try:
            for name in names:
                (self._root / name).unlink(missing_ok=True)
                with contextlib.suppress(OSError):  # not the last one in it
                    (self._root / name).parent.rmdir()
        except OSError as err:
            raise self._failed(err) from err

    def _refuse_missing(self) -> None:
        if not self._top.is_dir():
            raise CheckpointError("mirror/no-folder", folder=self._top)

    def _failed(self, err: OSError) -> CheckpointError:
        return CheckpointError("mirror/failed", address=self.address, why=err.strerror or str(err))


def _copy(source: Path, target: Path) -> str:
    """Copy with a sync, and return the hash of what was read."""
    found = blake3()
    with open(source, "rb") as read, open(target, "xb") as write:
        while chunk := read.read(_CHUNK):
            found.update(chunk)
            write.write(chunk)
        write.flush()
        os.fsync(write.fileno())
    return found.hexdigest()


def _hash(path: Path) -> str:
    found = blake3()
    with open(path, "rb") as file:
        # What is synced may leave the cache, so that the disk itself is read.
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        while chunk := file.read(_CHUNK):
            found.update(chunk)
    return found.hexdigest()


def _sync(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
