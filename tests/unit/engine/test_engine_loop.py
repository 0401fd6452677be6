"""The loop: one division over all micro-batches, clipping, precision, guard, validation, resume."""

from __future__ import annotations

import math

import pytest
import torch

from fakes.engine_run import make_run, read_tensors, reports
from headway.checkpoint import find_resumable, list_checkpoints
from headway.engine.loop import take_step, train
from headway.engine.precision import Precision
from headway.engine.snapshot import resume
from headway.errors import TrainError
from headway.task.order import Order, expected_ledger
from headway.telemetry import RunDir, read_metrics

PLAIN = ("task.dropout=0", "optimizer.clip=null")


def gradient(run) -> torch.Tensor:
    run.open_data()
    take_step(run)
    return torch.cat([p.grad.flatten() for p in run.model.parameters()]).clone()


@pytest.mark.parametrize("ragged", [False, True])
@pytest.mark.parametrize(("micro", "accumulation"), [(2, 4), (1, 8), (4, 2)])
def test_the_gradient_does_not_depend_on_the_micro_batch(tmp_path, micro, accumulation, ragged):
    words = (*PLAIN, f"task.ragged={str(ragged).lower()}")
    whole = gradient(make_run(tmp_path / "a", *words, "batch.per_device=8", "batch.accumulation=1"))
    split = gradient(
        make_run(tmp_path / "b", *words, f"batch.per_device={micro}", f"batch.accumulation={accumulation}")
    )
    torch.testing.assert_close(split, whole, rtol=1e-6, atol=1e-6 * whole.abs().max().item())


def test_the_loss_is_the_sum_over_the_count_of_all_micro_batches(tmp_path):
    run = make_run(tmp_path, *PLAIN, "task.ragged=true", "batch.per_device=2", "batch.accumulation=3")
    ids, epochs = Order(97, 0).samples(torch.arange(6).numpy())
    batch = run.data.batch(ids, epochs)
    with torch.no_grad():
        error = (run.model(batch["x"]) - batch["y"]).square().sum(1)
    wanted = float((error * batch["count"]).sum() / batch["count"].sum())
    run.open_data()
    totals = take_step(run)
    assert totals.loss / totals.count == pytest.approx(wanted, rel=1e-6)


def test_clipping_bounds_the_global_norm(tmp_path):
    run = make_run(tmp_path, "optimizer.clip=0.01")
    grad = gradient(run)
    assert float(grad.norm()) == pytest.approx(0.01, rel=1e-3)


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_every_precision_learns(tmp_path, precision):
    run = make_run(tmp_path, "train.steps=150", f"train.precision={precision}", "task.dropout=0", "lr.base=0.02")
    assert train(run) == "done"
    losses = read_metrics(RunDir(tmp_path).metrics(0))["loss"]
    assert sum(losses[-24:]) < 0.8 * sum(losses[:24])


def test_fp16_halves_its_scale_on_overflow_and_goes_on(tmp_path):
    run = make_run(tmp_path, *PLAIN)
    run.precision.is_scaled, run.precision.scale = True, 2.0**127  # overflows fp32 too, so the CPU can show it
    run.open_data()
    weights = [p.detach().clone() for p in run.model.parameters()]
    take_step(run)
    assert run.precision.scale == 2.0**126
    assert all(torch.equal(a, b) for a, b in zip(weights, run.model.parameters(), strict=True))
    run.precision.scale = 1024.0
    take_step(run)
    assert run.progress.step == 2
    assert run.progress.updates == 1
    assert not all(torch.equal(a, b) for a, b in zip(weights, run.model.parameters(), strict=True))


def test_the_scale_does_not_change_the_gradient(tmp_path):
    plain = gradient(make_run(tmp_path / "a", *PLAIN))
    run = make_run(tmp_path / "b", *PLAIN)
    run.precision.scale = 4096.0
    torch.testing.assert_close(gradient(run), plain, rtol=1e-6, atol=1e-8)


def test_activation_checkpointing_changes_nothing_but_memory(tmp_path):
    plain = gradient(make_run(tmp_path / "a", *PLAIN))
    torch.testing.assert_close(gradient(make_run(tmp_path / "b", *PLAIN, "train.activation_checkpoint=true")), plain)


