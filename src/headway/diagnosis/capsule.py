"""The black box: one file with the last minutes of a run, without its secrets, that shows the same screens elsewhere.

In: a run directory. Out: a zip of its records and the ends of its streams. In: such a zip, from anybody. Out: a run
directory again; whatever is not one of the few files that we write is refused, whole.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import stat
import tempfile
import time
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from headway import __version__
from headway.errors import CheckError
from headway.redact import redact, redact_lines, redact_words
from headway.secret import name_of_secret
from headway.telemetry import RunDir, read_log_tail, read_part, read_record, read_tail
from headway.telemetry.lines import decode_lines, encode_line

NAME: Final = "capsule.zip"
_SCHEMA: Final = "capsule/1"
_TAILS: Final = {"events.jsonl": 4 << 20, "devices.jsonl": 1 << 20}
_LOG_BYTES: Final = 2 << 20
_METRICS_BYTES: Final = 128 << 10
_MOST_RANKS: Final = 256
_BEAT_BYTES: Final = 80
"""Of a heartbeat's page, what every rank writes; a hook's own part behind it may hold texts of the user's."""
_RECORDS: Final = ("plan.json", "job.json", "machine.json", "command.json", "origins.json")
_TEXTS: Final = ("config.yaml",)
_ALLOWED: Final = re.compile(
    r"capsule\.json|run/(?:events\.jsonl|devices\.jsonl|log|config\.yaml|"
    r"(?:plan|job|machine|command|origins)\.json|ranks/[0-9]{1,6}/(?:metrics\.jsonl|heartbeat))"
)
_MOST_FILE_BYTES: Final = 64 << 20
_MOST_MEMBERS: Final = 2 * _MOST_RANKS + 32
_MOST_MEMBER_BYTES: Final = 16 << 20
_MOST_BYTES: Final = 192 << 20
_HIDDEN: Final = "…"


def write_capsule(run: RunDir, file: Path) -> Path:
    """Write a run's black box; whole or not at all.

    Raises:
        OSError: it cannot be written.
    """
    temp = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        # Private: what nobody meant to share may be in a log, however well secrets are hidden.
        fd = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        with open(fd, "wb") as raw:
            with zipfile.ZipFile(raw, "w", zipfile.ZIP_DEFLATED) as box:
                about = {"schema": _SCHEMA, "run": redact(run.name), "made": time.time(), "headway": __version__}
                box.writestr("capsule.json", json.dumps(about))
                for name, data in _members(run):
                    box.writestr("/".join(("run", name)), data)
            raw.flush()
            os.fsync(raw.fileno())
        temp.replace(file)
    finally:
        temp.unlink(missing_ok=True)
    return file


def _members(run: RunDir) -> Iterator[tuple[str, bytes]]:
    for name in _RECORDS:
        if record := read_record(run.root / name):
            yield name, json.dumps(without_secrets(record), ensure_ascii=False).encode("utf-8", "replace")
    for name in _TEXTS:
        if data := read_part(run.root / name, 0, _MOST_MEMBER_BYTES):
            yield name, _hide_text(data)
    for name, most in _TAILS.items():
        if data := read_tail(run.root / name, most):
            yield name, _hide_lines(data)
    # Not what a rank printed byte for byte: from the merged log its supervisor has taken the secrets that it knew.
    yield "log", _hide_text(read_log_tail(run.log, _LOG_BYTES))
    for rank in run.ranks()[:_MOST_RANKS]:
        yield f"ranks/{rank}/metrics.jsonl", _hide_lines(read_tail(run.metrics(rank), _METRICS_BYTES))
        if beat := read_part(run.heartbeat(rank), 0, _BEAT_BYTES):
            yield f"ranks/{rank}/heartbeat", beat


def without_secrets(value: Any, key: str = "") -> Any:
    """Return plain JSON as it may be given away. Any: plain JSON."""
    if isinstance(value, dict):
        return {redact(str(name)): without_secrets(one, str(name)) for name, one in value.items()}
    if key and value not in (None, "", True, False) and name_of_secret(key.rpartition(".")[2]):
        return _HIDDEN
    if isinstance(value, list):
        if value and all(isinstance(one, str) for one in value):
            return redact_words(value)
        return [without_secrets(one, key) for one in value]
    return "\n".join(redact_lines(value.split("\n"))) if isinstance(value, str) else value


def _hide_lines(data: bytes) -> bytes:
    return b"".join(encode_line(without_secrets(record)) for record in decode_lines(data))


