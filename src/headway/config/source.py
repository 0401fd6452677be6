"""From a path to text: only regular, small, UTF-8 files get through."""

from __future__ import annotations

import codecs
import difflib
import errno
import itertools
import os
import re
import stat
from pathlib import Path
from typing import Final, NoReturn

from headway.config.files import read_to_end
from headway.config.problems import Form, Place, Problems
from headway.config.tree import MAX_BYTES, Lines
from headway.units import count

FORMS: Final[dict[str, Form]] = {
    ".yaml": "yaml",
    ".yml": "yaml",
    ".json": "json",
    ".jsonc": "json",
    ".toml": "toml",
    ".py": "py",
}
"""File endings and how such a file is read."""
_FOREIGN: Final = (
    (codecs.BOM_UTF32_LE, "UTF-32"),
    (codecs.BOM_UTF32_BE, "UTF-32"),
    (codecs.BOM_UTF16_LE, "UTF-16"),
    (codecs.BOM_UTF16_BE, "UTF-16"),
)
_UNPRINTABLE: Final = re.compile("[\x00-\x08\x0b-\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ufeff\ufffe\uffff]")


def read_text(path: Path, problems: Problems) -> str:
    """Return the text of a config file without its byte order mark, or stop with what is wrong with the file."""
    place = Place(0, str(path))
    try:
        content = _read_bytes(path, place, problems)
    except FileNotFoundError:
        _stop_missing(path, place, problems)
    except OSError as error:
        problems.stop(place, "config/unreadable", path=place.source, why=error.strerror or type(error).__name__)
    except ValueError:  # a NUL inside the path
        problems.stop(place, "config/unreadable", path=place.source, why=os.strerror(22))
    for mark, name in _FOREIGN:
        if content.startswith(mark):
            problems.stop(place, "config/encoding", encoding=name, path=path)
    return _decode(content.removeprefix(codecs.BOM_UTF8), place, problems)


def _read_bytes(path: Path, place: Place, problems: Problems) -> bytes:
    # Looked at before it is opened, because opening a device can do something; looked at again once open, because
    # the name may have changed hands; opened without blocking, because a FIFO may be there by then.
    _check_kind(os.stat(path), path, place, problems)
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    with os.fdopen(handle, "rb", buffering=0) as file:
        _check_kind(os.fstat(handle), path, place, problems)
        content = read_to_end(file, MAX_BYTES + 1)
    if content is None:  # `/proc/kmsg` has no end
        problems.stop(place, "config/unreadable", path=place.source, why=os.strerror(errno.EINVAL))
    if len(content) > MAX_BYTES:
        problems.stop(place, "config/too-large", have=f"> {count(MAX_BYTES)} B", limit=f"{count(MAX_BYTES)} B")
    return content


def _check_kind(status: os.stat_result, path: Path, place: Place, problems: Problems) -> None:
    if stat.S_ISDIR(status.st_mode):
        inside = next((path / name for name in ("config.yaml", "config.yml") if (path / name).is_file()), None)
        if inside:
            problems.stop(place, "config/is-run-directory", inside=inside)
        problems.stop(place, "config/is-directory")
    if not stat.S_ISREG(status.st_mode):
        problems.stop(place, "config/not-a-file")
    if status.st_size > MAX_BYTES:
        problems.stop(place, "config/too-large", have=f"{count(status.st_size)} B", limit=f"{count(MAX_BYTES)} B")


def _stop_missing(path: Path, place: Place, problems: Problems) -> NoReturn:
    try:
        with os.scandir(path.parent) as entries:
            names = [entry.name for entry in itertools.islice(entries, 2000) if Path(entry.name).suffix in FORMS]
    except OSError:
        problems.stop(place, "config/no-folder", folder=path.parent)
    nearest = difflib.get_close_matches(path.name[:80], names, n=1, cutoff=0.5)
    if nearest:
        problems.stop(place, "config/no-file-but", nearest=path.parent / nearest[0])
    problems.stop(place, "config/no-file", path=path)


def _decode(content: bytes, place: Place, problems: Problems) -> str:
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        before = content[: error.start].decode("utf-8")
        line, column = Lines(before).spot(len(before))
        byte = f"0x{content[error.start]:02x}"
        problems.stop(Place(0, place.source, line, column), "config/not-utf8", byte=byte, path=place.source)
    found = _UNPRINTABLE.search(text)
    if found:
        line, column = Lines(text).spot(found.start())
        code = "config/nul-byte" if found.group() == "\x00" else "config/unprintable"
        problems.stop(Place(0, place.source, line, column), code, letter=f"U+{ord(found.group()):04X}")
    return text
