"""The device of a rank: which one, and what is set on it before anything is computed there."""

from __future__ import annotations

import os

import torch

from headway.config import TrainConfig
from headway.planner import Plan


def open_device(plan: Plan, train: TrainConfig, local_rank: int, *, is_steady: bool = True) -> torch.device:
    """Return the device of a rank, ready for the arithmetic that the config asks for.

    CPU ranks need nothing: what they compute is bit-equal from run to run as it is.

    Args:
        is_steady: batches have the same shape in every step.
    """
    if plan.device == "cpu":
        return torch.device("cpu")
    device = torch.device("cuda", local_rank)
    # Products of fp32 in TensorFloat-32: 10 bits of mantissa, and tensor cores since Ampere.
    torch.set_float32_matmul_precision("high" if train.tf32 else "highest")
    torch.backends.cudnn.allow_tf32 = train.tf32
    # It tries every algorithm for each new shape, which pays where there are few.
    torch.backends.cudnn.benchmark = is_steady
    if train.deterministic:
        be_deterministic()
    torch.cuda.set_device(device)
    return device


def be_deterministic() -> None:
    """Allow deterministic kernels only; an operation that has none raises.

    With warnings in place of errors attention's backward would stay as it was: it asks whether it only has to warn.
    """
    # cuBLAS reads it when the first handle is made; one that the user has set is theirs to answer for.
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.use_deterministic_algorithms(True, warn_only=False)
    # Filling every fresh tensor with NaN shows reads of unset memory; it makes nothing equal and costs a pass each.
    torch.utils.deterministic.fill_uninitialized_memory = False
    torch.backends.cudnn.deterministic = True
    torch.backends.cudnn.benchmark = False
