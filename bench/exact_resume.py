"""Is a killed and resumed run bit-equal to an undisturbed one?

Trains the test recipe (dropout, Muon and AdamW, moving average, accumulation 2, samples that no batch divides) once in
peace, then again while SIGKILL hits a rank inside every one of the first N steps, and compares the loss of every step
and every byte of the final state. Also counts samples over 2 -> 1 -> 2 ranks.

    python bench/exact_resume.py [--kills 60] [--workers 0 2]
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
from fakes.engine_run import TINY as RECIPE
from fakes.engine_run import read_tensors
from headway.checkpoint import find_resumable
from headway.task.order import Order, expected_ledger
from headway.telemetry import RunDir, read_beat, read_events, read_metrics

COMMON = ["batch.per_device=3", "batch.accumulation=2", "optimizer.name=muon", "ema.decay=0.99", "eval.every=20"]


def main() -> None:
    """Print the table and, last, the figures as JSON; end with 1 when anything differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=60)
    parser.add_argument("--workers", type=int, nargs="+", default=[0, 2])
    args = parser.parse_args()
    place = Path(tempfile.mkdtemp(prefix="headway-exact-"))
    rows = []
    try:
        for workers in args.workers:
            rows.append(compare(place / f"w{workers}", kills=args.kills, workers=workers))
        ledger = change_ranks(place / "ranks")
    finally:
        shutil.rmtree(place)
    print(f"{'workers':>8} {'kills':>6} {'attempts':>9} {'steps':>6} {'losses differ':>14} {'tensors differ':>15}")
    for row in rows:
        print(
            f"{row['workers']:>8} {row['kills']:>6} {row['attempts']:>9} {row['steps']:>6}"
            f" {row['losses_differ']:>14} {row['tensors_differ']:>15}"
        )
    print(f"2 -> 1 -> 2 ranks: every sample once an epoch: {'yes' if ledger else 'NO'}")
    differ = sum(row["losses_differ"] + row["tensors_differ"] for row in rows)
    kills = sum(row["kills"] for row in rows)
    print(json.dumps({"kills": kills, "differences": differ, "ledger_exact": ledger, "rows": rows}))
    sys.exit(0 if differ == 0 and ledger and all(row["kills"] >= args.kills for row in rows) else 1)


def compare(place: Path, *, kills: int, workers: int) -> dict[str, int]:
    """Train in peace and under fire; return what differs."""
    steps = kills + 5
    words = [*COMMON, f"train.steps={steps}", f"parallel.workers={workers}", "task.sleep_s=0.02"]
    # A save every third step: most kills hit steps whose predecessors are not yet on disk.
    peace = train(place / "peace", [*words, "save.every=3"])
    process = start(place / "fire", [*words, "save.every=3"])
    killed = shoot(place / "fire", process, kills)
    assert process.wait() == 0, (place / "fire.log").read_text()[-3000:]
    fire = only_run(place / "fire")
    before, after = read_metrics(peace.metrics(0)), read_metrics(fire.metrics(0))
    losses = sum(a != b for a, b in zip(before["loss"], after["loss"], strict=True))
    first, second = read_tensors(peace), read_tensors(fire)
    assert first.keys() == second.keys()
    attempts = sum(event["kind"] == "attempt_started" for event in read_events(fire.events))
    return {
        "workers": workers,
        "kills": killed,
        "attempts": attempts,
        "steps": len(after["loss"]),
        "losses_differ": losses,
        "tensors_differ": sum(first[name] != second[name] for name in first),
    }


def shoot(out: Path, process: subprocess.Popen[bytes], kills: int) -> int:
    """Kill one rank inside each step from the first on, as soon as that step runs; return how many were hit."""
    target, killed_attempt = 1, 0
    while target <= kills and process.poll() is None:
        time.sleep(0.002)
        runs = list(out.glob("*/job.json"))
        if not runs:
            continue
        rank = target % 2
        beat = read_beat(RunDir(runs[0].parent).heartbeat(rank))
        if beat is None or beat.attempt <= killed_attempt or beat.step < target - 1:
            continue
        if beat.phase in ("forward", "backward", "data", "optimizer"):
            os.kill(beat.pid, signal.SIGKILL)
            killed_attempt = beat.attempt
            target = max(target, beat.step + 1) + 1
    return target - 1


def change_ranks(out: Path) -> bool:
    """Train on 2, 1 and 2 ranks and compare the ledger with the data order."""
    words = ["batch.total=12", "batch.per_device=3", "save.every=0"]
    run = train(out, [*words, "train.steps=20", "parallel.cpus=2"])
    for ranks, steps in ((1, 40), (2, 60)):
        call(["resume", str(run.root), f"parallel.cpus={ranks}", f"train.steps={steps}"])
    found = find_resumable(run.checkpoints).manifest
    assert found is not None and found.samples == 60 * 12
    return int(found.ledger, 16) == expected_ledger(Order(97, 0), found.samples, [])


def train(out: Path, words: list[str]) -> RunDir:
    """Train to the end and return the run."""
    call(["train", RECIPE, f"out={out}", *words])
    return only_run(out)


def start(out: Path, words: list[str]) -> subprocess.Popen[bytes]:
    """Start a training and return its supervisor's process."""
    out.parent.mkdir(parents=True, exist_ok=True)
    log = open(f"{out}.log", "wb")  # noqa: SIM115 - the process writes it
    return subprocess.Popen(
        [sys.executable, "-m", "headway", "train", RECIPE, f"out={out}", *words], stdout=log, stderr=log
    )


def call(words: list[str]) -> None:
    """Run a command that must succeed."""
    done = subprocess.run([sys.executable, "-m", "headway", *words], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()[-3000:]


def only_run(out: Path) -> RunDir:
    """Return the one run of a folder."""
    (job,) = out.glob("*/job.json")
    return RunDir(job.parent)


if __name__ == "__main__":
    main()
