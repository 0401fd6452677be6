"""Reads demonstrations out of HDF5. Every process opens files for itself, when it first needs them.

A handle that goes through a fork shares its file position and its library state with the parent: readings mix. The
published loader opens a file for every sample instead, which costs more than the reading. Here each process keeps its
own handles, and pictures that lie in one run of bytes, as LIBERO's do, are mapped into memory and not read at all.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import numpy.typing as npt

from headway.errors import CheckError

CAMERAS = ("agentview_rgb", "eye_in_hand_rgb")
"""LIBERO's names of the exterior and the right wrist camera; it has no left wrist."""
LOW = ("joint_states", "gripper_states", "ee_pos", "ee_ori")

Array = npt.NDArray[np.float64]
Pictures = npt.NDArray[np.uint8]


class DemoFiles:
    """A folder of demonstration files, readable from any number of processes."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._pid = -1
        self._open: dict[str, Any] = {}  # Any: h5py has no types
        self._bytes: dict[str, Pictures] = {}
        self._mapped: dict[tuple[str, str, str], Pictures] = {}
        self._read: dict[tuple[str, str, str], Any] = {}

    def __getstate__(self) -> dict[str, object]:
        """Leave handles behind when sent to another process."""
        return {"_folder": self._folder, "_pid": -1, "_open": {}, "_bytes": {}, "_mapped": {}, "_read": {}}

    def pictures(self, file: str, demo: str, camera: str) -> Any:
        """Return (T, H, W, 3) bytes that are read when indexed. Any: a memory map or an h5py dataset."""
        key = (file, demo, camera)
        if key in self._mapped:
            return self._mapped[key]
        self._enter_process()
        if key not in self._read:
            dataset = self._file(file)[f"{demo}/obs/{camera}"]
            offset = dataset.id.get_offset()
            if offset is not None and dataset.chunks is None and dataset.dtype == np.uint8:
                whole = self._map(file)
                self._mapped[key] = whole[offset : offset + dataset.size].reshape(dataset.shape)
                return self._mapped[key]
            self._read[key] = dataset
        return self._read[key]

    def low(self, file: str, demo: str) -> dict[str, Array]:
        """Return the numbers of a demonstration that are not pictures, and its actions."""
        self._enter_process()
        group = self._file(file)[demo]
        found = {name: np.asarray(group[f"obs/{name}"], np.float64) for name in LOW}
        return {**found, "actions": np.asarray(group["actions"], np.float64)}

    def num_handles(self) -> int:
        """Return how many files this process holds open."""
        self._enter_process()
        return len(self._open)

    def close(self) -> None:
        """Let go of this process's handles."""
        if self._pid == os.getpid():
            for handle in self._open.values():
                handle.close()
        self._open, self._bytes, self._mapped, self._read = {}, {}, {}, {}

    def _enter_process(self) -> None:
        if self._pid != os.getpid():
            # Handles of the parent are dropped unclosed: closing them here would act on the parent's library state.
            # Maps are plain memory and stay.
            self._pid, self._open, self._read = os.getpid(), {}, {}

    def _file(self, name: str) -> Any:
        if name not in self._open:
            self._open[name] = open_demos(self._folder / name)
        return self._open[name]

    def _map(self, name: str) -> Pictures:
        """Return a whole file as memory. As a plain array: indexing a memmap object costs more than the read."""
        if name not in self._bytes:
            self._bytes[name] = np.memmap(self._folder / name, np.uint8, "r").view(np.ndarray)
        return self._bytes[name]


def open_demos(path: Path) -> Any:
    """Open one file for reading. Any: h5py has no types."""
    try:
        # No file locks: demonstrations lie on network disks too, and nobody writes them.
        return h5py.File(path, "r", locking=False)
    except OSError as err:
        raise CheckError("rdt/bad-file", file=path, why=str(err).splitlines()[0]) from err
