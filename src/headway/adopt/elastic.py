"""The flags of torchrun read as torchrun reads them, `PET_…` variables included, and what keeps it as the launcher.

The tables of `launchers/` understand what somebody wrote; ranks that are started in torchrun's place need more: each
flag is either carried out here, or the line keeps its own launcher.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, NoReturn

_VALUE_NAMES: Final = (
    "nnodes nproc_per_node rdzv_backend rdzv_endpoint rdzv_id rdzv_conf max_restarts monitor_interval start_method"
    " event_log_handler role log_dir redirects tee local_ranks_filter duplicate_stdout_filters duplicate_stderr_filters"
    " node_rank master_addr master_port local_addr logs_specs numa_binding signals_to_handle shutdown_timeout"
)
_VALUES: Final = tuple(_VALUE_NAMES.split())
_BARE: Final = ("standalone", "module", "no_python", "run_path", "virtual_local_rank")
_SHORT: Final = {"redirects": "-r", "tee": "-t", "module": "-m"}
_NO_VARIABLE: Final = ("logs_specs", "numa_binding")
"""Flags that torchrun does not read from the environment."""
_MEETING: Final = (
    "rdzv_backend rdzv_endpoint rdzv_conf node_rank master_addr master_port local_addr monitor_interval start_method"
)
"""How the nodes meet and how the agent watches: on one node the supervisor does both, with an address of its own."""
_DONE_NAMES: Final = f"{_MEETING} nnodes nproc_per_node rdzv_id max_restarts role standalone module no_python use_env"
_DONE: Final = frozenset(_DONE_NAMES.split())
"""Flags that are carried out without torchrun."""
_BACKENDS: Final = (None, "static", "c10d")
_JUDGED: Final = {
    "nproc_per_node": r"[1-9]\d{0,3}|auto|gpu|cpu",
    "max_restarts": r"\d{1,6}",
    "master_port": r"\d{1,5}",
    "node_rank": r"0",
}
_OWN_VARIABLES: Final = (
    "PYTHON_EXEC",
    "TORCHELASTIC_ENABLE_FILE_TIMER",
    "TORCHELASTIC_HEALTH_CHECK_PORT",
    "TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE",
)
"""Variables that ask the agent for more."""
_PYTHON: Final = re.compile(r"(?:.*/)?python[\d.]*")
_PYTHON_BARE: Final = ("-u", "-B", "-O", "-OO", "-v", "-q", "-b", "-d")
_PYTHON_VALUES: Final = ("-W", "-X")
_MODULES: Final = ("torch.distributed.run", "torch.distributed.launch")


@dataclass(frozen=True, slots=True, kw_only=True)
class Elastic:
    """A torchrun line: what the ranks run, on how many ranks, and what keeps torchrun itself."""

    program: str
    """`torchrun` or the interpreter, as written."""
    is_module: bool
    """`python -m torch.distributed.run` or `.launch`; else the program torchrun."""
    is_launch: bool
    """`torch.distributed.launch`, which tells the rank as an argument unless `--use-env` is given."""
    keeps: str = ""
    """The flag or variable that only torchrun itself can carry out."""
    num_nodes: str = "1"
    num_ranks: str = "1"
    kind: str = "script"
    """`script`, `module`, or `command` without an interpreter."""
    entry: str = ""
    args: tuple[str, ...] = ()
    max_restarts: int = 0
    run_id: str = ""
    role: str = "default"
    uses_env: bool = True

    @property
    def is_one_node(self) -> bool:
        """Whether the line is for one machine."""
        return self.num_nodes in ("1", "1:1")

    @property
    def most_nodes(self) -> str:
        """The machines it begins with: `4` of `2:4`."""
        return self.num_nodes.rpartition(":")[2]


class _UnreadError(Exception):
    """Torchrun itself must answer: help, a mistake, a flag that is not known here."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise _UnreadError(message)


def read_elastic(words: Sequence[str], environ: Mapping[str, str]) -> Elastic | None:
    """Read a torchrun line; None for any other."""
    head = _head(list(words))
    if head is None:
        return None
    line, flags = head
    try:
        given = vars(_parser(has_use_env=line.is_launch).parse_args(flags))
    except _UnreadError as unread:
        return replace(line, keeps=str(unread))
    return _carry_out(line, given, environ)


