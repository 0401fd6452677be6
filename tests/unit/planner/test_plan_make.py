"""Whole plans: layout, length, rows and refusals, on machines that are not here."""

from __future__ import annotations

import json
import string
from dataclasses import dataclass, field

import pytest

from fakes.machines import busy, eight_h100, gpu, lost, machine, mixed, two_v100
from headway.config import (
    BatchConfig,
    EvalConfig,
    LrConfig,
    ParallelConfig,
    Recipe,
    RunConfig,
    SaveConfig,
    Section,
    TrainConfig,
)
from headway.errors import CheckError, ConfigError, PlanError
from headway.launch.job import Job, Training
from headway.launch.shrink import shrink
from headway.machine.devices import apply_visible
from headway.messages import LANGUAGES
from headway.messages.plan import TEXTS
from headway.planner import (
    Plan,
    Standing,
    continue_plan,
    label_text,
    lr_at,
    make_plan,
    make_schedule,
    origin_text,
    value_text,
)


@dataclass(frozen=True)
class Loaded:
    config: RunConfig
    origins: dict[str, str] = field(default_factory=dict)
    guide_names: dict[str, str] = field(default_factory=dict)


RECIPE = Recipe(
    name="tiny",
    section=Section,
    task="tiny.task",
    tokens_per_sample=lambda _: 2048,
    train_samples=lambda _: 1000,
    aliases={"device_batch_size": "batch.per_device", "total_batch_size": "batch.total"},
)


def plan(here=None, origins=None, recipe=RECIPE, **sections) -> Plan:
    sections.setdefault("train", TrainConfig(steps=10))
    return make_plan(Loaded(RunConfig(**sections), origins or {}), here or machine(), recipe)


def rows(made: Plan) -> dict[str, tuple[str, str]]:
    return {row.key: (row.value, row.origin) for row in made.rows}


def test_without_gpus_two_cpu_ranks_share_the_cores():
    made = plan()
    assert (made.device, made.backend, made.world_size, made.gpus) == ("cpu", "gloo", 2, ())
    assert (made.strategy, made.precision, made.threads) == ("ddp", "fp32", 32)


def test_all_free_gpus_are_used_with_bf16():
    made = plan(machine((*eight_h100()[:3], busy(gpu(3)), lost(4))))
    assert (made.device, made.backend, made.world_size, made.gpus) == ("cuda", "nccl", 3, (0, 1, 2))
    assert made.precision == "bf16"
    assert made.gpu_uuids == tuple(one.uuid for one in eight_h100()[:3])


def test_gpus_stand_in_the_plan_by_the_drivers_number_whatever_the_environment_hides():
    seen = apply_visible(eight_h100(), "6,7")
    assert plan(machine(seen)).gpus == (6, 7)
    assert plan(machine(seen), parallel=ParallelConfig(gpus=(1,))).gpus == (7,)


@pytest.mark.parametrize(
    ("gpus", "precision"),
    [
        (two_v100(), "fp16"),
        (mixed(), "fp16"),
        (
            (gpu(0, capability=None, name="AMD Instinct MI300X"),),
            "bf16",
        ),  # issue 21: known by its name, not planned fp32
        ((gpu(0, capability=None, name="Unheard-of 9000"),), "fp32"),
    ],
)
def test_precision_follows_the_weakest_gpu(gpus, precision):
    assert plan(machine(gpus)).precision == precision


def test_fp16_on_cpu_is_refused_and_bf16_is_not():
    with pytest.raises(PlanError) as refused:
        plan(train=TrainConfig(steps=1, precision="fp16"))
    assert refused.value.code == "plan/fp16-on-cpu"
    assert plan(train=TrainConfig(steps=1, precision="bf16")).precision == "bf16"


def test_bf16_on_an_old_gpu_is_a_warning():
    made = plan(machine(two_v100()), train=TrainConfig(steps=1, precision="bf16"))
    assert [one.code for one in made.warnings] == ["plan/bf16-emulated"]


def test_one_rank_is_single_and_single_is_one_rank():
    assert plan(parallel=ParallelConfig(cpus=1)).strategy == "single"
    made = plan(machine(eight_h100()), parallel=ParallelConfig(strategy="single"))
    assert (made.world_size, made.gpus) == (1, (0,))
    assert plan(parallel=ParallelConfig(strategy="single")).world_size == 1


