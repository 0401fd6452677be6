"""Inject faults into real two-rank jobs; compare who `headway run` and torchrun blame.

    python bench/fault_blame.py [--rounds 1] [--only NAME] [--no-torchrun]

Each fault strikes rank 1 of a gloo job (all-reduce every step). Right means: the rank, and one of the classes that
describe the fault. torchrun says no class, so for it only the rank counts. The last line is JSON: `accuracy` and
`torchrun_accuracy`.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
MARK = "FAULT_BLAME_MARK"
ODD = 1

JOB = """
import os, signal, sys, time
import torch, torch.distributed as dist
fault, rank, odd = sys.argv[1], int(os.environ["RANK"]), 1
dist.init_process_group("gloo")
model = torch.nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

def load(step):
    if fault == "slow-loader" and step == 6 and rank == odd:
        loader = torch.utils.data.DataLoader(Slow(), batch_size=1)
        next(iter(loader))
    return torch.randn(4, 8)

class Slow(torch.utils.data.Dataset):
    def __len__(self):
        return 1
    def __getitem__(self, index):
        time.sleep(1000)

def strike(step):
    if step != 6 or rank != odd:
        return
    if fault == "exception":
        raise ValueError("a bad batch")
    if fault == "key-error":
        {}["lr"]
    if fault == "missing-file":
        open("/no/such/file.bin")
    if fault == "import":
        import no_such_module
    if fault == "exit-3":
        sys.exit(3)
    if fault == "exit-0":
        sys.exit(0)
    if fault == "os-exit-0":
        os._exit(0)
    if fault in ("SIGKILL", "SIGSEGV", "SIGSTOP", "SIGTERM", "SIGABRT"):
        os.kill(os.getpid(), getattr(signal, fault))
    if fault == "memory":
        raise MemoryError("Cannot allocate memory")
    if fault == "skip":
        time.sleep(1000)

for step in range(1, 13):
    loss = model(load(step)).pow(2).mean()
    loss.backward()
    strike(step)
    if fault == "wrong-collective" and step == 6 and rank == odd:
        dist.barrier()
    for p in model.parameters():
        grad = p.grad
        if fault == "shape" and step == 6 and rank == odd:
            grad = torch.cat([grad.flatten(), grad.flatten()])
        dist.all_reduce(grad)
    optimizer.step(); optimizer.zero_grad()
    print(f"step {step}: loss {loss.item():.4f}", flush=True)
dist.destroy_process_group()
"""

FAULTS: dict[str, set[str]] = {
    "exception": {"python-exception"},
    "key-error": {"python-exception"},
    "missing-file": {"missing-file"},
    "import": {"import-error"},
    "memory": {"host-out-of-memory"},
    "exit-3": {"exited"},
    "exit-0": {"early-exit"},
    "os-exit-0": {"early-exit"},
    "SIGKILL": {"killed"},
    "SIGTERM": {"killed"},
    "SIGSEGV": {"crashed"},
    "SIGABRT": {"crashed"},
    "SIGSTOP": {"rank-stopped"},
    "skip": {"rank-behind"},
    "wrong-collective": {"collective-mismatch"},
    "shape": {"collective-mismatch"},
    "slow-loader": {"data-stall"},
}


@dataclass(frozen=True, slots=True)
class Result:
    """Who was blamed, for what, and what was left behind."""

    rank: int | None
    kind: str
    exit_code: int | None
    seconds: float
    leftovers: int


def environment(mark: str, folder: Path) -> dict[str, str]:
    """Return the environment of one run."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    own = {"PYTHONPATH": str(ROOT / "src"), "PATH": path, MARK: mark, "HEADWAY_CLAIMS": str(folder / "claims")}
    return {**os.environ, **own}


def run_headway(fault: str, folder: Path) -> Result:
    """Run one faulty job under `headway run`."""
    words = ["-m", "headway", "run", "--out", str(folder / "runs"), "--on-hang", "stop", "--hang-after", "5"]
    code, seconds, leftovers, _ = execute(
        [sys.executable, *words, "torchrun", "--nproc_per_node=2", "job.py", fault], folder, 120
    )
    events = next(iter(sorted((folder / "runs").glob("*/events.jsonl"))), None)
    lines = events.read_text().splitlines() if events else []
    incidents = [event for line in lines if (event := json.loads(line)).get("kind") == "incident"]
    last: dict[str, Any] = incidents[-1] if incidents else {}
    return Result(last.get("rank"), str(last.get("class", "none")), code, seconds, leftovers)


def run_torchrun(fault: str, folder: Path) -> Result:
    """Run the same job under torchrun; a job that still hangs after half a minute was not noticed."""
    words = [str(Path(sys.executable).parent / "torchrun"), "--standalone", "--nproc_per_node=2", "job.py", fault]
    code, seconds, leftovers, text = execute(words, folder, 40)
    found = re.search(r"Root Cause.*?rank\s*:\s*(\d+)", text, re.DOTALL)
    return Result(int(found[1]) if found else None, "n/a", code, seconds, leftovers)


def execute(words: list[str], folder: Path, limit_s: float) -> tuple[int | None, float, int, str]:
    """Run to the end or the limit; then count and end what is left."""
    mark = secrets.token_hex(8)
    began = time.monotonic()
    with (folder / "output").open("wb") as output:
        process = subprocess.Popen(
            words, cwd=folder, env=environment(mark, folder), stdout=output, stderr=output, start_new_session=True
        )
        try:
            code: int | None = process.wait(limit_s)
        except subprocess.TimeoutExpired:
            code = None
            process.kill()
            process.wait()
    seconds = time.monotonic() - began
    time.sleep(0.5)
    left = marked(mark)
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    return code, seconds, len(left), (folder / "output").read_text(errors="replace")


def marked(mark: str) -> list[int]:
    """Return living processes that carry the mark."""
    found = []
    for place in Path("/proc").iterdir():
        if place.name.isdigit():
            try:
                environ = (place / "environ").read_bytes()
            except OSError:
                continue
            if f"{MARK}={mark}".encode() in environ.split(b"\0"):
                found.append(int(place.name))
    return found


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--only", action="append", choices=FAULTS)
    parser.add_argument("--no-torchrun", action="store_true")
    args = parser.parse_args()
    runs = right = torchrun_right = leftovers = 0
    print(f"{'fault':18}{'headway':34}{'':6}{'torchrun':22}")
    for fault in args.only or FAULTS:
        for _ in range(args.rounds):
            with tempfile.TemporaryDirectory() as place:
                folder = Path(place)
                (folder / "job.py").write_text(JOB)
                ours = run_headway(fault, folder)
                theirs = None if args.no_torchrun else run_torchrun(fault, folder)
            is_right = ours.rank == ODD and ours.kind in FAULTS[fault]
            runs, right, leftovers = runs + 1, right + is_right, leftovers + ours.leftovers
            torchrun_right += theirs is not None and theirs.rank == ODD
            told = f"rank {ours.rank} {ours.kind}, exit {ours.exit_code}, {ours.seconds:.0f} s"
            other = "" if theirs is None else f"rank {theirs.rank}, exit {theirs.exit_code}, {theirs.seconds:.0f} s"
            print(f"{fault:18}{told:42}{'right' if is_right else 'WRONG':8}{other}", flush=True)
    record = {
        "runs": runs,
        "accuracy": right / runs,
        "torchrun_accuracy": None if args.no_torchrun else torchrun_right / runs,
        "leftover_processes": leftovers,
    }
    print(json.dumps(record))


if __name__ == "__main__":
    main()
