"""The clean file read back: what `write_clean` wrote, as it is or changed by hand."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from headway.adopt.record import LAUNCHERS, Entry, Launch
from headway.config.files import read_file
from headway.errors import UsageError

_SCHEMA = "schema: launch/1"
_TORCHRUN = ("torchrun", "torch.distributed.launch")
_KINDS = ("script", "module", "command")

# Any in this file: plain values of a YAML file, each checked before it is used.


def read_clean(text: str) -> Launch | None:
    """Return the launch of a clean file; None for any other text, and for a file that no launch can be made of."""
    record = _load(text)
    try:
        return None if record is None else _make(record)
    except (ValueError, OverflowError, RecursionError):
        return None


def read_bash(text: str) -> str | None:
    """Return the command that a clean file leaves to bash; None for any other text."""
    found = (_load(text) or {}).get("bash")
    return found if isinstance(found, str) else None


def _load(text: str) -> dict[str, Any] | None:
    if not text.lstrip("\ufeff \t\r\n").startswith(_SCHEMA):
        return None
    try:
        record = YAML(typ="safe", pure=True).load(text)
    except (YAMLError, ValueError, OverflowError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


def is_clean_file(word: str) -> bool:
    """Say whether a word names a file that may be one of ours."""
    return word.endswith((".yaml", ".yml")) and Path(word).is_file()


def read_clean_file(path: Path) -> str:
    """Return the line its launch stands for.

    Raises:
        UsageError: it is another file, leaves something open, or is for a launcher whose flags it does not hold.
    """
    text = read_file(path).decode("utf-8", "replace")
    command = read_bash(text)
    if command is not None:
        return command
    launch = read_clean(text)
    if launch is None or launch.entry is None:
        raise UsageError("run/not-clean", path=path)
    if launch.unresolved:
        raise UsageError("run/clean-open", path=path, names=", ".join(sorted(launch.unresolved)))
    if launch.patterns:
        raise UsageError("run/clean-patterns", path=path, words=", ".join(sorted(launch.patterns)))
    if launch.launcher not in ("python", *_TORCHRUN) or launch.nnodes not in (None, 1, "1", "1:1"):
        raise UsageError("run/clean-launcher", path=path, launcher=launch.launcher)
    return " ".join([*_environment(launch), shlex.join([*_start(launch), *launch.args])])


def _environment(launch: Launch) -> list[str]:
    env = dict(launch.env)
    if launch.cuda_visible_devices is not None:
        env["CUDA_VISIBLE_DEVICES"] = ",".join(map(str, launch.cuda_visible_devices))
    return [f"{name}={shlex.quote(str(value))}" for name, value in env.items()]


def _start(launch: Launch) -> list[str]:
    assert launch.entry is not None
    kind, name = launch.entry.kind, launch.entry.name
    if launch.launcher == "python":
        return ["python", *(["-m"] if kind == "module" else []), name]
    # Its addresses and ports were those of one day; the supervisor chooses again.
    flags = [f"--nproc_per_node={launch.nproc_per_node}"] if launch.nproc_per_node is not None else []
    flags += {"module": ["-m"], "command": ["--no-python"]}.get(kind, [])
    head = ["torchrun"] if launch.launcher == "torchrun" else ["python", "-m", "torch.distributed.launch"]
    return [*head, *flags, name]


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
