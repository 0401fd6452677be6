"""A folder on a host that is reached over the user's own ssh, with a plain shell on the other side."""

from __future__ import annotations

import hashlib
import os
import shlex
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Final

from headway.config import MirrorAddress
from headway.errors import CheckpointError

_CONNECT_S: Final = 15
_ALIVE_S: Final = 10
_NO_FOLDER, _DIFFERS = 71, 74
_SSH_NAME: Final = "HEADWAY_SSH"
"""Environment variable: another program in place of `ssh`, with its options."""


class SshStore:
    """Each operation is one connection; what was sent is hashed on the host before its name appears."""

    def __init__(self, address: MirrorAddress, top: str) -> None:
        self._host, self._port, self._root = address.host, address.port, address.path
        self._top = top
        self.address = str(address)

    def sizes(self, folder: str = "") -> dict[str, int]:
        """Return name and bytes of every file below a folder of it."""
        place = shlex.quote(f"{self._root}/{folder}".rstrip("/"))
        said = self._ask(f"cd {place} 2>/dev/null || exit 0; find . -type f ! -name '.part-*' -printf '%s %P\\0'")
        found = {}
        for line in said.decode(errors="surrogateescape").split("\0"):
            size, _, name = line.partition(" ")
            if name:
                found[f"{folder}/{name}".lstrip("/")] = int(size)
        return found

    def put(self, source: Path, name: str) -> None:
        """Copy a file there; its name appears only with all bytes, compared with ours."""
        final = f"{self._root}/{name}"
        folder, base = os.path.split(final)
        part = shlex.quote(f"{folder}/.part-{base}")
        with open(source, "rb") as file:
            want = hashlib.file_digest(file, "sha256").hexdigest()
            file.seek(0)
            self._ask(
                f"mkdir -p {shlex.quote(folder)} && cat >{part} && "
                f'{{ [ "$(sha256sum <{part} | cut -c-64)" = {want} ] || {{ rm -f {part}; exit {_DIFFERS}; }}; }} && '
                f"sync {part} && mv -f {part} {shlex.quote(final)}",
                name=name,
                given=file,
            )

    def get(self, name: str, target: Path) -> None:
        """Copy a file from there."""
        with open(target, "xb") as file:
            self._ask(f"cat {shlex.quote(f'{self._root}/{name}')}", name=name, taken=file)
            os.fsync(file.fileno())

    def remove(self, names: Sequence[str]) -> None:
        """Delete files in this order; a file that is already gone is not an error."""
        if names:
            files = " ".join(shlex.quote(name) for name in names)
            folders = " ".join(
                shlex.quote(name) for name in dict.fromkeys(os.path.dirname(one) or "." for one in names)
            )
            self._ask(f"cd {shlex.quote(self._root)} && rm -f {files} && {{ rmdir {folders} 2>/dev/null || :; }}")

    def _ask(
        self, script: str, *, name: str = "", given: IO[bytes] | None = None, taken: IO[bytes] | None = None
    ) -> bytes:
        """Run a script of the host's shell; return what it has printed."""
        words = [*shlex.split(os.environ.get(_SSH_NAME) or "ssh"), "-o", "BatchMode=yes", "-T"]
        words += ["-o", f"ConnectTimeout={_CONNECT_S}", "-o", f"ServerAliveInterval={_ALIVE_S}"]
        words += ["-p", str(self._port)] if self._port else []
        guard = f"[ -d {shlex.quote(self._top)} ] || exit {_NO_FOLDER}; "
        host = self._host.replace("[", "").replace("]", "")
        try:
            done = subprocess.run(
                [*words, host, guard + script],
                stdin=given or subprocess.DEVNULL,
                stdout=taken or subprocess.PIPE,
                stderr=subprocess.PIPE,
                check=False,
            )
        except OSError as err:
            raise CheckpointError("mirror/failed", address=self.address, why=f"{words[0]}: {err.strerror}") from err
        if done.returncode == _NO_FOLDER:
            raise CheckpointError("mirror/no-folder", folder=f"{self._host}:{self._top}")
        if done.returncode == _DIFFERS:
            raise CheckpointError("mirror/differs", address=self.address, name=name)
        if done.returncode:
            lines = [one.strip() for one in done.stderr.decode(errors="replace").splitlines() if one.strip()]
            why = lines[-1] if lines else f"exit code {done.returncode}"
            raise CheckpointError("mirror/failed", address=self.address, why=why)
        return done.stdout or b""
