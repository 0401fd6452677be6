"""The state of a run as named global tensors and a little JSON, and back."""

from __future__ import annotations

import json
import math
import random
import shlex
import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor, nn

from headway.checkpoint import Manifest, Patience, find_resumable, read_manifest, refuse_lost
from headway.checkpoint.torch_state import Piece, pieces_of_tensor, restore, split_replicated
from headway.engine.optim import Adam, Muon
from headway.engine.parallel import share_buffers
from headway.engine.policy import is_suspect
from headway.engine.progress import read_progress
from headway.engine.rank_state import Run
from headway.errors import CheckpointError, TrainError
from headway.task.order import count_taken, mix_one
from headway.telemetry import read_events

_MISFITS = ("checkpoint/tensor-missing", "checkpoint/tensor-shape", "checkpoint/tensor-dtype")


def save(run: Run, *, is_needed: bool) -> None:
    """Hand a snapshot to the saver; the loop waits for the copy only.

    While an older save is still being written, one that is needed waits for it; any other is left out.
    """
    progress = run.progress
    _settle_ledger(run)
    # The ranks write different buffers: together they must be one rank's.
    share_buffers(run.buffers, run.ranks)
    run.metrics.flush()
    measures = run.measures if run.measured_step == progress.step else {}
    fields = {
        "samples": progress.position,
        "ledger": f"{progress.ledger:016x}",
        "strategy": run.plan.strategy,
        "best_step": progress.best_step,
        "older_bests": progress.older_bests,
        "suspect": is_suspect(progress, run.guard_events_saved),
        "measures": measures,
        "meta": {
            "export": run.task.describe(progress.step, measures),
            **standing(run),
            **fixed_facts(run),
            "aliases": find_aliases(run.model),
        },
    }
    if run.saver.save(progress.step, _owned_pieces(run), fields, wait=is_needed) is not None:
        run.saved_step, run.saved_at = progress.step, time.monotonic()
        run.is_saved_suspect, run.guard_events_saved = bool(fields["suspect"]), progress.guard_events


def standing(run: Run) -> dict[str, Any]:
    """Return what changes from step to step and is not a tensor; Any: JSON."""
    progress = run.progress
    return {
        "progress": asdict(progress),
        "trained": count_taken(progress.position, progress.skips),
        "scale": [run.precision.scale, run.precision.good_steps] if run.precision.is_scaled else None,
        "ema_updates": run.ema.updates if run.ema else None,
    }


def fixed_facts(run: Run) -> dict[str, Any]:
    """Return what a snapshot must have in common with the run that takes it up; Any: JSON."""
    return {
        "seed": run.config.seed,
        "batch_samples": run.plan.batch_samples,
        "data_size": len(run.data),
        "data_id": dict(run.task.data_id()),
        "frozen_id": run.frozen_id,
    }


def prepare_save(run: Run) -> None:
    """Have the memory of the first save made ready while the first steps are taken."""
    run.saver.prepare(_owned_pieces(run))


def wait_for_save(run: Run, deadline_s: float | None = None) -> None:
    """Wait for the last save to be on disk and proven; a run without it has not ended well."""
    run.saver.wait(deadline_s)
    if run.ranks.rank == 0 and run.saver.last_committed != run.saved_step:
        raise CheckpointError("engine/last-save-lost", step=run.saved_step, path=run.checkpoints)
    # It alone proves what all have written; what follows is a collective, which gives up after a while.
    run.ranks.wait_for_first()


def resume(run: Run) -> list[tuple[Path, str]]:
    """Go back to the newest checkpoint that passes verification; return those that did not and why.

    Rank 0 reads and proves every byte; the others take its word for which one it is. A run that has saved before and
    has nothing left to go back to does not begin again.
    """
    found = find_resumable(run.checkpoints) if run.ranks.rank == 0 else None
    if found is not None and found.path is None:
        refuse_lost(found, run.checkpoints, read_events(run.events))
    path = _name_from_rank_0(run, found.path if found else None)
    if path is not None:
        load_checkpoint(run, path)
    skipped = found.skipped if found else ()
    run.saver.distrust(skipped)
    run.metrics.go_back(run.progress.step)
    return [(bad, why.text()) for bad, why in skipped]


def load_checkpoint(run: Run, path: Path) -> None:
    """Bring a run to where a checkpoint is."""
    patience = Patience()
    manifest = patience.read(lambda: read_manifest(path))
    take_up(run, manifest, lambda pieces: patience.read(lambda: restore(path, manifest, pieces, partial=True)))
    run.saver.trust(path, manifest.step)
    run.saved_step, run.is_saved_suspect = manifest.step, manifest.suspect
    run.guard_events_saved = run.progress.guard_events
    run.measures, run.measured_step = dict(manifest.measures), manifest.step if manifest.measures else None


