"""The nanochat guide's numbers at the size trained here."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from headway.errors import UsageError
from headway.guide import GuideLog, level_of, make_project, read_flags
from headway.recipes.nanochat import guide as commands
from headway.recipes.nanochat.guide import CONFIG, choose


@pytest.fixture
def project(tmp_path, monkeypatch):
    make_project("nanochat", tmp_path / "p")
    monkeypatch.chdir(tmp_path / "p")
    return tmp_path / "p"


def made(*argv, config="configs/dual_gpu/conservative.py", is_full=False):
    asked = read_flags(argv, ("config",), takes_settings=True, takes_first="config")
    return choose(asked, Path(config), is_full=is_full)


def test_typed_batch_sizes_are_used_as_samples_and_the_tokens_follow_the_length(project):
    choice = made("--device_batch_size=12", "--total_batch_size=36864")
    assert (choice.config.batch.per_device, choice.config.batch.total) == (12, 24 * 128)
    block = "\n".join(choice.notes)
    assert "total_batch_size: 36864 → 3072" in block and "device_batch_size" not in block


def test_a_value_that_the_small_size_does_not_set_is_listed_with_the_one_that_the_plan_makes(project):
    block = "\n".join(made().notes)
    # 2 CPU ranks, 8 samples each, 128 tokens long.
    assert "total_batch_size: 24576 → 2048  (chosen for the small model)" in block
    balanced = "\n".join(made(config=CONFIG).notes)
    assert "total_batch_size: 49152 → 2048" in balanced and "same number of samples" not in balanced
    typed = "\n".join(made("--total_batch_size=49152").notes)
    assert "total_batch_size: 49152 → 4096  (the same number of samples" in typed


def test_an_edited_config_is_used_and_the_guides_own_numbers_are_listed(project):
    assert made().config.batch.per_device == 8 and "depth: 12 → 4" in "\n".join(made().notes)
    file = project / "configs" / "dual_gpu" / "conservative.py"
    file.write_text(file.read_text().replace("eval_every = 100", "eval_every = 7").replace("depth = 12", "depth = 6"))
    assert (made().config.eval.every, made().config.task.depth) == (7, 6)
    assert made(is_full=True).config.task.max_seq_len == 1536


def test_the_full_size_is_nanochats_own_model_and_length_and_not_a_narrow_one(project):
    for name, depth, steps in (("conservative", 12, 151_040), ("balanced", 16, 136_533)):
        config = made(config=f"configs/dual_gpu/{name}.py", is_full=True).config
        task = config.task
        assert (task.depth, task.width, task.vocab_size, config.train.steps) == (depth, 64 * depth, 65_536, steps)
    (project / "configs" / "dual_gpu" / "mine.py").write_text("depth = 8\n")
    mine = made("--num_iterations=7", config="configs/dual_gpu/mine.py", is_full=True).config
    assert (mine.task.width, mine.task.vocab_size, mine.train.steps) == (512, 65_536, 7)


def test_the_usual_config_is_the_balanced_one(project):
    assert Path(CONFIG).is_file() and Path(CONFIG).stem == "balanced"


def test_a_config_with_a_warning_is_not_called_fine(project, monkeypatch, capsys):
    plan = {"micro_batch": 12, "tokens_per_sample": 2048, "accumulation": 1, "world_size": 2, "batch_samples": 24}
    tight = {"code": "plan/batch-over-epoch", "facts": {"batch": 24, "samples": 6}}
    for warnings, is_fine in (([], True), ([tight], False)):
        told = json.dumps({**plan, "warnings": warnings})
        done = subprocess.CompletedProcess([], 0, stdout=told, stderr="")
        monkeypatch.setattr("headway.guide.numbers.subprocess.run", lambda *_, done=done, **__: done)
        log = GuideLog(project / "log", is_levelled=True)
        assert commands._check_config(log, read_flags([], ()), Path(CONFIG), is_full=False) == 0
        log.close()
        said = capsys.readouterr().out
        assert ("[SUCCESS]" in said, "[WARN]" in said) == (is_fine, not is_fine)


def test_a_stop_on_purpose_is_a_warning_and_no_error():
    assert [level_of(code) for code in (0, 130, 143, 1, 93)] == ["SUCCESS", "WARN", "WARN", "ERROR", "ERROR"]


@pytest.mark.parametrize(
    ("argv", "code"),
    [
        (["--intervall=3"], "guide/odd-flag"),
        (["--interval=soon"], "guide/odd-seconds"),
        (["--interval", "0"], "guide/odd-seconds"),
        (["--once"], "guide/nothing-to-watch"),
    ],
)
def test_what_the_monitor_cannot_do_is_refused_in_words(project, argv, code):
    with pytest.raises(UsageError) as refused:
        commands.monitor(argv)
    assert refused.value.code == code


def test_the_monitor_shows_the_named_log_or_the_newest_at_every_look(project, monkeypatch, capsys):
    seen = []
    monkeypatch.setattr("headway.guide.monitor", lambda *_, **asked: seen.append(asked) or 0)
    (project / "logs").mkdir()
    assert commands.monitor(["--interval", "3", "--log", "logs/train_dual_gpu_20241021_160000.log"]) == 0
    assert "logs/train_dual_gpu_20241021_160000.log" in capsys.readouterr().err
    find_log = seen[0]["find_log"]
    assert (seen[0]["interval_s"], find_log()) == (3.0, None)
    for name in ("train_dual_gpu_20261118_200000.log", "train_dual_gpu_20261118_210000.log"):
        (project / "logs" / name).touch()
        assert find_log().name == name
