"""From a user's line to what the supervisor starts: our own ranks where the line is plain, else the line itself.

Words that the user's shell has made are passed on as they are. A text is bash's: bash expands it where it is one plain
command, and runs it everywhere else. Nothing here reads a quote, a variable or a redirect by rules of its own.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from headway.adopt.elastic import Elastic, read_elastic
from headway.adopt.exact import stay_in_front
from headway.adopt.interpreter import Torch, find_torch
from headway.adopt.per_node import spread_over_nodes
from headway.adopt.record import Launch
from headway.adopt.reread import is_clean_file, read_clean_file
from headway.adopt.shell.bash import SHELLS_OWN, expand, find_program, has_head, needs_bash, quote_for_bash
from headway.adopt.tidy import find_paste
from headway.adopt.understand import understand
from headway.errors import UsageError
from headway.messages import say

_SCRIPTS: Final = (".sh", ".bash", ".slurm", ".sbatch")
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
_PYTHON: Final = re.compile(r"(?:.*/)?python[\d.]*")
_LOCAL_RANK: Final = "${local_rank}"
"""What torch itself puts in the place of a rank's number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadLine:
    """A line, understood far enough to be run."""

    text: str
    """As typed."""
    name: str
    """For the run's directory."""
    argv: tuple[str, ...]
    """What a rank executes, or the whole line under its original launcher."""
    env: dict[str, str]
    """What the line's program sees beyond the environment that was given, or otherwise."""
    unset: tuple[str, ...] = ()
    """Variables of that environment that it does not see."""
    launcher: str
    is_native: bool
    why_original: str = ""
    """What keeps it from being started natively."""
    num_ranks: int | str | None = None
    """As the line says: a number, `gpu`, `auto`, `cpu`; None: it does not say."""
    is_distributed: bool = False
    has_macros: bool = False
    """Torch puts the rank's number into the arguments."""
    spans_nodes: bool = False
    """The line's launcher is started once per node, and told of the others."""
    restarts: int | None = None
    run_id: str = ""
    """`--rdzv-id` of the line."""
    role: str = ""
    notes: tuple[str, ...] = ()
    """What the user should know before it starts."""

    @property
    def set_names(self) -> list[str]:
        """Variables that the line sets."""
        return sorted(self.env.keys() - SHELLS_OWN)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Given:
    """Words to start, with all that their program sees."""

    words: tuple[str, ...]
    environ: Mapping[str, str]
    base: Mapping[str, str]
    """What a program sees for which the line sets nothing."""
    text: str
    """As typed."""
    is_text: bool = False
    """Bash made the words of a text; else the user's own shell has."""
    in_bash: tuple[str, ...] = ()
    """How bash starts the same."""
    notes: tuple[str, ...] = ()
    num_nodes: int = 1
    """That it is to run on by our own means."""
    first: str = ""
    """The program that a shell would have started, where it is no longer the first word."""


def read_line(
    words: Sequence[str],
    wanted: str | None = None,
    environ: Mapping[str, str] | None = None,
    *,
    num_nodes: int = 1,
) -> ReadLine:
    """Read a line given as words, as one text, as a script's path or a clean file's.

    Args:
        words: the line.
        wanted: `--launcher`.
        environ: what the user's shell would start it with; none: this process's own.
        num_nodes: nodes that it is to run on by our own means.

    Raises:
        UsageError: a native start was asked for and is not possible, or the program is not there.
    """
    base = os.environ if environ is None else environ
    if len(words) > 1:
        return _start(replace(_given(words, base), num_nodes=num_nodes), wanted)
    if is_clean_file(words[0]):
        return _read_text(read_clean_file(Path(words[0])), wanted, base, is_typed=False, num_nodes=num_nodes)
    script = Path(words[0])
    if script.suffix in _SCRIPTS and script.is_file():
        # Without its folder, or without the right to execute it, a shell would refuse; what is meant is plain.
        is_program = "/" in words[0] and os.access(script, os.X_OK) and has_head(script)
        argv = (words[0],) if is_program else ("bash", words[0])
        given = _Given(words=argv, environ=base, base=base, text=words[0])
        return _original(given, script.stem, say("run/why-script"), wanted)
    return _read_text(words[0], wanted, base, num_nodes=num_nodes)


