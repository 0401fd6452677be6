import sys

import pytest

from headway.config import load_config
from headway.errors import CheckError
from headway.machine import MindSpore, check_mindspore, read_mindspore
from headway.recipes.tfnet.preset import RECIPE


def test_without_mindspore_the_error_names_the_install_line_and_torch():
    with pytest.raises(CheckError) as refused:
        check_mindspore(MindSpore("/usr/bin/python3", None, "2.1.0"))
    assert refused.value.code == "mindspore/missing"
    hint = refused.value.hint("en")
    assert "/usr/bin/python3 -m pip install" in hint and "task.framework=torch" in hint and "env.python" in hint


def test_numpy_2_beside_mindspore_is_refused_before_a_rank_starts():
    with pytest.raises(CheckError) as refused:
        check_mindspore(MindSpore("python3", "2.10.0", "2.4.6"))
    assert refused.value.code == "mindspore/numpy"
    check_mindspore(MindSpore("python3", "2.10.0", "1.26.4"))


def test_an_interpreter_is_asked_without_importing_anything():
    found = read_mindspore(sys.executable)
    assert found.numpy is not None and found.python == sys.executable


def test_an_interpreter_that_cannot_run_is_named():
    with pytest.raises(CheckError) as refused:
        read_mindspore("/no/such/python")
    assert refused.value.code == "machine/python-broken"


@pytest.mark.parametrize("name", ["mindspore", "torch"])
def test_the_section_says_which_framework_trains(name):
    config = load_config(recipe=RECIPE, overrides=[f"task.framework={name}"]).config
    assert RECIPE.framework is not None and RECIPE.framework(config.task) == name
    assert RECIPE.task_mindspore == "headway.recipes.tfnet.task_mindspore"
