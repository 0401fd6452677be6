from __future__ import annotations

import errno
import math
import os
import subprocess
import sys
import threading
import time

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fakes.disks import CountingDisk, Keep
from headway.checkpoint import commit, find_resumable, list_checkpoints, torch_state
from headway.checkpoint.buffer import HostBuffer
from headway.checkpoint.disk import RealDisk
from headway.checkpoint.torch_state import Piece, Saver, pieces_of_tensor, restore, split_replicated
from headway.checkpoint.torch_types import DTYPES
from headway.errors import CheckpointError


def make_savers(root, world_size: int, events: list | None = None, attempt: int = 1, **settings) -> list[Saver]:
    report = (events if events is not None else []).append
    return [
        Saver(root, rank=rank, world_size=world_size, attempt=attempt, retention=Keep(), report=report, **settings)
        for rank in range(world_size)
    ]


def save_all(savers: list[Saver], step: int, pieces_of_rank) -> None:
    for rank, saver in enumerate(savers):
        assert saver.save(step, pieces_of_rank(rank), {"samples": step}) is not None
    for saver in savers:
        assert saver.wait(30)


def make_state(seed: int = 0) -> dict[str, torch.Tensor]:
    gen = torch.Generator().manual_seed(seed)
    return {
        "model/embed": torch.randn(700, 512, generator=gen),
        "model/norm": torch.randn(17, generator=gen),
        "model/half": torch.randn(9, 5, generator=gen).bfloat16(),
        "model/mask": torch.rand(3, 3, generator=gen) > 0.5,
        "optim/step": torch.tensor(7.0),
        "optim/count": torch.tensor([1 << 40]),
        "model/none": torch.zeros(0, 4),
        "rng/0": torch.randint(0, 255, (33,), dtype=torch.uint8, generator=gen),
    }


def load(root, like: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    found = find_resumable(root)
    assert found.manifest is not None, found.skipped
    state = {name: torch.full_like(value, 1) for name, value in like.items()}
    restore(
        found.path, found.manifest, [piece for name, value in state.items() for piece in pieces_of_tensor(name, value)]
    )
    return state


def same(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    return all(torch.equal(one[name], other[name]) and one[name].dtype == other[name].dtype for name in one)


def test_two_then_one_then_four_ranks_carry_the_state_on_bit_for_bit(tmp_path):
    state = make_state()
    for attempt, (step, world_size) in enumerate(((10, 2), (20, 1), (30, 4)), start=1):
        save_all(
            make_savers(tmp_path, world_size, attempt=attempt),
            step,
            lambda r, n=world_size, now=state: split_replicated(now, r, n),
        )
        assert find_resumable(tmp_path).manifest.world_size == world_size
        again = load(tmp_path, state)
        assert same(state, again)
        state = again


def test_every_data_type_comes_back(tmp_path):
    raw = torch.arange(0, 16, dtype=torch.uint8)
    state = {f"model/{name}": raw.view(dtype) if dtype != torch.bool else raw > 7 for dtype, name in DTYPES.items()}
    save_all(make_savers(tmp_path, 1), 10, lambda r: split_replicated(state, r, 1))
    again = load(tmp_path, state)
    assert all(torch.equal(again[n].view(torch.uint8), state[n].view(torch.uint8)) for n in state)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.lists(st.integers(0, 40), max_size=3).map(tuple), min_size=1, max_size=6),
    st.integers(1, 5),
    st.sampled_from([1, 64]),
)
def test_dealt_out_tensors_are_covered_exactly_once(shapes, world_size, split_bytes):
    import headway.checkpoint.torch_state as module

    tensors = {
        str(n): torch.arange(math.prod(shape), dtype=torch.float32).view(shape) for n, shape in enumerate(shapes)
    }
    before, module._SPLIT_BYTES = module._SPLIT_BYTES, split_bytes
    try:
        dealt = [piece for rank in range(world_size) for piece in split_replicated(tensors, rank, world_size)]
    finally:
        module._SPLIT_BYTES = before
    for name, tensor in tensors.items():
        mine = sorted((piece for piece in dealt if piece.name == name), key=lambda piece: piece.offset)
        assert mine and all(piece.shape == tuple(tensor.shape) for piece in mine)
        whole = torch.cat([piece.tensor for piece in mine]) if tensor.dim() else mine[0].tensor
        assert torch.equal(whole, tensor)


