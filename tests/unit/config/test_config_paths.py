"""Paths in a config mean what they mean in a shell."""

from __future__ import annotations

from pathlib import Path

import pytest

from headway.config import ConfigErrors


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


@pytest.mark.parametrize("written", ["~/runs", "$HOME/runs", "${HOME}/runs"])
def test_the_home_is_meant_wherever_a_path_is_written(written, home, words, load):
    assert words(f"out={written}").config.out == f"{home}/runs"
    assert load("a.yaml", f"out: {written!r}\n").config.out == f"{home}/runs"
    assert load("a.toml", f'out = "{written}"\n').config.out == f"{home}/runs"


def test_other_paths_stay_as_they_are_written(words):
    for written in ("runs", "a/b~c/d", "./~x", "/data/$"):
        assert words(f"out={written}").config.out == written


@pytest.mark.parametrize("written", ["~nobody-by-this-name/runs", "a/~/b", "$SCRATCH/runs", "/x/${USER}/runs"])
def test_a_folder_named_like_a_variable_is_refused_unless_it_is_there(written, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigErrors) as refused:
        words(f"out={written}")
    assert [problem.code for problem in refused.value.problems] == ["config/path-literal"]
    if not written.startswith("/"):
        Path(written).mkdir(parents=True)
        assert words(f"out={written}").config.out == written
