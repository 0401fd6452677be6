"""More families of `attack.py`: what surrounds a command and a run: paths, limits, disks, clocks, racing commands."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import random
import re
import resource
import shutil
import signal
import socket
import sqlite3
import stat
import subprocess
import sys
import threading
import time
import zlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from attack_worker import (
    CONTROL,
    EXITS,
    HANG_S,
    JUNK,
    READERS,
    ROOT,
    TINY,
    WHOLE_FOLDER,
    Ended,
    Field,
    Verdict,
    call,
    judge,
    start,
)

_LIBC = ctypes.CDLL(None, use_errno=True)
_NEWNS = 0x00020000
_PRIVATE = 0x4000 | 0x40000


def is_mountable() -> bool:
    """Say whether we may have mounts of our own."""
    pid = os.fork()
    if pid == 0:
        os._exit(0 if own_mounts() else 1)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def own_mounts() -> bool:
    """Give this process mounts of its own."""
    return _LIBC.unshare(_NEWNS) == 0 and _LIBC.mount(b"none", b"/", None, _PRIVATE, None) == 0


def mount_tmpfs(place: Path, options: str) -> bool:
    """Mount an empty small disk; only this process and its children see it."""
    return own_mounts() and _LIBC.mount(b"none", os.fsencode(place), b"tmpfs", 0, options.encode()) == 0


def _copy_run(field: Field, chance: random.Random, place: Path) -> Path:
    sources = [field.recipe_run, *([field.line_run] if field.line_run else [])]
    for source in chance.sample(sources, chance.randint(1, len(sources))):
        shutil.copytree(source, place / "runs" / source.name, symlinks=True, dirs_exist_ok=True)
    return chance.choice(sorted((place / "runs").iterdir()))


def _reader(chance: random.Random, run: Path) -> tuple[str, ...]:
    words = chance.choice(READERS)
    if words[0] in WHOLE_FOLDER:
        return words
    return (*words[:2], run.name, *words[2:]) if words[0] == "ckpt" else (words[0], run.name, *words[1:])


# --- the index ---


def bad_index(field: Field, chance: random.Random, place: Path) -> Verdict:
    """An index of runs that is damaged, foreign, of another version, or locked by somebody."""
    run = _copy_run(field, chance, place)
    index = place / "runs" / "index.sqlite"
    way = chance.choice(
        ("bytes", "flip", "cut", "schema", "values", "sealed", "locked", "folder", "fifo", "wal", "read-only")
    )
    if way not in ("bytes", "folder", "fifo"):
        call(place, "runs")
    held = None
    if way == "bytes":
        index.write_bytes(
            chance.choice((b"", b"x", b"SQLite format 3\0" + chance.randbytes(5000), chance.randbytes(99)))
        )
    elif way in ("flip", "cut") and index.exists():
        data = bytearray(index.read_bytes())
        for _ in range(chance.choice((1, 30, 500))):
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        index.write_bytes(data if way == "flip" else data[: chance.randrange(len(data))])
    elif way == "sealed" and index.exists():
        _seal_junk(index, chance)
    elif way in ("schema", "values", "locked") and index.exists():
        held = sqlite3.connect(index, timeout=0.1, check_same_thread=False)
        with contextlib.suppress(sqlite3.Error):
            tables = [row[0] for row in held.execute("select name from sqlite_master where type='table'")]
            for table in tables:
                if way == "schema":
                    held.execute(f'drop table "{table}"')
                    held.execute(f'create table "{table}" (a int, b text)')
                elif way == "values":
                    columns = [row[1] for row in held.execute(f'pragma table_info("{table}")')]
                    junk = chance.choice((None, -1, b"\xff\x00", "\x1b[31m", 1e308, "nan", 10**18))
                    held.execute(f'update or ignore "{table}" set "{chance.choice(columns)}" = ?', (junk,))
            held.commit()
            if way == "locked":
                held.execute("begin exclusive")
    elif way == "folder":
        index.mkdir()
    elif way == "fifo":
        os.mkfifo(index)
    elif way == "wal":
        for end in ("-wal", "-shm", "-journal"):
            (place / "runs" / f"index.sqlite{end}").write_bytes(chance.randbytes(chance.choice((0, 100, 40_000))))
    elif way == "read-only":
        os.chmod(place / "runs", 0o555)
    words = chance.choice((("runs",), ("runs", "--json"), ("compare",), ("watch", "--once"), ("report", run.name)))
    ended = call(place, *words)
    if held is not None:
        held.close()
    os.chmod(place / "runs", 0o755)
    return judge("index", words, way, ended)


def _seal_junk(index: Path, chance: random.Random) -> None:
    """Put junk into the rows, under right checksums."""
    with contextlib.closing(sqlite3.connect(index)) as held:
        for key, stamp, text in held.execute("select name, stamp, row from runs").fetchall():
            row = json.loads(text)
            row[chance.choice(list(row))] = chance.choice(JUNK)
            text = json.dumps(row) if chance.random() < 0.9 else chance.choice(("[]", "[" * 100_000, "7", "{"))
            crc = zlib.crc32("\0".join((key, stamp, text)).encode("utf-8", "replace"))
            held.execute("update runs set row = ?, crc = ? where name = ?", (text, crc, key))
        held.commit()


# --- something else at every path ---


def odd_path(field: Field, chance: random.Random, place: Path) -> Verdict:
    """Something other than it should be at any path: of the run, above it, of the user's own folders."""
    run = _copy_run(field, chance, place)
    inside = sorted(run.rglob("*"))
    own = [place / "runs", run, Path(os.environ["HOME"]) / ".config", place / "home"]
    target = chance.choice((*inside, *inside, *own))
    kinds = (
        "fifo",
        "socket",
        "null",
        "zero",
        "tty",
        "self",
        "up",
        "nothing",
        "file",
        "folder",
        "full",
        "locked",
        "mem",
    )
    kind = chance.choice(kinds)
    if target == Path(os.environ["HOME"]) / ".config":
        target = place / "home"  # the real one is shared by all tries
    shutil.rmtree(target, ignore_errors=True)
    with contextlib.suppress(OSError):
        target.unlink()
    with contextlib.suppress(OSError):
        if kind == "fifo":
            os.mkfifo(target)
        elif kind == "socket":
            with socket.socket(socket.AF_UNIX) as made:
                made.bind(str(target)[-100:] if len(str(target)) > 100 else str(target))
        elif kind in ("null", "zero", "tty", "full", "mem"):
            target.symlink_to({"mem": "/proc/self/mem"}.get(kind, f"/dev/{kind}"))
        elif kind == "self":
            target.symlink_to(target.name)
        elif kind == "up":
            target.symlink_to("..")
        elif kind == "file":
            target.write_bytes(chance.choice((b"", b"{}", b"\0" * 5000)))
        elif kind == "folder":
            (target / "sub").mkdir(parents=True)
        elif kind == "locked":
            target.mkdir(mode=0)
    words = _reader(chance, run)
    home = place / "home"

    def prepare() -> None:
        if home.exists() or home.is_symlink() or chance.random() < 0.1:
            os.environ["HOME"] = str(home)

    ended = call(place, *words, prepare=prepare)
    with contextlib.suppress(OSError):
        if not target.is_symlink() and stat.S_ISDIR(os.lstat(target).st_mode):
            os.chmod(target, 0o755)
    return judge(
        "paths", words, f"{kind} at {target.relative_to(place) if target.is_relative_to(place) else target}", ended
    )


