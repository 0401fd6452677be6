import sys
from pathlib import Path

import pytest

from headway.config import load_config
from headway.errors import CheckError
from headway.machine import (
    Finding,
    MindSpore,
    check_mindspore,
    inspect_machine,
    judge_data,
    mindspore_target,
    read_mindspore,
    try_mindspore,
    with_findings,
    with_mindspore,
)
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


def test_check_speaks_of_mindspore_instead_of_torch(tmp_path):
    report = with_findings(inspect_machine(tmp_path), [Finding(code="machine/torch-missing", level="stop")])
    ready = with_mindspore(report, MindSpore("python3", "2.10.0", "1.26.4"))
    assert "mindspore/ready" in {finding.code for finding in ready.findings}
    assert "machine/torch-missing" not in {finding.code for finding in ready.findings}
    for found in (MindSpore("python3", None, "1.26.4"), MindSpore("python3", "2.10.0", "2.4.6")):
        assert not with_mindspore(report, found).can_run


def test_an_interpreter_that_cannot_compute_is_a_finding_with_its_last_words(tmp_path):
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho 'no such device' >&2\nexit 1\n")
    python.chmod(0o755)
    finding = try_mindspore(MindSpore(str(python), "2.10.0", "1.26.4"), "GPU")
    assert (finding.code, finding.level, finding.facts["why"]) == ("mindspore/device", "stop", "no such device")


def test_the_device_is_what_was_asked_for_or_what_there_is(tmp_path):
    report = inspect_machine(tmp_path)
    assert mindspore_target(report, "Ascend") == "Ascend"
    assert mindspore_target(report, "auto") == ("GPU" if report.gpus else "Ascend" if report.npus else "CPU")


def test_data_that_the_start_will_make_is_not_missed(tmp_path):
    place = f"task.data_dir={Path(tmp_path / 'none')}"
    made = load_config(recipe=RECIPE, overrides=[place, "task.synthetic=true"]).config
    real = load_config(recipe=RECIPE, overrides=[place, "task.synthetic=false"]).config
    assert list(judge_data(RECIPE, made.task)) == []
    assert [finding.code for finding in judge_data(RECIPE, real.task)] == ["machine/data-absent"]
