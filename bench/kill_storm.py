"""A storm of faults over one run: does it end by itself, with the weights of the quiet run, and how much is lost?

One random fault every `--every` seconds: `kill` (SIGKILL of a rank), `stop` (SIGSTOP of a rank), `nursery` (SIGKILL of
the process that forks the ranks), `loader` (SIGKILL of a loader process), `port` (garbage to the port where the ranks
meet), `disk` (rank 0 may write no file beyond what it has, for two seconds), `flip` (a bit of the newest checkpoint).
The quiet run takes the same steps without pauses. torchrun trains the same time under kills, with all its restarts and
a checkpoint every 20 steps.

    python bench/kill_storm.py [--seconds 600] [--every 15] [--faults kill stop ...] [--seed 0] [--no-torchrun]
    python bench/kill_storm.py --kills 200      # as many kills of random ranks instead, each as soon as it trains again

Goodput is the time that the finished steps take when nothing happens (their median) over all of the time.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
sys.path.insert(0, str(Path(__file__).resolve().parent))
import itertools

from exact_resume import only_run, start, train
from fakes.engine_run import read_tensors
from headway.process import descendants
from headway.telemetry import Beat, RunDir, read_beat, read_events, read_metrics
from recovery import HERE

WORDS = (
    *("batch.per_device=3", "batch.accumulation=2", "optimizer.name=muon", "ema.decay=0.99", "eval.every=500"),
    *("task.norm=true", "save.every=50", "parallel.workers=1", "launch.on_hang=restart"),
)
PAUSE_S = 0.02
"""Of each of the two micro-batches of a step."""
FAULTS = ("kill", "stop", "nursery", "loader", "port", "disk", "flip")
PROCESS_FAULTS = ("kill", "stop", "nursery", "loader")


class Storm:
    """One run and what has been done to it."""

    def __init__(self, out: Path, process: subprocess.Popen[bytes], draw: random.Random) -> None:
        self.out, self.process, self.draw = out, process, draw
        self.done: Counter[str] = Counter()
        self.last_attempt = 0

    def beat(self, rank: int) -> Beat | None:
        """Return the heartbeat of a rank that trains."""
        jobs = list(self.out.glob("*/job.json"))
        beat = read_beat(RunDir(jobs[0].parent).heartbeat(rank)) if jobs else None
        return beat if beat is not None and beat.phase not in ("start", "restore", "ended", "stopping") else None

    def wait_training(self, *, is_new: bool) -> list[Beat] | None:
        """Wait until both ranks train, in a new attempt if that is wanted; None: the run is over."""
        while self.process.poll() is None:
            beats = [self.beat(rank) for rank in (0, 1)]
            found = [one for one in beats if one is not None and (not is_new or one.attempt > self.last_attempt)]
            if len(found) == 2 and len({one.attempt for one in found}) == 1 and found[0].step > 0:
                return found
            time.sleep(0.002)
        return None

    def strike(self, kind: str, beats: list[Beat]) -> None:
        """Do one thing to the run."""
        victim = self.draw.choice(beats)
        deeds: dict[str, Callable[[], None]] = {
            "kill": lambda: os.kill(victim.pid, signal.SIGKILL),
            "stop": lambda: os.kill(victim.pid, signal.SIGSTOP),
            "nursery": lambda: os.kill(parent_of(victim.pid), signal.SIGKILL),
            "loader": lambda: os.kill(self.draw.choice(descendants(victim.pid)), signal.SIGKILL),
            "port": self.send_garbage,
            "disk": lambda: close_disk(beats[0].pid),
            "flip": self.flip,
        }
        try:
            deeds[kind]()
        except (ProcessLookupError, IndexError, OSError):  # gone just now: it counts only where it has hit
            return
        self.last_attempt = victim.attempt
        self.done[kind] += 1

    def send_garbage(self) -> None:
        """Talk nonsense to the store."""
        port = [event for event in read_events(only_run(self.out).events) if event["kind"] == "attempt_started"][-1]
        with socket.create_connection(("127.0.0.1", port["port"]), 1.0) as link:
            link.sendall(self.draw.randbytes(512))

    def flip(self) -> None:
        """Change a bit in the data of the newest checkpoint."""
        files = sorted(only_run(self.out).checkpoints.glob("step-*/rank-*.safetensors"))
        with files[-1].open("r+b") as file:
            at = self.draw.randrange(4096, files[-1].stat().st_size)
            file.seek(at)
            (byte,) = file.read(1)
            file.seek(at)
            file.write(bytes([byte ^ 1 << self.draw.randrange(8)]))


def parent_of(pid: int) -> int:
    """Return the parent of a process."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def close_disk(pid: int) -> None:
    """Let a process write no byte of any file beyond the first for two seconds, as on a full disk."""
    before = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (1, before[1]))
    time.sleep(2)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, before)


