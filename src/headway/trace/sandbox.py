"""Keeps a user's files as they are while a script of theirs is traced.

What is opened for writing is written in a scratch folder instead, and read back from there; removing and renaming do
nothing; folders that were made are taken away again. Caches of libraries are left alone, and temporary files are
made in the scratch folder. Files written by native code, other programs and the network are not guarded.
"""

from __future__ import annotations

import builtins
import hashlib
import io
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

_FREE = ("/dev", "/proc", "/sys")
_made: list[str] = []


def keep_safe(scratch: Path) -> None:
    """Send what is written from now on to the scratch folder."""
    tempfile.tempdir = os.environ["TMPDIR"] = str(scratch)
    free = (*_FREE, os.path.realpath(scratch), os.path.expanduser("~/.cache"), *_caches())
    plain = builtins.open

    def is_free(path: Any) -> bool:
        try:
            whole = os.path.realpath(os.fspath(path))
        except TypeError:  # a descriptor
            return True
        return os.fsdecode(whole).startswith(free)

    def beside(path: Any) -> str:
        whole = os.path.realpath(os.fsdecode(os.fspath(path)))
        return str(scratch / hashlib.sha256(whole.encode()).hexdigest()[:24])

    def open_safely(file: Any, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
        if is_free(file):
            return plain(file, mode, *args, **kwargs)
        place = beside(file)
        if set(mode) & set("wax+"):
            is_new = not os.path.exists(place)
            if is_new and os.path.isfile(file) and "w" not in mode:
                shutil.copyfile(file, place)
            return plain(place, mode.replace("x", "w"), *args, **kwargs)
        return plain(place if os.path.exists(place) else file, mode, *args, **kwargs)

    builtins.open = io.open = open_safely
    for name in ("remove", "unlink", "rename", "replace", "rmdir", "truncate", "link", "symlink", "chmod"):
        _only_free(os, name, is_free)
    for name in ("rmtree", "move", "copy", "copy2", "copyfile", "copytree"):
        _only_free(shutil, name, is_free)
    _remember_folders(is_free)


def _only_free(module: Any, name: str, is_free: Any) -> None:
    """Let a function do its work in free places only."""
    plain = getattr(module, name)

    def call(*args: Any, **kwargs: Any) -> Any:
        touched = [one for one in args[:2] if isinstance(one, str | os.PathLike)]
        return plain(*args, **kwargs) if all(map(is_free, touched)) else None

    setattr(module, name, call)


def _remember_folders(is_free: Any) -> None:
    make = os.mkdir

    def mkdir(path: Any, *args: Any, **kwargs: Any) -> None:
        make(path, *args, **kwargs)
        if not is_free(path):
            _made.append(os.path.realpath(path))

    os.mkdir = mkdir


_rmdir = os.rmdir


def tidy_up() -> None:
    """Take away the folders that were made; those with something in them stay."""
    for path in reversed(_made):
        try:
            _rmdir(path)
        except OSError:  # not empty: native code wrote there
            continue


def _caches() -> list[str]:
    names = ("HF_HOME", "TORCH_HOME", "XDG_CACHE_HOME", "HF_DATASETS_CACHE", "TRANSFORMERS_CACHE")
    return [os.path.realpath(os.environ[name]) for name in names if os.environ.get(name)]
