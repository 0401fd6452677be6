"""A bucket of S3, or of what speaks its protocol: the endpoint and the keys are those of the user's own AWS set-up."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

from headway.config import MirrorAddress
from headway.errors import CheckpointError

Value = TypeVar("Value")

_CONNECT_S, _READ_S = 10, 60
_PART_BYTES: Final = 32 << 20
_THREADS: Final = 4


class S3Store:
    """Every part that is sent carries its SHA-256, and the server refuses a part that differs."""

    def __init__(self, address: MirrorAddress) -> None:
        try:
            import boto3
            import botocore.exceptions
            from boto3.exceptions import Boto3Error
            from boto3.s3.transfer import TransferConfig
            from botocore.config import Config
        except ImportError as err:
            raise CheckpointError("mirror/no-boto3", address=address, python=sys.executable) from err
        self.address = str(address)
        self._bucket, self._prefix = address.host, f"{address.path}/" if address.path else ""
        self._errors = (Boto3Error, botocore.exceptions.BotoCoreError, botocore.exceptions.ClientError, OSError)
        config = Config(
            connect_timeout=_CONNECT_S, read_timeout=_READ_S, retries={"mode": "standard", "max_attempts": 3}
        )
        self._client: Any = self._do(lambda: boto3.client("s3", config=config))  # Any: boto3 makes it while it runs
        self._transfer = TransferConfig(
            multipart_threshold=_PART_BYTES, multipart_chunksize=_PART_BYTES, max_concurrency=_THREADS
        )

    def sizes(self, folder: str = "") -> dict[str, int]:
        """Return name and bytes of every object below a folder of it."""
        prefix = self._prefix + (f"{folder}/" if folder else "")

        def ask() -> dict[str, int]:
            pages = self._client.get_paginator("list_objects_v2").paginate(Bucket=self._bucket, Prefix=prefix)
            found = [one for page in pages for one in page.get("Contents", ())]
            return {one["Key"].removeprefix(self._prefix): one["Size"] for one in found}

        return self._do(ask)

    def put(self, source: Path, name: str) -> None:
        """Copy a file there; its name appears only with all bytes, compared with ours."""

        def send() -> int:
            self._client.upload_file(
                str(source),
                self._bucket,
                self._prefix + name,
                Config=self._transfer,
                ExtraArgs={"ChecksumAlgorithm": "SHA256"},
            )
            size: int = self._client.head_object(Bucket=self._bucket, Key=self._prefix + name)["ContentLength"]
            return size

        if self._do(send) != source.stat().st_size:
            raise CheckpointError("mirror/differs", address=self.address, name=name)

    def get(self, name: str, target: Path) -> None:
        """Copy an object from there."""
        self._do(
            lambda: self._client.download_file(self._bucket, self._prefix + name, str(target), Config=self._transfer)
        )

    def remove(self, names: Sequence[str]) -> None:
        """Delete objects in this order; a file that is already gone is not an error."""
        for name in names:
            self._do(lambda key=self._prefix + name: self._client.delete_object(Bucket=self._bucket, Key=key))  # type: ignore[misc]

    def _do(self, call: Callable[[], Value]) -> Value:
        try:
            return call()
        except self._errors as err:
            raise CheckpointError("mirror/failed", address=self.address, why=" ".join(str(err).split())) from err
