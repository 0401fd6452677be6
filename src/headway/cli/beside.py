"""What `run` takes about alerts and trackers, made into the sections a config would hold."""

from __future__ import annotations

import os
from typing import Any

from headway.bridges import keep_addresses, refuse_unset
from headway.errors import UsageError


def read_beside(alert: tuple[str, ...], when: tuple[str, ...], track: tuple[str, ...]) -> dict[str, Any]:
    """Return the sections, checked. An address that is typed goes into our environment, and nowhere else.

    Raises:
        UsageError: a value that a config would not take either.
    """
    names = keep_addresses(alert)
    refuse_unset(names, os.environ)
    found: dict[str, Any] = {}
    if names or when:
        found["alert"] = {"to": names, "when": list(when)}
    if track:
        found["track"] = {"to": list(track)}
    if found:
        _check(found)
    return found


def _check(found: dict[str, Any]) -> None:
    from pydantic import ValidationError  # half a second that a plain `run` has not

    from headway.config import AlertConfig, TrackConfig

    for name, model in (("alert", AlertConfig), ("track", TrackConfig)):
        try:
            model.model_validate(found.get(name, {}))
        except ValidationError as err:
            detail = err.errors(include_url=False)[0]
            facts = {"key": f"--{name}", "why": detail["msg"], **detail.get("ctx", {})}
            code = detail["type"] if "/" in detail["type"] else "config/refused"
            raise UsageError(code, **facts) from err
