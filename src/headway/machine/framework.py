"""Which framework the ranks' interpreter has. Nothing is imported: reading torch's version file takes a millisecond."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from headway.ask import ask
from headway.machine import probe
from headway.machine.record import Framework

_DEADLINE_S = 10.0
"""An interpreter on a cold network disk may take seconds; one that takes longer will not train either."""


def read_framework(python: str | None = None) -> Framework:
    """Return the torch of this interpreter, or of another one, asked in a child process."""
    if python is None or _is_this_one(python):
        try:
            return _framework(sys.executable, probe.describe_torch())
        except (OSError, SyntaxError, ValueError) as err:
            return Framework(python=sys.executable, python_version=_this_version(), trouble=str(err))
    return _ask_other(python)


def _is_this_one(python: str) -> bool:
    # Not resolved: the python of a virtual environment is a link to one that has other packages.
    return Path(python).absolute() == Path(sys.executable).absolute()


def _this_version() -> str:
    return ".".join(str(part) for part in sys.version_info[:3])


def _ask_other(python: str) -> Framework:
    source = Path(probe.__file__).read_text(encoding="utf-8")
    try:
        told = ask(python, {}, source=source, within_s=_DEADLINE_S)
    except OSError as err:
        return Framework(python=python, trouble=err.strerror or str(err))
    if told.exit_code is None:
        return Framework(python=python, trouble=f"no answer within {_DEADLINE_S:.0f} s")
    try:
        return _framework(python, told.value)
    except (KeyError, TypeError, AttributeError):
        return Framework(python=python, trouble=told.why)


def _framework(python: str, found: Any) -> Framework:  # Any: what another interpreter printed
    return Framework(
        python=python,
        python_version=found["python_version"],
        torch=found["torch"],
        cuda=found["cuda"],
        hip=found["hip"],
        torchvision=found.get("torchvision"),
        numpy=found.get("numpy"),
    )
