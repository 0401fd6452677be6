"""The Atlas guide's commands without training: flags, the rate, ranks started by hand, lines and files."""

import os
import subprocess
import sys
import threading
import uuid

import pytest

from headway import guide
from headway.errors import ConfigError, UsageError
from headway.guide import Asked, Shape, call_roll, is_by_hand, make_project
from headway.guide.command import OF_RUN
from headway.guide.rollcall import read_seat
from headway.recipes.atlas import guide as commands
from headway.recipes.atlas.guide import choose, setup_lines


@pytest.fixture
def project(tmp_path, monkeypatch):
    make_project("atlas", tmp_path / "p")
    monkeypatch.chdir(tmp_path / "p")
    return tmp_path / "p"


def _choose(*words, ranks=8, factor=None, is_full=False):
    flags = {"lr_factor": repr(float(ranks if factor is None else factor))}
    return choose(Asked(flags=flags, words=words), ranks=ranks, is_full=is_full, has_gpu=False)[0]


def _rate(config, ranks):
    total = config.batch.per_device * (config.batch.accumulation or 1) * ranks
    ratio = total / (config.lr.base_batch or total)
    return config.lr.base * {"linear": ratio, "sqrt": ratio**0.5, "none": 1.0}[config.lr.scaling]


@pytest.mark.parametrize(("factor", "rate"), [(8, 8e-4), (8**0.5, 8**0.5 * 1e-4), (1, 1e-4), (3, 3e-4)])
def test_the_rule_somebody_writes_into_train_py_sets_the_rate(project, factor, rate):
    assert _rate(_choose(factor=factor).config, 8) == pytest.approx(rate)


def test_the_rate_is_by_gpus_as_the_guide_says_even_with_accumulation(project):
    config = _choose("training.gradient_accumulation_steps=2").config
    assert (config.batch.per_device, config.batch.accumulation) == (8, 2)
    assert _rate(config, 8) == pytest.approx(8e-4)


def test_a_rule_in_the_file_comes_before_that_of_train_py(project):
    assert _rate(_choose("training.lr_scaling=sqrt").config, 8) == pytest.approx(8**0.5 * 1e-4)


def test_the_small_size_keeps_the_guides_numbers_and_takes_a_small_model(project):
    config = _choose().config
    assert (config.task.fusion_hidden_dim, config.task.image_size, config.task.vggt_checkpoint) == (64, 48, None)
    assert (config.batch.per_device, config.train.epochs, config.train.steps) == (8, 50, None)
    assert (config.lr.warmup_steps, config.eval.every, config.save.every, config.save.every_epochs) == (
        1000,
        1000,
        5000,
        1,
    )
    assert (config.parallel.cpus, config.out) == (8, "runs")


def test_the_full_size_is_the_published_one(project):
    config = _choose(is_full=True).config
    assert (config.task.fusion_hidden_dim, config.task.image_size, config.task.lang_dim) == (1024, 518, 4096)
    assert config.task.vggt_checkpoint == "facebook/VGGT-1B" and not config.task.builtin_encoders


def test_episodes_in_the_project_are_used_and_otherwise_the_scripted_ones(project):
    assert ".cache/headway" in _choose().config.task.data_dir
    (project / "dataset" / "train" / "episode_000000").mkdir(parents=True)
    assert _choose().config.task.data_dir == "./dataset"


def test_going_on_takes_over_what_the_file_says_now_of_length_and_pace(project):
    before, now = _choose().config, _choose("training.num_epochs=60", ranks=4).config
    assert sorted(guide.changed_words(before, now, OF_RUN)) == ["parallel.cpus=4", "train.epochs=60.0"]


def test_a_rate_in_quotes_is_refused_before_anything_starts(project):
    file = project / "atlas" / "configs" / "train_config.yaml"
    file.write_text(file.read_text().replace("1e-4 ", '"1e-4" '))
    with pytest.raises(ConfigError) as refused:
        _choose()
    assert "0.0001" in str(refused.value)


def test_epochs_and_steps_of_a_run_have_the_originals_numbers():
    plan = {"micro_batch": 8, "accumulation": 4, "lr_factor": 8.0}
    shape = Shape(batch=64, in_epoch=132, steps=25, samples=12 * 132, ranks=8, plan=plan)
    ends = [64 * step for step in (1, 2, 3, 25)]
    assert [shape.epoch_of(samples) for samples in ends] == [0, 0, 1, 11]
    assert [shape.ended_epoch(64 * step) for step in (2, 3, 4, 5, 25)] == [None, 0, None, 1, 11]
    whole = Shape(batch=256, in_epoch=132, steps=25, samples=12 * 132, ranks=8, plan=plan)
    lines = setup_lines(whole, 1e-4)
    assert lines[:4] == ["Training setup:", "  Distributed: True", "  World size: 8", "  Rank: 0, Local rank: 0"]
    assert "8 × 8 × 4 = 256" in lines[4] and "effective learning rate: 0.0008" in lines[5]


