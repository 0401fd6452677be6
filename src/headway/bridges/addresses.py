"""Where alerts go: addresses in environment variables, and those that a config may name openly."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from typing import Final

from headway.errors import UsageError
from headway.redact import remember_secrets

VARIABLE: Final = "HEADWAY_ALERT_TO"
"""Read for every run, whatever its config says."""
_BETWEEN: Final = re.compile(r"[\s,;]+(?=[A-Za-z][A-Za-z0-9+.-]*://)")


def read_addresses(text: str) -> list[str]:
    """Return the addresses in the value of a variable, which may hold several."""
    return [one.strip() for one in _BETWEEN.split(text.strip()) if "://" in one]


def find_addresses(names: Iterable[str], environ: Mapping[str, str]) -> list[str]:
    """Return every address that is meant, each once; they are hidden in every later text of this process."""
    found: dict[str, None] = {}
    for name in (VARIABLE, *names):
        texts = [name] if "://" in name else read_addresses(environ.get(name.lstrip("$"), ""))
        found |= dict.fromkeys(texts)
    # By a name that says what they are; the variables themselves may be called anything.
    remember_secrets({f"{at}_WEBHOOK_URL": address for at, address in enumerate(found) if address not in names})
    return list(found)


def keep_addresses(given: Iterable[str]) -> list[str]:
    """Put addresses that were typed into our own environment, which the run's processes inherit; return the names."""
    typed = [one for one in given if "://" in one]
    if typed:
        remember_secrets({f"{at}_WEBHOOK_URL": address for at, address in enumerate(typed)})
        os.environ[VARIABLE] = " ".join([os.environ.get(VARIABLE, ""), *typed]).strip()
    return [one for one in given if "://" not in one]


def refuse_unset(names: Iterable[str], environ: Mapping[str, str]) -> None:
    """Refuse a variable without an address: nobody would hear of the run's end.

    Raises:
        UsageError: it is not set, or holds something else.
    """
    for name in (one.lstrip("$") for one in names if "://" not in one):
        if not environ.get(name, "").strip():
            raise UsageError("alert/variable-unset", name=name)
        if not read_addresses(environ[name]):
            raise UsageError("alert/not-an-address", name=name)