def _given(words: Sequence[str], base: Mapping[str, str]) -> _Given:
    """Take `NAME=value` from the front, as `env` does; everything else stays as the user's shell has made it."""
    environ = dict(base)
    rest = list(words)
    while rest and _ASSIGNMENT.match(rest[0]):
        name, _, environ[name] = rest.pop(0).partition("=")
    if not rest:
        raise UsageError("run/no-program", program=words[-1])
    text, in_bash = shlex.join(words), quote_for_bash(rest)
    return _Given(words=tuple(rest), environ=environ, base=base, text=text, in_bash=in_bash)


def _read_text(
    text: str, wanted: str | None, base: Mapping[str, str], *, is_typed: bool = True, num_nodes: int = 1
) -> ReadLine:
    command, is_behind = stay_in_front(text)
    notes = [say("run/no-background")] if is_behind else []
    pasted = find_paste(text) if is_typed else None
    if pasted is not None:
        notes.append(say("run/pasted-note", **_pasted(text, pasted)))
    words = ("bash", "-c", command)
    given = _Given(
        words=words, environ=base, base=base, text=text, is_text=True, notes=tuple(notes), num_nodes=num_nodes
    )
    expanded = expand(command, base)
    if expanded is None:
        return _original(given, _name_text(text), say("run/why-shell"), wanted)
    plain = replace(given, words=expanded.words, environ=expanded.environ, in_bash=given.words)
    try:
        return _start(plain, wanted)
    except UsageError as refused:
        if pasted is None or refused.code != "run/no-program":
            raise
        raise UsageError("run/pasted", program=expanded.words[0], **_pasted(text, pasted)) from refused


def _pasted(text: str, pasted: tuple[str, int]) -> dict[str, Any]:
    return {"line": pasted[1], "what": say(pasted[0]), "text": shlex.quote(text)}


def _start(given: _Given, wanted: str | None) -> ReadLine:
    """Decide over words: ranks of our own, the program itself, or bash for what only bash can start."""
    given = _without_env(given)
    launch = _recognise(given.words)
    name = _run_name(launch, given.words)
    if needs_bash(given.words, given.environ, is_text=given.is_text):
        return _original(_through_bash(given), name, say("run/why-bash", word=given.words[0]), wanted)
    elastic = read_elastic(given.words, given.environ)
    if elastic is not None:
        return _start_elastic(given, elastic, name, wanted)
    if launch is None or launch.entry is None:
        return _original(given, name, say("run/why-unknown"), wanted)
    if launch.launcher != "python" or launch.wrappers or not _PYTHON.fullmatch(given.words[0]):
        what = ", ".join(launch.wrappers) or launch.launcher
        spread = spread_over_nodes(launch, given.words, given.num_nodes) if given.num_nodes > 1 else None
        if spread is not None and wanted != "native":
            line = _original(replace(given, words=spread), name, "", wanted)
            return replace(line, spans_nodes=True, has_macros=True)
        return _original(given, name, say("run/why-launcher", launcher=what), wanted)
    return _original(given, name, "", wanted) if wanted == "original" else _plain_python(given, name)


def _without_env(given: _Given) -> _Given:
    """Do what an `env` without flags does before Python or torchrun, so that their ranks can be started."""
    if given.words[0] != "env":
        return given
    environ, rest = dict(given.environ), list(given.words[1:])
    while rest and _ASSIGNMENT.match(rest[0]):
        name, _, environ[name] = rest.pop(0).partition("=")
    is_ours = bool(rest) and (_PYTHON.fullmatch(rest[0]) or Path(rest[0]).name == "torchrun")
    return replace(given, words=tuple(rest), environ=environ, first="env") if is_ours else given