def _head(words: list[str]) -> tuple[Elastic, list[str]] | None:
    if words and words[0].rpartition("/")[2] == "torchrun":
        return Elastic(program=words[0], is_module=False, is_launch=False), words[1:]
    if not words or not _PYTHON.fullmatch(words[0]):
        return None
    place = 1
    keeps = ""
    while place < len(words) and words[place].startswith("-") and words[place] != "-m":
        if words[place] in ("-c", "-", "--"):
            return None
        is_known = words[place] in _PYTHON_BARE or words[place].startswith(_PYTHON_VALUES)
        keeps = keeps if is_known else words[place]
        place += 2 if words[place] in _PYTHON_VALUES else 1
    if words[place : place + 1] != ["-m"] or words[place + 1 : place + 2] not in [[name] for name in _MODULES]:
        return None
    is_launch = words[place + 1] == _MODULES[1]
    return Elastic(program=words[0], is_module=True, is_launch=is_launch, keeps=keeps), words[place + 2 :]


def _parser(*, has_use_env: bool) -> _Parser:
    # Without shortened flags: which of them are plain depends on the version of torch.
    parser = _Parser(add_help=False, allow_abbrev=False, argument_default=None)
    for name in _VALUES:
        parser.add_argument(*_spellings(name), dest=name)
    for name in (*_BARE, *(["use_env"] if has_use_env else [])):
        parser.add_argument(*_spellings(name), dest=name, action="store_true", default=None)
    parser.add_argument("training_script")
    parser.add_argument("training_script_args", nargs=argparse.REMAINDER)
    return parser


def _spellings(name: str) -> list[str]:
    long = dict.fromkeys((f"--{name.replace('_', '-')}", f"--{name}"))
    return [*([_SHORT[name]] if name in _SHORT else []), *long]


def _carry_out(line: Elastic, given: dict[str, object], environ: Mapping[str, str]) -> Elastic:
    flags = {name: value for name, value in given.items() if value is not None and not name.startswith("training_")}
    keeps = line.keeps or next((name for name in _OWN_VARIABLES if environ.get(name)), "")
    for name in (*_VALUES, *_BARE):
        variable = f"PET_{name.upper()}"
        if name in flags or name in _NO_VARIABLE or variable not in environ:
            continue
        value: object = environ[variable]
        if name in _BARE:
            is_number = re.fullmatch(r"\s*\d+\s*", environ[variable])
            keeps = keeps if is_number else variable
            value = bool(is_number) and int(environ[variable]) != 0
        if value is not False:
            flags[name] = value
        if name not in _DONE and value is not False:
            keeps = keeps or variable
    keeps = keeps or next((f"--{name.replace('_', '-')}" for name in flags if name not in _DONE), "")
    restarts = str(flags.get("max_restarts", "0"))
    rest = given["training_script_args"]
    assert isinstance(rest, list), "argparse gives a remainder as a list"
    return replace(
        line,
        keeps=keeps or _doubt(flags),
        num_nodes=str(flags.get("nnodes", "1")),
        num_ranks=str(flags.get("nproc_per_node", "1")),
        kind="module" if flags.get("module") else "command" if flags.get("no_python") else "script",
        entry=str(given["training_script"]),
        args=tuple(rest),
        max_restarts=int(restarts) if restarts.isdecimal() else 0,
        run_id="" if flags.get("standalone") else str(flags.get("rdzv_id", "")),
        role=str(flags.get("role", "default")),
        uses_env=not line.is_launch or bool(flags.get("use_env")),
    )


def _doubt(flags: Mapping[str, object]) -> str:
    """Return a flag whose value only torchrun can judge."""
    if flags.get("rdzv_backend") not in _BACKENDS and not flags.get("standalone"):
        return "--rdzv-backend"
    for name, pattern in _JUDGED.items():
        if name in flags and not re.fullmatch(pattern, str(flags[name])):
            return f"--{name.replace('_', '-')}"
    return "--no-python" if flags.get("module") and flags.get("no_python") else ""
