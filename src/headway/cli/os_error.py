"""What the system refuses on a path of the user, said by us: which path, why, and what to do about it."""

from __future__ import annotations

import errno
import os
import re
from typing import Final

from headway.errors import CheckError, HeadwayError, UsageError

_REASONS: Final = {
    errno.ENOENT: "cli/path-missing",
    errno.EACCES: "cli/path-denied",
    errno.EPERM: "cli/path-denied",
    errno.ENOTDIR: "cli/path-not-folder",
    errno.EISDIR: "cli/path-a-folder",
    errno.EEXIST: "cli/path-exists",
    errno.ELOOP: "cli/path-a-link",
    errno.EINVAL: "cli/path-no-file",
    errno.ENAMETOOLONG: "cli/path-too-long",
}
_OF_THE_MACHINE: Final = {
    errno.ENOSPC: "cli/disk-full",
    errno.EDQUOT: "cli/disk-full",
    errno.EFBIG: "cli/file-too-large",
    errno.EROFS: "cli/disk-read-only",
    errno.EIO: "cli/disk-error",
    errno.ESTALE: "cli/disk-error",
    errno.EMFILE: "cli/too-many-files",
    errno.ENFILE: "cli/too-many-files",
}
_TEMP: Final = re.compile(r"^\.(.+)\.\d+$")
"""How files are called until they are whole: the user knows them by their own name."""


def refuse_os_error(error: OSError) -> HeadwayError | None:
    """Return our error for one of the system; None: nothing that a user could have caused or could repair."""
    if error.errno == errno.ENOENT and _is_homeless():
        return UsageError("cli/no-working-directory")
    path = _shown(error.filename2 or error.filename)
    if error.errno in _OF_THE_MACHINE:
        return CheckError(_OF_THE_MACHINE[error.errno], path=path or "n/a")
    if error.errno in _REASONS and path is not None:
        return UsageError(_REASONS[error.errno], path=path, folder=find_folder(path))
    return None


def find_folder(path: str) -> str:
    """Return the nearest folder above a path that exists."""
    folder = os.path.dirname(path)
    while folder and not os.path.isdir(folder):
        folder = os.path.dirname(folder)
    return folder or "."


def _is_homeless() -> bool:
    """Say whether the folder we were started in is gone."""
    try:
        os.getcwd()
    except OSError:
        return True
    return False


def _shown(path: object) -> str | None:
    if not isinstance(path, str | bytes | os.PathLike):
        return None
    folder, name = os.path.split(os.fsdecode(path))
    whole = _TEMP.match(name)
    return os.path.join(folder, whole[1] if whole else name)
