"""The tools of `attack.py`: the runs it starts from, two ways to run a command, and what every command must hold to."""

from __future__ import annotations

import _strptime  # noqa: F401 - imported late by time.strptime, which a worker without rights could not
import contextlib
import hashlib
import importlib
import io
import json
import os
import pkgutil
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import headway.cli
import headway.config
import headway.messages
import headway.recipes
import headway.telemetry
import headway.ui
from fakes.run_fixture import write_run
from headway.cli import main as headway_main

ROOT = Path(__file__).resolve().parent.parent
TINY = str(ROOT / "tests" / "fakes" / "tiny")
HANG_S = 60.0
_MORE = 5
"""So often a command that is still at work after this time gets it again."""
EXITS = frozenset({0, 2, 3, 4, 5, 6, 93, 130, 143})
CONTROL = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]|\xc2[\x80-\x9f]|\xe2\x80[\xaa-\xae]|\xe2\x81[\xa6-\xa9]")
ESCAPES = ("\x1b[31mred", "\x1b]0;title\x07", "\x1b[2J", "a\rb", "\x9b31m", "‮gnp", "x\x08\x08")
READERS = (
    ("runs",),
    ("runs", "--json"),
    ("watch", "--once"),
    ("watch", "--once", "--json"),
    ("report",),
    ("report", "--json"),
    ("export",),
    ("export", "--format", "json"),
    ("export", "--format", "tensorboard"),
    ("ckpt", "list"),
    ("ckpt", "list", "--json"),
    ("ckpt", "verify"),
    ("ckpt", "verify", "--json"),
    ("ckpt", "prune", "--dry-run"),
    ("ckpt", "export", "--dry-run"),
    ("compare",),
    ("stop", "--wait", "0"),
    ("attach",),
    ("watch",),
)
WHOLE_FOLDER = ("runs", "compare")
JUNK: tuple[Any, ...] = (
    None,
    True,
    -1,
    0,
    10**30,
    -(10**30),
    1e308,
    float("nan"),
    float("inf"),
    "",
    "x",
    "nan",
    "…",
    "a/b",
    "../..",
    "~",
    "\x00",
    [],
    {},
    [[]],
    {"a": 1},
    [None],
    "1e400",
    "9" * 5000,
    "汉字",
    "\ud800",
    "%s {x} {0}",
    "[/bold]",
    "[red]",
    "true",
    -0.0,
)


@dataclass
class Ended:
    """How a command ended and what it said."""

    code: int | None
    out: bytes
    err: bytes
    is_hang: bool = False


@dataclass
class Verdict:
    """What a try showed."""

    family: str
    words: tuple[str, ...]
    what: str
    ended: Ended
    wrong: dict[str, str] = field(default_factory=dict)

    def text(self, most: int) -> str:
        """Return it for people."""
        said = (self.ended.out[-most:] + b"\n" + self.ended.err[-most:]).decode("utf-8", "backslashreplace")
        shown = said.encode("unicode_escape").decode().replace("\\n", "\n    ")
        head = f"{self.family}: headway {' '.join(map(ascii, self.words))}"
        return f"{head}\n  {self.what}\n  {self.ended.code} {self.wrong}\n    {shown}"


@dataclass
class Field:
    """What every try starts from."""

    place: Path
    recipe_run: Path
    """A run of the tiny recipe as the engine leaves it, or a written one where nothing may be started."""
    line_run: Path | None
    is_real: bool


@contextlib.contextmanager
def make_field(place: Path, is_real: bool = True) -> Iterator[Field]:
    """Make the runs that are copied and damaged."""
    os.environ.update(HOME=str(place / "home"), HEADWAY_CLAIMS=str(place / "claims"), OMP_NUM_THREADS="1")
    (place / "home").mkdir()
    _warm_up(place)
    if not is_real:
        run = place / "seed" / "20261118-000000_tiny_0001"
        run.parent.mkdir()
        write_run(run)
        yield Field(place, run, None, False)
        return
    words = ("train.steps=12", "eval.every=6", "save.every=4", "parallel.cpus=1", "--out=made")
    done = start(place, "train", TINY, *words)
    assert done.code == 0, done.err
    (place / "job.py").write_text("import sys\nprint('hello')\nsys.exit(3)\n")
    done = start(place, "run", "--out", "lines", "--no-training", sys.executable, "job.py")
    assert done.code == 3, done.err
    yield Field(place, next((place / "made").glob("2*")), next((place / "lines").glob("2*")), True)


def _warm_up(place: Path) -> None:
    """Import what commands import late, once and here: a worker only forks, and may become a user without rights."""
    for package in (headway.cli, headway.messages, headway.ui, headway.telemetry, headway.config, headway.recipes):
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if found.name.startswith(("headway.recipes.",)) and not found.name.endswith((".preset", ".section")):
                continue
            if ".guide." not in found.name and not found.name.endswith("__main__"):
                importlib.import_module(found.name)
    run = place / "warm" / "runs" / "20261118-000000_tiny_0000"
    run.parent.mkdir(parents=True)
    write_run(run)
    before = os.getcwd()
    os.chdir(place / "warm")
    for words in (*READERS, ("config", "show"), ("--help",), ("runs", "--lang", "zh"), ("nonsense",)):
        if words[0] in ("stop", "attach") or words == ("watch",):
            continue
        with (
            contextlib.suppress(SystemExit),
            contextlib.redirect_stdout(io.StringIO()),
            contextlib.redirect_stderr(io.StringIO()),
        ):
            headway_main(list(words))
    os.chdir(before)
    shutil.rmtree(place / "warm")


