"""`--help` of every project script explains it and starts nothing; every project has a README in both languages."""

from __future__ import annotations

import importlib
import re
from importlib.resources import files
from pathlib import Path

import pytest

from headway.guide import make_project, run_command
from headway.messages import set_language
from headway.task import RECIPES

_ENTRY = re.compile(r'guide"?,? "?(\w+)"?,? "?(\w+)')


def entries(recipe):
    """Return the entries that the project's scripts call."""
    root = Path(str(files("headway.recipes") / recipe / "project"))
    texts = [path.read_text() for path in root.rglob("*") if path.suffix in (".sh", ".py")]
    found = {match[2] for text in texts for match in _ENTRY.finditer(text) if match[1] == recipe}
    return sorted(found - {"where_mindspore"})


@pytest.mark.parametrize("recipe", sorted(RECIPES))
def test_help_of_every_script_explains_that_script_and_starts_nothing(recipe, tmp_path, monkeypatch, capsys):
    make_project(recipe, tmp_path / "p")
    monkeypatch.chdir(tmp_path / "p")
    before = sorted(tmp_path.rglob("*"))
    commands = importlib.import_module(f"headway.recipes.{recipe}.guide")
    assert entries(recipe) and sorted(commands.HELP) == entries(recipe)
    for entry in entries(recipe):
        for language, head in (("en", "usage: "), ("zh", "用法：")):
            set_language(language)
            assert run_command(recipe, entry, ["--config=x", "--help"]) == 0
            said = capsys.readouterr().out
            assert said.startswith(head) and ("--full-size" in said) == (entry != "monitor_training")
    set_language("en")
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("recipe", sorted(RECIPES))
def test_every_project_has_a_readme_chinese_first_that_names_its_scripts_and_places(recipe, tmp_path):
    made = make_project(recipe, tmp_path / "p")
    text = (tmp_path / "p" / "README.md").read_text(encoding="utf-8")
    chinese, _, english = text.partition("\n---\n")
    assert "指南" in chinese and "word for word" in english
    for path in made:
        if path.suffix in (".sh", ".py") and "configs" not in path.parts and path.name != "__init__.py":
            assert path.name in chinese, path.name
    for wanted in ("结果在哪里", "与指南不同之处", "真实数据", "停止与继续", "离开 Headway", "--full-size"):
        assert wanted in chinese


def test_the_guides_path_of_the_logs_works_whatever_the_folder_is_called(tmp_path):
    make_project("tfnet", tmp_path / "whatever")
    (tmp_path / "whatever" / "logs_gpu").mkdir()
    (tmp_path / "whatever" / "logs_gpu" / "gpu_training_1.log").write_text("hello")
    assert (tmp_path / "whatever" / "training" / "logs_gpu" / "gpu_training_1.log").read_text() == "hello"
