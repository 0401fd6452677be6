"""From the commands on two nodes to the first finished step: `headway train --nodes 2` and one follower, against
torchrun --nnodes 2 on the same two, with the same tiny work and as many ranks.

Both nodes are supervisors of their own on this machine, so its cores are shared by both; the ratio is the median over
rounds in turn.

    python bench/nodes_start.py [--rounds 3] [--ranks 1]
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from headway.telemetry import RunDir, read_metrics

HERE = Path(__file__).resolve().parent


def time_headway(ranks: int, place: Path) -> float:
    """Return seconds from the commands to the first finished step."""
    place.mkdir()
    meet = str(place / "meet.json")
    words = [str(HERE / "tiny"), f"parallel.cpus={ranks}", "train.steps=3", f"out={place}"]
    headway = [sys.executable, "-m", "headway"]
    lead = [*headway, "train", *words, "--nodes", "2", "--nodes-address", "127.0.0.1", "--meet", meet]
    began = time.time()
    end_both(lead, [*headway, "node", "--meet", meet])
    (job,) = place.glob("*/job.json")
    return float(read_metrics(RunDir(job.parent).metrics(0))["t"][0]) - began


def time_torchrun(ranks: int, place: Path) -> float:
    """Return seconds from the commands to the first finished step."""
    place.mkdir()
    stamp = place / "stamp"
    env = {**os.environ, "STAMP": str(stamp), "STEPS": "3", "CHECKPOINT": str(place / "none"), "OMP_NUM_THREADS": "1"}
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--nnodes=2", f"--nproc-per-node={ranks}"]
    torchrun += ["--rdzv-backend=c10d", f"--rdzv-endpoint=127.0.0.1:{port}", "--rdzv-id=bench"]
    line = [*torchrun, str(HERE / "tiny" / "torchrun_ddp.py")]
    began = time.time()
    end_both(line, line, env)
    return float(stamp.read_text().split()[0]) - began


def end_both(first: list[str], second: list[str], env: dict[str, str] | None = None) -> None:
    """Run the commands of both nodes to their ends."""
    both = [
        subprocess.Popen(line, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) for line in (first, second)
    ]
    said = [process.communicate(timeout=300)[0] for process in both]
    assert [process.returncode for process in both] == [0, 0], b"\n".join(said).decode()[-3000:]


def main() -> None:
    """Print the table and, last, the figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--ranks", type=int, default=1, help="per node")
    args = parser.parse_args()
    ours, theirs = [], []
    with tempfile.TemporaryDirectory() as folder:
        for turn in range(args.rounds):
            ours.append(time_headway(args.ranks, Path(folder) / f"h{turn}"))
            theirs.append(time_torchrun(args.ranks, Path(folder) / f"t{turn}"))
            print(f"{turn:>3} headway {ours[-1]:.2f} s, torchrun {theirs[-1]:.2f} s", flush=True)
    ratio = statistics.median(a / b for a, b in zip(ours, theirs, strict=True))
    figures = {"headway_s": statistics.median(ours), "torchrun_s": statistics.median(theirs), "ratio": ratio}
    print(json.dumps({name: round(value, 3) for name, value in figures.items()}))


if __name__ == "__main__":
    main()
