"""Ends of jobs on a real Slurm of two nodes on this host: each is struck once, and must end bit-equal to a run nobody
has disturbed. Needs root and Debian's slurm-wlm; ten minutes.

    python bench/slurm_ends.py [--only time-limit node-down] [--steps 120]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from headway.cluster import query_job
from headway.telemetry import RunDir, read_events
from nodes_faults import state_of, wait_until

HERE = Path(__file__).resolve().parent
CLUSTER = str(HERE.parent / "scripts/slurm_cluster.sh")
FINAL = ("COMPLETED", "FAILED", "CANCELLED", "NODE_FAIL", "TIMEOUT", "PREEMPTED")
PATIENCE_S = 420.0
TORCHRUN = """
import os, torch, torch.distributed as dist
dist.init_process_group("gloo")
for step in range(5):
    x = torch.ones(1); dist.all_reduce(x)
    if dist.get_rank() == 0: print(f"step {step} loss {1 / (step + 1):.3f} ranks {int(x)}", flush=True)
dist.destroy_process_group()
"""
ACCELERATE = """
import torch
from accelerate import Accelerator
a = Accelerator(cpu=True)
model = torch.nn.Linear(2, 2)
model, optimizer = a.prepare(model, torch.optim.SGD(model.parameters(), 0.1))
for step in range(5):
    loss = model(torch.ones(2, 2)).sum(); a.backward(loss); optimizer.step(); optimizer.zero_grad()
    if a.is_main_process: print(f"step {step} loss {loss.item():.3f} ranks {a.num_processes}", flush=True)
"""


class Cluster:
    """Slurm, and what is submitted to it."""

    def __init__(self, place: Path, steps: int) -> None:
        self.place, self.steps = place, steps
        self.words = [str(HERE / "tiny"), "parallel.threads=1", "parallel.workers=0", f"train.steps={steps}"]
        self.words += ["save.every=20", "launch.grace_s=10"]
        self.env = {**os.environ, "HEADWAY_CLAIMS": str(place / "claims")}

    def headway(self, *words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "headway", *words]
        return subprocess.run(command, cwd=self.place, env=self.env, capture_output=True, text=True, check=check)

    def submit(self, *words: str, nodes: int = 2, more: tuple[str, ...] = ()) -> tuple[str, Path]:
        asked = ["--nodes", str(nodes), "--cpus-per-task", "2", *more, "--json", "--", *words]
        told = json.loads(self.headway("submit", "--slurm", *asked).stdout)
        return str(told["job"]), Path(told["folder"])

    def train(self, *more: str) -> tuple[str, Path]:
        words = ["train", *self.words, "parallel.cpus=1", "task.pause_s=0.3", "out=runs"]
        return self.submit(*words, more=more)

    def run_of(self, job: str, folder: Path) -> RunDir:
        named = folder / f"run-{job}"
        wait_until(named.exists, "the name of the run", PATIENCE_S)
        return RunDir(Path(named.read_text()))

    def wait_saved(self, run: RunDir) -> None:
        kind = "checkpoint_committed"
        wait_until(lambda: any(one["kind"] == kind for one in read_events(run.events)), "a checkpoint", PATIENCE_S)

    def end(self, job: str) -> str:
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            found = query_job(job)
            if found is not None and found.state in FINAL:
                return found.state
            time.sleep(1.0)
        raise AssertionError(f"job {job} has not ended")


def signalled(cluster: Cluster) -> RunDir:
    """`scancel --signal=TERM`: saved, queued again, ended."""
    job, folder = cluster.train()
    run = cluster.run_of(job, folder)
    cluster.wait_saved(run)
    subprocess.run(["scancel", "--signal=TERM", job], check=True)
    assert cluster.end(job) == "COMPLETED"
    return run


def cancelled(cluster: Cluster) -> RunDir:
    """`scancel`: not queued again; the run is submitted again by its name."""
    job, folder = cluster.train()
    run = cluster.run_of(job, folder)
    cluster.wait_saved(run)
    subprocess.run(["scancel", job], check=True)
    assert cluster.end(job) == "CANCELLED"
    again, _ = cluster.submit("resume", str(run.root))
    assert cluster.end(again) == "COMPLETED"
    return run


def stopped(cluster: Cluster) -> RunDir:
    """`headway stop JOB`: saved and final."""
    job, folder = cluster.train()
    run = cluster.run_of(job, folder)
    cluster.wait_saved(run)
    cluster.headway("stop", job)
    assert cluster.end(job) == "FAILED", "exit code 130, and not queued again"
    again, _ = cluster.submit("resume", str(run.root))
    assert cluster.end(again) == "COMPLETED"
    return run


def time_limit(cluster: Cluster) -> RunDir:
    """The limit: asked to save 70 s before it, queued again."""
    job, folder = cluster.train("--time", "2")
    run = cluster.run_of(job, folder)
    assert cluster.end(job) == "COMPLETED"
    return run


def node_down(cluster: Cluster) -> RunDir:
    """The administrator's `State=DOWN`: Slurm kills the job and queues it again."""
    job, folder = cluster.train()
    run = cluster.run_of(job, folder)
    cluster.wait_saved(run)
    subprocess.run(["scontrol", "update", "nodename=n2", "state=down", "reason=test"], check=True)
    wait_until(lambda: (query_job(job) or run) and query_job(job).state == "PENDING", "the queue", PATIENCE_S)  # type: ignore[union-attr]
    subprocess.run(["scontrol", "update", "nodename=n2", "state=resume"], check=True)
    assert cluster.end(job) == "COMPLETED"
    return run


