"""Does a script that saves when it is asked to stop still save under `headway run`?

Every way of starting × every way of asking. Each case runs without Headway first, asked as a terminal or a scheduler
asks (all processes of the job) and, where that loses the save, as `kill PID` does; then under `headway run`, where only
headway is asked. A case is wrong when the script saves without us and does not with us, saves torn bytes, or leaves a
process behind.

    python bench/polite_stop.py [--ways python,torchrun] [--jobs 2]
"""

from __future__ import annotations

import argparse
import concurrent.futures
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
BIN = Path(sys.executable).parent
MARK = "POLITE_STOP_MARK"
START_S, BARE_S, SAVE_S, END_S = 90.0, 8.0, 60.0, 60.0
SIZE = 100_000
NEVER = "not saved, nor without us"

SAVER = f'''
import os, signal, sys, time
SIZE = {SIZE}
busy = [0]

def save(signum, frame):
    """Write 100 kB in two halves; a second call within is what a signal sent twice does to a real save."""
    name = signal.Signals(signum).name
    busy[0] += 1
    mark = str(busy[0]).encode()
    path = "saved-%s-%s" % (rank, name)
    with open(path + ".tmp", "wb") as file:
        file.write(mark * (SIZE // 2))
        time.sleep(0.5)
        file.write(mark * (SIZE // 2))
    os.replace(path + ".tmp", path)
    busy[0] -= 1
    if name in ("SIGINT", "SIGTERM"):
        sys.exit(0)

def train(number):
    global rank
    rank = number
    for name in ("SIGINT", "SIGTERM", "SIGUSR1", "SIGHUP"):
        signal.signal(getattr(signal, name), save)
    open("ready-%s" % rank, "w").close()
    while True:
        time.sleep(0.02)

def load(parent):
    while os.getppid() == parent:
        time.sleep(0.05)

def lost(*_):
    raise RuntimeError("a data loader process was killed")

def main(how):
    import multiprocessing
    if how == "plain":
        train(os.environ.get("RANK", "0"))
    elif how == "loader":
        worker = multiprocessing.get_context("fork").Process(target=load, args=(os.getpid(),), daemon=True)
        worker.start()
        signal.signal(signal.SIGCHLD, lost)
        train("0")
    elif how in ("spawn", "fork"):
        context = multiprocessing.get_context(how)
        ranks = [context.Process(target=train, args=(str(rank),)) for rank in range(2)]
        for one in ranks:
            one.start()
        for one in ranks:
            one.join()
    elif how == "mpspawn":
        import torch.multiprocessing
        torch.multiprocessing.spawn(train, nprocs=2)
    elif how == "tree":
        import subprocess
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        child = subprocess.Popen([sys.executable, __file__, "plain"])
        sys.exit(child.wait())

if __name__ == "__main__":
    main(sys.argv[1])
'''
TRAPPED = """
pass_on() { kill -"$1" "$child"; }
for name in INT TERM USR1 HUP; do trap "pass_on $name" $name; done
python saver.py plain &
child=$!
while kill -0 "$child" 2>/dev/null; do wait "$child"; done
"""


@dataclass(frozen=True)
class Way:
    """One way of starting the script."""

    line: tuple[str, ...]
    ranks: int = 1
    script: str = ""
    is_inside: bool = False
    """Headway itself is in the container."""


INSIDE = ("unshare", "--pid", "--fork", "--mount-proc")
WAYS = {
    "python": Way(("python", "saver.py", "plain")),
    "loader": Way(("python", "saver.py", "loader")),
    "bash": Way(("bash", "x.sh"), script="python saver.py plain\n"),
    "bash tee": Way(("bash", "x.sh"), script="python saver.py plain 2>&1 | tee x.log\n"),
    "bash trap": Way(("bash", "x.sh"), script=TRAPPED),
    "bash exit trap": Way(("bash", "x.sh"), script="trap 'echo over' EXIT\npython saver.py plain\n"),
    "timeout": Way(("bash", "x.sh"), script="timeout 1000 python saver.py plain\n"),
    "spawn": Way(("python", "saver.py", "spawn"), ranks=2),
    "fork": Way(("python", "saver.py", "fork"), ranks=2),
    "mp.spawn": Way(("python", "saver.py", "mpspawn"), ranks=2),
    "tree": Way(("python", "saver.py", "tree")),
    "torchrun": Way(("torchrun", "--nproc_per_node=2", "saver.py", "plain"), ranks=2),
    "torchrun script": Way(("bash", "x.sh"), ranks=2, script="torchrun --nproc_per_node=2 saver.py plain\n"),
    "accelerate": Way(("accelerate", "launch", "--cpu", "saver.py", "plain")),
    "namespace": Way((*INSIDE, "python", "saver.py", "plain")),
    "container": Way(("python", "saver.py", "plain"), is_inside=True),
}
ASKS = ("SIGINT", "SIGTERM", "SIGUSR1", "SIGHUP", "stop", "slurm")