# --- two ways to run a command ---


def start(place: Path, *words: str, env: dict[str, str] | None = None, limit_s: float = HANG_S, **popen: Any) -> Ended:
    """Run a command as a process of its own."""
    command = [sys.executable, "-m", "headway", *words]
    environ = {**os.environ, "PYTHONPATH": str(ROOT / "src"), **(env or {})}
    child = subprocess.Popen(
        command,
        cwd=place,
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        **popen,
    )
    return finish(child, limit_s)


def finish(child: subprocess.Popen[bytes], limit_s: float = HANG_S) -> Ended:
    """Wait for a process to end; one that still computes when its time is up gets more."""
    for more in reversed(range(_MORE)):
        try:
            out, err = child.communicate(timeout=limit_s)
            return Ended(child.returncode, out, err)
        except subprocess.TimeoutExpired:
            if more and is_at_work(child.pid):
                continue
            os.killpg(child.pid, signal.SIGKILL)
            out, err = child.communicate()
            return Ended(None, out, err, is_hang=True)
    raise AssertionError("the last turn returns")


def call(
    place: Path,
    *words: str,
    prepare: Callable[[], None] | None = None,
    encoding: str = "utf-8",
    limit_s: float = HANG_S,
    instead: Callable[[], None] | None = None,
) -> Ended:
    """Run a command, or something else `instead`, in a forked worker: without the start of an interpreter."""
    out, err = place / ".out", place / ".err"
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid == 0:
        _work(place, words, out, err, prepare, encoding, instead)
    until, more = time.monotonic() + limit_s, _MORE
    while True:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            break
        if time.monotonic() > until:
            more -= 1
            if more and is_at_work(pid):
                until = time.monotonic() + limit_s
                continue
            os.killpg(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            return Ended(None, _read(out), _read(err), is_hang=True)
        time.sleep(0.004)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
    return Ended(os.waitstatus_to_exitcode(status), _read(out), _read(err))


def is_at_work(session: int) -> bool:
    """Say whether a process of a session computes, or would if it had a processor: on a crowded machine it may wait."""
    for _ in range(20):
        for stat in Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError):
                state, _, _, of = stat.read_text().rpartition(")")[2].split()[:4]
                if state == "R" and int(of) == session:
                    return True
        time.sleep(0.05)
    return False


def _work(place: Path, words: tuple[str, ...], out: Path, err: Path, prepare: Any, encoding: str, instead: Any) -> None:
    code = 99
    try:
        os.setsid()
        os.chdir(place)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        for number, path in ((1, out), (2, err)):
            os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644), number)
        sys.argv = ["headway", *words]
        resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
        if prepare is not None:
            prepare()
        sys.stdin, sys.stdout, sys.stderr = (_stream_of(number, encoding) for number in (0, 1, 2))
        if instead is None:
            headway_main(list(words))
        else:
            instead()
            sys.exit(0)
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1 if end.code else 0
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
    except BaseException:
        import traceback  # only where something is wrong

        with contextlib.suppress(OSError):
            os.write(2, traceback.format_exc().encode("utf-8", "replace"))
    finally:
        os._exit(code)


def _stream_of(number: int, encoding: str) -> io.TextIOWrapper | None:
    """Return what Python makes of a descriptor at its start: nothing of a closed one."""
    try:
        raw = io.FileIO(number, "rb" if number == 0 else "wb", closefd=False)
    except OSError:
        return None
    binary = io.BufferedReader(raw) if number == 0 else io.BufferedWriter(raw)
    return io.TextIOWrapper(binary, encoding=encoding, line_buffering=number == 2)


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(1 << 20)
    except OSError:
        return b""


# --- judging ---


def judge(family: str, words: tuple[str, ...], what: str, ended: Ended, exits: frozenset[int] = EXITS) -> Verdict:
    """Say what every command must hold to."""
    verdict = Verdict(family, words, what, ended)
    said = ended.out + b"\n" + ended.err
    if ended.is_hang:
        verdict.wrong["hangs"] = f"no end within {HANG_S:.0f} s"
        return verdict
    if b"Traceback (most recent call last)" in said or b"cli/bug" in said or ended.code in (1, 99):
        verdict.wrong["tracebacks"] = "a traceback, or an exit code that means one"
    elif ended.code not in exits:
        verdict.wrong["wrong_results"] = f"exit code {ended.code}"
    if found := CONTROL.search(said):
        verdict.wrong["leaks"] = f"the control character {found[0]!r} reaches the terminal"
    if "--json" in words and "--" not in words and ended.code == 0 and not _is_json(ended.out):
        verdict.wrong["wrong_results"] = "not JSON"
    return verdict


def _is_json(out: bytes) -> bool:
    try:
        for text in [out] if out.startswith((b"{\n", b"[\n")) else out.splitlines():
            json.loads(text, parse_constant=lambda name: (_ for _ in ()).throw(ValueError(name)))
    except ValueError:
        return False
    return bool(out.strip())


def prints(root: Path) -> dict[str, str]:
    """Return what a folder holds, to see whether anything changed."""
    found = {}
    for path in sorted(root.rglob("*")):
        if path.is_symlink():
            found[str(path)] = os.readlink(path)
        elif path.is_file():
            found[str(path)] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found
