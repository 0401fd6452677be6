"""Run a function on several ranks: real processes, gloo, forked from one that has imported torch."""

from __future__ import annotations

import multiprocessing
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["torch", "torch.distributed", "headway.engine.optim"])


def run_ranks(function: Callable[..., Any], world_size: int, *args: Any) -> list[Any]:
    """Return what `function(ranks, *args)` returns on each rank; it must be importable and its values simple."""
    with tempfile.TemporaryDirectory() as folder:
        pipes = [_CONTEXT.Pipe(duplex=False) for _ in range(world_size)]
        processes = [
            _CONTEXT.Process(target=_one, args=(function, rank, world_size, folder, pipes[rank][1], args))
            for rank in range(world_size)
        ]
        for process in processes:
            process.start()
        for _, sender in pipes:
            sender.close()
        answers = []
        for rank, (receiver, _) in enumerate(pipes):
            try:
                answers.append(receiver.recv())
            except EOFError:
                answers.append(("error", f"rank {rank} ended without an answer"))
            receiver.close()
        for process in processes:
            process.join(30)
            process.close()
    failed = [text for kind, text in answers if kind == "error"]
    assert not failed, "\n".join(failed)
    return [value for _, value in answers]


def _one(function: Callable[..., Any], rank: int, world_size: int, folder: str, sender: Any, args: tuple[Any]) -> None:
    import torch
    import torch.distributed as dist

    from headway.engine.parallel import Ranks

    torch.set_num_threads(1)
    try:
        store = None
        if world_size > 1:
            store = dist.FileStore(str(Path(folder) / "store"), world_size)
            dist.init_process_group("gloo", store=store, rank=rank, world_size=world_size)
        value = function(Ranks(rank, world_size, rank, torch.device("cpu"), store), *args)
        sender.send(("value", value))
        if world_size > 1:
            dist.barrier()
            dist.destroy_process_group()
    except Exception:
        sender.send(("error", f"rank {rank}:\n{traceback.format_exc()}"))