class Job:
    """One start of a line in a folder of its own."""

    def __init__(self, folder: Path, way: Way, words: tuple[str, ...]) -> None:
        self.folder, self.way = folder, way
        folder.mkdir(parents=True)
        (folder / "saver.py").write_text(SAVER)
        (folder / "x.sh").write_text(way.script)
        self.mark = secrets.token_hex(8)
        path = f"{BIN}:{os.environ['PATH']}"
        extra = {"PATH": path, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT / "src"), MARK: self.mark}
        kept = {name: value for name, value in os.environ.items() if name not in ("RANK", "WORLD_SIZE")}
        with (folder / "out").open("wb") as out:
            self.process = subprocess.Popen(
                words, cwd=folder, env={**kept, **extra}, stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                start_new_session=True,
            )  # fmt: skip

    def wait(self, is_so: Callable[[], bool], seconds: float) -> bool:
        """Wait for something; say whether it came."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if is_so():
                return True
            time.sleep(0.05)
        return False

    def is_ready(self) -> bool:
        """Say whether every rank trains."""
        return all((self.folder / f"ready-{rank}").exists() for rank in range(self.way.ranks))

    def has_saved(self, names: tuple[str, ...]) -> bool:
        """Say whether some one of the signals has made every rank save whole bytes."""
        return any(
            all((self.folder / f"saved-{rank}-{name}").exists() for rank in range(self.way.ranks)) for name in names
        )

    def is_whole(self) -> bool:
        """Say whether each saved file was written by one undisturbed save, and none is half done."""
        saved = [path.read_bytes() for path in self.folder.glob("saved-*") if path.suffix != ".tmp"]
        return all(data == b"1" * SIZE for data in saved) and not list(self.folder.glob("saved-*.tmp"))

    def pids(self) -> list[int]:
        """Return every living process of this job."""
        wanted = f"{MARK}={self.mark}".encode()
        found = []
        for place in Path("/proc").iterdir():
            if place.name.isdigit():
                try:
                    is_ours = wanted in (place / "environ").read_bytes().split(b"\0")
                    is_dead = (place / "stat").read_text(errors="replace").rpartition(")")[2].split()[0] in "ZX"
                except OSError:
                    continue
                if is_ours and not is_dead:
                    found.append(int(place.name))
        return found

    def close(self) -> None:
        """End all of it."""
        for _ in range(20):
            left = self.pids()
            for pid in left:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            if not left:
                break
            time.sleep(0.05)
        self.process.wait(10)


def ask(job: Job, what: str, target: Callable[[int], None], seconds: float) -> bool:
    """Ask in one of the ways, wait for the saves; say whether all are there."""
    if what == "slurm":
        target(signal.SIGUSR1)
        first = job.wait(lambda: job.has_saved(("SIGUSR1",)), seconds)
        target(signal.SIGTERM)
        return job.wait(lambda: job.has_saved(("SIGTERM",)), seconds) and first
    target(getattr(signal, what))
    return job.wait(lambda: job.has_saved((what,)), seconds)


def saves_without_us(folder: Path, way: Way, what: str) -> bool:
    """Say whether the script saves by itself, asked in either of the usual ways."""
    asks = ("SIGTERM", "SIGINT") if what == "stop" else (what,)
    for one in asks:
        for is_group in (True, False):
            job = Job(folder / f"bare-{one}-{is_group}", way, (*INSIDE, *way.line) if way.is_inside else way.line)
            try:
                if not job.wait(job.is_ready, START_S):
                    raise SystemExit(f"the script does not start: {(job.folder / 'out').read_text()[-2000:]}")

                def target(signum: int, job: Job = job, is_group: bool = is_group) -> None:
                    for pid in job.pids() if is_group else [job.process.pid]:
                        try:
                            os.kill(pid, signum)
                        except ProcessLookupError:
                            pass

                if ask(job, one, target, BARE_S) and job.is_whole():
                    return True
            finally:
                job.close()
    return False


def saves_with_us(folder: Path, way: Way, what: str) -> str:
    """Return what is wrong under headway, or nothing."""
    headway = (sys.executable, "-m", "headway", "run", "--no-training", "--out", "runs", *way.line)
    job = Job(folder / "ours", way, (*INSIDE, *headway) if way.is_inside else headway)
    try:
        if not job.wait(job.is_ready, START_S):
            return "does not start"

        def target(signum: int) -> None:
            os.kill(find_headway(job), signum)

        if what == "stop":
            stop = [sys.executable, "-m", "headway", "stop", "--runs", "runs"]
            with (job.folder / "stop").open("wb") as out:
                asked = subprocess.Popen(
                    stop, cwd=job.folder, env={**os.environ, "PYTHONPATH": str(ROOT / "src")}, stdout=out, stderr=out
                )
            has_saved = job.wait(lambda: job.has_saved(("SIGINT", "SIGTERM")), SAVE_S)
            if asked.wait(END_S):
                return f"headway stop: {(job.folder / 'stop').read_text()[-300:]}"
        else:
            has_saved = ask(job, what, target, SAVE_S)
        if not has_saved:
            return "not saved"
        if what in ("SIGUSR1", "SIGHUP"):
            if not job.is_whole() or job.process.poll() is not None:
                return "torn" if job.process.poll() is None else "ended"
            target(signal.SIGTERM)
        if not job.wait(lambda: job.process.poll() is not None, END_S):
            return "does not end"
        if not job.is_whole():
            return "torn"
        return "" if job.wait(lambda: not job.pids(), 10) else "processes left"
    finally:
        job.close()


def find_headway(job: Job) -> int:
    """Return the number of the supervisor, in the container or not."""
    if not job.way.is_inside:
        return job.process.pid
    inner = subprocess.run(["pgrep", "-P", str(job.process.pid)], capture_output=True, text=True, check=True)
    return int(inner.stdout.split()[0])


def try_case(work: Path, name: str, what: str) -> tuple[str, str, str]:
    """Return the case's row."""
    folder = work / f"{name}-{what}".replace(" ", "_")
    try:
        has_saved = saves_without_us(folder, WAYS[name], what)
        wrong = saves_with_us(folder, WAYS[name], what)
        if wrong and not has_saved:
            return name, what, NEVER
        return name, what, wrong or ("saved" if has_saved else "saved, only with us")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def main() -> int:
    """Run the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ways", default=",".join(WAYS))
    parser.add_argument("--asks", default=",".join(ASKS))
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args()
    work = Path(tempfile.mkdtemp(prefix="polite-stop-"))
    ways = [name for name in given.ways.split(",") if os.geteuid() == 0 or not needs_root(name)]
    cases = [(name, what) for name in ways for what in given.asks.split(",")]
    rows = []
    with concurrent.futures.ThreadPoolExecutor(given.jobs) as pool:
        for row in pool.map(lambda case: try_case(work, *case), cases):
            rows.append(row)
            print(f"{row[0]:16} {row[1]:8} {row[2]}", flush=True)
    shutil.rmtree(work, ignore_errors=True)
    saved = sum(row[2].startswith("saved") for row in rows)
    other = sum(row[2] == NEVER for row in rows)
    skipped = [name for name in given.ways.split(",") if name not in ways]
    print(
        json.dumps(
            {"cases": len(rows), "saved": saved, "wrong": len(rows) - saved - other, "never": other, "skipped": skipped}
        )
    )
    return int(saved + other < len(rows))


def needs_root(name: str) -> bool:
    """Say whether a way makes a namespace, which is root's to make."""
    return name in ("namespace", "container")


if __name__ == "__main__":
    sys.exit(main())
