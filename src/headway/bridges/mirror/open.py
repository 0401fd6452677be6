"""Open the place that an address means."""

from __future__ import annotations

from pathlib import Path

from headway.bridges.mirror.folder import FolderStore
from headway.bridges.mirror.s3 import S3Store
from headway.bridges.mirror.ssh import SshStore
from headway.bridges.mirror.store import Store
from headway.config import MirrorAddress


def open_store(address: MirrorAddress, *, top: MirrorAddress | None = None) -> Store:
    """Return the place; whether it can be reached shows in the first operation.

    Args:
        top: the folder that must be there already: a disk that is not mounted must not become a folder of this one.

    Raises:
        CheckpointError: boto3 is not installed.
    """
    top = top or address
    if address.kind == "folder":
        return FolderStore(address, Path(top.path))
    return S3Store(address) if address.kind == "s3" else SshStore(address, top.path)