# --- locales, limits, descriptors, variables ---

VARIABLES: dict[str, tuple[str, ...]] = {
    "LANG": ("xx_XX", "C", "tr_TR.UTF-8", "zh_CN.GBK", "", "\udcff", "zh_CN.UTF-8", "a" * 5000),
    "LC_ALL": ("C", "POSIX", "nonsense", "ja_JP.eucJP", "zh_TW.BIG5"),
    "HEADWAY_LANG": ("xx", "", "zh", "en", "\x1b[31m", "zh" * 3000),
    "COLUMNS": ("0", "-1", "1", "99999999", "x", ""),
    "LINES": ("0", "-5", "x"),
    "TERM": ("dumb", "", "nonsense", "xterm\x1b[31m", "a" * 9000),
    "TZ": ("nonsense", ":/dev/zero", "UTC+99", "../../etc/passwd", "Asia/Shanghai"),
    "HOME": ("", "relative", "/nonexistent", "/dev/null", "/proc/1", "\udcff"),
    "TMPDIR": ("/nonexistent", "", "/dev/null"),
    "PYTHONWARNINGS": ("error", "nonsense::", "always"),
    "PYTHONIOENCODING": ("ascii", "gbk:strict", "utf-16"),
    "XDG_CONFIG_HOME": ("/dev/null", "relative", "/nonexistent", ""),
    "XDG_CACHE_HOME": ("/dev/null", "/proc", "relative", ""),
    "HEADWAY_CLAIMS": ("/dev/null", "/proc", "", "relative"),
    "HEADWAY_SET_LR__BASE": ("x", "", "1e999", "-1"),
    "HEADWAY_SET_TRAIN__STEPS": ("nan", "9" * 5000, "[", "null"),
    "CUDA_VISIBLE_DEVICES": ("x", "-1", "0,,1", ",", "GPU-1", "9" * 300),
    "NO_COLOR": ("1", ""),
    "FORCE_COLOR": ("1", "x"),
    "RANK": ("x", "-1", "9999"),
    "WORLD_SIZE": ("x", "0", "-1"),
    "OMP_NUM_THREADS": ("x", "0", "-1", "99999999"),
    "USER": ("", "\x1b[31m"),
    "SLURM_JOB_ID": ("x", "\x1b]0;t\x07"),
    "EDITOR": ("/bin/false",),
    "PAGER": ("/bin/false",),
    "PATH": ("", "/nonexistent", ":"),
}
LIMITS: dict[str, tuple[int, ...]] = {
    "RLIMIT_NOFILE": (3, 5, 8, 12, 20, 64),
    "RLIMIT_AS": (300 << 20, 400 << 20, 600 << 20, 1 << 30),
    "RLIMIT_DATA": (60 << 20, 100 << 20, 300 << 20),
    "RLIMIT_STACK": (64 << 10, 256 << 10, 8 << 20),
    "RLIMIT_FSIZE": (0, 1, 4096, 100_000),
    "RLIMIT_CORE": (0,),
    "RLIMIT_NPROC": (1, 5),
    "RLIMIT_MEMLOCK": (0,),
}
SIMPLE = (
    ("--help",),
    ("config", "show"),
    ("config", "schema"),
    ("completion", "bash"),
    ("nonsense",),
    ("runs", "--help"),
)


