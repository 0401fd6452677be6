"""One rank of `real_sizes.py` without a loop around it: a state in memory, saved, restored and measured.

    python bench/sizes_state.py '{"do": "save", "root": …, "gb": 1, "tensors": 40, "rank": 0, "ranks": 1, …}'

The last line is JSON. Memory is the process' own peak above what the imports took.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import torch
from blake3 import blake3

from headway.checkpoint import find_resumable
from headway.checkpoint.torch_state import Piece, Saver, restore, split_replicated

_WIDTH = 256
_BIG_GB = 2.3
"""Size of the one tensor that is beyond 2 GiB, where the state has room for it."""
KEEP = SimpleNamespace(keep_last=2, keep_every=None, keep_best=False)


def shapes(gb: float, tensors: int) -> Iterator[tuple[str, int]]:
    """Yield names and rows of float32 tensors that make up a state."""
    left = int(gb * 1e9) // 4 // _WIDTH
    if gb > 2 * _BIG_GB and tensors < 1000:
        big = int(_BIG_GB * 1e9) // 4 // _WIDTH
        yield "model/big", big
        left -= big
    for k in range(tensors):
        rows = left * (k + 1) // tensors - left * k // tensors
        yield f"model/t{k:06d}", rows


def pieces_of(request: dict, *, is_empty: bool) -> list[Piece]:
    """Return what this rank holds: everything, dealt out (replicas), or its rows of every tensor (sharded)."""
    rank, ranks = request["rank"], request["ranks"]
    shared = Path(request["shared"]) if request.get("shared") else None
    whole, pieces = {}, []
    for name, rows in shapes(request["gb"], request["tensors"]):
        is_sharded = request["layout"] == "sharded"
        low, high = (rows * rank // ranks, rows * (rank + 1) // ranks) if is_sharded else (0, rows)
        local = torch.zeros(high - low, _WIDTH) if is_empty else content(name, low, high)
        if shared is not None and not is_empty:
            local = in_common(shared / name.replace("/", "-"), local)
        whole[name] = local
        pieces.append(Piece(name, local, (rows, _WIDTH), (low, 0)))
    if request["layout"] == "replicas" and not is_empty:
        return split_replicated(whole, rank, ranks)
    return pieces


def content(name: str, low: int, high: int) -> torch.Tensor:
    """Return rows of a tensor: every rank makes the same bytes for the same rows."""
    seed = int.from_bytes(blake3(name.encode()).digest()[:4], "little")
    columns = torch.arange(_WIDTH, dtype=torch.float32) + seed % 9973
    return torch.arange(low, high, dtype=torch.float32)[:, None].mul(0.37).add(columns)


def in_common(path: Path, local: torch.Tensor) -> torch.Tensor:
    """Return a copy in memory that every rank maps: replicas hold the same, and this machine has room for one."""
    common = torch.from_file(str(path), shared=True, size=local.numel(), dtype=local.dtype).view(local.shape)
    return common.copy_(local)


def is_right(piece: Piece) -> bool:
    """Compare a restored piece with what it was made from, some rows at a time."""
    low, step = piece.offset[0], 1 << 16
    parts = range(0, piece.tensor.shape[0], step)
    return all(
        torch.equal(
            piece.tensor[at : at + step], content(piece.name, low + at, low + at + len(piece.tensor[at : at + step]))
        )
        for at in parts
    )


def memory(name: str) -> int:
    """Return a line of /proc/self/status in bytes: VmRSS or VmHWM."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{name}:"))


def save(request: dict) -> dict:
    """Save the state three times, and twice at once; return stalls, commit times and the peak."""
    torch.zeros(1).add(1)
    base = memory("VmRSS")
    pieces = pieces_of(request, is_empty=False)
    held = memory("VmRSS") - base
    events: list[dict] = []
    saver = Saver(
        Path(request["root"]),
        rank=request["rank"],
        world_size=request["ranks"],
        attempt=1,
        retention=KEEP,
        report=events.append,
    )
    if not request.get("is_cold"):
        saver.prepare(pieces)
    while not request.get("is_cold") and not saver.is_prepared:
        time.sleep(0.05)  # training takes its first steps meanwhile
    stalls: list[float | None] = []
    plain: list[float] = []
    peak = 0
    for step in range(1, 1 + request["saves"]):
        stalls.append(saver.save(step, pieces, {}, wait=True))
        saver.wait()
        peak = memory("VmHWM") - base
        if request["is_compared"]:  # in turns, so that both see the same load of the machine
            plain.append(plain_save(request, pieces))
    forced = None
    if request["ranks"] == 1 and not request.get("is_cold"):  # several would have to agree, and there is no group here
        saver.save(1 + request["saves"], pieces, {}, wait=True)
        forced = saver.save(2 + request["saves"], pieces, {}, wait=True)  # a stop that comes just after a save began
        saver.wait()
    committed = [event["write_s"] - event["stall_s"] for event in events if event["kind"] == "checkpoint_committed"]
    failed = [event.get("why") for event in events if event["kind"] in ("checkpoint_failed", "save_lost")]
    own = sum(piece.tensor.nbytes for piece in pieces)
    times = {"stalls": stalls, "forced_s": forced, "commits": committed, "plain_s": plain}
    return {**times, "peak": peak, "held": held, "own": own, "failed": failed}


def plain_save(request: dict, pieces: list[Piece]) -> float:
    """Return what torch.save and fsync take for the same tensors, for the comparison."""
    path = Path(request["root"]).parent / "plain.pt"
    began = time.monotonic()
    with path.open("wb") as file:
        torch.save({piece.name: piece.tensor for piece in pieces}, file)
        file.flush()
        os.fsync(file.fileno())
    taken = time.monotonic() - began
    path.unlink()
    return taken


def load(request: dict) -> dict:
    """Restore into empty tensors and compare every byte."""
    torch.zeros(1).add(1)
    base = memory("VmRSS")
    pieces = pieces_of(request, is_empty=True)
    began = time.monotonic()
    found = find_resumable(Path(request["root"]))
    verified = time.monotonic()
    assert found.path is not None and found.manifest is not None, found.skipped
    restore(found.path, found.manifest, pieces, partial=True)
    restored = time.monotonic()
    peak = memory("VmHWM") - base
    wrong = [piece.name for piece in pieces if not is_right(piece)]
    own = sum(piece.tensor.nbytes for piece in pieces)
    times = {"verify_s": verified - began, "restore_s": restored - verified}
    return {"wrong": wrong[:5], "peak": peak, "own": own, **times}


def main() -> int:
    """Do what is asked."""
    request = json.loads(sys.argv[1])
    torch.set_num_threads(1)
    answer = save(request) if request["do"] == "save" else load(request)
    sys.stdout.write("\n" + json.dumps(answer) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
