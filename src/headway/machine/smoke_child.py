"""One rank of the smoke test. Run by its text in the ranks' interpreter, so it needs nothing but Python and torch
(whose types are not known here: Any).

Ranks meet in a file, add up numbers each of them can foretell, and say whether every number is right. With GPUs, each
pair is also asked to copy memory directly: hardware that claims this may deliver zeros, and only the content shows it.
"""

import datetime
import importlib
import json
import sys
import time
from typing import Any

_DEADLINE = datetime.timedelta(seconds=40)
_REPEATS = 3


def pattern(torch: Any, length: int, rank: int, device: str) -> Any:
    """Return numbers that differ at every place and for every rank, small enough that sums stay exact in fp32."""
    return (torch.arange(length, device=device, dtype=torch.float32) % 4093) * (rank + 1)


def add_up(torch: Any, job: dict[str, Any], device: str) -> tuple[int, float]:
    """Return (wrong numbers, bytes a second) of sums over all ranks."""
    dist = importlib.import_module("torch.distributed")
    store = dist.FileStore(job["store"], job["world"])
    dist.init_process_group(job["backend"], store=store, rank=job["rank"], world_size=job["world"], timeout=_DEADLINE)
    try:
        length = job["bytes"] // 4
        want = pattern(torch, length, 0, device) * (job["world"] * (job["world"] + 1) // 2)
        wrong, began = 0, 0.0
        for repeat in range(_REPEATS + 1):
            mine = pattern(torch, length, job["rank"], device)
            if repeat == 1:  # the first one sets the connections up
                began = time.perf_counter()
            dist.all_reduce(mine)
            wrong += int((mine != want).sum().item())
        return wrong, _REPEATS * job["bytes"] / max(time.perf_counter() - began, 1e-9)
    finally:
        dist.destroy_process_group()


def copy_pairs(torch: Any, devices: list[int]) -> dict[str, bool]:
    """Return for each pair whether a direct copy arrives whole, both ways."""
    right: dict[str, bool] = {}
    for one in devices:
        for other in devices:
            if one == other:
                continue
            sent = pattern(torch, 1 << 20, one, f"cuda:{one}")
            torch.cuda.synchronize(one)
            arrived = sent.to(f"cuda:{other}")
            torch.cuda.synchronize(other)
            key = f"{min(one, other)}-{max(one, other)}"
            right[key] = right.get(key, True) and bool(torch.equal(arrived.cpu(), sent.cpu()))
    return right


def main() -> None:
    """Do the job given as JSON and print the answer as JSON."""
    job = json.load(sys.stdin)
    torch = importlib.import_module("torch")
    device = "cpu"
    if job["backend"] == "nccl":
        device = f"cuda:{job['devices'][job['rank']]}"
        torch.cuda.set_device(device)
    wrong, rate = add_up(torch, job, device)
    pairs = copy_pairs(torch, job["devices"]) if job["backend"] == "nccl" and job["rank"] == 0 else {}
    sys.stdout.write("\n" + json.dumps({"rank": job["rank"], "wrong": wrong, "rate": rate, "pairs": pairs}) + "\n")


if __name__ == "__main__":
    main()
