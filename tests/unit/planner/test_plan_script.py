"""A launch line of the user's own is read, and its trace becomes a verdict."""

from __future__ import annotations

import sys

import pytest

from headway.errors import PlanError, UsageError
from headway.planner import ScriptForecast, ScriptLine, ScriptTrace
from headway.planner.script_forecast import weigh_script
from headway.start.script_line import read_script

GIB = 1 << 30


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("")


def trace(**changes) -> ScriptTrace:
    facts = {
        "peak_bytes": 20 * GIB,
        "parts": {"weights": 2 * GIB, "activations": 12 * GIB, "backward": 3 * GIB, "step": GIB, "batch": 2 * GIB},
        "moment": "backward",
        "on_device": True,
        "micro_batch": 16,
        "accumulation": 1,
        "world_size": 1,
        "params": 10,
        "trained": 10,
        "weight_bytes": 40,
        "trained_bytes": 40,
        "state_bytes": 80,
        "flops": 1,
        "half_share": 1.0,
        "moved_bytes": 1,
        "update_bytes": 1,
        "kernels": 1,
        "optimizers": ("AdamW",),
        "left_out": (),
        "took_s": 1.0,
        "rss_bytes": 1,
    }
    return ScriptTrace(**{**facts, **changes})


def forecast(found: ScriptTrace, *, device_bytes: float) -> ScriptForecast:
    line = ScriptLine(text="python train.py", entry="train.py", kind="script")
    memory = weigh_script(found, line)
    return ScriptForecast(
        line=line,
        trace=found,
        memory=memory,
        used_bytes=memory.used_bytes,
        device_bytes=device_bytes,
        verdict=memory.judge(device_bytes),
        device="GPU",
        speed=None,
    )


def test_a_bare_script_is_run_by_python_on_one_rank(here):
    line = read_script("train.py --batch 8", num_gpus=2)
    assert (line.entry, line.kind, line.args) == ("train.py", "script", ("--batch", "8"))
    assert (line.ranks, line.is_launched, line.text) == (1, False, "python train.py --batch 8")
    assert line.python == sys.executable


def test_a_launcher_tells_the_ranks(here):
    line = read_script("torchrun --nproc_per_node=2 --nnodes=3 train.py --bs 8", num_gpus=4)
    assert (line.ranks, line.local_ranks, line.is_launched, line.args) == (6, 2, True, ("--bs", "8"))


def test_a_launcher_may_leave_the_ranks_to_the_machine(here):
    assert read_script("torchrun --nproc_per_node=gpu train.py", num_gpus=4).ranks == 4
    assert read_script("CUDA_VISIBLE_DEVICES=0,1 torchrun --nproc_per_node=gpu train.py", num_gpus=4).ranks == 2


def test_a_module_and_an_interpreter_by_its_path_are_kept(here):
    line = read_script("/opt/torch/bin/python -m project.train --lr 1", num_gpus=1)
    assert (line.entry, line.kind, line.python) == ("project.train", "module", "/opt/torch/bin/python")


def test_what_the_line_exports_reaches_the_script_but_not_its_gpus(here):
    line = read_script("CUDA_VISIBLE_DEVICES=1 SEED=3 python train.py", num_gpus=2)
    assert line.env == {"SEED": "3"}
    line = read_script("accelerate launch --num_processes 2 --mixed_precision bf16 train.py", num_gpus=2)
    assert (line.ranks, line.env) == (2, {"ACCELERATE_MIXED_PRECISION": "bf16"})


@pytest.mark.parametrize(
    ("text", "error", "code"),
    [
        ("bash run.sh", UsageError, "plan/script-unread"),
        ("python other.py", UsageError, "plan/script-missing"),
        ("deepspeed --num_gpus 2 train.py", PlanError, "plan/script-sharded"),
        ("torchrun --nproc_per_node=8 train.py", PlanError, "plan/script-ranks"),
    ],
)
def test_a_line_that_cannot_be_planned_is_refused(here, text, error, code):
    with pytest.raises(error) as refused:
        read_script(text, num_gpus=2)
    assert refused.value.code == code


def test_what_backward_and_the_update_make_is_called_temporary():
    found = forecast(trace(), device_bytes=24 * GIB)
    assert found.memory.parts["temporaries"] == 4 * GIB
    assert found.memory.allocated_bytes == 20 * GIB


def test_a_script_that_does_not_fit_is_told_a_batch_that_would():
    found = forecast(trace(), device_bytes=16 * GIB)
    assert found.verdict == "will-not-fit"
    samples = found.largest_micro_batch
    assert samples is not None

    def used(micro: int) -> float:
        return (2 * GIB + 18 * GIB * micro / 16) * 1.06 + 0.6e9

    assert used(samples) <= 0.92 * 16 * GIB < used(samples + 1)
    assert found.to_json()["largest_micro_batch"] == samples


def test_no_batch_is_named_where_none_fits_or_none_was_seen():
    assert forecast(trace(), device_bytes=GIB).largest_micro_batch is None
    assert forecast(trace(micro_batch=None), device_bytes=16 * GIB).largest_micro_batch is None


def test_the_record_has_every_key_whatever_is_known():
    told = forecast(trace(micro_batch=None), device_bytes=64 * GIB).to_json()
    assert told["schema"] == "plan-script/1"
    assert (told["step_s"], told["samples_s"], told["micro_batch"]) == (None, None, None)