def refuse_other_frozen(manifest: Manifest, now: str | None) -> None:
    """Refuse to put trained weights beside frozen ones that they were not trained with; no checkpoint holds those."""
    before = manifest.meta["frozen_id"]
    if before != now:
        raise TrainError("engine/frozen-changed", before=before or "n/a", now=now or "n/a")


def take_up(run: Run, manifest: Manifest, fill: Callable[[list[Piece]], None]) -> None:
    """Bring the run to where a snapshot is, on the disk or in memory.

    Args:
        fill: fills pieces from the snapshot.
    """
    meta = manifest.meta
    if (meta["data_size"], meta["data_id"]) != (len(run.data), dict(run.task.data_id())):
        raise TrainError("engine/data-changed", before=meta["data_size"], now=len(run.data))
    if meta["seed"] != run.config.seed:
        raise TrainError("engine/seed-changed", before=meta["seed"], now=run.config.seed)
    refuse_other_frozen(manifest, run.frozen_id)
    same_world = manifest.world_size == run.ranks.world_size
    # A checkpoint of CPU ranks knows no generator of a GPU.
    rng = {name: state for name, state in _rng(run).items() if name in manifest.tensors} if same_world else {}
    pieces = [*_wanted_pieces(run), *(piece for name, value in rng.items() for piece in pieces_of_tensor(name, value))]
    has_average = meta["ema_updates"] is not None
    if not has_average:
        pieces = [piece for piece in pieces if not piece.name.startswith("ema/")]
    try:
        # Other ranks' generators and momenta are theirs to read.
        fill(pieces)
    except CheckpointError as error:
        raise _name_change(run, error) from error
    run.progress = read_progress(meta)
    run.continue_plan()
    # Checkpoints of earlier versions hold the scale 1 where there was none; "trained" came later.
    has_none = "trained" not in meta and meta["scale"] == [1.0, 0]
    run.precision.restore(None if has_none else meta["scale"])
    if run.ema is not None and has_average:
        run.ema.updates = meta["ema_updates"]
    elif run.ema is not None:
        run.ema.begin_again()
    for optimizer in run.optimizers:
        if isinstance(optimizer, Adam):
            optimizer.set_steps(run.progress.updates)
    # For what the checkpoint has no state of: all after another world size, the GPU's after CPU ranks.
    seed_everything(mix_one(run.config.seed, run.progress.step, run.ranks.rank) >> 1)
    if rng:
        _set_rng(rng, run.ranks.device)


def _name_change(run: Run, error: CheckpointError) -> CheckpointError | TrainError:
    """Say what was changed since the last checkpoint, with the words that put it back: the run's settings by now.

    A resume that fails saves nothing, so the cause may lie several resumes back.
    """
    first: dict[str, Any] = {}
    last: dict[str, Any] = {}
    for event in read_events(run.events):
        if event.get("kind") == "checkpoint_committed":
            first.clear()
        for key, (old, new) in event.get("changes", {}).items() if event.get("kind") == "run_resumed" else ():
            if not key.startswith("plan."):
                first.setdefault(key, old)
                last[key] = new
    before = {key: old for key, old in first.items() if old != last[key]}
    if error.code not in _MISFITS or not before:
        return error
    texts = {key: value if isinstance(value, str) else json.dumps(value) for key, value in before.items()}
    words = " ".join(f"{key}={shlex.quote(text)}" for key, text in texts.items())
    return TrainError("engine/change-does-not-fit", why=error.text(), run=run.events.parent.name, words=words)


def _settle_ledger(run: Run) -> None:
    """Add what all ranks have taken since last time to the ledger."""
    mine = run.ledger.settle()
    halves = torch.tensor([mine & 0xFFFFFFFF, (mine >> 32) & 0xFFFFFFFF], dtype=torch.int64, device=run.ranks.device)
    if run.ranks.world_size > 1:
        dist.all_reduce(halves)
    low, high = halves.tolist()
    run.progress.ledger = (run.progress.ledger + low + (high << 32)) & ((1 << 64) - 1)


def _name_from_rank_0(run: Run, path: Path | None) -> Path | None:
    """Tell every rank the checkpoint that rank 0 has found."""
    name = run.ranks.hear_from_first(path.name if path else None)
    return run.checkpoints / name if name else None


def _shared_state(run: Run) -> dict[str, Tensor]:
    """Name every tensor that lies over the ranks as the parameters do."""
    run.layout.reshard()  # a validation may have left whole weights in the model, whose memory is about to be freed
    trained = [(name, param) for name, param in run.model.named_parameters() if param.requires_grad]
    named: dict[str, Tensor] = {f"model/{name}": param.detach() for name, param in trained}
    persistent = run.model.state_dict().keys()
    named.update({f"model/{name}": value for name, value in run.model.named_buffers() if name in persistent})
    for optimizer in run.optimizers:
        if not isinstance(optimizer, Muon):
            named.update({f"optim/{name}": value for name, (value, _) in optimizer.state().items()})
    if run.ema is not None:
        named.update({f"ema/{name}": value for name, value in run.ema.state().items()})
    return named