def test_the_average_steps_once_an_optimizer_step_and_keeps_its_counter(tmp_path):
    words = ("ema.decay=0.9", "batch.per_device=2", "batch.accumulation=4", "train.steps=6")
    run = make_run(tmp_path, *words)
    train(run)
    assert run.ema.updates == 6
    again = make_run(tmp_path, *words, attempt=2)
    assert again.ema.updates == 6
    for name, value in run.ema.state().items():
        assert torch.equal(value, again.ema.state()[name])
    weights = dict(run.model.named_parameters())
    assert any(not torch.equal(value, weights[name]) for name, value in run.ema.state().items())


def test_frozen_modules_stay_in_eval(tmp_path):
    run = make_run(tmp_path, "task.norm=true", "train.steps=2", "eval.every=1")
    first = run.model[0]
    run.task.frozen = lambda model: [first]
    train(run)
    assert not first.training
    assert run.model[1].training


def test_a_nan_sample_is_named_and_stops_the_run(tmp_path):
    run = make_run(tmp_path, "task.nan_samples=[41]", "train.steps=30")
    with pytest.raises(TrainError) as stopped:
        train(run)
    assert stopped.value.code == "engine/not-finite"
    assert stopped.value.facts["samples"] == "41"
    (event,) = reports(tmp_path, "guard")
    ids, _ = Order(97, 0).samples(torch.arange(97).numpy())
    assert event["step"] == ids.tolist().index(41) // 4 + 1
    assert event["samples"] == [41]


def test_skip_leaves_the_weights_alone_and_goes_on(tmp_path):
    run = make_run(tmp_path, "task.nan_samples=[41]", "train.steps=30", "guard.policy=skip")
    assert train(run) == "done"
    ids, _ = Order(97, 0).samples(torch.arange(120).numpy())
    assert run.progress.updates == 30 - ids.tolist().count(41)
    assert all(math.isfinite(float(p.detach().sum())) for p in run.model.parameters())


def test_skip_gives_up_at_its_limit(tmp_path):
    run = make_run(tmp_path, "task.nan_samples=[41]", "train.steps=60", "guard.policy=skip", "guard.limit=1")
    with pytest.raises(TrainError) as stopped:
        train(run)
    assert stopped.value.code == "engine/not-finite-limit"


def test_roll_back_goes_to_the_checkpoint_and_leaves_the_samples_out(tmp_path):
    run = make_run(tmp_path, "task.nan_samples=[41]", "train.steps=24", "guard.policy=rollback", "save.every=3")
    assert train(run) == "done"
    assert len(run.progress.skips) == 1
    found = find_resumable(RunDir(tmp_path).checkpoints).manifest
    assert int(found.ledger, 16) == expected_ledger(Order(97, 0), found.samples, run.progress.skips)


def test_roll_back_without_a_checkpoint_says_so(tmp_path):
    run = make_run(tmp_path, "task.nan_samples=[41]", "train.steps=24", "guard.policy=rollback")
    with pytest.raises(TrainError) as stopped:
        train(run)
    assert stopped.value.code == "engine/nothing-to-roll-back"


def test_validation_marks_and_keeps_the_best(tmp_path):
    run = make_run(tmp_path, "train.steps=40", "eval.every=5", "save.every=4", "save.keep_last=1", "lr.base=0.3")
    train(run)
    validations = reports(tmp_path, "validation")
    best = min(validations, key=lambda event: event["measures"]["mse"])
    assert [event["step"] for event in validations] == [5, 10, 15, 20, 25, 30, 35, 40]
    assert best["best"]
    assert best["step"] in [info.step for info in list_checkpoints(run.checkpoints)]


def test_patience_stops_a_run_that_no_longer_gets_better(tmp_path):
    run = make_run(tmp_path, "train.steps=500", "eval.every=2", "eval.patience=3", "lr.base=1.0")
    assert train(run) == "done"
    assert run.progress.step < 500
    assert run.progress.stale == 3


def test_a_stop_wish_saves_and_ends_at_the_step_boundary(tmp_path):
    run = make_run(tmp_path, "train.steps=100")
    run.is_stop_wanted = lambda: run.progress.step >= 6
    assert train(run) == "stopped"
    assert find_resumable(run.checkpoints).manifest.step == 7


