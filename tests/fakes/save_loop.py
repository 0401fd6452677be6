"""A process that saves step after step and prints what it committed, to be killed at the worst moment. No torch.

save_loop.py ROOT NUM_STEPS [DIE_AT_CALL]
"""

from __future__ import annotations

import resource
import sys
from pathlib import Path

from fakes.disks import Keep, disk_dying_at, make_writer, save_step
from headway.checkpoint import find_resumable


def main(argv: list[str]) -> None:
    root, num_steps = Path(argv[0]), int(argv[1])
    disk = disk_dying_at(int(argv[2]), is_real=True) if argv[2:] and argv[2].isdigit() else None
    if argv[2:] and argv[2].startswith("fsize="):
        limit = int(argv[2].removeprefix("fsize="))
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    found = find_resumable(root)
    first = found.manifest.step if found.manifest else 0
    writers = [
        make_writer(
            root,
            [],
            rank=rank,
            world_size=2,
            retention=Keep(keep_last=1),
            disk=disk,
            report=lambda event: print(event["kind"], event.get("step"), event.get("code"), flush=True),
        )
        for rank in range(2)
    ]
    for step in range(first + 1, first + 1 + num_steps):
        save_step(writers, step)
    print("ended", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
