"""End `headway run` in violent ways; count what is left ten seconds later, and whether a new start works.

    python bench/violent_ends.py [--ends 100] [--at-once 4] [--torch] [--way "kill nursery"]

Every end is one job of two ranks, each with a helper in a session of its own, another that ignores SIGTERM, and a
shared memory segment; rank 0 listens on a port. Ten seconds after the end no process, port, segment, temp file or claim
may be left. Then the same line is started again in the same folder and must end with 0. `--torch` takes a gloo job with
data loader workers, which is slower. The last line is JSON: `ends`, `clean`, `restarted`, `gone_s_worst`.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from marked_runs import end_all, environment, marked, new_mark, wait_for_none

LIMIT_S = 10.0
START_S = 60.0
PLAIN = """
import multiprocessing.shared_memory as shm
import os, socket, subprocess, sys, time
rank = int(os.environ["RANK"])
if os.path.exists("again"):
    print("works", flush=True)
    sys.exit(0)
server = socket.create_server(("127.0.0.1", int(os.environ["MASTER_PORT"]))) if rank == 0 else None
subprocess.Popen(["sleep", "1000"], start_new_session=True)
subprocess.Popen([sys.executable, "-c", "import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(1000)"])
segment = shm.SharedMemory(create=True, size=1 << 20, name=f"headway-bench-{os.environ['HEADWAY_BENCH_MARK']}-{rank}")
open(f"ready-{rank}", "w").write(os.environ["MASTER_PORT"])
while True:
    print(f"[{rank}] step", time.time(), flush=True)
    time.sleep(0.05)
"""
TORCH = """
import os, sys
import torch, torch.distributed as dist
dist.init_process_group("gloo")
rank = dist.get_rank()
if os.path.exists("again"):
    dist.all_reduce(torch.ones(1))
    print("works", flush=True)
    dist.destroy_process_group()
    sys.exit(0)
class Noise(torch.utils.data.Dataset):
    def __len__(self):
        return 10**9
    def __getitem__(self, index):
        return torch.randn(64, 64)
loader = torch.utils.data.DataLoader(Noise(), batch_size=4, num_workers=1)
for step, batch in enumerate(loader):
    dist.all_reduce(batch)
    if step == 3:
        open(f"ready-{rank}", "w").write(os.environ["MASTER_PORT"])
"""
WAYS = (
    "kill supervisor",
    "kill nursery",
    "kill supervisor and nursery",
    "kill rank",
    "kill two ranks",
    "crash rank",
    "hang up",
    "terminate",
    "quit",
    "interrupt twice",
    "kill the whole group",
    "stop rank, then kill supervisor",
    "kill while starting",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """What one violent end left behind."""

    way: str
    left: tuple[str, ...]
    seconds: float
    """Until all processes were gone."""
    has_restarted: bool


def end_once(way: str, is_torch: bool) -> End:
    """Start, end violently, look around, start again."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "job.py").write_text(TORCH if is_torch else PLAIN)
        mark = new_mark()
        process = _start(folder, mark)
        _wait_ready(process, folder, way)
        port = int((folder / "ready-0").read_text() or 0) if (folder / "ready-0").exists() else 0
        pids = marked(mark)
        _strike(process, mark, way)
        began = time.monotonic()
        left = [f"process {pid} {_name(pid)}" for pid in wait_for_none(mark, LIMIT_S)]
        seconds = time.monotonic() - began
        end_all(marked(mark))
        process.wait()
        left += _segments_left(mark, pids) + _files_left(folder, port)
        has_restarted = _start_again(folder)
    return End(way=way, left=tuple(left), seconds=seconds, has_restarted=has_restarted)


def _start(folder: Path, mark: str) -> subprocess.Popen[bytes]:
    words = ["-m", "headway", "run", "--grace", "2", "--out", "runs", "torchrun", "--nproc_per_node=2", "job.py"]
    output = (folder / "output").open("ab")
    with output:
        return subprocess.Popen(
            [sys.executable, *words],
            cwd=folder,
            env=environment(mark, folder),
            stdout=output,
            stderr=output,
            start_new_session=True,
        )


def _wait_ready(process: subprocess.Popen[bytes], folder: Path, way: str) -> None:
    deadline = time.monotonic() + START_S
    if way == "kill while starting":
        time.sleep(random.uniform(0.0, 1.5))
        return
    while not all((folder / f"ready-{rank}").exists() for rank in (0, 1)):
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"the job did not start: {(folder / 'output').read_text()[-2000:]}")
        time.sleep(0.02)
    time.sleep(random.uniform(0.0, 0.3))