def test_one_rank_shards_nothing_and_is_told_so():
    """A run that began with two sharded ranks continues with one."""
    made = plan(parallel=ParallelConfig(cpus=1, strategy="fsdp"))
    assert made.strategy == "single"
    assert [one.code for one in made.warnings] == ["plan/fsdp-alone"]
    assert next(row for row in made.rows if row.key == "strategy").origin_code == "plan/from-ranks"
    two = plan(parallel=ParallelConfig(cpus=2, strategy="fsdp"))
    assert (two.strategy, "plan/fsdp-alone" in [one.code for one in two.warnings]) == ("fsdp", False)


@pytest.mark.parametrize(
    ("here", "parallel", "origins"),
    [
        (machine(eight_h100()), ParallelConfig(strategy="single", gpus=2), {}),
        (machine(), ParallelConfig(strategy="single", cpus=2), {"parallel.cpus": "command line"}),
    ],
)
def test_single_never_cuts_ranks_somebody_asked_for(here, parallel, origins):
    with pytest.raises(PlanError) as refused:
        plan(here, origins, parallel=parallel)
    assert refused.value.code == "plan/single-many"


def test_busy_gpus_stop_the_plan_with_exit_3():
    with pytest.raises(CheckError) as refused:
        plan(machine((busy(gpu(0)),)))
    assert refused.value.exit_code == 3


def test_more_cpu_ranks_than_cores_is_a_warning():
    made = plan(machine(cores=2), parallel=ParallelConfig(cpus=4))
    assert made.threads == 1
    assert [one.code for one in made.warnings] == ["plan/ranks-over-cores"]


def test_the_guides_names_are_used_when_the_user_used_them():
    batch = BatchConfig(per_device=16, total=49152, unit="tokens")
    config = RunConfig(batch=batch, train=TrainConfig(steps=1))
    with pytest.raises(PlanError) as refused:
        make_plan(Loaded(config, {}, {"batch.per_device": "device_batch_size"}), machine(), RECIPE)
    assert "--device_batch_size=12 batch.total=49152" in refused.value.hint("zh")


def resumed(
    before: Plan, cpus: int, origins: dict[str, str] | None = None, *, can_be_uneven: bool = False, **batch
) -> Plan:
    config = RunConfig(
        batch=BatchConfig(**batch), parallel=ParallelConfig(cpus=cpus), train=TrainConfig(samples=before.total_samples)
    )
    return make_plan(Loaded(config, origins or {}), machine(), RECIPE, before=before, can_be_uneven=can_be_uneven)


def test_a_run_that_goes_on_keeps_its_total_on_other_ranks_and_derives_the_rest():
    before = plan(batch=BatchConfig(per_device=8))
    fewer, more = resumed(before, 1, per_device=8), resumed(before, 4, per_device=8)
    assert (fewer.micro_batch, fewer.accumulation, fewer.batch_samples) == (8, 2, 16)
    assert (more.micro_batch, more.accumulation, more.batch_samples) == (4, 1, 16)
    assert (fewer.total_steps, more.total_steps) == (before.total_steps, before.total_steps)
    assert rows(fewer)["batch-samples"] == ("16", "kept from 2 ranks before")