def _hide_text(data: bytes) -> bytes:
    text = data.decode("utf-8", "replace")
    return "\n".join(redact_lines(text.split("\n"))).encode("utf-8", "replace")


def is_capsule(path: Path) -> bool:
    """Say whether a file claims to be a black box: any other zip is somebody's packed log."""
    if path.suffix.lower() != ".zip" or not path.is_file() or path.stat().st_size > _MOST_FILE_BYTES:
        return False
    try:
        with zipfile.ZipFile(path) as box:
            return "capsule.json" in box.namelist()
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
        return False


@contextlib.contextmanager
def open_capsule(file: Path) -> Iterator[RunDir]:
    """Give a black box as a run directory that is gone afterwards.

    Raises:
        CheckError: it is not one of ours, or not whole; nothing of it was taken.
    """
    with tempfile.TemporaryDirectory(prefix="headway-capsule-") as place:
        yield unpack_capsule(file, Path(place))


def unpack_capsule(file: Path, into: Path) -> RunDir:
    """Make a run directory of a black box inside a folder.

    Raises:
        CheckError: it is not one of ours, or not whole; nothing of it was taken.
        OSError: the folder cannot be written, or holds the run already.
    """
    members = _read_members(file)
    about = _parse(members.pop("capsule.json", b""), file)
    if about.get("schema") != _SCHEMA:
        raise _refused(file, "capsule.json")
    # A name from the file becomes a folder of ours only when it cannot be anything but a name.
    given = str(about.get("run"))
    name = given if re.fullmatch(r"[A-Za-z0-9][\w.+-]{0,120}", given, re.ASCII) else "capsule"
    for path, data in members.items():
        if path.endswith(".json"):
            _parse(data, file)
    root = into / name
    root.mkdir(0o700, parents=True)
    for path, data in members.items():
        target = root / path.removeprefix("run/")
        target.parent.mkdir(0o700, parents=True, exist_ok=True)
        with open(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600), "wb") as out:
            out.write(data)
    return RunDir(root)


def _read_members(file: Path) -> dict[str, bytes]:
    """Return every file of a zip by name; one that is anything else than we write makes us refuse it all."""
    found: dict[str, bytes] = {}
    try:
        with open(os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as raw:
            seen = os.fstat(raw.fileno())
            if not stat.S_ISREG(seen.st_mode) or seen.st_size > _MOST_FILE_BYTES:
                raise _refused(file, f"{seen.st_size} bytes")
            with zipfile.ZipFile(raw) as box:
                infos = box.infolist()
                _check_members(file, infos)
                for info in infos:
                    found[info.filename] = _read_member(box, info, file)
    except (zipfile.BadZipFile, zlib.error, EOFError, ValueError, RuntimeError, NotImplementedError) as err:
        raise _refused(file, f"{type(err).__name__}: {err}"[:200]) from err
    return found


def _check_members(file: Path, infos: Sequence[zipfile.ZipInfo]) -> None:
    names = [info.filename for info in infos]
    if len(names) > _MOST_MEMBERS or len(set(names)) < len(names):
        raise _refused(file, f"{len(names)} files")
    if sum(info.file_size for info in infos) > _MOST_BYTES:
        raise _refused(file, "too large when unpacked")
    for info in infos:
        kind = stat.S_IFMT(info.external_attr >> 16)
        is_plain = kind in (0, stat.S_IFREG) and not info.flag_bits & 0x1
        if not _ALLOWED.fullmatch(info.filename) or not is_plain or info.file_size > _MOST_MEMBER_BYTES:
            raise _refused(file, repr(info.filename[:80]))
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise _refused(file, repr(info.filename[:80]))


def _read_member(box: zipfile.ZipFile, info: zipfile.ZipInfo, file: Path) -> bytes:
    with box.open(info) as member:
        data = member.read(_MOST_MEMBER_BYTES + 1)  # what it says of its size is a claim
    if len(data) != info.file_size:
        raise _refused(file, repr(info.filename))
    return data


def _parse(data: bytes, file: Path) -> dict[str, Any]:
    try:
        found = json.loads(data)
    except (ValueError, RecursionError) as err:
        raise _refused(file, f"{type(err).__name__}: {err}"[:200]) from err
    if not isinstance(found, dict):
        raise _refused(file, type(found).__name__)
    return found


def _refused(file: Path, why: str) -> CheckError:
    return CheckError("diagnose/capsule-refused", path=file, why=why)
