"""From a user's line to what the supervisor starts: our own ranks where the line is plain, else the line itself."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from headway.adopt import Launch, Meaning, understand
from headway.cli.run_clean import is_clean_file, read_clean_file
from headway.errors import UsageError
from headway.messages import say

NATIVE: Final = ("python", "torchrun", "torch.distributed.launch")
"""Launchers whose whole work on one machine is to start ranks with an environment."""
_HARMLESS: Final = frozenset({"nohup", "time", "exec", "env", "command", "stdbuf", "setsid"})
"""Wrappers whose work the supervisor does anyway."""
_OWN_WORK: Final = ("run_path", "virtual_local_rank", "numa_binding")
"""Flags of torchrun that ask for more than ranks with an environment."""
_SCRIPTS: Final = (".sh", ".bash", ".slurm", ".sbatch")
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_]\w*=")
_REDIRECT: Final = re.compile(r"\d*[<>]|&>|&$")
_PYTHON: Final = re.compile(r"(?:.*/)?python[\d.]*")
_VERSION_S: Final = 20.0


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
    """Set before the command in the line."""
    launcher: str
    is_native: bool
    why_original: str = ""
    """What keeps it from being started natively."""
    num_ranks: int | str | None = None
    """As the line says: a number, `gpu`, `auto`, `cpu`; None: it does not say."""
    is_distributed: bool = False
    local_rank_flag: str = ""
    restarts: int | None = None
    run_id: str = ""
    """`--rdzv-id` of the line."""
    role: str = ""


def read_line(words: Sequence[str], wanted: str | None = None) -> ReadLine:
    """Read a line given as words, as one text, as a script's path or a clean file's; `wanted` is `--launcher`.

    Raises:
        UsageError: a native start was asked for and is not possible, or the program is not there.
    """
    if len(words) == 1 and is_clean_file(words[0]):
        words = [read_clean_file(Path(words[0]))]
    script = Path(words[0])
    if len(words) == 1 and script.suffix in _SCRIPTS and script.is_file():
        return _original(words[0], ("bash", words[0]), script.stem, say("run/why-script"), wanted)
    is_text = len(words) == 1
    text = words[0] if is_text else shlex.join(words)
    try:
        meaning = understand(text)
    except UsageError:
        if is_text:
            raise
        meaning = Meaning()  # too long to be read, but it can still be run
    whole = ("bash", "-c", text) if is_text and _needs_shell(text) else tuple(shlex.split(text) if is_text else words)
    launch = meaning.launch
    name = _run_name(launch, whole)
    why = _why_not_native(meaning, text if is_text else "")
    if why or wanted == "original" or launch is None:
        return _original(text, whole, name, why, wanted)
    return _native(text, launch, name)


def _why_not_native(meaning: Meaning, text: str) -> str:
    """Return what of a line is more than starting ranks here; empty: nothing."""
    launch = meaning.launch
    if launch is None or launch.entry is None:
        return say("run/why-unknown")
    if launch.launcher not in NATIVE:
        return say("run/why-launcher", launcher=launch.launcher)
    if launch.nnodes not in (None, 1, "1", "1:1"):
        return say("run/why-nodes", nodes=launch.nnodes)
    if meaning.unresolved:
        return say("run/why-unresolved", names=", ".join(meaning.unresolved))
    if len(meaning.launches) > 1 or _has_more_commands(text):
        return say("run/why-commands")
    strange = [name for name in launch.wrappers if name not in _HARMLESS]
    if strange or launch.sbatch:
        return say("run/why-launcher", launcher=", ".join(strange) or "sbatch")
    flag = next((name for name in _OWN_WORK if name in launch.options), None)
    return say("run/why-launcher", launcher=f"--{flag.replace('_', '-')}") if flag is not None else ""


def _original(text: str, argv: tuple[str, ...], name: str, why: str, wanted: str | None) -> ReadLine:
    if wanted == "native":
        raise UsageError("run/not-native", why=why)
    argv, env = _split_environment(argv)
    if not argv or shutil.which(argv[0]) is None:
        beside = Path(sys.executable).parent / (argv[0] if argv else "")
        if not argv or "/" in argv[0] or not beside.is_file():
            raise UsageError("run/no-program", program=argv[0] if argv else text)
        argv = (str(beside), *argv[1:])
    launcher = Path(argv[0]).name
    return ReadLine(text=text, name=name, argv=argv, env=env, launcher=launcher, is_native=False, why_original=why)


def _split_environment(argv: tuple[str, ...]) -> tuple[tuple[str, ...], dict[str, str]]:
    """Take `NAME=value` words from the front."""
    env: dict[str, str] = {}
    rest = list(argv)
    while rest and (_ASSIGNMENT.match(rest[0]) or rest[0] in _HARMLESS):
        word = rest.pop(0)
        if _ASSIGNMENT.match(word):
            name, _, env[name] = word.partition("=")
    return tuple(rest), env


def _native(text: str, launch: Launch, name: str) -> ReadLine:
    assert launch.entry is not None
    env = dict(launch.env)
    if launch.cuda_visible_devices is not None:
        env["CUDA_VISIBLE_DEVICES"] = ",".join(map(str, launch.cuda_visible_devices))
    if launch.launcher == "python":
        return ReadLine(
            text=text, name=name, argv=_python_words(text), env=env, launcher="python", is_native=True, num_ranks=None
        )
    python = _launcher_python(text)
    entry = launch.entry
    if entry.kind == "command":
        head: tuple[str, ...] = (entry.name,)
    else:
        head = (python, "-u", "-m", entry.name) if entry.kind == "module" else (python, "-u", entry.name)
    says_rank = launch.launcher == "torch.distributed.launch" and "use_env" not in launch.options
    restarts = launch.options.get("max_restarts", "")
    return ReadLine(
        text=text,
        name=name,
        argv=(*head, *launch.args),
        env=env,
        launcher=launch.launcher,
        is_native=True,
        num_ranks=launch.nproc_per_node if launch.nproc_per_node is not None else 1,
        is_distributed=True,
        local_rank_flag=_local_rank_flag(python) if says_rank else "",
        restarts=int(restarts) if restarts.isdigit() else None,
        run_id=launch.options.get("rdzv_id", ""),
        role=launch.options.get("role", ""),
    )


def _python_words(text: str) -> tuple[str, ...]:
    """Return a plain line from its interpreter on, redirects left out, with the flags Python itself was given."""
    words = shlex.split(text)
    while words and not _PYTHON.fullmatch(words[0]):
        words.pop(0)
    kept: list[str] = []
    skip = False
    for word in words:
        if skip:
            skip = False
        elif _REDIRECT.match(word):
            skip = word in (">", ">>", "<", "2>", "2>>", "&>", "&>>", "1>")
        else:
            kept.append(word)
    return (_find_program(kept[0]), *kept[1:])


def _find_program(name: str) -> str:
    """Return where a program is: as the shell would find it, else beside our own interpreter."""
    found = shutil.which(name)
    if found is not None:
        return found
    beside = Path(sys.executable).parent / name
    if "/" not in name and beside.is_file():
        return str(beside)
    raise UsageError("run/no-program", program=name)


def _launcher_python(text: str) -> str:
    """Return the interpreter that the line's own launcher would have used."""
    words = shlex.split(text)
    for word in words:
        if _PYTHON.fullmatch(word):
            return _find_program(word)
        if Path(word).name == "torchrun":
            return _shebang(_find_program(word))
    return _find_program("python")