def test_ranks_write_about_the_same_number_of_bytes():
    tensors = {f"model/{n}": torch.zeros(1000, 512) for n in range(3)}
    shares = [sum(p.tensor.nbytes for p in split_replicated(tensors, rank, 4)) for rank in range(4)]
    assert sum(shares) == 3 * 1000 * 512 * 4 and max(shares) - min(shares) <= 2 * 512 * 4


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_any_slicing_is_filled_from_any_other(tmp_path_factory, data):
    rows, cols = data.draw(st.integers(1, 9)), data.draw(st.integers(1, 9))
    whole = torch.randn(rows, cols)
    cut_r, cut_c = data.draw(st.integers(0, rows)), data.draw(st.integers(0, cols))
    boxes = [(0, 0, cut_r, cols), (cut_r, 0, rows, cut_c), (cut_r, cut_c, rows, cols)]
    pieces = [Piece("model/w", whole[a:c, b:d], (rows, cols), (a, b)) for a, b, c, d in boxes]
    root = tmp_path_factory.mktemp("slices")
    save_all(make_savers(root, 1), 1, lambda r: pieces)
    a, b = data.draw(st.integers(0, rows - 1)), data.draw(st.integers(0, cols - 1))
    c, d = data.draw(st.integers(a, rows)), data.draw(st.integers(b, cols))
    target = torch.zeros(c - a, d - b)
    found = find_resumable(root)
    restore(found.path, found.manifest, [Piece("model/w", target, (rows, cols), (a, b))])
    assert torch.equal(target, whole[a:c, b:d])


def test_large_tensors_are_filled_slab_by_slab(tmp_path, monkeypatch):
    state = {"model/w": torch.randn(100, 64)}
    save_all(make_savers(tmp_path, 1), 1, lambda r: split_replicated(state, r, 1))
    monkeypatch.setattr("headway.checkpoint.restore._SLAB_BYTES", 1000)
    assert same(state, load(tmp_path, state))


def test_filling_a_transposed_parameter_keeps_its_own_memory(tmp_path):
    state = {"model/w": torch.randn(6, 4)}
    save_all(make_savers(tmp_path, 1), 1, lambda r: split_replicated(state, r, 1))
    param = torch.nn.Parameter(torch.zeros(4, 6).t())
    found = find_resumable(tmp_path)
    restore(found.path, found.manifest, pieces_of_tensor("model/w", param))
    assert torch.equal(param, state["model/w"]) and not param.is_contiguous()


@pytest.mark.parametrize(
    ("wanted", "code", "says"),
    [
        ({"model/w": torch.zeros(3, 2), "model/c": torch.zeros(2)}, "tensor-missing", "the nearest is model/b"),
        ({"model/w": torch.zeros(3, 2)}, "tensor-extra", "model/b"),
        ({"model/w": torch.zeros(2, 3), "model/b": torch.zeros(2)}, "tensor-shape", "[3, 2] in"),
        ({"model/w": torch.zeros(3, 2).half(), "model/b": torch.zeros(2)}, "tensor-dtype", "F32 in"),
    ],
)
def test_a_state_that_does_not_fit_is_told_by_name(tmp_path, wanted, code, says):
    state = {"model/w": torch.ones(3, 2), "model/b": torch.ones(2)}
    save_all(make_savers(tmp_path, 1), 1, lambda r: split_replicated(state, r, 1))
    found = find_resumable(tmp_path)
    pieces = [piece for name, value in wanted.items() for piece in pieces_of_tensor(name, value)]
    with pytest.raises(CheckpointError) as refused:
        restore(found.path, found.manifest, pieces)
    assert refused.value.code == f"checkpoint/{code}" and says in refused.value.text("en")
    assert not any(value.any() for value in wanted.values())


