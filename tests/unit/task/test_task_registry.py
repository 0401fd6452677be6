import importlib
import subprocess
import sys

import pytest

from headway.cli.main import main
from headway.errors import UsageError
from headway.messages import find_text, say
from headway.task import RECIPES, find_recipe, locate_in_recipe

_PRESET = """
from headway.task import Recipe, Section
from .sizes import WIDTH

class OwnSection(Section):
    width: int = WIDTH

RECIPE = Recipe(name="own", section=OwnSection, task="anything", prepare="sizes")
"""


def _write_folder(folder, preset=_PRESET):
    folder.mkdir()
    (folder / "preset.py").write_text(preset)
    (folder / "task.py").write_text("def make_task(config):\n    return 'made'\n")
    (folder / "sizes.py").write_text("WIDTH = 7\n")
    return folder


def test_every_built_in_name_has_a_recipe_of_that_name():
    assert {name: find_recipe(name).name for name in RECIPES} == {name: name for name in RECIPES}


def test_an_unknown_name_is_refused_with_the_nearest_one():
    with pytest.raises(UsageError) as refused:
        find_recipe("nanochta")
    assert refused.value.code == "recipes/unknown-near"
    assert "nanochat" in refused.value.hint()


@pytest.mark.parametrize("name", ["nope", "x", "run", ""])
def test_a_name_like_no_other_gets_the_list_and_no_guess(name):
    with pytest.raises(UsageError) as refused:
        find_recipe(name or "?")
    assert refused.value.code == "recipes/unknown"
    assert not any(known in refused.value.hint() for known in RECIPES)
    assert all(known in refused.value.text() for known in RECIPES)


def test_a_folder_is_a_recipe_whose_task_imports_by_name(tmp_path):
    recipe = find_recipe(str(_write_folder(tmp_path / "my recipe")))
    assert recipe.section().width == 7
    assert importlib.import_module(recipe.task).make_task(None) == "made"
    assert recipe.prepare is not None and importlib.import_module(recipe.prepare).WIDTH == 7


def test_two_folders_of_one_name_stay_apart(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    first = find_recipe(str(_write_folder(tmp_path / "a" / "own")))
    second = find_recipe(str(_write_folder(tmp_path / "b" / "own", _PRESET.replace("own", "other"))))
    assert (first.name, second.name) == ("own", "other")
    assert first.task != second.task


def test_a_folder_with_an_init_file_runs_it_once(tmp_path):
    folder = _write_folder(tmp_path / "own")
    (folder / "__init__.py").write_text("COUNT = []\n")
    task = find_recipe(str(folder)).task
    package = sys.modules[task.removesuffix(".task")]
    package.COUNT.append(1)
    find_recipe(str(folder))
    assert sys.modules[task.removesuffix(".task")].COUNT == [1]


@pytest.mark.parametrize(
    ("preset", "code"),
    [
        ("RECIPE = 3\n", "recipes/no-record"),
        ("x = 1\n", "recipes/no-record"),
        ("def broken(:\n", "recipes/will-not-load"),
        ("import surely_not_installed\n", "recipes/will-not-load"),
    ],
)
def test_a_folder_that_is_no_recipe_is_refused(tmp_path, preset, code):
    with pytest.raises(UsageError) as refused:
        find_recipe(str(_write_folder(tmp_path / "own", preset)))
    assert refused.value.code == code
    assert "preset.py" in refused.value.text()


def test_a_folder_without_a_task_is_refused_by_the_missing_file(tmp_path):
    (tmp_path / "preset.py").write_text("")
    with pytest.raises(UsageError) as refused:
        find_recipe(str(tmp_path))
    assert refused.value.facts["file"] == "task.py"


def test_ignored_keys_give_reasons_that_exist():
    reasons = {code for name in RECIPES for code in find_recipe(name).ignored.values()}
    assert reasons and all(find_text(code).zh for code in reasons)


_TEXTS = """
from headway.messages import Text

TEXTS = {"own/hello": Text(en="hello from the folder", zh="来自目录的问候")}
"""


def test_the_texts_of_a_folder_are_known_when_it_is_found(tmp_path):
    folder = _write_folder(tmp_path / "own")
    (folder / "texts.py").write_text(_TEXTS)
    find_recipe(str(folder))
    assert (say("own/hello", "en"), say("own/hello", "zh")) == ("hello from the folder", "来自目录的问候")


def test_the_texts_of_a_built_in_recipe_are_there_without_looking_it_up():
    code = "from headway.messages import say; print(say('rdt/heads', 'en', width=5, heads=2))"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert said.stdout.strip() == "a width of 5 cannot be divided evenly into 2 heads"


def test_an_exception_is_the_recipes_where_its_own_line_is_the_last_of_ours(tmp_path):
    folder = _write_folder(tmp_path / "own")
    (folder / "task.py").write_text("import json\n\ndef make_task(config):\n    return json.loads(config)\n")
    with pytest.raises(ValueError) as raised:
        importlib.import_module(find_recipe(str(folder)).task).make_task("{")
    assert locate_in_recipe(raised.value) == (str(folder / "task.py"), 4)
    with pytest.raises(UsageError) as ours:
        find_recipe("no such recipe")
    assert locate_in_recipe(ours.value) is None


def test_a_line_that_python_cannot_read_is_the_recipes_too(tmp_path):
    folder = _write_folder(tmp_path / "own")
    (folder / "task.py").write_text("import json\n\ndef make_task(config:\n")
    with pytest.raises(SyntaxError) as raised:
        importlib.import_module(find_recipe(str(folder)).task)
    assert locate_in_recipe(raised.value) == (str(folder / "task.py"), 3)


def test_a_recipes_own_fault_is_never_called_a_bug_of_headway(tmp_path, capfd):
    preset = _PRESET.replace("prepare=", "train_samples=lambda section: [][section.width], prepare=")
    folder = _write_folder(tmp_path / "own", preset)
    with pytest.raises(SystemExit, match="2"):
        main(["plan", str(folder), "parallel.gpus=0", "--no-trace", "--lang", "en"])
    said = capfd.readouterr().err
    assert "cli/bug" not in said
    assert f"the recipe's code failed at {folder / 'preset.py'}, line 8: IndexError" in said