def _shebang(program: str) -> str:
    with open(program, "rb") as file:
        first = file.readline(4096).decode("utf-8", "replace").strip()
    if first.startswith("#!") and Path(first[2:].split()[0]).name.startswith("python"):
        return first[2:].split()[0]
    beside = Path(program).parent / "python"
    return str(beside) if beside.exists() else _find_program("python")


def _local_rank_flag(python: str) -> str:
    """Return how that interpreter's torch spells the argument: with a dash since 2.0."""
    asked = "import importlib.metadata as m; print(m.version('torch'))"
    try:
        done = subprocess.run([python, "-c", asked], capture_output=True, text=True, timeout=_VERSION_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return "--local-rank"
    return "--local_rank" if done.stdout.startswith(("0.", "1.")) else "--local-rank"


def _needs_shell(text: str) -> bool:
    return bool(re.search(r"[$|;&<>*?`~\n#(){}]", text))


def _has_more_commands(text: str) -> bool:
    """Say whether a text goes on after, or begins before, its one command."""
    bare = re.sub(r"'[^']*'|\"(?:\\.|[^\"\\])*\"", "", text.strip()).replace("\\\n", " ")
    bare = re.sub(r"\d?>&\d|&>>?", ">", bare).rstrip("& \t\n")
    return bool(re.search(r"[|;&\n]", bare))


def _run_name(launch: Launch | None, argv: Sequence[str]) -> str:
    name = launch.entry.name if launch is not None and launch.entry is not None else argv[0] if argv else "run"
    stem = Path(name).name.removesuffix(".py")
    return re.sub(r"[^A-Za-z0-9.-]+", "-", stem).strip("-.")[:40] or "run"


def count_cpus() -> int:
    """Return the processors this process may use."""
    return len(os.sched_getaffinity(0))
