"""What `headway run` costs a job: step time beside a bare run, memory of the supervisor, and a flood of output.

    python bench/run_overhead.py [--rounds 12] [--flood-mb 1024]

Steps: the same torch script is run bare and supervised in turns, and times its own steps; a round counts with its
median. Other work on the machine only makes steps longer, so `step_ratio` is best to best; where the machine's own
speed wanders, the median over pairs (`step_ratio_paired`) says more. The processor time of supervisor and nursery as
a share of the job's time is printed too. Memory is the kernel's high-water mark. The flood is lines of 100 bytes,
then one line of 10 MB. The last line is JSON: both ratios, `supervisor_cpu_share`, `supervisor_mb`, `nursery_mb`,
`flood_extra_mb`, `flood_mb_s` (by the clock), `flood_mb_cpu_s` (by processor time), `long_line_extra_mb`.
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
from dataclasses import dataclass
from pathlib import Path

from marked_runs import end_all, environment, marked, new_mark

STEPS = """
import json, statistics, sys, time
import torch
torch.set_num_threads(1)
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(256, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 256))
optimizer = torch.optim.AdamW(model.parameters())
batch = torch.randn(128, 256)
took = []
for step in range(1, 701):
    began = time.perf_counter()
    loss = model(batch).pow(2).mean()
    loss.backward(); optimizer.step(); optimizer.zero_grad()
    if step % 10 == 0:
        print(f"step {step}/700 loss {loss.item():.4f} lr 0.001", flush=True)
    took.append(time.perf_counter() - began)
json.dump(statistics.median(took[100:]), open(sys.argv[1], "w"))
"""
FLOOD = """
import sys
line = b"x" * 99 + b"\\n"
block = line * 10486
out = sys.stdout.buffer
for _ in range(int(sys.argv[1])):
    out.write(block)
out.flush()
"""
LONG = "import sys; sys.stdout.write('y' * (10 << 20)); sys.stdout.write(chr(10))"


@dataclass(slots=True)
class Watched:
    """What was seen of one supervised run from outside."""

    seconds: float = 0.0
    supervisor_mb: float = 0.0
    nursery_mb: float = 0.0
    cpu_s: float = 0.0
    """Processor time of supervisor and nursery while the job itself was running."""
    job_s: float = 0.0


def run_supervised(folder: Path, *words: str) -> Watched:
    """Run a line under `headway run` and look at its processes four times per second."""
    mark = new_mark()
    command = [sys.executable, "-m", "headway", "run", "--no-training", "--out", str(folder / "runs"), *words]
    seen = Watched()
    began = time.monotonic()
    process = subprocess.Popen(command, cwd=folder, env=environment(mark, folder), stdout=subprocess.DEVNULL)
    first_cpu, first_at = None, 0.0
    try:
        while process.poll() is None:
            nursery = next((pid for pid in marked(mark) if _comm(pid) == "headway-nursery"), None)
            seen.supervisor_mb = max(seen.supervisor_mb, _high_mb(process.pid))
            if nursery is not None:
                seen.nursery_mb = max(seen.nursery_mb, _high_mb(nursery))
                cpu, now = _cpu_s(process.pid) + _cpu_s(nursery), time.monotonic()
                if first_cpu is None and _has_rank(nursery):
                    first_cpu, first_at = cpu, now
                if first_cpu is not None and cpu:
                    seen.cpu_s, seen.job_s = cpu - first_cpu, now - first_at
            time.sleep(0.25)
    finally:
        end_all(marked(mark))
    seen.seconds = time.monotonic() - began
    if process.returncode:
        raise RuntimeError(f"{words}: exit code {process.returncode}")
    return seen


def _comm(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def _has_rank(nursery: int) -> bool:
    try:
        return bool(Path(f"/proc/{nursery}/task/{nursery}/children").read_text().split())
    except OSError:
        return False


def _high_mb(pid: int) -> float:
    try:
        text = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0.0
    found = [line for line in text.splitlines() if line.startswith("VmHWM:")]
    return int(found[0].split()[1]) / 1024 if found else 0.0


def _cpu_s(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure_steps(folder: Path, rounds: int) -> dict[str, float]:
    """Run bare and supervised in turns."""
    (folder / "steps.py").write_text(STEPS)
    bares, supervised, shares, memory, nursery = [], [], [], [], []
    for number in range(rounds):
        bare, ours = folder / f"bare-{number}", folder / f"ours-{number}"
        env = environment(new_mark(), folder)

        def run_bare(bare: Path = bare, env: dict[str, str] = env) -> None:
            words = [sys.executable, "steps.py", str(bare)]
            subprocess.run(words, cwd=folder, env=env, check=True, stdout=subprocess.DEVNULL)

        if number % 2:
            run_bare()
        seen = run_supervised(folder, sys.executable, "steps.py", str(ours))
        if not number % 2:
            run_bare()
        bares.append(json.loads(bare.read_text()))
        supervised.append(json.loads(ours.read_text()))
        shares.append(seen.cpu_s / seen.job_s if seen.job_s else 0.0)
        memory.append(seen.supervisor_mb)
        nursery.append(seen.nursery_mb)
        times = f"bare {bares[-1] * 1e3:.3f} ms, supervised {supervised[-1] * 1e3:.3f} ms a step"
        print(
            f"round {number + 1}: {times}, ratio {supervised[-1] / bares[-1]:.3f}, "
            f"processor share {shares[-1] * 100:.2f} %, supervisor {memory[-1]:.0f} MB",
            flush=True,
        )
    return {
        "step_ratio": round(min(supervised) / min(bares), 4),
        "step_ratio_paired": round(statistics.median(a / b for a, b in zip(supervised, bares, strict=True)), 4),
        "supervisor_cpu_share": round(statistics.median(shares), 4),
        "supervisor_mb": round(max(memory), 1),
        "nursery_mb": round(max(nursery), 1),
    }


def measure_flood(folder: Path, flood_mb: int) -> dict[str, float | None]:
    """Let a job print far too much; compare with one that prints nothing."""
    (folder / "flood.py").write_text(FLOOD)
    (folder / "long.py").write_text(LONG)
    (folder / "quiet.py").write_text("import time; time.sleep(2)\n")
    quiet = run_supervised(folder, sys.executable, "quiet.py")
    flood = run_supervised(folder, sys.executable, "flood.py", str(flood_mb))
    long = run_supervised(folder, sys.executable, "long.py")
    figures: dict[str, float | None] = {
        "flood_mb": flood_mb,
        "flood_extra_mb": round(flood.supervisor_mb - quiet.supervisor_mb, 1),
        "flood_mb_s": round(flood_mb / max(0.01, flood.seconds - quiet.seconds + 2), 1),
        "flood_mb_cpu_s": round(flood_mb / flood.cpu_s, 1) if flood.cpu_s else None,
        "long_line_extra_mb": round(long.supervisor_mb - quiet.supervisor_mb, 1),
    }
    speed = f"{figures['flood_mb_s']} MB/s ({figures['flood_mb_cpu_s']} MB a second of processor time)"
    print(f"flood of {flood_mb} MB: {speed}, {figures['flood_extra_mb']} MB more memory")
    print(f"one line of 10 MB: {figures['long_line_extra_mb']} MB more memory")
    return figures


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--flood-mb", type=int, default=1024)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        figures = measure_steps(Path(place), args.rounds) | measure_flood(Path(place), args.flood_mb)
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