def test_a_rank_may_want_only_some_names(tmp_path):
    state = make_state()
    save_all(make_savers(tmp_path, 1), 1, lambda r: split_replicated(state, r, 1))
    found, norm = find_resumable(tmp_path), torch.zeros(17)
    restore(found.path, found.manifest, pieces_of_tensor("model/norm", norm), partial=True)
    assert torch.equal(norm, state["model/norm"])
    weights = {name: torch.zeros_like(value) for name, value in state.items() if name.startswith("model/")}
    restore(found.path, found.manifest, [p for n, v in weights.items() for p in pieces_of_tensor(n, v)], only="model/")
    assert same(weights, state)


def test_the_copy_is_taken_when_save_returns(tmp_path):
    gate = threading.Event()
    disk = CountingDisk(lambda call, name, args: name != "create" or gate.wait(20))
    state = {"model/w": torch.ones(8)}
    (saver,) = make_savers(tmp_path, 1, disk=disk)
    assert saver.save(1, split_replicated(state, 0, 1), {}) >= 0
    state["model/w"].zero_()
    gate.set()
    assert saver.wait(30) and saver.last_committed == 1
    assert torch.equal(load(tmp_path, state)["model/w"], torch.ones(8))


def test_while_one_save_is_in_flight_the_next_is_left_out_or_waits(tmp_path):
    gate, events = threading.Event(), []
    disk = CountingDisk(lambda call, name, args: name != "sync" or gate.wait(20))
    state = {"model/w": torch.ones(8)}
    (saver,) = make_savers(tmp_path, 1, events, disk=disk)
    saver.save(1, split_replicated(state, 0, 1), {})
    assert saver.save(2, split_replicated(state, 0, 1), {}) is None
    assert (events[0]["kind"], events[0]["step"], events[0]["in_flight"]) == ("checkpoint_skipped_busy", 2, 1)
    # A wish by the clock comes again with every step, and one save may take hundreds of them.
    assert [saver.save(2, split_replicated(state, 0, 1), {}) for _ in range(9)] == [None] * 9 and len(events) == 1
    assert not saver.poll() and not saver.wait(0.01)
    threading.Timer(0.1, gate.set).start()
    assert saver.save(3, split_replicated(state, 0, 1), {}, wait=True) > 0
    assert saver.wait(30)
    assert [event["step"] for event in events if event["kind"] == "checkpoint_committed"] == [1, 3]


def test_ranks_skip_together_when_one_of_them_is_busy(tmp_path):
    gate, events = threading.Event(), []
    flags: list[bool] = []
    slow = CountingDisk(lambda call, name, args: name != "sync" or gate.wait(20))
    settings = {"world_size": 2, "attempt": 1, "retention": Keep(), "report": events.append}
    savers = [
        Saver(tmp_path, rank=0, agree=lambda flag: True, **settings),
        Saver(tmp_path, rank=1, agree=lambda flag: flags.append(flag) or flag, disk=slow, **settings),
    ]
    assert savers[0].save(1, [], {}) is None and events[-1]["kind"] == "checkpoint_skipped_busy"
    savers[0]._agree = lambda flag: flag
    state = {"model/w": torch.ones(8)}
    for rank, saver in enumerate(savers):
        assert saver.save(2, split_replicated(state, rank, 2), {}) is not None
    gate.set()
    assert all(saver.wait(30) for saver in savers) and flags == [False]
    assert savers[0].last_committed == 2


