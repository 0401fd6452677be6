"""One reader for the arguments of every guide's script."""

from __future__ import annotations

import pytest

from headway.errors import UsageError
from headway.guide import Asked, read_flags, settings_of


def test_flags_are_read_in_both_spellings_and_settings_stay_apart():
    argv = ["--local-rank=3", "--config", "a.yaml", "--mode=predict", "training.num_epochs=2", "--full-size"]
    asked = read_flags(argv, ("config", "mode"), hidden=("local_rank",))
    assert asked.flags == {"local_rank": "3", "config": "a.yaml", "mode": "predict"}
    assert asked.words == ("training.num_epochs=2",) and asked.is_full_wanted


def test_any_other_flag_is_a_setting_where_the_original_takes_settings_so():
    words = ["--train_batch_size=16", "--max_steps", "200", "--record_video", "--image_aug", "task.loss=original"]
    asked = read_flags(words, ("config",), takes_settings=True)
    assert settings_of(asked.words) == {
        "train_batch_size": "16",
        "max_steps": "200",
        "record_video": "true",
        "image_aug": "true",
        "task.loss": "original",
    }


def test_a_first_word_is_the_config_where_the_guide_writes_it_so():
    asked = read_flags(["a.py", "--depth=4"], ("config",), takes_settings=True, takes_first="config")
    assert asked.flags == {"config": "a.py"} and asked.words == ("depth=4",)


@pytest.mark.parametrize(
    ("argv", "code"),
    [(["--epochs", "3"], "guide/odd-flag"), (["--mode"], "guide/no-value"), (["train"], "guide/odd-word")],
)
def test_what_the_original_does_not_have_is_refused(argv, code):
    with pytest.raises(UsageError) as refused:
        read_flags(argv, ("mode",))
    assert refused.value.code == code


def test_a_missing_config_is_named_with_those_that_are_there(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "configs").mkdir()
    (tmp_path / "configs" / "usual.yaml").write_text("")
    with pytest.raises(UsageError) as refused:
        Asked(flags={"config": "configs/nothing.yaml"}).config("configs/usual.yaml")
    assert refused.value.code == "guide/no-config" and "configs/usual.yaml" in refused.value.text()
