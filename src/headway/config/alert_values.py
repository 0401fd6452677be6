"""What the section `alert` takes: variables that hold addresses, conditions, hours."""

from __future__ import annotations

import re
import urllib.parse
from datetime import time
from typing import Final

from pydantic_core import PydanticCustomError

from headway.config.condition import ConditionError, read_condition
from headway.redact import is_random
from headway.secret import find_shapes, name_of_secret

_VARIABLE: Final = re.compile(r"\$?[A-Za-z_][A-Za-z0-9_]{0,120}")
_QUIET: Final = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)\s?-\s?([01]?\d|2[0-3]):([0-5]\d)")
_OPEN: Final = ("http", "https", "json", "jsons", "xml", "xmls", "form", "forms", "mailto", "mailtos")
"""Addresses that need not hold a secret; those of all others are one."""


def as_list(given: object) -> object:
    """Take one value for a list of one: most people have one channel, one condition, one tracker."""
    return (given,) if isinstance(given, str) else tuple(given) if isinstance(given, list) else given


def check_addresses(given: tuple[str, ...]) -> tuple[str, ...]:
    """Refuse what is neither the name of a variable nor an address that may be written down."""
    for one in given:
        if "://" in one:
            if has_secret(one):
                raise _refusal("alert/address-secret", key="alert.to")
        elif not _VARIABLE.fullmatch(one):
            raise _refusal("alert/address-unknown", got=one[:60])
    return given


def check_conditions(given: tuple[str, ...]) -> tuple[str, ...]:
    """Refuse a condition that cannot be read."""
    for one in given:
        try:
            read_condition(one)
        except ConditionError as err:
            raise _refusal(err.code, **err.facts) from err
    return given


def check_quiet(given: str) -> str:
    """Refuse hours that are none."""
    if _QUIET.fullmatch(given.strip()) is None:
        raise _refusal("alert/quiet-unknown", got=given[:60])
    return given


def read_quiet(text: str) -> tuple[time, time]:
    """Return beginning and end of the quiet hours; the end may be on the next day."""
    found = _QUIET.fullmatch(text.strip())
    assert found is not None, "checked with the config"
    begin_h, begin_m, end_h, end_m = map(int, found.groups())
    return time(begin_h, begin_m), time(end_h, end_m)


def has_secret(address: str) -> bool:
    """Say whether an address is a secret, or holds one: the key of a chat robot is all one needs to write there."""
    try:
        parts = urllib.parse.urlsplit(address)
        port_or_password = parts.password
    except ValueError:
        return True
    if parts.scheme.lower() not in _OPEN or port_or_password or find_shapes(address):
        return True
    if any(
        name_of_secret(name) or name.lower() in ("key", "pass", "sig")
        for name, _ in urllib.parse.parse_qsl(parts.query)
    ):
        return True
    return any(len(piece) >= 12 and is_random(piece) for piece in parts.path.split("/"))


def _refusal(code: str, **facts: object) -> PydanticCustomError:
    """Return what the gate makes a problem of, with our own code."""
    return PydanticCustomError(code, "refused", facts)