def _strike(process: subprocess.Popen[bytes], mark: str, way: str) -> None:
    """Do it; what takes the supervisor's own end to work is waited for by the caller."""
    nursery = _find(mark, "headway-nursery")
    ranks = _ranks(nursery)
    match way:
        case "kill supervisor" | "kill while starting":
            _send(signal.SIGKILL, process.pid)
        case "kill nursery":
            _send(signal.SIGKILL, *nursery)
        case "kill supervisor and nursery":
            # Both are stopped first, so that neither has a moment between the two ends.
            _send(signal.SIGSTOP, process.pid, *nursery)
            _send(signal.SIGKILL, process.pid, *nursery)
        case "kill rank":
            _send(signal.SIGKILL, *ranks[:1])
        case "kill two ranks":
            _send(signal.SIGKILL, *ranks)
        case "crash rank":
            _send(signal.SIGSEGV, *ranks[-1:])
        case "hang up":
            _send(signal.SIGHUP, process.pid)
            _send(signal.SIGTERM, process.pid)
        case "terminate":
            _send(signal.SIGTERM, process.pid)
        case "quit":
            _send(signal.SIGQUIT, process.pid)
        case "interrupt twice":
            _send(signal.SIGINT, process.pid)
            time.sleep(0.4)
            _send(signal.SIGINT, process.pid)
        case "kill the whole group":
            os.killpg(process.pid, signal.SIGKILL)
        case "stop rank, then kill supervisor":
            _send(signal.SIGSTOP, *ranks)
            _send(signal.SIGKILL, process.pid)


def _send(signum: int, *pids: int) -> None:
    for pid in pids:
        try:
            os.kill(pid, signum)
        except ProcessLookupError:
            continue


def _find(mark: str, name: str) -> list[int]:
    return [pid for pid in marked(mark) if _name(pid) == name]


def _ranks(nursery: list[int]) -> list[int]:
    """Return the nursery's own children."""
    found: list[int] = []
    for pid in nursery:
        try:
            found += [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
        except OSError:
            continue
    return found


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return "gone"


def _segments_left(mark: str, pids: list[int]) -> list[str]:
    names = [f"torch_{pid}_*" for pid in pids] + [f"headway-bench-{mark}-*"]
    found = [path for name in names for path in Path("/dev/shm").glob(name)]
    for path in found:
        path.unlink()
    return [f"segment {path.name}" for path in found]


def _files_left(folder: Path, port: int) -> list[str]:
    """Return ports, temp files and claims that are left."""
    left = [f"port {port}"] if port and _is_listening(port) else []
    left += [f"temp file {path.name}" for path in (folder / "tmp").rglob("*")]
    left += [f"claim {path.name}" for path in (folder / "claims").glob("*")] if (folder / "claims").is_dir() else []
    return left


def _is_listening(port: int) -> bool:
    wanted = f":{port:04X}"
    for name in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[1].endswith(wanted) and fields[3] == "0A":
                return True
    return False


def _start_again(folder: Path) -> bool:
    (folder / "again").touch()
    (folder / "output").write_bytes(b"")
    mark = new_mark()
    process = _start(folder, mark)
    try:
        code = process.wait(START_S)
    except subprocess.TimeoutExpired:
        code = -1
    finally:
        end_all(marked(mark))
        process.wait()
    return code == 0 and (folder / "output").read_text(errors="replace").count("works") >= 1


def main() -> None:
    """End many runs and print what each way left."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ends", type=int, default=100)
    parser.add_argument("--at-once", type=int, default=4)
    parser.add_argument("--torch", action="store_true", help="a gloo job with a loader instead of plain Python")
    parser.add_argument("--way", action="append", choices=WAYS, help="only these ways")
    args = parser.parse_args()
    ways = tuple(args.way or WAYS)
    with ThreadPoolExecutor(args.at_once) as pool:
        ends = list(pool.map(lambda number: end_once(ways[number % len(ways)], args.torch), range(args.ends)))
    print(f"{'way':34}{'ends':>6}{'clean':>7}{'again':>7}{'gone after, worst':>20}")
    for way in WAYS:
        own = [end for end in ends if end.way == way]
        if own:
            clean, again = sum(not end.left for end in own), sum(end.has_restarted for end in own)
            print(f"{way:34}{len(own):>6}{clean:>7}{again:>7}{max(end.seconds for end in own):>18.1f} s")
    for end in ends:
        if end.left or not end.has_restarted:
            print(f"LEFT after {end.way!r}: {', '.join(end.left) or 'nothing, but the restart failed'}")
    record = {
        "ends": len(ends),
        "clean": sum(not end.left for end in ends),
        "restarted": sum(end.has_restarted for end in ends),
        "gone_s_worst": round(max(end.seconds for end in ends), 2),
    }
    print(json.dumps(record))


if __name__ == "__main__":
    main()