def _through_bash(given: _Given) -> _Given:
    environ = given.environ
    if not given.is_text and environ.get("SHLVL", "").isdecimal():
        # The program must not see that there is one shell more than without us.
        environ = {**environ, "SHLVL": str(int(environ["SHLVL"]) - 1)}
    return replace(given, words=given.in_bash, environ=given.base if given.is_text else environ)


def _start_elastic(given: _Given, line: Elastic, name: str, wanted: str | None) -> ReadLine:
    """Start the ranks that torchrun would start, if it is known exactly which."""
    if line.keeps:
        why = say("run/why-launcher", launcher=line.keeps)
    elif not line.is_one_node and given.num_nodes > 1 and line.most_nodes != str(given.num_nodes):
        raise UsageError("nodes/line-nodes", there=line.most_nodes, here=given.num_nodes)
    elif not line.is_one_node and given.num_nodes == 1:
        why = say("run/why-nodes", nodes=line.num_nodes)
    else:
        torch = find_torch(line, given.environ) if wanted != "original" else None
        if torch is not None:
            return _elastic_ranks(given, line, torch, name)
        why = say("run/why-not-torchs", program=line.program) if wanted != "original" else ""
    return _original(given, name, why, wanted)


def _elastic_ranks(given: _Given, line: Elastic, torch: Torch, name: str) -> ReadLine:
    head = {"module": (torch.python, "-u", "-m"), "script": (torch.python, "-u"), "command": ()}[line.kind]
    told = () if line.uses_env else (f"{torch.local_rank_flag}={_LOCAL_RANK}",)
    return ReadLine(
        **_common(given, name),
        argv=(*head, line.entry, *told, *line.args),
        launcher="torch.distributed.launch" if line.is_launch else "torchrun",
        is_native=True,
        num_ranks=line.num_ranks if not line.num_ranks.isdecimal() else int(line.num_ranks),
        is_distributed=True,
        has_macros=True,
        restarts=line.max_restarts,
        run_id=line.run_id,
        role=line.role,
    )


def _plain_python(given: _Given, name: str) -> ReadLine:
    argv = (find_program(given.words, given.environ), *given.words[1:])
    return ReadLine(**_common(given, name), argv=argv, launcher="python", is_native=True)


def _original(given: _Given, name: str, why: str, wanted: str | None) -> ReadLine:
    if wanted == "native":
        raise UsageError("run/not-native", why=why)
    argv = (find_program(given.words, given.environ), *given.words[1:])
    launcher = Path(given.words[0]).name
    return ReadLine(**_common(given, name), argv=argv, launcher=launcher, is_native=False, why_original=why)


def _common(given: _Given, name: str) -> dict[str, Any]:
    """Return the fields that all ways of starting share. Any: fields of several types."""
    environ = dict(given.environ)
    if "_" in environ:  # a shell names there the file that it executes
        first = given.first or given.words[0]
        environ["_"] = shutil.which(first, path=environ.get("PATH")) or first
    changed = {key: value for key, value in environ.items() if given.base.get(key) != value}
    unset = tuple(key for key in given.base if key not in environ)
    return {"text": given.text, "name": name, "env": changed, "unset": unset, "notes": given.notes}


def _recognise(words: Sequence[str]) -> Launch | None:
    """Return what the line is, for its name and for the kind of its launcher; what is started does not come from it."""
    try:
        return understand(shlex.join(words)).launch
    except UsageError:
        return None  # too long to be read, but it can still be run


def _name_text(text: str) -> str:
    try:
        return _run_name(understand(text).launch, ("run",))
    except UsageError:
        return "run"


def _run_name(launch: Launch | None, words: Sequence[str]) -> str:
    name = launch.entry.name if launch is not None and launch.entry is not None else words[0]
    stem = Path(name).name.removesuffix(".py")
    return re.sub(r"[^A-Za-z0-9.-]+", "-", stem).strip("-.")[:40] or "run"