def test_only_the_held_out_episodes_are_evaluated(project):
    with pytest.raises(UsageError) as refused:
        commands.evaluate(["--checkpoint", "x.pt", "--split", "train"])
    assert refused.value.code == "atlas/guide-split"
    with pytest.raises(UsageError):
        commands.evaluate(["--config", "x.yaml"])


def _told(rank, ranks, port, **more):
    return {"RANK": str(rank), "WORLD_SIZE": str(ranks), "MASTER_ADDR": "localhost", "MASTER_PORT": port, **more}


def _start_all(environments, lead, patience_s=30.0):
    """Answer the roll in one thread each; return each one's code or error."""
    found = [None] * len(environments)

    def answer(place, told):
        try:
            found[place] = call_roll(told, lead, patience_s=patience_s)
        except UsageError as error:
            found[place] = error

    threads = [threading.Thread(target=answer, args=one) for one in enumerate(environments)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return found


def test_ranks_started_by_hand_lead_to_one_run_with_all_gpus(monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    port, asked = uuid.uuid4().hex, []

    def lead(ranks):
        asked.append((ranks, os.environ.get("CUDA_VISIBLE_DEVICES")))
        return 7

    told = [_told(rank, 3, port, CUDA_VISIBLE_DEVICES=str(rank)) for rank in (2, 0, 1)]
    assert _start_all(told, lead) == [7, 7, 7]
    assert asked == [(3, "0,1,2")]


def test_a_rank_that_is_set_once_for_all_is_caught_and_explained():
    port = uuid.uuid4().hex
    first, second = _start_all([_told(0, 8, port), _told(0, 8, port)], lambda ranks: 0)
    error, code = (first, second) if isinstance(first, UsageError) else (second, first)
    assert code == 2 and error.code == "guide/rank-twice"
    assert "torchrun --nproc_per_node=8" in error.hint()


def test_ranks_that_do_not_come_are_named():
    (missing,) = _start_all([_told(0, 3, uuid.uuid4().hex)], lambda ranks: 0, patience_s=0.2)
    assert missing.code == "guide/ranks-missing" and missing.facts["missing"] == "1, 2"
    (alone,) = _start_all([_told(1, 3, uuid.uuid4().hex)], lambda ranks: 0, patience_s=0.2)
    assert alone.code == "guide/no-first"


def test_worlds_of_two_sizes_are_not_mixed():
    port = uuid.uuid4().hex
    found = _start_all([_told(0, 2, port), _told(1, 4, port)], lambda ranks: 0)
    assert found[0].code == "guide/other-world" and found[1] == 2


def test_half_set_and_impossible_ranks_are_refused():
    assert is_by_hand({"RANK": "0"}) and not is_by_hand({"RANK": "0", "TORCHELASTIC_RUN_ID": "none"})
    for told, code in (
        ({"RANK": "0"}, "guide/half-set"),
        ({"RANK": "8", "WORLD_SIZE": "8"}, "guide/rank-range"),
    ):
        with pytest.raises(UsageError) as refused:
            read_seat(told)
        assert refused.value.code == code


def test_the_guides_edit_of_train_py_changes_what_headway_is_told(project, tmp_path):
    script = project / "atlas" / "train.py"
    told = tmp_path / "told"
    text = script.read_text().replace(
        "effective_lr = base_lr * world_size", "effective_lr = base_lr * math.sqrt(world_size)"
    )
    assert "math.sqrt(world_size)\n" in text
    script.write_text(text.replace("os.execv(PYTHON, ", f"open({str(told)!r}, 'w').write(repr("), encoding="utf-8")
    script.write_text(script.read_text().replace("*own])", "*own]))"))
    subprocess.run([sys.executable, str(script), "--config", "x"], env={**os.environ, "WORLD_SIZE": "4"}, check=True)
    assert "--lr-factor=2.0" in told.read_text() and "'--config', 'x'" in told.read_text()


def test_a_world_size_that_is_no_number_is_refused_in_words_and_without_a_traceback(tmp_path):
    make_project("atlas", tmp_path / "p")
    variables = {"PATH": os.environ["PATH"], "LANG": "en_US.UTF-8", "WORLD_SIZE": "two"}
    line = [sys.executable, "atlas/train.py", "--config", "atlas/configs/train_config.yaml"]
    for more in ({"RANK": "0"}, {"LOCAL_RANK": "0"}):
        done = subprocess.run(
            line, cwd=tmp_path / "p", env=variables | more, capture_output=True, text=True, check=False
        )
        assert done.returncode == 2 and "WORLD_SIZE=two" in done.stderr and "Traceback" not in done.stderr
