"""What a test leaves behind: variables, the current folder, threads, processes, files outside its own folder."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PATIENCE_S = 5.0
"""Threads and processes that were told to end may need a moment on busy cores."""
_SET_BY_OTHERS = {"PYTEST_CURRENT_TEST", "TORCHINDUCTOR_CACHE_DIR"}
"""By pytest for each test, and by torch once for the whole process."""
_MADE_BY_TOOLS = {"__pycache__", ".pytest_cache", ".hypothesis", ".mypy_cache", ".ruff_cache", ".import_linter_cache"}
_MADE_BY_TOOLS |= {".cache", ".config", ".ipython"}  # in the home of the test process
_LIVE_ON = ("pytest_timeout", "execnet", "tqdm_monitor")
"""Threads that libraries make once for the whole process."""
_HELPERS = ("multiprocessing.resource_tracker", "multiprocessing.forkserver")
"""Processes, and their folder of sockets, that multiprocessing makes once for the whole process."""
_HELPERS_FOLDERS = ("pymp-", "torchinductor_", "torchelastic_")


@dataclass(frozen=True)
class Seen:
    """What is there at one moment."""

    environment: dict[str, str]
    folder: str
    threads: frozenset[threading.Thread]
    children: frozenset[int]
    files: frozenset[str]


def look(places: tuple[Path, ...]) -> Seen:
    """Return what is there now; `places` are the folders in which nothing may appear."""
    return Seen(
        environment={name: value for name, value in os.environ.items() if name not in _SET_BY_OTHERS},
        folder=_folder(),
        threads=frozenset(threading.enumerate()),
        children=frozenset(_children()),
        files=frozenset(_files(places)),
    )


def list_leaks(before: Seen, after: Seen) -> list[str]:
    """Return what `after` has and `before` had not, one sentence each."""
    old, new = before.environment, after.environment
    found = [f"variable {name} is {new.get(name)!r}, was {old.get(name)!r}" for name in sorted(_differ(old, new))]
    if before.folder != after.folder:
        found.append(f"the current folder is {after.folder}, was {before.folder}")
    found += [f"thread {one.name!r} lives on" for one in after.threads - before.threads if _is_ours(one)]
    found += [f"process {pid} lives on: {_command(pid)}" for pid in sorted(after.children - before.children)]
    found += [f"file {path} was made outside tmp_path" for path in sorted(after.files - before.files)]
    return found


@contextmanager
def no_leaks(*places: Path, own: Callable[[], Path | None] = lambda: None) -> Iterator[None]:
    """Fail when something is left behind; what can be put back is put back, so that one leak has one victim.

    Args:
        own: says the test's own folder: no process that works there may outlive the test, whoever its parent is.
    """
    before = look(places)
    yield
    deadline = time.monotonic() + PATIENCE_S
    while leaks := [*list_leaks(before, look(places)), *_workers_in(own())]:
        if not _may_end_by_itself(leaks) or time.monotonic() > deadline:
            break
        time.sleep(0.02)
    _put_back(before)
    assert not leaks, "left behind: " + "; ".join(leaks)


def _may_end_by_itself(leaks: list[str]) -> bool:
    return any("lives on" in leak for leak in leaks)


def _put_back(before: Seen) -> None:
    for name in _differ(before.environment, dict(os.environ)) - _SET_BY_OTHERS:
        if name in before.environment:
            os.environ[name] = before.environment[name]
        else:
            del os.environ[name]
    if _folder() != before.folder:
        os.chdir(before.folder)


def _differ(old: dict[str, str], new: dict[str, str]) -> set[str]:
    return {name for name in {*old, *new} if old.get(name) != new.get(name)}


def _folder() -> str:
    try:
        return os.getcwd()
    except FileNotFoundError:
        return "gone"


def _is_ours(thread: threading.Thread) -> bool:
    return thread.is_alive() and not thread.name.startswith(_LIVE_ON)


def _children() -> Iterator[int]:
    for place in Path("/proc/self/task").glob("*/children"):
        try:
            listed = place.read_text().split()
        except OSError:  # the thread has ended since
            continue
        yield from (int(pid) for pid in listed if _lives(int(pid)) and not _is_helper(int(pid)))


def _is_helper(pid: int) -> bool:
    return any(name in _command(pid) for name in _HELPERS)


def _lives(pid: int) -> bool:
    """Whether it is more than an entry that its parent has not read yet."""
    try:
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return False


def _command(pid: int) -> str:
    """Return its command line; empty for a moment after its start, and once it is dead."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace").strip()
    except OSError:
        return ""


def _workers_in(own: Path | None) -> list[str]:
    found = []
    for place in Path("/proc").iterdir() if own is not None and own.exists() else ():
        if place.name.isdigit() and place.name != str(os.getpid()):
            try:
                folder = os.readlink(place / "cwd")
            except OSError:  # not ours, or gone
                continue
            if f"{folder}/".startswith(f"{own}/") and _lives(int(place.name)):
                found.append(f"process {place.name} lives on in {folder}: {_command(int(place.name))}")
    return found


def _files(places: tuple[Path, ...]) -> Iterator[str]:
    for place in places:
        for entry in os.scandir(place):
            if entry.name not in _MADE_BY_TOOLS and not entry.name.startswith(_HELPERS_FOLDERS):
                yield entry.path