def test_save_by_the_clock(tmp_path):
    run = make_run(tmp_path, "train.steps=12", "save.every_s=0.05", "task.sleep_s=0.02", "save.keep_last=50")
    train(run)
    assert len(list_checkpoints(run.checkpoints)) >= 3


@pytest.mark.parametrize("optimizer", ["muon", "sgd"])
def test_resume_is_bit_equal_in_one_process(tmp_path, optimizer):
    words = ("ema.decay=0.9", f"optimizer.name={optimizer}", "task.norm=true", "save.every=4")
    train(make_run(tmp_path / "whole", *words, "train.steps=20"))
    part = make_run(tmp_path / "parts", *words, "train.steps=20")
    part.is_stop_wanted = lambda: part.progress.step >= 8
    train(part)
    rest = make_run(tmp_path / "parts", *words, "train.steps=20", attempt=2)
    assert rest.progress.step == 9
    train(rest)
    losses = [read_metrics(RunDir(tmp_path / name).metrics(0))["loss"] for name in ("whole", "parts")]
    assert losses[0] == losses[1]
    assert read_tensors(RunDir(tmp_path / "whole")) == read_tensors(RunDir(tmp_path / "parts"))


def test_changed_data_is_refused(tmp_path):
    train(make_run(tmp_path, "train.steps=3"))
    with pytest.raises(TrainError) as refused:
        make_run(tmp_path, "train.steps=6", "task.samples=89", attempt=2)
    assert refused.value.code == "engine/data-changed"


def test_a_broken_newest_checkpoint_is_passed_over_with_a_word(tmp_path):
    train(make_run(tmp_path, "train.steps=6", "save.every=3"))
    newest = list_checkpoints(RunDir(tmp_path).checkpoints)[-1].path / "rank-00000.safetensors"
    data = bytearray(newest.read_bytes())
    data[-1] ^= 1
    newest.write_bytes(data)
    run = make_run(tmp_path, "train.steps=9", attempt=2)
    assert run.progress.step == 3
    (event,) = reports(tmp_path, "checkpoint_skipped")
    assert "step-00000006" in event["path"]


def test_metrics_hold_every_step_and_its_split(tmp_path):
    run = make_run(tmp_path, "train.steps=15", "eval.every=5", "save.every=5")
    train(run)
    rows = read_metrics(RunDir(tmp_path).metrics(0))
    assert list(rows["step"]) == list(range(1, 16))
    for index in range(15):
        parts = sum(rows[name][index] for name in ("data", "forward", "backward", "comm", "optimizer", "save", "eval"))
        assert parts == pytest.approx(rows["dt"][index], rel=0.02)
    assert rows["eval"][5] > 0
    assert rows["save"][5] > 0


def test_a_run_that_is_trained_longer_remembers_its_best(tmp_path):
    first = make_run(tmp_path, "train.steps=6", "lr.base=0.001")
    train(first)
    longer = make_run(tmp_path, "train.steps=9", "lr.base=30", attempt=2)
    assert longer.progress.owes_validation
    train(longer)
    assert longer.progress.best_step == 6
    assert longer.progress.best_value == first.progress.best_value


@pytest.mark.parametrize("before", ["fp32", "bf16"])
def test_a_checkpoint_without_a_loss_scale_starts_fp16_with_the_usual_one(tmp_path, before):
    train(make_run(tmp_path, "train.steps=2", f"train.precision={before}"))
    run = make_run(tmp_path, "train.steps=4")
    run.precision = Precision("fp16", torch.device("cpu"))  # the plan refuses it on CPUs
    resume(run)
    assert (run.progress.step, run.precision.scale, run.precision.good_steps) == (2, 65536.0, 0)
    # As after many overflows: a scale of its own, which a resume takes over.
    run.precision.overflowed()
    run.precision.scale = 1.0
    train(run)
    run.precision = Precision("fp16", torch.device("cpu"))
    resume(run)
    assert (run.progress.step, run.precision.scale) == (4, 1.0)
    assert make_run(tmp_path, "train.steps=4").precision.scale == 1.0


def test_a_run_whose_seed_was_edited_is_refused(tmp_path):
    train(make_run(tmp_path, "train.steps=2"))
    with pytest.raises(TrainError) as refused:
        make_run(tmp_path, "train.steps=4", "seed=5")
    assert refused.value.code == "engine/seed-changed"
