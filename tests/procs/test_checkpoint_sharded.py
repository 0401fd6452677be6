"""Sharded and replicated states load each other, over real processes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from fakes.disks import Keep
from fakes.ranks import run_ranks
from headway.checkpoint import find_resumable
from headway.checkpoint.torch_state import Saver, pieces_of_tensor, restore, split_replicated


def make_model(seed: int) -> nn.Module:
    torch.manual_seed(seed)
    # 7 rows over 2 or 4 ranks do not divide; 1 row leaves a rank with nothing.
    return nn.Sequential(nn.Linear(6, 7), nn.Linear(7, 1))


def momenta(model: nn.Module) -> dict[str, tuple[Tensor, Tensor]]:
    """Return plain local state tensors beside the parameters whose layout they share."""
    found = {}
    for name, param in model.named_parameters():
        local = param.detach()
        local = local.to_local() if hasattr(local, "to_local") else local
        found[f"optim/{name}/m"] = (local * 2, param)
    return found


def held(model: nn.Module, moments: dict[str, tuple[Tensor, Tensor]]) -> list[Any]:
    pieces = [p for name, param in model.named_parameters() for p in pieces_of_tensor(f"model/{name}", param)]
    return pieces + [p for name, (local, like) in moments.items() for p in pieces_of_tensor(name, local, like)]


def shard(model: nn.Module, world_size: int) -> nn.Module:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh("cpu", (world_size,))
    for layer in model:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    return model


def save_sharded(ranks: Any, root: str, step: int) -> list[Any]:
    events: list[dict[str, Any]] = []
    model = shard(make_model(step), ranks.world_size)
    saver = Saver(
        Path(root), rank=ranks.rank, world_size=ranks.world_size, attempt=1, retention=Keep(), report=events.append
    )
    assert saver.save(step, held(model, momenta(model)), {"strategy": "fsdp"}) is not None
    assert saver.wait(60)
    return [saver.last_committed, [event["kind"] for event in events]]


def load_sharded(ranks: Any, root: str) -> bool:
    model = shard(make_model(999), ranks.world_size)
    found = find_resumable(Path(root))
    moments = {name: (torch.zeros_like(local), like) for name, (local, like) in momenta(model).items()}
    assert found.manifest is not None and found.path is not None
    restore(found.path, found.manifest, held(model, moments))
    wanted = dict(make_model(found.manifest.step).named_parameters())
    for name, param in model.named_parameters():
        assert torch.equal(param.full_tensor(), wanted[name]), name
        local, like = moments[f"optim/{name}/m"]
        assert torch.equal(local, like.to_local() * 2), name
    return True


def save_replicated(ranks: Any, root: str, step: int) -> int | None:
    model = make_model(step)
    state = {f"model/{name}": param for name, param in model.named_parameters()}
    state |= {name: local for name, (local, _) in momenta(model).items()}
    saver = Saver(
        Path(root), rank=ranks.rank, world_size=ranks.world_size, attempt=1, retention=Keep(), report=lambda event: None
    )
    assert saver.save(step, split_replicated(state, ranks.rank, ranks.world_size), {"strategy": "ddp"}) is not None
    assert saver.wait(60)
    return saver.last_committed


def load_plain(root: Path) -> None:
    model = make_model(999)
    found = find_resumable(root)
    assert found.manifest is not None and found.path is not None
    moments = {name: (torch.zeros_like(local), like) for name, (local, like) in momenta(model).items()}
    restore(found.path, found.manifest, held(model, moments))
    for name, param in make_model(found.manifest.step).named_parameters():
        assert torch.equal(dict(model.named_parameters())[name], param)
        assert torch.equal(moments[f"optim/{name}/m"][0], param * 2)


def test_a_sharded_save_loads_on_one_process_and_on_other_numbers_of_shards(tmp_path):
    answers = run_ranks(save_sharded, 2, str(tmp_path), 5)
    assert answers == [[5, ["checkpoint_committed"]], [5, []]]
    manifest = find_resumable(tmp_path).manifest
    assert manifest.world_size == 2 and len(manifest.tensors["model/0.weight"].pieces) == 2
    load_plain(tmp_path)
    assert run_ranks(load_sharded, 2, str(tmp_path)) == [True] * 2
    assert run_ranks(load_sharded, 3, str(tmp_path)) == [True] * 3


def test_a_replicated_save_loads_into_shards(tmp_path):
    assert run_ranks(save_replicated, 2, str(tmp_path), 6) == [6, 6]
    load_plain(tmp_path)
    assert run_ranks(load_sharded, 2, str(tmp_path)) == [True] * 2


def skip_together(ranks: Any, root: str) -> list[Any]:
    """Rank 1's disk is slow; a second save must be left out by both ranks, a third that waits must be made by both."""
    import time

    from fakes.disks import CountingDisk

    events: list[dict[str, Any]] = []
    disk = CountingDisk(lambda call, name, args: time.sleep(0.5) if ranks.rank == 1 and name == "sync" else None)
    saver = Saver(
        Path(root), rank=ranks.rank, world_size=2, attempt=1, retention=Keep(), report=events.append, disk=disk
    )
    state = {"model/w": torch.ones(8)}
    answers = [
        saver.save(step, split_replicated(state, ranks.rank, 2), {}, wait=step == 3) is not None for step in (1, 2, 3)
    ]
    assert saver.wait(60)
    return [answers, [event["step"] for event in events if event["kind"] == "checkpoint_committed"]]


def test_ranks_agree_which_saves_are_left_out(tmp_path):
    answers = run_ranks(skip_together, 2, str(tmp_path))
    assert answers == [[[True, False, True], [1, 3]], [[True, False, True], []]]
