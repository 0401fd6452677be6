"""What can be known before a run starts: that its place for copies can be used at all."""

from __future__ import annotations

import importlib.util
import os
import shlex
import shutil
import sys
from pathlib import Path

from headway.config import parse_mirror
from headway.errors import UsageError


def refuse_mirror(text: str | None) -> None:
    """Refuse a place that this machine cannot copy to; nothing is asked over the network.

    Raises:
        UsageError: boto3, ssh or the folder is missing.
    """
    address = parse_mirror(text) if text is not None else None
    if address is None:
        return
    if address.kind == "s3" and importlib.util.find_spec("boto3") is None:
        raise UsageError("mirror/no-boto3", address=address, python=sys.executable)
    if address.kind == "ssh":
        program = shlex.split(os.environ.get("HEADWAY_SSH") or "ssh")[0]
        if shutil.which(program) is None:
            raise UsageError("mirror/no-ssh", address=address)
    if address.kind == "folder":
        if not Path(address.path).is_dir():
            raise UsageError("mirror/no-folder", folder=address.path)
        if not os.access(address.path, os.W_OK | os.X_OK):
            raise UsageError("mirror/not-writable", folder=address.path)
