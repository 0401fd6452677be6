"""A project's script works in the project's folder, from wherever it is called."""

from __future__ import annotations

from pathlib import Path

from headway.guide.place import enter_project


def test_from_another_folder_the_project_is_entered_and_typed_paths_stay_what_they_are(tmp_path, monkeypatch, capsys):
    project = tmp_path / "my project 我的"
    (project / "configs").mkdir(parents=True)
    (tmp_path / "mine.yaml").touch()
    (tmp_path / "data" / "set").mkdir(parents=True)
    (tmp_path / "train").mkdir()
    monkeypatch.chdir(tmp_path)
    typed = ["mine.yaml", "--mode", "train", "--data_dir=data/set", "--config=configs/a.yaml", "num=3"]
    words = enter_project([f"--project={project}", *typed])
    here = Path(tmp_path)
    wanted = [str(here / "mine.yaml"), "--mode", "train", f"--data_dir={here / 'data/set'}", *typed[4:]]
    assert (words, Path.cwd()) == (wanted, project)
    assert str(project) in capsys.readouterr().err


def test_words_of_the_script_itself_are_of_the_project(tmp_path, monkeypatch):
    (tmp_path / "p").mkdir()
    (tmp_path / "configs").mkdir()
    (tmp_path / "configs" / "base.yaml").touch()
    monkeypatch.chdir(tmp_path)
    words = enter_project([f"--project={tmp_path / 'p'}", "--config=configs/base.yaml", "--", "--x=configs/base.yaml"])
    assert words == ["--config=configs/base.yaml", "--", f"--x={tmp_path / 'configs/base.yaml'}"]


def test_inside_the_project_nothing_is_changed_or_said(tmp_path, monkeypatch, capsys):
    (tmp_path / "a.yaml").touch()
    monkeypatch.chdir(tmp_path)
    assert enter_project([f"--project={tmp_path}", "a.yaml"]) == ["a.yaml"]
    assert enter_project(["a.yaml"]) == ["a.yaml"] and enter_project([]) == []
    assert capsys.readouterr().err == ""