def test_a_save_whose_copy_fails_takes_the_waiting_older_one_with_it(tmp_path):
    # The older one's bytes are in the buffer that is half overwritten: another try of it would verify, and be wrong.
    events, tries = [], []

    def fail_first(call, name, args):
        if name == "make_dir":
            tries.append(args)
            if len(tries) == 1:
                raise OSError(errno.EIO, "Input/output error")

    (saver,) = make_savers(tmp_path, 1, events, disk=CountingDisk(fail_first), backoff_s=(5.0,))
    first, second = torch.ones(8), torch.full((8,), 2.0)
    pieces = [*pieces_of_tensor("a", first), *pieces_of_tensor("b", first)]
    saver.save(1, pieces, {})
    deadline = time.monotonic() + 30
    while not events and time.monotonic() < deadline:
        time.sleep(0.01)  # the first try has failed, the second waits
    broken = [*pieces_of_tensor("a", second), *pieces_of_tensor("b", torch.ones(8, device="meta"))]
    with pytest.raises((NotImplementedError, RuntimeError)):
        saver.save(2, broken, {})
    assert saver.wait(30)
    assert not list_checkpoints(tmp_path)


def test_the_host_buffer_is_used_again(tmp_path):
    state = make_state()
    (saver,) = make_savers(tmp_path, 1)
    save_all([saver], 1, lambda r: split_replicated(state, 0, 1))
    first = saver._buffer
    save_all([saver], 2, lambda r: split_replicated(state, 0, 1))
    assert saver._buffer is first


def test_the_memory_of_the_first_save_is_ready_before_it(tmp_path):
    """Issue 19.0: the first save took several times as long as the others."""
    state = make_state()
    (saver,) = make_savers(tmp_path, 1)
    saver.prepare(split_replicated(state, 0, 1))
    ready = saver._buffer
    save_all([saver], 1, lambda r: split_replicated(state, 0, 1))
    assert saver._buffer is ready
    back = {name: torch.zeros_like(value) for name, value in state.items()}
    found = find_resumable(tmp_path)
    restore(found.path, found.manifest, [piece for n, v in back.items() for piece in pieces_of_tensor(n, v)])
    assert all(torch.equal(back[name], value) for name, value in state.items())


class Driver:
    """Stands for the CUDA runtime: notes what is pinned, and refuses where it is told to."""

    def __init__(self, code: int = 0) -> None:
        self.code, self.held = code, {}

    def cudaHostRegister(self, place: int, size: int, flags: int) -> int:  # noqa: N802 - the runtime's own name
        self.held |= {} if self.code else {place: size}
        return self.code

    def cudaHostUnregister(self, place: int) -> int:  # noqa: N802 - as above
        del self.held[place]
        return 0


def test_the_buffer_of_a_gpu_is_pinned_at_its_own_size(tmp_path, monkeypatch):
    """Torch's pinned allocator would take the next power of two of every rank."""
    driver, (saver,) = Driver(), make_savers(tmp_path, 1)
    monkeypatch.setattr(torch.cuda, "cudart", lambda: driver)
    size = (1 << 20) + 4096
    first = saver._take_buffer(size, on_cuda=True)
    assert driver.held == {first.data_ptr(): size} and saver.is_prepared
    assert saver._take_buffer(size, on_cuda=True).data_ptr() == first.data_ptr()
    del first
    larger = saver._take_buffer(2 * size, on_cuda=True)
    assert driver.held == {larger.data_ptr(): 2 * size}


def test_memory_that_the_driver_does_not_pin_is_used_as_it_is(tmp_path, monkeypatch):
    events: list = []
    (saver,) = make_savers(tmp_path, 1, events)
    monkeypatch.setattr(torch.cuda, "cudart", lambda: Driver(code=2))
    for _ in range(2):
        saver._take_buffer(8192, on_cuda=True).fill_(7)
    assert [event["code"] for event in events] == ["engine/save-not-pinned"]


def test_what_the_first_save_needs_is_touched_and_laid_out_before_it(tmp_path, monkeypatch):
    """Issue 19.0: of 10,500 tensors the first save laid out the file while the loop waited."""
    pieces, touched, laid_out = split_replicated(make_state(), 0, 1), [], []
    monkeypatch.setattr(torch_state, "outline", _counted(torch_state.outline, laid_out))
    monkeypatch.setattr(HostBuffer, "_touch", lambda buffer, touch: touched.append(buffer._is_wanted.is_set()))
    (saver,) = make_savers(tmp_path, 1)
    saver.prepare(pieces)
    saver.prepare(pieces)
    assert len(laid_out) == 1
    save_all([saver], 1, lambda r: pieces)
    assert len(laid_out) == 1 and touched == [False]


