"""`headway new --recipe`: what it writes loads, passes its own tests and refuses what it cannot be."""

import ast
import os
import re
import subprocess
import sys

import pytest

from fakes.engine_run import make_run, read_tensors
from headway.engine.loop import train
from headway.errors import UsageError
from headway.messages import set_language
from headway.task import find_recipe, make_recipe, plan_recipe
from headway.telemetry import RunDir


def test_the_new_recipe_loads_and_its_own_tests_pass(tmp_path):
    folder = tmp_path / "my arm"
    written = make_recipe("my_arm", folder)
    assert sorted(path.name for path in written) == ["preset.py", "task.py", "test_my_arm.py"]
    assert all("mytask" not in path.read_text().lower() for path in written)
    recipe = find_recipe(str(folder))
    assert (recipe.name, recipe.section.__name__) == ("my_arm", "MyArmSection")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:randomly", "."]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0 and "3 passed" in done.stdout, done.stdout


def code_of(text):
    """Return a module without its docstrings, as one text; comments are not in it anyway."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(body := getattr(node, "body", None), list):
            node.body = [one for one in body if not (isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant))]
    return ast.dump(tree)


def test_in_chinese_the_same_code_has_chinese_comments(tmp_path):
    english = plan_recipe("mytask", tmp_path)
    set_language("zh")
    chinese = plan_recipe("mytask", tmp_path)
    set_language("en")
    assert len(english) == 3 and list(chinese) == list(english)
    assert [code_of(text) for text in chinese.values()] == [code_of(text) for text in english.values()]
    remarks = [re.findall(r'#.*|"""(?:.|\n)*?"""', text) for text in chinese.values()]
    assert [one for some in remarks for one in some if not re.search("[\u4e00-\u9fff]|# headway train", one)] == []


@pytest.mark.parametrize("name", ["nanochat", "My-Task", "2nd", ""])
def test_a_name_that_cannot_be_is_refused(tmp_path, name):
    with pytest.raises(UsageError) as refused:
        plan_recipe(name, tmp_path / "new")
    assert refused.value.code == "recipes/name-not-free" and not (tmp_path / "new").exists()


def test_files_of_the_user_are_never_overwritten(tmp_path):
    (tmp_path / "task.py").write_text("mine")
    with pytest.raises(UsageError) as refused:
        make_recipe("mytask", tmp_path)
    assert refused.value.code == "recipes/folder-not-empty"
    assert (tmp_path / "task.py").read_text() == "mine"


def test_its_ordinary_dataset_resumes_exactly(tmp_path):
    make_recipe("mytask", tmp_path / "mytask")
    words = (f"recipe={tmp_path / 'mytask'}", "train.steps=12", "optimizer.name=sgd", "parallel.workers=1")
    train(make_run(tmp_path / "whole", *words))
    part = make_run(tmp_path / "parts", *words)
    part.is_stop_wanted = lambda: part.progress.step >= 5
    train(part)
    part.close_data()  # a stopped rank ends with its process, which this one outlives
    rest = make_run(tmp_path / "parts", *words, attempt=2)
    assert 0 < rest.progress.step < 12
    train(rest)
    assert read_tensors(RunDir(tmp_path / "whole")) == read_tensors(RunDir(tmp_path / "parts"))