def storm(out: Path, steps: int, args: argparse.Namespace) -> tuple[Storm, int]:
    """Train under fire; return what was done and the exit code."""
    words = [*WORDS, f"train.steps={steps}", f"task.sleep_s={PAUSE_S}", *args.words]
    found = Storm(out, start(out, words), random.Random(args.seed))
    found.wait_training(is_new=False)  # the clock of the storm begins with the training
    ends = time.monotonic() + args.seconds
    while args.kills or time.monotonic() < ends - args.every:
        if args.kills and found.done["kill"] >= args.kills:
            break
        beats = found.wait_training(is_new=bool(args.kills))
        if beats is None:
            break
        time.sleep(found.draw.random() * 0.3 if args.kills else args.every * (0.5 + found.draw.random()))
        if not args.kills and (beats := found.wait_training(is_new=False)) is None:
            break
        found.strike("kill" if args.kills else found.draw.choice(args.faults), beats)
    return found, found.process.wait()


def torchrun(place: Path, args: argparse.Namespace) -> dict[str, Any]:
    """Train as long with torchrun, under kills of a worker."""
    place.mkdir()
    stamp, draw = place / "stamp", random.Random(args.seed)
    stamp.touch()
    env = {**os.environ, "STAMP": str(stamp), "STEPS": "100000000", "CHECKPOINT": str(place / "checkpoint")}
    env |= {"OMP_NUM_THREADS": "1", "PAUSE": str(2 * PAUSE_S), "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    process = subprocess.Popen(
        [*command, "--max-restarts=1000", str(HERE / "tiny" / "torchrun_ddp.py")],
        env=env,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    began, kills = time.monotonic(), 0
    try:
        while time.monotonic() - began < min(60.0, args.seconds) and process.poll() is None:
            time.sleep(args.every * (0.5 + draw.random()))
            lines = stamp.read_text().splitlines()
            if lines and process.poll() is None:
                os.kill(int(lines[-1].split()[1]), signal.SIGKILL)
                kills += 1
    except ProcessLookupError:  # it is on its way up
        pass
    finally:
        process.terminate()
        process.wait()
    rows = [(float(when), int(step)) for when, _, step in map(str.split, stamp.read_text().splitlines())]
    took = [b[0] - a[0] for a, b in itertools.pairwise(rows) if b[1] == a[1] + 1]
    redone = [a[1] - b[1] + 1 for a, b in itertools.pairwise(rows) if b[1] <= a[1]]
    spent = time.monotonic() - began
    goodput = max(step for _, step in rows) * statistics.median(took) / spent if took else 0.0
    return {"kills": kills, "goodput": round(goodput, 3), "redone_worst": max(redone, default=0)}


def main() -> None:
    """Print the table and, last, the figures as JSON; end with 1 when anything differs or had to be done by hand."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--every", type=float, default=15)
    parser.add_argument("--faults", nargs="+", default=list(FAULTS), choices=FAULTS)
    parser.add_argument("--kills", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--no-torchrun", action="store_true")
    parser.add_argument("--words", nargs="*", default=[], help="more settings, such as parallel.strategy=fsdp")
    args = parser.parse_args()
    steps = args.kills * 10 if args.kills else round(args.seconds / (2 * PAUSE_S) * 0.7)
    place = Path(tempfile.mkdtemp(prefix="headway-storm-"))
    try:
        quiet = train(place / "quiet", [*WORDS, f"train.steps={steps}", *args.words])
        began = time.monotonic()
        found, code = storm(place / "storm", steps, args)
        spent_s = time.monotonic() - began
        report = compare(quiet, only_run(place / "storm"), found, spent_s)
        report |= {"manual_actions": int(code != 0), "exit_code": code}
        if not args.no_torchrun and not args.kills:
            report["torchrun"] = torchrun(place / "torchrun", args)
    finally:
        shutil.rmtree(place)
    print(f"{'fault':<10} {'times':>6}")
    for kind, times in sorted(found.done.items()):
        print(f"{kind:<10} {times:>6}")
    print(json.dumps(report))
    sys.exit(0 if report["bit_equal"] and code == 0 else 1)


def compare(quiet: RunDir, fire: RunDir, found: Storm, spent_s: float) -> dict[str, Any]:
    """Return the figures of a storm."""
    events = read_events(fire.events)
    begun = [event for event in events if event["kind"] == "training_started"]
    before, after = read_metrics(quiet.metrics(0)), read_metrics(fire.metrics(0))
    first, second = read_tensors(quiet), read_tensors(fire)
    redone = [event["redone"] for event in begun if "redone" in event]
    goodput = len(after["dt"]) * statistics.median(after["dt"]) / spent_s if len(after["dt"]) else 0.0
    return {
        "faults": sum(found.done.values()),
        "kinds": dict(found.done),
        "steps": len(after["loss"]),
        "goodput": round(goodput, 3),
        "redone_worst": max(redone, default=0),
        "redone": dict(Counter(map(str, redone))),
        "from": dict(Counter(event.get("source", "n/a") for event in begun)),
        "refused": sum(event["kind"] == "memory_refused" for event in events),
        "losses_differ": sum(a != b for a, b in zip(before["loss"], after["loss"], strict=False)),
        "bit_equal": first == second and list(before["loss"]) == list(after["loss"]),
        "copy_ms": next((event["copy_ms"] for event in events if event["kind"] == "memory_copies"), None),
        "step_ms": next((event["step_ms"] for event in events if event["kind"] == "memory_copies"), None),
    }


if __name__ == "__main__":
    main()
