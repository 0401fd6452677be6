"""Where checkpoints are mirrored to: `s3://bucket/folder`, `ssh://host/folder`, or a folder on another disk."""

from __future__ import annotations

import os
import re
import urllib.parse
from dataclasses import dataclass
from typing import Final, Literal

from pydantic_core import PydanticCustomError

_BUCKET: Final = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_HOST: Final = re.compile(r"(?:\w[\w.-]*@)?(?:\w[\w.-]*|\[[0-9A-Fa-f:]+\])")  # never an option of ssh
_NAME: Final = re.compile(r"[^\x00-\x1f\x7f]*")


@dataclass(frozen=True, slots=True)
class MirrorAddress:
    """One place for copies of checkpoints."""

    kind: Literal["s3", "ssh", "folder"]
    host: str
    """Bucket, or host with its user; empty for a folder."""
    path: str
    """Folder, without `/` at its end; in a bucket without one at its start, and perhaps empty."""
    port: int | None = None

    def __str__(self) -> str:
        if self.kind == "folder":
            return self.path
        port = f":{self.port}" if self.port else ""
        return f"{self.kind}://{self.host}{port}/{self.path.lstrip('/')}".rstrip("/")

    def below(self, name: str) -> MirrorAddress:
        """Return the folder of this name in it."""
        path = f"{self.path}/{name}" if self.path else name
        return MirrorAddress(self.kind, self.host, path, self.port)


def parse_mirror(text: str) -> MirrorAddress | None:
    """Return what an address means; None: it is none of the three kinds."""
    if not _NAME.fullmatch(text):
        return None
    scheme, sign, rest = text.partition("://")
    if not sign:
        path = os.path.expanduser(text)
        return MirrorAddress("folder", "", os.path.normpath(path)) if os.path.isabs(path) else None
    host, _, path = rest.partition("/")
    path = path.rstrip("/")
    if ".." in path.split("/") or "?" in rest or "#" in rest:
        return None
    if scheme == "s3":
        return MirrorAddress("s3", host, path) if _BUCKET.fullmatch(host) else None
    if scheme != "ssh" or not path:
        return None
    return _parse_ssh(host, f"/{path}")


def check_mirror(text: str) -> str:
    """Refuse an address that is none of the three kinds, and one with a password in it."""
    if "://" in text and _has_password(text):
        raise _refusal("mirror/secret")
    if parse_mirror(text) is None:
        raise _refusal("mirror/unknown", got=text[:120])
    return text


def _parse_ssh(host: str, path: str) -> MirrorAddress | None:
    name, port = host, None
    found = re.fullmatch(r"(.*[^:\]]|.*\]):(\d{1,5})", host)
    if found is not None:
        name, port = found[1], int(found[2])
    if not _HOST.fullmatch(name) or (port is not None and not 0 < port < 65536):
        return None
    return MirrorAddress("ssh", name, path, port)


def _has_password(text: str) -> bool:
    try:
        return urllib.parse.urlsplit(text).password is not None
    except ValueError:
        return False


def _refusal(code: str, **facts: object) -> PydanticCustomError:
    """Return what the gate makes a problem of, with our own code."""
    return PydanticCustomError(code, "refused", facts)
