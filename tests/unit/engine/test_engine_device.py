from __future__ import annotations

import pytest
import torch

from headway.config import TrainConfig
from headway.engine import device as opening
from headway.planner import Plan


@pytest.fixture
def switches(monkeypatch):
    """Let the tests set what is set for a whole process."""
    monkeypatch.setattr(opening, "os", type("Os", (), {"environ": {}}))
    monkeypatch.setattr(torch.cuda, "set_device", lambda device: None)
    cudnn, fill = torch.backends.cudnn, torch.utils.deterministic
    before = cudnn.deterministic, cudnn.benchmark, fill.fill_uninitialized_memory
    tf32 = cudnn.allow_tf32
    yield
    torch.use_deterministic_algorithms(False)
    cudnn.deterministic, cudnn.benchmark, fill.fill_uninitialized_memory = before
    cudnn.allow_tf32 = tf32


def plan(device: str) -> Plan:
    numbers = dict.fromkeys(("threads", "micro_batch", "accumulation", "batch_samples", "total_samples"), 1)
    words = {"gpus": (), "backend": "gloo", "strategy": "single", "precision": "fp32", "tokens_per_sample": None}
    lengths = {"world_size": 1, "workers": 0, "total_steps": 1, "lr_factor": 1.0, "warmup_samples": 0}
    return Plan(device=device, **numbers, **words, **lengths)


def test_deterministic_training_on_a_gpu_raises_where_a_kernel_is_not(switches, monkeypatch):
    assert opening.open_device(plan("cuda"), TrainConfig(deterministic=True), 1) == torch.device("cuda", 1)
    assert torch.are_deterministic_algorithms_enabled()
    # With a warning only, attention's backward would not be deterministic.
    assert not torch.is_deterministic_algorithms_warn_only_enabled()
    assert torch.backends.cudnn.deterministic
    assert not torch.utils.deterministic.fill_uninitialized_memory
    assert opening.os.environ["CUBLAS_WORKSPACE_CONFIG"] == ":4096:8"


@pytest.mark.parametrize(("device", "wanted"), [("cuda", False), ("cpu", True), ("cpu", False)])
def test_otherwise_nothing_is_switched_on(switches, device, wanted):
    opening.open_device(plan(device), TrainConfig(deterministic=wanted), 0)
    assert not torch.are_deterministic_algorithms_enabled()


def test_a_gpu_multiplies_in_tf32_and_tries_kernels_where_shapes_are_steady(switches):
    before = torch.get_float32_matmul_precision()
    try:
        opening.open_device(plan("cuda"), TrainConfig(), 0)
        assert (torch.get_float32_matmul_precision(), torch.backends.cudnn.benchmark) == ("high", True)
        opening.open_device(plan("cuda"), TrainConfig(tf32=False), 0, is_steady=False)
        assert (torch.get_float32_matmul_precision(), torch.backends.cudnn.benchmark) == ("highest", False)
        opening.open_device(plan("cuda"), TrainConfig(deterministic=True), 0)
        assert not torch.backends.cudnn.benchmark
    finally:
        torch.set_float32_matmul_precision(before)


def test_a_gpu_is_fast_and_not_deterministic_unless_asked():
    assert not TrainConfig().deterministic