def odd_surroundings(field: Field, chance: random.Random, place: Path) -> Verdict:
    """Locales, limits, closed descriptors, masks and variables as nobody has them, several at once."""
    run = _copy_run(field, chance, place)
    words = _reader(chance, run) if chance.random() < 0.7 else chance.choice(SIMPLE)
    given = {name: chance.choice(VARIABLES[name]) for name in chance.sample(sorted(VARIABLES), chance.randint(0, 4))}
    limits = {name: chance.choice(LIMITS[name]) for name in chance.sample(sorted(LIMITS), chance.choice((0, 0, 1, 2)))}
    closed = chance.sample((0, 1, 2), chance.choice((0, 0, 0, 1, 2, 3)))
    mask = chance.choice((None, None, None, 0, 0o777, 0o077))
    is_whole = chance.random() < 0.04
    no_proc = not is_whole and chance.random() < 0.05

    def prepare() -> None:
        for name, value in given.items():
            os.environ[name] = value
        if no_proc:
            mount_tmpfs(Path("/proc"), "size=4k")
        if mask is not None:
            os.umask(mask)
        for one in closed:
            os.close(one)
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        for name, value in limits.items():
            with contextlib.suppress(ValueError, OSError):
                resource.setrlimit(getattr(resource, name), (value, value))

    if is_whole:
        limits.pop("RLIMIT_AS", None)  # Python itself does not start
        limits.pop("RLIMIT_NOFILE", None)
        limits.pop("RLIMIT_DATA", None)
        limits.pop("RLIMIT_STACK", None)
        given.pop("PYTHONIOENCODING", None)
        ended = start(place, *words, env=given)
    else:
        ended = call(place, *words, prepare=prepare)
    what = f"{given} {limits} closed {closed} umask {mask} whole {is_whole} no /proc {no_proc}"
    verdict = judge("odd", words, what, ended)
    if verdict.wrong.get("wrong_results") == "not JSON" and (1 in closed or "RLIMIT_FSIZE" in limits):
        del verdict.wrong["wrong_results"]
    if "FORCE_COLOR" in given and not CONTROL.search(re.sub(rb"\x1b\[[0-9;]*m", b"", ended.out + ended.err)):
        verdict.wrong.pop("leaks", None)  # colours that were asked for
    if ended.code == -signal.SIGSEGV and "RLIMIT_STACK" in limits:
        verdict.wrong = {}  # the C stack of the interpreter itself
    return verdict


# --- a disk that fills up ---


