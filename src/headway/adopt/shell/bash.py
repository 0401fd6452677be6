"""What bash makes of a text: asked of bash itself, because nobody else knows it exactly."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from headway.adopt.exact import find_command
from headway.errors import UsageError

_EXPAND_S: Final = 10.0
_TELL: Final = (
    "import sys; words, environ = (open('/proc/self/' + name, 'rb').read() for name in ('cmdline', 'environ')); "
    "open(int(sys.argv[1]), 'wb').write(b'%d\\n' % len(words) + words + environ)"
)
_OWN_WORDS: Final = 6
"""Words of `python -I -S -c TEXT FD` before those that are told."""
_BUILTIN_NAMES: Final = (
    ". : [ alias bg bind break builtin caller cd command compgen complete compopt continue declare dirs disown echo"
    " enable eval exec exit export false fc fg getopts hash help history jobs kill let local logout mapfile popd printf"
    " pushd pwd read readarray readonly return set shift shopt source suspend test times trap true type typeset ulimit"
    " umask unalias unset wait"
)
_BUILTINS: Final = frozenset(_BUILTIN_NAMES.split())
"""Commands that bash carries out itself."""
SHELLS_OWN: Final = frozenset({"_", "SHLVL", "PWD", "OLDPWD"})
"""Set by a shell for every program; nobody has written them into the line."""
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")


@dataclass(frozen=True, slots=True)
class Expanded:
    """A plain command as bash would start it."""

    words: tuple[str, ...]
    environ: dict[str, str]
    """All that the program would see."""


def expand(text: str, environ: Mapping[str, str] | None = None) -> Expanded | None:
    """Return the words and the environment with which bash would start a plain command; None for any other text.

    Bash gets the text with a program of ours before the command word, which tells what it was started with: words,
    defaults, globs, tildes and sums are bash's own, in the environment that is given (none: ours), and nothing of the
    line itself is run.
    """
    environ = os.environ if environ is None else environ
    place = find_command(text)
    if place is None or environ.get("BASH_ENV"):  # that file may define anything, and reading it may do anything
        return None
    told = os.memfd_create("headway-words", 0)
    try:
        teller = shlex.join([sys.executable, "-I", "-S", "-c", _TELL, str(told)])
        asked = f"{text[:place]}{teller} {text[place:]}"
        if not _ask(asked, told, environ):
            return None
        return _read(os.pread(told, os.fstat(told).st_size, 0))
    finally:
        os.close(told)


def _ask(asked: str, told: int, environ: Mapping[str, str]) -> bool:
    """Let bash expand; False where it could not, and will say why when it runs the text itself."""
    quiet = subprocess.DEVNULL
    try:
        done = subprocess.run(
            ["bash", "-c", asked],
            stdin=quiet,
            stdout=quiet,
            stderr=quiet,
            pass_fds=[told],
            env=dict(environ),  # the C library may hold more (readline adds LINES), which nobody has set
            timeout=_EXPAND_S,
            check=False,
        )
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def _read(told: bytes) -> Expanded | None:
    size, _, rest = told.partition(b"\n")
    if not size:
        return None
    given = rest[: int(size)].split(b"\0")[_OWN_WORDS:-1]
    pairs = [one.partition(b"=") for one in rest[int(size) :].split(b"\0") if one]
    environ = {os.fsdecode(name): os.fsdecode(value) for name, _, value in pairs}
    return Expanded(tuple(map(os.fsdecode, given)), environ) if given else None


def needs_bash(words: Sequence[str], environ: Mapping[str, str], *, is_text: bool) -> bool:
    """Say whether only bash can start the words: its own commands, functions of the environment, files without a head.

    In a text a command of bash comes before a program of the same name; words that the user's shell has made name a
    program, and a command of bash only where there is none.
    """
    found = shutil.which(words[0], path=environ.get("PATH"))
    if found is not None and not has_head(Path(found)):
        return True
    is_own = words[0] in _BUILTINS or f"BASH_FUNC_{words[0]}%%" in environ
    return is_own if is_text else _is_timed(words) or (is_own and found is None)


def has_head(program: Path) -> bool:
    """Say whether the kernel can execute a file; a shell takes one without a head for its own commands."""
    try:
        with program.open("rb") as file:
            return file.read(4).startswith((b"#!", b"\x7fELF"))
    except OSError:
        return True  # may be executed and not read: the kernel will tell


def _is_timed(words: Sequence[str]) -> bool:
    """Say whether the words begin with bash's own `time`: the program of that name knows no assignment."""
    return words[0] == "time" and len(words) > 1 and (words[1] == "-p" or not words[1].startswith("-"))


def quote_for_bash(words: Sequence[str]) -> tuple[str, ...]:
    """Return the command that lets bash start words of its own (`source`, `ulimit`, `time`), each word as it is."""
    head: list[str] = []
    rest = list(words)
    if _is_timed(words):
        head.append(rest.pop(0))
        head += [rest.pop(0)] if rest[0] == "-p" else []
        while rest and _ASSIGNMENT.match(rest[0]):
            name, _, value = rest.pop(0).partition("=")
            head.append(f"{name}={shlex.quote(value)}")
    return ("bash", "-c", " ".join([*head, '"$@"']), "bash", *rest)


def find_program(words: Sequence[str], environ: Mapping[str, str]) -> str:
    """Return what to execute: the first word where the shell would find it, else a path beside our interpreter."""
    name = words[0]
    if shutil.which(name, path=environ.get("PATH")) is not None:
        return name
    beside = Path(sys.executable).parent / name
    if name and "/" not in name and beside.is_file():
        return str(beside)
    if name.endswith(".py") and Path(name).is_file():
        raise UsageError("run/is-script", program=name, line=shlex.join(words))
    raise UsageError("run/no-program", program=name)
