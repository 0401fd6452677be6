"""The one way to read a file of a run: only regular files, bounded, without waiting, without surprise types.

A run directory may come from another machine, another user or a torn disk. A FIFO, a device or a folder where a file
belongs is not a file; what is there in a wrong type counts as absent.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

from headway.errors import UsageError

MOST_RECORD_BYTES: Final = 64 << 20
MOST_LINES_BYTES: Final = 2 << 30
"""Far more than a year of events or steps; a file that pretends to be larger is read as far as this."""
_MOST_WHOLE: Final = 1 << 62
_MOST_WHY: Final = 200
T = TypeVar("T")


def open_regular(path: Path) -> int:
    """Open a regular file for reading; a FIFO never makes us wait.

    Raises:
        OSError: there is none, it may not be read, or it is something other than a file.
    """
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    return fd


def open_beneath(path: Path, flags: int) -> int:
    """Open or make a file of the run for writing: a link or a FIFO planted in its place is refused.

    Raises:
        OSError: there is a link, or something other than a file.
    """
    fd = os.open(path, flags | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o644)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    return fd


def refuse_links(root: Path, path: Path) -> None:
    """Refuse a place inside a run directory that a link leads out of it.

    Raises:
        OSError: a part of the path below the root is a link.
    """
    try:
        parts = path.absolute().relative_to(root.absolute()).parts
    except ValueError:
        return  # the user's own choice, elsewhere
    place = root.absolute()
    for part in parts:
        place /= part
        if place.is_symlink():
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(place))


def refuse_planted(root: Path) -> None:
    """Refuse to write into a run directory that holds a link where its own files and folders are.

    A directory that was received may hold `ranks -> ~/.ssh`: refusing a link at the end of a path is not enough.

    Raises:
        OSError: one of its files or folders is a link; it is named.
    """
    ranks = root / "ranks"
    folders = [root, ranks]
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        for folder in folders:
            with os.scandir(folder) as entries:
                for entry in entries:
                    if entry.is_symlink():
                        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), entry.path)
                    if folder == ranks and entry.is_dir(follow_symlinks=False):
                        folders.append(Path(entry.path))


def write_whole(path: Path, data: bytes, *, is_durable: bool = False) -> None:
    """Replace a file at once; what is planted under the name of the temporary file is removed, not followed.

    Args:
        is_durable: it must survive a power cut, too.
    """
    temp = path.with_name(f".{path.name}.{os.getpid()}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        fd = os.open(temp, flags, 0o666)
    except FileExistsError:  # of a process that was killed, or planted
        temp.unlink()
        fd = os.open(temp, flags, 0o666)
    try:
        with open(fd, "wb") as file:
            file.write(data)
            if is_durable:
                file.flush()
                os.fsync(fd)
        temp.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            temp.unlink()
        raise


def read_part(path: Path, start: int = 0, most_bytes: int = MOST_LINES_BYTES) -> bytes:
    """Return bytes of a file from a place on, or from so many before its end; an absent or unreadable one is empty."""
    try:
        fd = open_regular(path)
    except OSError:
        return b""
    with open(fd, "rb") as file:
        try:
            size = os.fstat(fd).st_size
            file.seek(start if start >= 0 else max(0, size + start))
            # The size first: a file in /proc or one that grows while it is read has no end of its own.
            return file.read(min(most_bytes, max(0, size - file.tell())))
        except OSError:
            return b""


def read_json(path: Path) -> Any:
    """Read a JSON file of the run.

    Raises:
        OSError: it cannot be read, or is something other than a file.
        ValueError: it is torn, too large or nested too deeply.
    """
    with open(open_regular(path), "rb") as file:
        # Asked for as much as there is: the room for what is read is taken before it is known.
        data = file.read(min(MOST_RECORD_BYTES, os.fstat(file.fileno()).st_size) + 1)
    if len(data) > MOST_RECORD_BYTES:
        raise ValueError(f"{path} is larger than {MOST_RECORD_BYTES >> 20} MiB")
    try:
        return json.loads(data)
    except RecursionError as err:
        raise ValueError(f"{path} is nested too deeply") from err


def require_record(path: Path, parse: Callable[[Any], T]) -> T:
    """Read a record that a command cannot do without, and make of it what `parse` makes.

    Raises:
        UsageError: it is missing, cannot be read, or is not what it should be; the file is named.
    """
    try:
        return parse(read_json(path))
    except FileNotFoundError as err:
        raise UsageError("telemetry/record-missing", path=path) from err
    except OSError as err:
        raise UsageError("telemetry/record-unreadable", path=path, why=err.strerror or str(err)) from err
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as err:
        why = f"{type(err).__name__}: {err}".partition("\n")[0][:_MOST_WHY]
        raise UsageError("telemetry/record-damaged", path=path, why=why) from err


def read_record(path: Path) -> dict[str, Any]:
    """Read a record of the run for showing; one that is missing or unreadable counts as empty."""
    try:
        found = read_json(path)
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def whole(value: Any) -> int | None:
    """Return a whole number of sane size, or None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if -_MOST_WHOLE < value < _MOST_WHOLE else None


def words(value: Any) -> str | None:
    """Return a text, or None for anything else."""
    return value if isinstance(value, str) else None


def section(value: Any) -> dict[str, Any]:
    """Return an object, or an empty one for anything else."""
    return value if isinstance(value, dict) else {}