def _muon_state(run: Run) -> dict[str, Tensor]:
    return {
        f"optim/{name}": value
        for optimizer in run.optimizers
        if isinstance(optimizer, Muon)
        for name, (value, _) in optimizer.state().items()
    }


def _layouts(run: Run, names: Iterable[str]) -> dict[str, Tensor | None]:
    """Return, for each state tensor, the parameter whose layout it shares; buffers lie on every rank whole."""
    params = dict(run.model.named_parameters())
    found: dict[str, Tensor | None] = {}
    for name in names:
        inner = name.partition("/")[2]
        found[name] = params.get(inner, params.get(inner.rpartition("/")[0]))
    return found


def _owned_pieces(run: Run, *, of_first: Collection[str] = ()) -> list[Piece]:
    """Return what this rank writes; together the ranks write everything exactly once.

    Args:
        of_first: names that rank 0 alone writes, for they differ between the ranks.
    """
    if run.layout.is_sharded:
        pieces = _wanted_pieces(run)
    else:
        shared = _shared_state(run)
        firsts = [(name, shared.pop(name)) for name in of_first] if of_first else []
        pieces = split_replicated(shared, run.ranks.rank, run.ranks.world_size)
        if run.ranks.rank == 0:
            pieces += [piece for name, value in firsts for piece in pieces_of_tensor(name, value)]
        pieces += [piece for name, value in _muon_state(run).items() for piece in pieces_of_tensor(name, value)]
    return pieces + rng_pieces(run)


def kept_pieces(run: Run) -> list[Piece]:
    """Return what this rank keeps of a step in memory, generators apart.

    Between steps the running statistics of the ranks differ, and rank 0's are those that count: the next step begins
    with them.
    """
    persistent = run.model.state_dict().keys()
    names = [f"model/{name}" for name, _ in run.model.named_buffers() if name in persistent]
    pieces = _owned_pieces(run, of_first=names)
    return [piece for piece in pieces if not piece.name.startswith("rng/")]


def rng_pieces(run: Run) -> list[Piece]:
    """Return the states of this rank's generators."""
    return [piece for name, value in _rng(run).items() for piece in pieces_of_tensor(name, value)]


def _wanted_pieces(run: Run) -> list[Piece]:
    """Return every tensor of the model and its optimizers that this rank holds, to be written or filled."""
    named = {**_shared_state(run), **_muon_state(run)}
    layouts = _layouts(run, named) if run.layout.is_sharded else dict.fromkeys(named)
    pieces = []
    for name, value in named.items():
        held = pieces_of_tensor(name, value, layouts[name])
        if run.layout.is_sharded and layouts[name] is None:
            held = [replace(piece, is_owner=run.ranks.rank == 0) for piece in held]
        pieces += held
    return pieces


def find_aliases(model: nn.Module) -> dict[str, str]:
    """Return the other names of tied weights and buffers, each with the one it is saved under."""
    own = {id(value): name for name, value in (*model.named_parameters(), *model.named_buffers())}
    every = (*model.named_parameters(remove_duplicate=False), *model.named_buffers(remove_duplicate=False))
    return {name: own[id(value)] for name, value in every if own[id(value)] != name}


def seed_everything(seed: int) -> None:
    """Seed every generator a task may draw from."""
    random.seed(seed)
    np.random.seed(seed & 0xFFFFFFFF)
    torch.manual_seed(seed)


def _rng(run: Run) -> dict[str, Tensor]:
    """Return the generators' states of this rank as tensors."""
    kind, words, place, has_gauss, cached = np.random.get_state()
    assert kind == "MT19937"
    version, internal, gauss = random.getstate()
    assert version == 3
    out = {
        "torch": torch.get_rng_state(),
        "numpy": torch.from_numpy(np.asarray(words, dtype=np.int64)),
        "numpy_rest": torch.tensor([place, has_gauss, cached], dtype=torch.float64),
        "python": torch.tensor(internal, dtype=torch.int64),
        "python_gauss": torch.tensor([float("nan") if gauss is None else gauss], dtype=torch.float64),
    }
    if run.ranks.device.type == "cuda":
        out["cuda"] = torch.cuda.get_rng_state(run.ranks.device)
    return {f"rng/{run.ranks.rank}/{name}": value for name, value in out.items()}


def _set_rng(rng: dict[str, Tensor], device: torch.device) -> None:
    """Put the generators back to a saved state."""
    state = {name.rpartition("/")[2]: value for name, value in rng.items()}
    torch.set_rng_state(state["torch"])
    place, has_gauss, cached = state["numpy_rest"].tolist()
    words = state["numpy"].numpy().astype(np.uint32)
    np.random.set_state(("MT19937", words, int(place), int(has_gauss), cached))
    gauss = state["python_gauss"].item()
    random.setstate((3, tuple(state["python"].tolist()), None if math.isnan(gauss) else gauss))
    if "cuda" in state:
        torch.cuda.set_rng_state(state["cuda"], device)