def small_disk(field: Field, chance: random.Random, place: Path) -> Verdict:
    """A disk with little room or few inodes, or read-only, below the runs or the user's own folder."""
    run = _copy_run(field, chance, place)
    words = chance.choice(
        (
            ("report", run.name),
            ("export", run.name),
            ("export", run.name, "--format", "tensorboard"),
            ("export", run.name, "--format", "json"),
            ("runs",),
            ("ckpt", "export", run.name),
            ("ckpt", "prune", run.name, "--yes"),
            ("conclude", f"runs/{run.name}"),
            ("new", "nanochat", "runs/project"),
            ("compare",),
        )
    )
    size = chance.choice((4, 8, 16, 40, 100, 300, 1000, 3000)) << 10
    inodes = chance.choice((2, 5, 12, 40, 1000))
    is_read_only = chance.random() < 0.2
    keep = place / "kept"

    def prepare() -> None:
        shutil.copytree(place / "runs", keep, symlinks=True)
        if not mount_tmpfs(place / "runs", f"size={size + _size(keep)},nr_inodes={inodes + _count(keep)}"):
            os._exit(0)
        shutil.copytree(keep, place / "runs", symlinks=True, dirs_exist_ok=True)
        if is_read_only:
            _LIBC.mount(b"none", os.fsencode(place / "runs"), None, 32 | 1, None)

    ended = call(place, *words, prepare=prepare)
    return judge("space", words, f"{size} bytes and {inodes} inodes left, read-only: {is_read_only}", ended)


