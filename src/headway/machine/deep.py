"""What only a try can tell: room for a file of real size, a listening socket, the disk's clock, a tracker."""

from __future__ import annotations

import errno
import os
import re
import resource
import socket
import tempfile
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

_CHUNK = 64 << 20
_MOST_BYTES = 16 << 30
_DEADLINE_S = 1.0
"""A disk that reserves space only by writing it (old NFS) gets this long; what fitted until then is reported."""
_LOG_BYTES = 4 << 20
_LOG_WORDS = re.compile(r"NVRM|Xid|nvswitch|oom-kill|Out of memory|Killed process", re.I)
_TRACKERS = {
    "MLFLOW_TRACKING_URI": None,
    "WANDB_BASE_URL": None,
    "WANDB_API_KEY": "https://api.wandb.ai",
    "SWANLAB_API_HOST": None,
    "CLEARML_API_HOST": None,
}
"""Variables that name a tracker, and the address one of them stands for."""
_OFFLINE = {"WANDB_MODE": ("offline", "disabled", "dryrun"), "CLEARML_OFFLINE_MODE": ("1", "true")}


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteProbe:
    """What happened when a file of the real size was reserved."""

    reserved_bytes: int | None = None
    trouble: str | None = None
    clock_ahead_s: float | None = None


def probe_write(place: Path, need_bytes: int) -> WriteProbe:
    """Reserve that much at a place and give it back at once.

    Free space is not what a user may write: quotas, project limits and `ulimit -f` show only when a file grows. The
    file has no name, so nothing stays even after a kill.
    """
    reserved = 0
    try:
        with tempfile.TemporaryFile(dir=place) as file:
            os.write(file.fileno(), b"headway")
            ahead = time.time() - os.fstat(file.fileno()).st_mtime
            until = time.monotonic() + _DEADLINE_S
            while reserved < min(need_bytes, _MOST_BYTES) and time.monotonic() < until:
                step = min(_CHUNK, min(need_bytes, _MOST_BYTES) - reserved)
                os.posix_fallocate(file.fileno(), reserved, step)
                reserved += step
    except OSError as err:
        if err.errno in (errno.EOPNOTSUPP, errno.EINVAL):  # a file system that cannot reserve: no reading
            return WriteProbe()
        return WriteProbe(reserved_bytes=reserved, trouble=_why(err))
    return WriteProbe(reserved_bytes=reserved, clock_ahead_s=ahead)


def _why(err: OSError) -> str:
    names = {errno.EDQUOT: "quota (EDQUOT)", errno.ENOSPC: "no space (ENOSPC)", errno.EFBIG: "ulimit -f (EFBIG)"}
    return names.get(err.errno or 0, err.strerror or str(err))


def try_port() -> str | None:
    """Return why ranks could not meet on the loopback; None: they can."""
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as server:
            server.bind(("127.0.0.1", 0))
            server.listen(1)
            with socket.create_connection(server.getsockname(), timeout=1.0):
                return None
    except OSError as err:
        return err.strerror or str(err)


def read_limits() -> tuple[int | None, int | None]:
    """Return (bytes a process may pin, processes a user may have); None: no limit."""
    found = []
    for kind in (resource.RLIMIT_MEMLOCK, resource.RLIMIT_NPROC):
        soft, _ = resource.getrlimit(kind)
        found.append(None if soft == resource.RLIM_INFINITY else soft)
    return found[0], found[1]


def read_kernel_log(path: Path = Path("/dev/kmsg")) -> str | None:
    """Return the log's lines about GPUs and ended processes since the start; None: it is closed to this user."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return None
    lines, total = [], 0
    try:
        while total < _LOG_BYTES:
            try:
                record = os.read(handle, 8192)  # one record a read
            except BlockingIOError:
                break
            except BrokenPipeError:  # overwritten while we read: the next read continues behind it
                continue
            if not record:
                break
            total += len(record)
            line = record.decode(errors="replace").partition(";")[2] or record.decode(errors="replace")
            if _LOG_WORDS.search(line):
                lines.append(line.rstrip("\n"))
    except OSError:
        return None
    finally:
        os.close(handle)
    return "\n".join(lines)


def reach_trackers(environ: Mapping[str, str], deadline_s: float = _DEADLINE_S) -> dict[str, str]:
    """Return for each tracker the environment names whether its address answers: `NAME address` to `ok` or why not."""
    if any(environ.get(name, "").lower() in words for name, words in _OFFLINE.items()):
        return {}
    wanted = {name: fixed or environ[name] for name, fixed in _TRACKERS.items() if environ.get(name)}
    if "WANDB_BASE_URL" in wanted:
        wanted.pop("WANDB_API_KEY", None)
    addresses = {name: url for name, url in wanted.items() if urlsplit(url).hostname}
    answers: dict[str, str] = {f"{name} {_shown(url)}": f"> {deadline_s:.0f} s" for name, url in addresses.items()}
    # A name server that is silent blocks for a minute and cannot be told to stop, so each is asked by a thread that
    # may be left behind.
    threads = [
        threading.Thread(target=_reach, args=(f"{name} {_shown(url)}", url, answers, deadline_s), daemon=True)
        for name, url in addresses.items()
    ]
    for thread in threads:
        thread.start()
    until = time.monotonic() + deadline_s
    for thread in threads:
        thread.join(max(0.0, until - time.monotonic()))
    return dict(answers)


def _shown(url: str) -> str:
    """Return host and port alone: an address may carry a password."""
    parts = urlsplit(url)
    return f"{parts.hostname}:{_port(url)}"


def _port(url: str) -> int:
    parts = urlsplit(url)
    try:
        return parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError:  # not a number
        return 80


def _reach(name: str, url: str, answers: dict[str, str], deadline_s: float) -> None:
    try:
        with socket.create_connection((urlsplit(url).hostname or "", _port(url)), timeout=deadline_s):
            answers[name] = "ok"
    except (OSError, UnicodeError) as err:
        answers[name] = (err.strerror if isinstance(err, OSError) else None) or str(err)
