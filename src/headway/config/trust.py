"""Whose code may run: folders and interpreters that the user has named once, kept in the user's own config folder.

A config file or a run directory that somebody sends may name a folder of Python files or an interpreter. Reading it
must not run them. What a user types is consent; everything else is looked up here.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from headway.home import user_folder

TRUST_VARIABLE: Final = "HEADWAY_TRUST"
"""Paths that are trusted as well, separated by colons: for machines whose home cannot be written."""
_NAME: Final = "trusted"
_MOST_BYTES: Final = 1 << 20
_SYSTEM: Final = ("/usr", "/bin", "/opt/conda")


def trust_file(environ: Mapping[str, str] | None = None) -> Path:
    """Return where the user's decisions are kept."""
    return user_folder(environ) / _NAME


def read_trusted(environ: Mapping[str, str] | None = None) -> list[Path]:
    """Return the trusted paths; a file that is damaged or somebody else's trusts nothing."""
    environ = os.environ if environ is None else environ
    found = [Path(text) for text in environ.get(TRUST_VARIABLE, "").split(os.pathsep) if os.path.isabs(text)]
    try:
        with trust_file(environ).open("rb") as file:
            # Whoever can write here can run anything as us: a file of another user is not our decision.
            if os.fstat(file.fileno()).st_uid not in (os.geteuid(), 0):
                return found
            lines = file.read(_MOST_BYTES).splitlines()
    except OSError:
        return found
    for line in lines:
        try:
            text = json.loads(line)
        except ValueError:
            continue
        if isinstance(text, str) and os.path.isabs(text):
            found.append(Path(text))
    return found


def is_trusted(path: Path, environ: Mapping[str, str] | None = None) -> bool:
    """Say whether a folder or interpreter, or a folder above it, is trusted. Links are followed first."""
    real = Path(os.path.realpath(path))
    return any(real == known or real.is_relative_to(known) for known in read_trusted(environ))


def is_of_the_system(python: Path) -> bool:
    """Say whether an interpreter was installed by whoever runs the machine, or is the one that runs now."""
    named = Path(os.path.abspath(python))
    places = (*_SYSTEM, sys.prefix, sys.base_prefix)
    return any(named.is_relative_to(place) for place in places) and not _is_open(named)


def _is_open(path: Path) -> bool:
    """Say whether others may change what is in its place."""
    try:
        return bool(path.stat().st_mode & 0o002)
    except OSError:
        return False


def trust(path: Path, environ: Mapping[str, str] | None = None) -> None:
    """Remember a path.

    Raises:
        OSError: the file cannot be written.
    """
    real = Path(os.path.realpath(path))
    if any(real == known for known in read_trusted(environ)):
        return
    place = trust_file(environ)
    place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with open(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600), "ab") as file:
        file.write(json.dumps(str(real)).encode() + b"\n")


def forget(path: Path, environ: Mapping[str, str] | None = None) -> bool:
    """Take a path off the list; say whether it was on it.

    Raises:
        OSError: the file cannot be written.
    """
    real = Path(os.path.realpath(path))
    known = read_trusted({**(os.environ if environ is None else environ), TRUST_VARIABLE: ""})
    if real not in known:
        return False
    place = trust_file(environ)
    part = place.with_name(f".{_NAME}.{os.getpid()}")
    part.write_text("".join(json.dumps(str(one)) + "\n" for one in known if one != real), encoding="utf-8")
    part.chmod(0o600)
    part.replace(place)
    return True
