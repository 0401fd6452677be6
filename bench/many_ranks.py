"""Hundreds of ranks on one machine: do they start, is a stop heard at any moment, is everything gone afterwards?

Rows with `sleep` as the rank cost little memory and show the launcher alone; the row of 256 ranks is Python with the
hook, which prints a line every ten seconds, and measures the supervisor's share of a core.

    python bench/many_ranks.py [--ranks 512,1024] [--seconds 20]
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
MARK = "MANY_RANKS_MARK"
IDLE = """
import time
for turn in range(10_000):
    print("step", turn, flush=True)
    time.sleep(10)
"""


class Run:
    """One `headway run` with many ranks."""

    def __init__(self, folder: Path, ranks: int, *program: str) -> None:
        self.folder, self.mark = folder, secrets.token_hex(8)
        folder.mkdir()
        (folder / "idle.py").write_text(IDLE)
        line = ["torchrun", f"--nproc_per_node={ranks}", *program]
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), MARK: self.mark}
        with (folder / "out").open("wb") as out:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "headway", "run", "--no-training", "--grace", "20", "--out", "runs", *line],
                cwd=folder, env=environment, stdout=out, stderr=out, stdin=subprocess.DEVNULL,
            )  # fmt: skip

    def wait_up(self, seconds: float = 300) -> float:
        """Wait until all ranks are there; return how long it took."""
        began = time.monotonic()
        while time.monotonic() - began < seconds:
            if any(b'"attempt_started"' in path.read_bytes() for path in self.folder.glob("runs/*/events.jsonl")):
                return time.monotonic() - began
            if self.process.poll() is not None:
                break
            time.sleep(0.1)
        raise SystemExit(f"the ranks did not start: {(self.folder / 'out').read_text()[-2000:]}")

    def end(self, signum: int) -> tuple[float, int]:
        """Stop it; return how long it took, and how many processes are left ten seconds later."""
        began = time.monotonic()
        self.process.send_signal(signum)
        self.process.wait(120)
        took = time.monotonic() - began
        deadline = time.monotonic() + 10
        while (left := self.left()) and time.monotonic() < deadline:
            time.sleep(0.2)
        return took, left

    def left(self) -> int:
        """Return how many processes carry the mark."""
        wanted, num = f"{MARK}={self.mark}".encode(), 0
        for place in Path("/proc").iterdir():
            if place.name.isdigit():
                try:
                    num += wanted in (place / "environ").read_bytes().split(b"\0")
                except OSError:
                    continue
        return num


def cpu_s(pid: int) -> float:
    """Return the processor time of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> int:
    """Run the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", default="512,1024")
    parser.add_argument("--seconds", type=float, default=20)
    given = parser.parse_args()
    found: dict[str, object] = {}
    bad = 0
    with tempfile.TemporaryDirectory(prefix="many-ranks-") as work:
        for ranks in map(int, given.ranks.split(",")):
            run = Run(Path(work) / f"up-{ranks}", ranks, "--no-python", "sleep", "1000")
            up = run.wait_up()
            took, left = run.end(signal.SIGINT)
            print(f"{ranks:5} ranks up after {up:5.1f} s, stopped in {took:5.1f} s, {left} processes left", flush=True)
            early = Run(Path(work) / f"early-{ranks}", ranks, "--no-python", "sleep", "1000")
            time.sleep(3 + secrets.randbelow(2000) / 1000)
            early_took, early_left = early.end(signal.SIGTERM)
            print(f"{ranks:5} ranks, stopped while they start: {early_took:5.1f} s, {early_left} left", flush=True)
            found |= {f"up_s_{ranks}": round(up, 1), f"stop_s_{ranks}": round(took, 1)}
            bad += left + early_left
        run = Run(Path(work) / "idle", 256, "idle.py")
        run.wait_up()
        time.sleep(10)
        before, began = cpu_s(run.process.pid), time.monotonic()
        time.sleep(given.seconds)
        share = (cpu_s(run.process.pid) - before) / (time.monotonic() - began)
        _, left = run.end(signal.SIGTERM)
        bad += left
        print(f"  256 idle Python ranks: the supervisor takes {share:.1%} of a core, {left} processes left")
    print(json.dumps({**found, "supervisor_share_256": round(share, 3), "left": bad}))
    return int(bad > 0 or share > 0.3)


if __name__ == "__main__":
    sys.exit(main())
