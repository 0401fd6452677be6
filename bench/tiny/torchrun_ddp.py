"""The tiny work as people write it for torchrun: DDP, AdamW, clipping, a checkpoint every few steps.

Writes one line a finished step to the file in $STAMP: wall time, rank 0's pid and the step.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist
import torch.nn.functional as F

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from tiny.work import make_data, make_model


def main() -> None:
    """Train $STEPS steps; continue from $CHECKPOINT when it is there."""
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    model = torch.nn.parallel.DistributedDataParallel(make_model())
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    x, y = make_data()
    saved, first = Path(os.environ["CHECKPOINT"]), 0
    if saved.exists():
        state = torch.load(saved, weights_only=True)
        model.module.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        first = state["step"]
    with open(os.environ["STAMP"], "a") as stamp:
        for step in range(first, int(os.environ["STEPS"])):
            at = (step * world + rank) * 32 % len(x)
            loss = F.cross_entropy(model(x[at : at + 32]), y[at : at + 32])
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
            if rank == 0:
                stamp.write(f"{time.time()} {os.getpid()} {step + 1}\n")
                stamp.flush()
                if (step + 1) % 20 == 0:
                    state = {"model": model.module.state_dict(), "optimizer": optimizer.state_dict(), "step": step + 1}
                    torch.save(state, f"{saved}.tmp")
                    os.replace(f"{saved}.tmp", saved)
            time.sleep(float(os.environ.get("PAUSE", "0")))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
