"""What several launchers say in the same way: devices, the entry, an address."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from headway.adopt.command import Command
from headway.adopt.options import Options, is_dots, is_placeholder, known, number
from headway.adopt.record import Entry, Launch
from headway.adopt.shell.expand import Said
from headway.machine import list_visible

_PYTHON = re.compile(
    r"(?:.*/)?(?:python|pypy|ipython)(?:\d(?:\.\d+)?)?(?:\.exe)?|py|.*\$\{?\w*PYTHON\w*\}?", re.IGNORECASE
)
_PYTHON_TAKES = ("-W", "-X", "--check-hash-based-pycs")
_SHELL = re.compile(r"(?:.*/)?(?:ba|z|da|k)?sh")
_NOT_A_LAUNCH = (
    "pip",
    "venv",
    "ensurepip",
    "site",
    "json.tool",
    "http.server",
    "build",
    "virtualenv",
    "ipykernel",
    "timeit",
)


def make(command: Command, launcher: str, **facts: Any) -> Launch:
    """Return a launch with what every command says: its environment, its wrappers, what it leaves open.

    Any: the fields of `Launch`, whose types its constructor checks.
    """
    facts.setdefault("cuda_visible_devices", visible_devices(command.env.get("CUDA_VISIBLE_DEVICES")))
    return Launch(
        launcher=launcher,
        env={name: value.text for name, value in command.env.items()},
        wrappers=facts.pop("wrappers", command.wrappers),
        sbatch=command.sbatch,
        line=command.line,
        unresolved=command.unresolved,
        patterns=frozenset(word.text for word in command.words if word.is_pattern),
        **facts,
    )


def visible_devices(value: Said | None) -> tuple[int | str, ...] | None:
    """Return a list of devices; an empty value is not a device, an open one is not known."""
    if value is None or not value.is_known or is_placeholder(value.text.strip() or "x"):
        return None
    parts = [part.strip() for part in value.text.split(",") if part.strip()]
    if any(not re.fullmatch(r"-?\d{1,4}|(?:GPU|MIG)-[\w-]+(?:/\d+)*(?:/\d+)?", part) for part in parts):
        return None
    return tuple(int(part) if re.fullmatch(r"-?\d+", part) else part for part in parts)


def count_devices(devices: Sequence[int | str] | None) -> int | None:
    """Return how many devices a list names for CUDA, which stops at -1; none where it names none."""
    return len(list_visible(",".join(map(str, devices or ())))) or None


def nodes(value: Said | None) -> int | str | None:
    """Return a number of nodes or `min:max`."""
    if value is not None and value.is_known and re.fullmatch(r"\d+:\d+", value.text):
        return value.text
    return number(value)


def processes(value: Said | None) -> int | str | None:
    """Return a number of ranks, or the words torchrun takes in its place."""
    if value is not None and value.is_known and value.text in ("auto", "gpu", "cpu"):
        return value.text
    return number(value)


def endpoint(value: Said | None) -> tuple[str | None, int | None]:
    """Return host and port of `host:port`; either may be open."""
    if value is None:
        return None, None
    host, sign, port = value.text.rpartition(":")
    if not sign or not re.fullmatch(r"[^:]*|\[.*\]|.*\}", host):
        return known(value), None
    host_said = Said(host, value.names if "$" in host or "`" in host else frozenset())
    return known(host_said), int(port) if re.fullmatch(r"\d{1,5}", port) else None


def entry_of(
    rest: Sequence[Said], *, is_module: bool = False, is_command: bool = False, skips_dashes: bool = False
) -> tuple[Entry | None, tuple[str, ...]]:
    """Return what follows the flags: the entry and its arguments.

    `skips_dashes`: the first `--` before or right after the entry is the launcher's, not the script's.
    """
    words = list(rest)
    if words and words[0].text == "--" and skips_dashes:
        words.pop(0)
    if len(words) > 1 and is_dots(words[0].text) and words[1].text.endswith(".py"):
        words.pop(0)
    if not words:
        return None, ()
    if is_dots(words[0].text):
        return None, tuple(word.text for word in words)
    kind: Any = "module" if is_module else "command" if is_command else "script"  # Any: mypy keeps no union of literals
    entry = Entry(kind, words[0].text)
    args = words[1:]
    if args and args[0].text == "--" and skips_dashes:
        args = args[1:]
    return entry, tuple(word.text for word in args)


def is_python(word: Said) -> bool:
    """Return whether a word is a Python interpreter."""
    return _PYTHON.fullmatch(word.text) is not None


def without_python(rest: Sequence[Said]) -> Sequence[Said]:
    """Take off an interpreter before the script: the launcher starts it itself and would look for a script so named."""
    if len(rest) > 1 and is_python(rest[0]):
        words = [word for word in rest[1:] if word.text != "-u"] if rest[1].text == "-u" else rest[1:]
        return words if words and words[0].text.endswith(".py") else rest
    return rest


def is_shell(word: Said) -> bool:
    """Return whether a word is a shell."""
    return _SHELL.fullmatch(word.text) is not None


def read_python(words: Sequence[Said]) -> tuple[bool, tuple[Said, ...]] | None:
    """Return whether a module is run, and the words from its name on; None if nothing of a project is run."""
    at, strays = 1, list[Said]()
    while at < len(words):
        text = words[at].text
        if text == "-m":
            module = words[at + 1 :]
            return None if not module or module[0].text.partition(" ")[0] in _NOT_A_LAUNCH else (True, tuple(module))
        if re.fullmatch(r"-m[A-Za-z_][\w.]*", text):
            return True, (Said(text[2:], words[at].names), *words[at + 1 :])
        if text in ("-c", "-", "-V", "--version", "-h", "--help"):
            return None
        if not text.startswith("-"):
            is_version = re.match(r"\d+(?:\.[\dx]+)+(?![\w./-])", text)  # `Python 3.10.x and Git` is a sentence
            is_nothing = text.rpartition("/")[2] == "setup.py" or is_version
            return None if is_nothing else (False, (words[at], *strays, *words[at + 1 :]))
        if re.match(r"--(?!check-hash|$)", text):
            strays.append(words[at])  # Python has no such flag: it is the script's, put before it by a slip
        at += 2 if text in _PYTHON_TAKES else 1
    return None


def inner_entry(words: Sequence[Said]) -> tuple[Entry | None, tuple[str, ...]]:
    """Return the entry of a command that another launcher starts: `python x.py`, `bash x.sh`, or anything else."""
    if len(words) > 1 and is_dots(words[0].text):
        words = words[1:]  # flags that were left out
    if not words:
        return None, ()
    if is_python(words[0]):
        read = read_python(words)
        return entry_of(read[1], is_module=read[0]) if read else (Entry("command", words[0].text), _texts(words[1:]))
    if is_shell(words[0]) and len(words) > 1 and not words[1].text.startswith("-"):
        return entry_of(words[1:])
    return entry_of(words, is_command=not words[0].text.endswith((".py", ".sh")))


def _texts(words: Sequence[Said]) -> tuple[str, ...]:
    return tuple(word.text for word in words)


def with_options(launch: Launch, found: Options) -> Launch:
    """Return the launch with the launcher's own flags kept for the linter."""
    return replace(launch, options=found.plain())