def test_a_state_that_cannot_be_saved_is_refused_before_the_first_step(tmp_path):
    (saver,) = make_savers(tmp_path, 1)
    with pytest.raises(CheckpointError) as refused:
        saver.prepare(pieces_of_tensor("model/w", torch.ones(2, dtype=torch.complex128)))
    assert refused.value.code == "checkpoint/odd-dtype"


def test_a_tensor_handed_over_twice_is_refused_and_the_saver_stays_usable(tmp_path):
    (saver,) = make_savers(tmp_path, 1)
    piece = pieces_of_tensor("model/w", torch.ones(2))
    with pytest.raises(CheckpointError) as refused:
        saver.save(1, [*piece, *piece], {})
    assert refused.value.code == "checkpoint/saved-twice"
    save_all([saver], 2, lambda r: piece)


def test_what_two_ranks_both_claim_reaches_the_loop(tmp_path):
    savers = make_savers(tmp_path, 2)
    for saver in savers:
        saver.save(1, pieces_of_tensor("model/w", torch.ones(4)), {})
    with pytest.raises(CheckpointError) as refused:
        savers[0].wait(30)
    assert refused.value.code == "checkpoint/not-covered" and refused.value.facts["have"] == 8
    assert savers[1].wait(30)


def test_a_save_of_the_same_tensors_is_laid_out_and_understood_once(tmp_path, monkeypatch):
    understood, laid_out = [], []
    monkeypatch.setattr(commit, "verify_checkpoint", _counted(commit.verify_checkpoint, understood))
    monkeypatch.setattr(torch_state, "lay_out", _counted(torch_state.lay_out, laid_out))
    (saver,) = make_savers(tmp_path, 1)
    for step in (1, 2, 3):
        state = make_state(step)
        save_all([saver], step, lambda rank, state=state: split_replicated(state, 0, 1))
        assert same(load(tmp_path, state), state)
    assert (len(understood), len(laid_out)) == (1, 1)
    state = {**make_state(4), "more": torch.arange(7)}
    save_all([saver], 4, lambda rank: split_replicated(state, 0, 1))
    assert same(load(tmp_path, state), state)
    assert (len(understood), len(laid_out)) == (2, 2)


def test_a_disk_that_loses_bytes_of_a_later_save_is_found_out(tmp_path, monkeypatch):
    events: list[dict] = []
    (saver,) = make_savers(tmp_path, 1, events, backoff_s=())
    for step in (1, 2):
        save_all([saver], step, lambda rank: split_replicated(make_state(), 0, 1))
    real = RealDisk.sync

    def lose(self, fd: int) -> None:
        real(self, fd)
        with open(f"/proc/self/fd/{fd}", "r+b", buffering=0) as file:
            file.seek(os.fstat(fd).st_size // 2)
            file.write(b"?")

    monkeypatch.setattr(RealDisk, "sync", lose)
    save_all([saver], 3, lambda rank: split_replicated(make_state(), 0, 1))
    assert [event["step"] for event in events if event["kind"] == "checkpoint_committed"] == [1, 2]
    assert [event["step"] for event in events if event["kind"] == "save_lost"] == [3]


def _counted(function, calls: list):
    def call(*args, **kwargs):
        calls.append(args)
        return function(*args, **kwargs)

    return call


def test_a_process_that_ends_while_its_buffer_is_touched_keeps_its_exit_code():
    code = (
        "import torch\n"
        "from headway.checkpoint.buffer import HostBuffer\n"
        "buffer = HostBuffer(2 << 30)\n"
        "buffer.warm_up(lambda view: torch.frombuffer(view, dtype=torch.uint8).fill_(0))\n"
        "raise SystemExit(5)\n"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 5