def _size(folder: Path) -> int:
    return sum((path.lstat().st_size + 4095) // 4096 * 4096 for path in folder.rglob("*"))


def _count(folder: Path) -> int:
    return sum(1 for _ in folder.rglob("*")) + 1


def small_disk_training(field: Field, chance: random.Random, place: Path) -> Verdict:
    """A real training whose disk fills up, goes read-only or goes away at a random moment."""
    (place / "runs").mkdir()
    size = chance.choice((60, 200, 500, 1000, 4000)) << 10
    inodes = chance.choice((8, 20, 40, 1000))
    way = chance.choice(("small", "small", "moved", "read-only", "gone"))
    words = ("train", TINY, "train.steps=20", "save.every=2", "eval.every=10", "parallel.cpus=1", "task.sleep_s=0.02")

    def preexec() -> None:
        if way == "small" and not mount_tmpfs(place / "runs", f"size={size},nr_inodes={inodes}"):
            os._exit(5)

    moment = chance.uniform(1.5, 6)
    with ThreadPoolExecutor(1) as pool:

        def disturb() -> None:
            time.sleep(moment)
            with contextlib.suppress(OSError):
                if way == "moved":
                    (place / "runs").rename(place / "elsewhere")
                elif way == "gone":
                    shutil.rmtree(place / "runs", ignore_errors=True)
                elif way == "read-only":
                    for path in (place / "runs").rglob("*"):
                        os.chmod(path, 0o555 if path.is_dir() else 0o444)

        pool.submit(disturb)
        ended = start(place, *words, preexec_fn=preexec)
    verdict = judge("training", words, f"{way} {size} bytes, {inodes} inodes, after {moment:.1f} s", ended, EXITS)
    if ended.code == 0 and way not in ("moved", "gone") and b"done" not in ended.out + ended.err:
        verdict.wrong["wrong_results"] = "exit code 0 without a word about the end"
    return verdict


# --- a clock that jumps ---


def odd_clock(field: Field, chance: random.Random, place: Path) -> Verdict:
    """A clock that is wrong or jumps while a command reads."""
    run = _copy_run(field, chance, place)
    words = _reader(chance, run)
    real = time.time
    jumps = [chance.choice((-1e9, 0.0, -1e12, 1e9, 1e11, 86400.0, -3600.0)) for _ in range(4)]
    own = random.Random(chance.random())

    def prepare() -> None:
        time.time = lambda: real() + own.choice(jumps)  # type: ignore[assignment]  # that is the attack
        for path in run.rglob("*"):
            if own.random() < 0.5 and not path.is_symlink():
                os.utime(path, (own.choice((0, 1, 2**33, -(2**31))), own.choice((0, 1, 2**33, -(2**31)))))

    return judge("clocks", words, f"jumps {jumps}", call(place, *words, prepare=prepare))


# --- commands that race ---


def racing(field: Field, chance: random.Random, place: Path) -> Verdict:
    """Several commands at once on a run that trains or has just been stopped; afterwards it must finish as if alone."""
    words = ("train", TINY, "train.steps=24", "save.every=4", "eval.every=8", "parallel.cpus=1", "task.sleep_s=0.03")
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    log = (place / "train.log").open("wb")
    child = subprocess.Popen(
        [sys.executable, "-m", "headway", *words],
        cwd=place, env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
    )  # fmt: skip
    ended: list[tuple[tuple[str, ...], Ended]] = []
    run: Path | None = None
    try:
        run = _wait_for(place)
        for _ in range(chance.choice((1, 2, 3))):
            many = [_rival(chance, run) for _ in range(chance.choice((2, 3, 4)))]
            with ThreadPoolExecutor(len(many)) as pool:
                jobs = [pool.submit(_run_later, place, one, chance.random()) for one in many]
                ended += [(one, job.result()) for one, job in zip(many, jobs, strict=True)]
        child.wait(HANG_S)
        for _ in range(4):  # whatever the others have done to it, a resume finishes it
            last = start(place, "resume", run.name)
            ended.append((("resume", run.name), last))
            if last.code == 2 and b"cli/resume-done" in last.err:
                break
    except subprocess.TimeoutExpired:
        ended.append((words, Ended(None, b"", b"", is_hang=True)))
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        log.close()
    said = (place / "train.log").read_bytes()
    what = " | ".join(" ".join(one) for one, _ in ended)
    verdict = judge("racing", words, what, Ended(child.returncode, b"", said))
    for one, end in ended:
        seen = judge("racing", one, "", end)
        if seen.wrong:
            verdict.wrong.update({kind: f"{' '.join(one)}: {why}" for kind, why in seen.wrong.items()})
            verdict.ended = end
    if run is not None and not verdict.wrong.get("hangs"):
        verdict.wrong.update(_judge_run(field, run))
    return verdict


def _rival(chance: random.Random, run: Path) -> tuple[str, ...]:
    name = run.name
    rivals: tuple[tuple[str, ...], ...] = (
        ("resume", name),
        ("resume", name),
        ("resume", name, "--step", "4", "--dry-run"),
        ("supervise", f"runs/{name}"),
        ("stop", name),
        ("stop", name, "--now"),
        ("ckpt", "prune", name, "--yes", "--keep-last", "1"),
        ("ckpt", "verify", name),
        ("report", name),
        ("eval", name),
        ("runs", "--json"),
        ("export", name),
        ("resume", name, "lr.base=0.5", "--dry-run"),
        ("watch", name, "--once"),
    )
    return chance.choice(rivals)


def _run_later(place: Path, words: tuple[str, ...], delay_s: float) -> Ended:
    time.sleep(delay_s)
    return start(place, *words)


def _wait_for(place: Path) -> Path:
    until = time.monotonic() + HANG_S
    while time.monotonic() < until:
        for events in place.glob("runs/2*/events.jsonl"):
            if b"training_started" in events.read_bytes():
                return events.parent
        time.sleep(0.05)
    raise subprocess.TimeoutExpired("headway train", HANG_S)


def _judge_run(field: Field, run: Path) -> dict[str, str]:
    """Say what is wrong with the history and the result of a run that was left alone in the end."""
    events = [json.loads(line) for line in (run / "events.jsonl").read_text().splitlines()]
    numbers = [event["seq"] for event in events]
    if numbers != list(range(1, len(numbers) + 1)):
        return {"wrong_results": f"events are numbered {numbers}"}
    if [event.get("state") for event in events if event["kind"] == "run_ended"][-1:] != ["done"]:
        return {"wrong_results": f"the last end is {[e for e in events if e['kind'] == 'run_ended'][-1:]}"}
    losses: dict[int, Any] = {}
    for line in (run / "ranks/0/metrics.jsonl").read_text().splitlines():
        row = json.loads(line)
        if row["samples"] is not None:  # not a line that says where an attempt continues
            losses[row["step"]] = row["loss"]
    wanted = _undisturbed(field)
    if losses != wanted:
        return {"wrong_results": f"losses {losses} instead of {wanted}"}
    return {}


_KNOWN: dict[Path, dict[int, Any]] = {}
_LEARNING = threading.Lock()


def _undisturbed(field: Field) -> dict[int, Any]:
    """Return the losses of the same training left alone."""
    with _LEARNING:  # tries run side by side
        if field.place not in _KNOWN:
            place = field.place / "alone"
            place.mkdir()
            words = ("train", TINY, "train.steps=24", "save.every=4", "eval.every=8", "parallel.cpus=1")
            done = start(place, *words)
            assert done.code == 0, done.err
            metrics = next(place.glob("runs/2*/ranks/0/metrics.jsonl")).read_text().splitlines()
            _KNOWN[field.place] = {row["step"]: row["loss"] for row in map(json.loads, metrics)}
    return _KNOWN[field.place]


MORE: dict[str, tuple[float, Callable[[Field, random.Random, Path], Verdict]]] = {
    "index": (6, bad_index),
    "paths": (12, odd_path),
    "odd": (14, odd_surroundings),
    "clocks": (4, odd_clock),
}
if is_mountable():
    MORE["space"] = (6, small_disk)
    MORE["training"] = (0.25, small_disk_training)
MORE["racing"] = (0.12, racing)
