"""Values that a trace does not have are guessed so that a script continues."""

from __future__ import annotations

import pytest
import torch
from torch._subclasses import fake_tensor
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

from headway.trace.fake_tensors import KNOWN, Devices, Pretence
from headway.trace.storages import Tracker


@pytest.fixture
def pretence(monkeypatch):
    # Both are changed permanently in a trace's own process; here they are put back.
    monkeypatch.setattr(fake_tensor, "CONSTANT_NUMEL_LIMIT", KNOWN)
    monkeypatch.setattr(FakeTensor, "device", FakeTensor.__dict__["device"])
    fake = FakeTensorMode(allow_non_fake_inputs=True)
    made = Pretence(fake, has_gpus=True)
    devices = Devices(made)
    devices.answer_device()
    with fake, Tracker(run=made.run, counts=made.is_marked), devices:
        yield made


def test_every_number_on_the_device_is_one(pretence):
    loss = torch.randn(4, device="cuda").mean()
    assert loss.item() == 1.0
    assert float(loss) == 1.0
    assert int(torch.randn(3, device="cuda").argmax()) == 1
    assert f"{loss:.2f}" == "1.00"
    assert torch.randn(2, 2, device="cuda").tolist() == [[1.0, 1.0], [1.0, 1.0]]
    assert torch.randn(2, device="cuda").cpu().numpy().tolist() == [1.0, 1.0]


def test_nothing_is_infinite_and_comparisons_are_made_with_one(pretence):
    loss = torch.randn(4, device="cuda").mean()
    assert not torch.isnan(loss)
    assert not torch.isinf(loss).any()
    assert torch.isfinite(loss).all()
    assert loss < 2
    assert not loss > 2
    assert not (~torch.isfinite(loss)).any()


def test_small_tensors_of_the_host_keep_their_values(pretence):
    picked = torch.arange(10)[torch.tensor([7, 3])]
    assert picked.tolist() == [7, 3]
    assert not pretence.is_on(picked)


def test_integers_keep_their_values_on_the_device(pretence):
    ids = torch.tensor([[5, 6, 0], [7, 0, 0]]).to("cuda")
    mask = ids != 0
    assert int(mask.sum(1).max()) == 2
    assert torch.randn(2, 3, 4, device="cuda")[mask].shape == (3, 4)


def test_what_is_computed_from_the_device_is_on_the_device(pretence):
    weight = torch.randn(3, 3).cuda()
    out = weight @ torch.ones(3, 3, device=weight.device)
    assert pretence.is_on(out)
    assert out.is_cuda
    assert out.device == torch.device("cuda", 0)
    assert not pretence.is_on(out.cpu())
    assert pretence.is_on(torch.zeros(2).to(out))
