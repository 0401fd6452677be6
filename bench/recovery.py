"""From SIGKILL of a rank to the next finished step: Headway against torchrun, the same tiny work on two ranks.

torchrun gets its own best setting (a fresh store a restart; by default about half of its restarts fail on torch 2.13).
Both save every 20 steps and continue from the last save.

    python bench/recovery.py [--kills 10] [--torchrun-kills 3]
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from headway.telemetry import Beat, RunDir, read_beat

HERE = Path(__file__).resolve().parent


def recover_headway(place: Path, kills: int) -> list[float]:
    """Return seconds from each kill to the next finished step."""
    words = [str(HERE / "tiny"), "train.steps=1000000", "save.every=20", f"out={place}", "task.pause_s=0.01"]
    with (place.parent / "headway.log").open("wb") as log:
        process = subprocess.Popen([sys.executable, "-m", "headway", "train", *words], stdout=log, stderr=log)
    try:
        return [kill_one(place, process, turn) for turn in range(kills)]
    finally:
        process.send_signal(signal.SIGQUIT)
        process.wait()


def kill_one(place: Path, process: subprocess.Popen[bytes], turn: int) -> float:
    """Kill one rank of a run that is well under way; return seconds to the next finished step."""
    beat = wait_for(place, process, 0, steps=30)
    time.sleep(random.random() * 0.3)
    began = time.monotonic_ns()
    os.kill(wait_for(place, process, turn % 2).pid, signal.SIGKILL)
    after = wait_for(place, process, 0, attempt=beat.attempt + 1, steps=1)
    return (after.monotonic_ns - began) / 1e9


def wait_for(place: Path, process: subprocess.Popen[bytes], rank: int, *, attempt: int = 1, steps: int = 0) -> Beat:
    """Return a rank's heartbeat once it has finished that many steps in this attempt or a later one."""
    seen: tuple[int, int] | None = None
    while process.poll() is None:
        for job in place.glob("*/job.json"):
            beat = read_beat(RunDir(job.parent).heartbeat(rank))
            if beat is None or beat.attempt < attempt or beat.step == 0:
                continue
            if seen is None or seen[0] != beat.attempt:
                seen = (beat.attempt, beat.step - 1)
            if beat.step - seen[1] >= steps:
                return beat
        time.sleep(0.001)
    raise RuntimeError(f"the run ended: {(place.parent / 'headway.log').read_text()[-2000:]}")


def recover_torchrun(place: Path, kills: int) -> list[float]:
    """Return seconds from each kill to the next finished step."""
    place.mkdir()
    stamp = place / "stamp"
    stamp.touch()
    env = {
        **os.environ,
        "STAMP": str(stamp),
        "STEPS": "1000000",
        "CHECKPOINT": str(place / "checkpoint"),
        "OMP_NUM_THREADS": "1",
        "PAUSE": "0.01",
        "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1",
    }
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    script = str(HERE / "tiny" / "torchrun_ddp.py")
    process = subprocess.Popen(
        [*command, f"--max-restarts={kills + 5}", script], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    times = []
    try:
        for _ in range(kills):
            pid = int(wait_for_lines(stamp, process, 40)[-1].split()[1])
            began = time.time()
            os.kill(pid, signal.SIGKILL)
            old = str(pid)
            while stamp.read_text().splitlines()[-1].split()[1] == old:
                if process.poll() is not None:
                    raise RuntimeError("torchrun gave up")
                time.sleep(0.001)
            after = next(
                line
                for line in stamp.read_text().splitlines()
                if float(line.split()[0]) > began and line.split()[1] != old
            )
            times.append(float(after.split()[0]) - began)
            stamp.write_text("")
    finally:
        process.terminate()
        process.wait()
    return times


def wait_for_lines(stamp: Path, process: subprocess.Popen[bytes], count: int) -> list[str]:
    """Return the stamps once there are that many."""
    while len(lines := stamp.read_text().splitlines()) < count:
        if process.poll() is not None:
            raise RuntimeError("torchrun ended")
        time.sleep(0.02)
    return lines


def main() -> None:
    """Print the table and, last, the figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--torchrun-kills", type=int, default=3)
    args = parser.parse_args()
    random.seed(0)
    with tempfile.TemporaryDirectory() as folder:
        ours = recover_headway(Path(folder) / "headway", args.kills)
        theirs = recover_torchrun(Path(folder) / "torchrun", args.torchrun_kills)
    print(f"{'':<10} {'kills':>6} {'median s':>9} {'worst s':>8}")
    for name, each in (("headway", ours), ("torchrun", theirs)):
        print(f"{name:<10} {len(each):>6} {statistics.median(each):>9.3f} {max(each):>8.3f}")
    print(
        json.dumps(
            {
                "recover_s_median": round(statistics.median(ours), 3),
                "recover_s_worst": round(max(ours), 3),
                "torchrun_recover_s_median": round(statistics.median(theirs), 3),
                "ratio": round(statistics.median(ours) / statistics.median(theirs), 3),
            }
        )
    )


if __name__ == "__main__":
    main()