def test_a_total_or_accumulation_typed_for_the_resume_overrules_the_total_of_before():
    before = plan(batch=BatchConfig(per_device=8))
    assert resumed(before, 1, {"batch.total": "command line"}, per_device=4, total=4).batch_samples == 4
    assert resumed(before, 2, {"batch.accumulation": "command line"}, per_device=8, accumulation=2).batch_samples == 32


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_a_micro_batch_typed_for_the_resume_changes_the_accumulation_only(ranks):
    before = plan(batch=BatchConfig(per_device=8, accumulation=2), train=TrainConfig(epochs=4))
    for key in ("per_device", "all_devices"):
        typed = {key: 2 if key == "per_device" else 2 * ranks}
        after = resumed(before, ranks, {f"batch.{key}": "command line", "batch.accumulation": "run.yaml:1:1"}, **typed)
        assert (after.micro_batch, after.accumulation, after.batch_samples) == (2, 16 // ranks, 32)
        assert (after.total_samples, after.total_steps) == (before.total_samples, before.total_steps)
    with pytest.raises(PlanError) as refused:
        resumed(before, ranks, {"batch.per_device": "command line"}, per_device=3)
    assert refused.value.code == "plan/batch-does-not-divide"


def test_ranks_that_do_not_divide_the_total_of_before_share_it_unevenly_where_they_can():
    before = plan(batch=BatchConfig(per_device=8))
    after = resumed(before, 3, can_be_uneven=True)
    assert (after.micro_batch, after.accumulation, after.batch_samples) == (4, 2, 16)
    assert after.total_steps == before.total_steps
    (told,) = [warning for warning in after.warnings if warning.code == "plan/uneven-batch"]
    assert told.facts == {"batch": "16", "ranks": "3", "size": "4", "least": "1", "most": "2"}
    assert "plan/uneven-batch" not in [warning.code for warning in resumed(before, 4, can_be_uneven=True).warnings]
    with pytest.raises(PlanError):
        resumed(before, 3)


def test_the_total_is_kept_over_any_number_of_resumes_and_the_written_micro_batch_comes_back():
    made = plan(batch=BatchConfig(per_device=8))
    found = []
    for ranks in (1, 4, 4, 8, 2):
        made = resumed(made, ranks, {"batch.per_device": "recipe tiny"}, per_device=8)
        found.append((made.micro_batch, made.accumulation))
    assert found == [(8, 2), (4, 1), (4, 1), (2, 1), (8, 1)]


def test_a_micro_batch_that_ran_out_of_memory_does_not_come_back_on_other_ranks():
    made = plan(batch=BatchConfig(per_device=8))
    program = Training(recipe="tiny", task="task", config={"launch": {}}, plan=made.to_json())
    job = Job(program=program, world_size=2, threads=None, devices=(), restarts=1, grace_s=1)
    smaller = shrink(job, "host-out-of-memory", attempt=1).job.program.plan
    made = Plan.from_json(json.loads(json.dumps(smaller)))
    assert (made.micro_batch, made.accumulation) == (4, 2)
    for ranks, micro, turns in ((2, 4, 2), (1, 4, 4), (4, 4, 1), (1, 4, 4)):
        made = resumed(made, ranks, {"batch.per_device": "run.yaml:1:1"}, per_device=8)
        assert (made.micro_batch, made.accumulation, made.batch_samples) == (micro, turns, 16)
        assert rows(made)["batch-per-device"] == ("4", "8 samples per device ran out of memory")
    typed = resumed(made, 1, {"batch.per_device": "command line"}, per_device=8)
    assert typed.micro_batch == 8, "whoever types it again means it"


@pytest.mark.parametrize(
    ("train", "steps", "samples"),
    [
        (TrainConfig(steps=100), 100, 300 + (100 - 50) * 16),
        (TrainConfig(samples=900), 50 + 38, 900),
        (TrainConfig(epochs=1), 50 + 44, 1000),
        (TrainConfig(samples=200), 50, 200),
        (TrainConfig(steps=40), 50, 300),
    ],
)
def test_the_length_of_a_run_that_continues_is_what_it_has_done_and_what_is_left(train, steps, samples):
    # 50 steps of 6 samples so far, then 16 a step: the learning rate may fall to zero at the end only.
    before = plan(batch=BatchConfig(per_device=3), train=train)
    done = Standing(step=50, samples=300)
    config = RunConfig(batch=BatchConfig(total=16), train=train, lr=LrConfig(schedule="linear"))
    made = make_plan(Loaded(config, {"batch.total": "command line"}), machine(), RECIPE, before=before, done=done)
    assert (made.total_steps, made.total_samples) == (steps, samples)
    curve = [lr_at(300 + 16 * i, make_schedule(config.lr, made)) for i in range(made.total_steps - 50)]
    assert all(rate > 0 for rate in curve)
    # Whatever checkpoint the ranks find in the end, they come to the same numbers.
    assert continue_plan(made, done) == made
    again = continue_plan(made, Standing(step=50 + min(10, len(curve)), samples=300 + 16 * min(10, len(curve))))
    assert (again.total_steps, again.total_samples) == (made.total_steps, made.total_samples)


def test_a_warm_up_in_steps_is_not_begun_again_with_another_batch():
    lr, train = LrConfig(warmup_steps=10, schedule="cosine"), TrainConfig(steps=100)
    before = plan(batch=BatchConfig(per_device=4), lr=lr, train=train)
    config = RunConfig(batch=BatchConfig(total=32), lr=lr, train=train)
    origins = {"batch.total": "command line"}
    for step, want in ((20, 80), (4, 32 + 6 * 32)):
        done = Standing(step=step, samples=8 * step)
        made = make_plan(Loaded(config, origins), machine(), RECIPE, before=before, done=done)
        assert made.warmup_samples == want


@pytest.mark.parametrize("key", ["lr.warmup_steps", "lr.warmup_samples"])
def test_the_warm_up_typed_last_decides(key):
    origins = {"lr.warmup_steps": "command line 1", "lr.warmup_samples": "command line 1", key: "command line"}
    made = plan(origins=origins, lr=LrConfig(warmup_steps=3, warmup_samples=50), train=TrainConfig(steps=50))
    assert made.warmup_samples == (3 * 16 if key == "lr.warmup_steps" else 50)


def test_ranks_that_do_not_divide_the_total_of_before_are_refused_in_the_users_unit():
    before = plan(batch=BatchConfig(per_device=8, unit="tokens"))
    with pytest.raises(PlanError) as refused:
        resumed(before, 3, per_device=8, unit="tokens")
    assert "batch.per_device=5 batch.total=30720" in refused.value.hint("en")


def test_two_numbers_somebody_wrote_overrule_the_recipes_third():
    batch = BatchConfig(per_device=8, total=24, accumulation=3)
    origins = {"batch.per_device": "recipe tiny", "batch.total": "command line", "batch.accumulation": "command line"}
    made = plan(origins=origins, batch=batch)
    assert (made.micro_batch, made.accumulation, made.batch_samples) == (4, 3, 24)
    assert rows(made)["batch-per-device"] == ("4", "24 / (2 × 3)")


@pytest.mark.parametrize(
    ("train", "samples", "steps"),
    [
        (TrainConfig(steps=10), 160, 10),
        (TrainConfig(samples=100), 100, 7),
        (TrainConfig(epochs=2), 2000, 125),
        (TrainConfig(epochs=0.0001), 1, 1),
    ],
)
def test_length_is_counted_in_samples_and_the_last_step_may_be_partial(train, samples, steps):
    made = plan(train=train)
    assert (made.total_samples, made.total_steps) == (samples, steps)


def test_length_must_be_given_once():
    for train, code in ((TrainConfig(), "plan/no-length"), (TrainConfig(steps=1, epochs=1), "plan/length-twice")):
        with pytest.raises(ConfigError) as refused:
            plan(train=train)
        assert (refused.value.code, refused.value.exit_code) == (code, 2)


@pytest.mark.parametrize(("layer", "warnings"), [("preset big", []), ("run.yaml:3:1", ["plan/length-overruled"])])
def test_a_length_of_a_higher_layer_decides_and_a_written_one_is_not_dropped_in_silence(layer, warnings):
    origins = {"train.steps": layer, "train.epochs": "command line"}
    made = plan(origins=origins, train=TrainConfig(steps=7, epochs=1))
    assert made.total_samples == 1000
    assert [one.code for one in made.warnings] == warnings


def test_epochs_need_a_counted_training_set():
    recipe = Recipe(name="bare", section=Section, task="bare.task", train_samples=lambda _: None)
    with pytest.raises(ConfigError) as refused:
        plan(recipe=recipe, train=TrainConfig(epochs=1))
    assert refused.value.code == "plan/epochs-unknown"


def test_lr_is_scaled_by_the_batch_in_its_own_unit():
    lr = LrConfig(base=0.02, base_batch=524288, scaling="sqrt")
    made = plan(batch=BatchConfig(per_device=8, total=32768, unit="tokens"), lr=lr)
    assert made.lr_factor == pytest.approx(0.25)
    assert rows(made)["lr"] == ("0.005", "0.02 × 0.25")


def test_every_quantity_has_a_row_with_its_origin():
    origins = {"batch.total": "run.yaml:4:3", "batch.per_device": "preset balanced", "train.steps": "command line"}
    made = plan(origins=origins, batch=BatchConfig(per_device=6, total=49152, unit="tokens"))
    assert rows(made) == {
        "device": ("cpu", "no GPU here"),
        "ranks": ("2", "default"),
        "strategy": ("ddp", "auto for 2 ranks"),
        "precision": ("fp32", "auto: fp32 on CPU"),
        "batch-per-device": ("6", "preset balanced"),
        "batch-accumulation": ("2", "24 / (2 × 6)"),
        "batch-samples": ("24", "2 × 6 × 2"),
        "batch-tokens": ("49,152", "run.yaml:4:3"),
        "steps": ("10", "command line"),
        "samples": ("240", "10 × 24"),
        "epochs": ("0.24", "240 / 1,000"),
        "lr-factor": ("1", "lr.base_batch not set or no scaling"),
        "lr": ("0.001", "default"),
        "warmup": ("none", "default"),
        "schedule": ("constant ████████████████", "default"),
        "eval-every": ("at the end", "default"),
        "save-every": ("at the end", "default"),
        "workers": ("0", "default"),
        "threads": ("32", "64 cores / 2 ranks"),
    }


@pytest.mark.parametrize("lang", LANGUAGES)
def test_rows_read_in_both_languages_from_the_stored_record(lang):
    made = plan(machine(eight_h100()), {"train.steps": "command line"}, lr=LrConfig(warmup_samples=100))
    back = Plan.from_json(json.loads(json.dumps(made.to_json())))
    assert back == made
    for row in back.rows:
        words = (label_text(row, lang), value_text(row, lang), origin_text(row, lang))
        assert all(words) and not any("{" in word for word in words)
    assert origin_text(back.rows[8], lang) == {"en": "command line", "zh": "命令行"}[lang]


@pytest.mark.parametrize("code", sorted(TEXTS))
def test_both_languages_have_the_same_placeholders(code):
    text = TEXTS[code]

    def names(words: str) -> set[str]:
        return {name for _, name, _, _ in string.Formatter().parse(words) if name}

    assert text.en and text.zh
    assert names(text.en) == names(text.zh)
    assert names(text.en_hint) == names(text.zh_hint)
    assert bool(text.en_hint) == bool(text.zh_hint)


def test_a_guides_loader_processes_are_shared_out_over_the_ranks():
    made = plan(machine(eight_h100()), parallel=ParallelConfig(all_workers=32))
    assert (made.workers, rows(made)["workers"]) == (4, ("4", "32 / 8"))


def test_loader_processes_of_a_larger_machine_are_cut_to_the_cores_here():
    made = plan(machine(cores=2), parallel=ParallelConfig(all_workers=32, cpus=2))
    assert made.workers == 1
    assert [warning.code for warning in made.warnings] == ["plan/workers-over-cores"]


def test_a_number_a_rank_from_a_higher_layer_beats_one_for_all():
    origins = {"parallel.all_workers": "run.json:3:5", "parallel.workers": "command line"}
    assert plan(origins=origins, parallel=ParallelConfig(all_workers=32, workers=3)).workers == 3


def test_a_floor_written_as_a_rate_is_reached_whatever_the_batch_makes_of_the_rate():
    lr = LrConfig(base=1e-4, base_batch=8, scaling="linear", schedule="cosine", min=1e-6)
    made = plan(batch=BatchConfig(per_device=16), lr=lr)
    end = lr_at(made.total_samples, make_schedule(lr, made))
    assert lr.base * made.lr_factor * end == pytest.approx(1e-6)


def test_a_floor_above_the_rate_is_refused():
    with pytest.raises(ConfigError) as refused:
        plan(lr=LrConfig(base=1e-4, min=1e-3))
    assert refused.value.code == "plan/min-over-rate"


def test_epochs_between_checkpoints_are_shown_as_epochs():
    made = plan(save=SaveConfig(every_epochs=10), eval=EvalConfig(every=5, every_epochs=1))
    assert rows(made)["save-every"][0] == "every 10 epochs"
    assert rows(made)["eval-every"][0] == "every 5 steps and 1 epochs"


def test_offload_and_sums_of_sharded_gradients_are_rows_of_the_plan():
    made = plan(machine(eight_h100()), parallel=ParallelConfig(strategy="fsdp", offload=True))
    assert made.is_offloaded and "offload" in {row.key for row in made.rows}
    assert ("sums" in {row.key for row in made.rows}) == (made.accumulation > 1)
    several = plan(parallel=ParallelConfig(cpus=2, strategy="fsdp"), batch=BatchConfig(per_device=2, accumulation=3))
    assert "sums" in {row.key for row in several.rows}
    alone = plan(parallel=ParallelConfig(cpus=2, strategy="ddp", offload=True))
    assert not alone.is_offloaded and "plan/offload-alone" in [one.code for one in alone.warnings]
