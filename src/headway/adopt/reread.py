"""The clean file read back: what `write_clean` wrote, as it is or changed by hand."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from headway.adopt.record import LAUNCHERS, Entry, Launch

_SCHEMA = "schema: launch/1"
_KINDS = ("script", "module", "command")

# Any in this file: plain values of a YAML file, each checked before it is used.


def read_clean(text: str) -> Launch | None:
    """Return the launch of a clean file; None for any other text, and for a file that no launch can be made of."""
    if not text.lstrip("\ufeff \t\r\n").startswith(_SCHEMA):
        return None
    try:
        record = YAML(typ="safe", pure=True).load(text)
        return _make(record) if isinstance(record, dict) else None
    except (YAMLError, ValueError, OverflowError, RecursionError):
        return None


def read_bash(text: str) -> str | None:
    """Return the command that a clean file leaves to bash; None for any other text."""
    if not text.lstrip("\ufeff \t\r\n").startswith(_SCHEMA):
        return None
    try:
        record = YAML(typ="safe", pure=True).load(text)
    except (YAMLError, ValueError, OverflowError, RecursionError):
        return None
    found = record.get("bash") if isinstance(record, dict) else None
    return found if isinstance(found, str) else None


def _make(record: Mapping[str, Any]) -> Launch:
    facts: dict[str, Any] = {}
    for key, check in _CHECKS.items():
        value = record.get(key)
        if value is not None:
            facts[key] = check(value)
    if "launcher" not in facts:
        raise ValueError("launcher")
    return Launch(**facts)


def _number(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError(value)
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(value)
    return value


def _number_or_text(value: Any) -> int | str:
    return value if isinstance(value, str) else _number(value)


def _texts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise ValueError(value)
    return tuple(_text(one) for one in value)


def _mapping(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict) or not all(isinstance(one, str | bool) for one in value.values()):
        raise ValueError(value)
    return {_text(key): one for key, one in value.items()}


def _entry(value: Any) -> Entry:
    if not isinstance(value, dict) or value.get("kind") not in _KINDS:
        raise ValueError(value)
    return Entry(value["kind"], _text(value.get("name")))


def _launcher(value: Any) -> str:
    if value not in LAUNCHERS:
        raise ValueError(value)
    return _text(value)


def _devices(value: Any) -> tuple[int | str, ...]:
    if not isinstance(value, list) or not all(isinstance(one, int | str) for one in value):
        raise ValueError(value)
    return tuple(value)


_CHECKS: Mapping[str, Callable[[Any], Any]] = {
    "launcher": _launcher,
    "nproc_per_node": _number_or_text,
    "nnodes": _number_or_text,
    "node_rank": _number,
    "master_addr": _text,
    "master_port": _number,
    "cuda_visible_devices": _devices,
    "env": _mapping,
    "mixed_precision": _text,
    "launcher_config": _text,
    "entry": _entry,
    "args": _texts,
    "world_size": _number,
    "hostfile": _text,
    "sbatch": _mapping,
    "slurm": _mapping,
    "unresolved": lambda value: frozenset(_texts(value)),
    "patterns": lambda value: frozenset(_texts(value)),
}