ENDS: dict[str, Callable[[Cluster], RunDir]] = {
    "signalled": signalled,
    "cancelled": cancelled,
    "stopped": stopped,
    "time-limit": time_limit,
    "node-down": node_down,
}


def line(cluster: Cluster, name: str) -> bool:
    """A line of the user's own, with one word more, over two nodes."""
    (cluster.place / f"{name}.py").write_text(TORCHRUN if name == "torchrun" else ACCELERATE)
    launch = ["accelerate", "launch", "--multi_gpu", "--num_processes", "1"]
    words = ["torchrun", "--nproc-per-node", "1"] if name == "torchrun" else launch
    job, folder = cluster.submit(*words, f"{name}.py")
    state = cluster.end(job)
    text = (folder / f"output-{job}.log").read_text()
    return state == "COMPLETED" and "step 4" in text and "ranks 2" in text


def array(cluster: Cluster) -> bool:
    """Two elements, each a run of its own with its own seed."""
    words = ["train", *cluster.words[:-2], "train.steps=5", "parallel.cpus=1", "seed={array}", "out=runs"]
    job, folder = cluster.submit(*words, nodes=1, more=("--array", "1-2"))
    states = [cluster.end(f"{job}_{at}") for at in (1, 2)]
    runs = [RunDir(Path((folder / f"run-{job}_{at}").read_text())) for at in (1, 2)]
    seeds = [json.loads(run.job.read_text())["config"]["seed"] for run in runs]
    return states == ["COMPLETED"] * 2 and seeds == [1, 2] and runs[0].root != runs[1].root


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", default=[*ENDS, "torchrun", "accelerate", "array"])
    parser.add_argument("--steps", type=int, default=120)
    options = parser.parse_args()
    os.environ["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    right, rows = 0, {}
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        subprocess.run([CLUSTER, "start", str(place / "slurm")], check=True)
        os.environ["SLURM_CONF"] = str(place / "slurm/slurm.conf")
        try:
            cluster = Cluster(place, options.steps)
            alone = cluster.headway("train", *cluster.words, "parallel.cpus=2", "out=alone")
            assert alone.returncode == 0, alone.stderr
            want = state_of(RunDir(next((place / "alone").glob("*/job.json")).parent))
            for one in options.only:
                began = time.monotonic()
                rows[one] = _try(cluster, one, want)
                right += rows[one] == "right"
                print(f"{one:12} {rows[one]:40} {time.monotonic() - began:6.0f} s", flush=True)
        finally:
            subprocess.run([CLUSTER, "stop", str(place / "slurm")], check=False)
    print(json.dumps({"ends": len(options.only), "right": right, "rows": rows}))


def _try(cluster: Cluster, name: str, want: dict[str, str]) -> str:
    try:
        if name in ENDS:
            run = ENDS[name](cluster)
            kinds = [event["kind"] for event in read_events(run.events)]
            if "run_resumed" not in kinds:
                return "never resumed"
            return "right" if state_of(run) == want else "other weights"
        is_right = array(cluster) if name == "array" else line(cluster, name)
        return "right" if is_right else "wrong"
    except (AssertionError, subprocess.CalledProcessError) as err:
        for log in sorted(cluster.place.glob("runs/slurm/*/output-*.log"))[-1:]:
            print(log.read_text()[-3000:], file=sys.stderr)
        return f"{type(err).__name__}: {err}"[:200]


if __name__ == "__main__":
    main()
