"""From the command to the first finished optimizer step: `headway train` against torchrun, the same tiny work.

Headway's time holds everything it does: config, machine check, plan, run directory, supervision. Both are started in
turn, and the ratio is the median over rounds.

    python bench/start_time.py [--rounds 5] [--ranks 2 8]
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from headway.telemetry import RunDir, read_metrics

HERE = Path(__file__).resolve().parent


def time_headway(ranks: int, place: Path) -> float:
    """Return seconds from the command to the first finished step."""
    words = [str(HERE / "tiny"), f"parallel.cpus={ranks}", "train.steps=3", f"out={place}"]
    began = time.time()
    done = subprocess.run([sys.executable, "-m", "headway", "train", *words], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    (job,) = place.glob("*/job.json")
    return read_metrics(RunDir(job.parent).metrics(0))["t"][0] - began


def time_torchrun(ranks: int, place: Path) -> float:
    """Return seconds from the command to the first finished step."""
    place.mkdir()
    stamp = place / "stamp"
    env = {**os.environ, "STAMP": str(stamp), "STEPS": "3", "CHECKPOINT": str(place / "none"), "OMP_NUM_THREADS": "1"}
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}"]
    began = time.time()
    done = subprocess.run(
        [*torchrun, str(HERE / "tiny" / "torchrun_ddp.py")], env=env, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    return float(stamp.read_text().split()[0]) - began


def main() -> None:
    """Print the table and, last, the figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--ranks", type=int, nargs="+", default=[2, 8])
    args = parser.parse_args()
    figures: dict[str, float] = {}
    print(f"{'ranks':>6} {'headway s':>10} {'torchrun s':>11} {'ratio':>7}")
    with tempfile.TemporaryDirectory() as folder:
        for ranks in args.ranks:
            ours, theirs = [], []
            for turn in range(args.rounds):
                ours.append(time_headway(ranks, Path(folder) / f"h{ranks}-{turn}"))
                theirs.append(time_torchrun(ranks, Path(folder) / f"t{ranks}-{turn}"))
            ratio = statistics.median(a / b for a, b in zip(ours, theirs, strict=True))
            print(f"{ranks:>6} {statistics.median(ours):>10.2f} {statistics.median(theirs):>11.2f} {ratio:>7.2f}")
            figures[f"ratio_{ranks}"] = round(ratio, 3)
            figures[f"headway_s_{ranks}"] = round(statistics.median(ours), 2)
            figures[f"torchrun_s_{ranks}"] = round(statistics.median(theirs), 2)
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
