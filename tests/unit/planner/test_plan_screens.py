"""`headway check` and `headway plan` as a person or a program sees them."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from dataclasses import replace

import pytest
from click.testing import CliRunner
from rich.cells import cell_len
from rich.console import Console

from fakes.machines import GIB, busy, eight_h100, gpu, lost, machine
from headway.cli.check import check
from headway.cli.plan import plan
from headway.config import LoadedConfig, LrConfig, Recipe, RunConfig, Section, TrainConfig
from headway.errors import CheckError, PlanError
from headway.machine import Framework, MachineReport, judge_machine
from headway.messages import LANGUAGES, language, set_language
from headway.planner import Plan, make_plan
from headway.ui.terminal.machine import show_machine, show_machine_line
from headway.ui.terminal.plan import show_plan


@pytest.fixture(params=LANGUAGES)
def spoken(request):
    before = language()
    set_language(request.param)
    yield request.param
    set_language(before)


def judged(report: MachineReport) -> MachineReport:
    return replace(report, findings=judge_machine(report))


def console() -> tuple[Console, io.StringIO]:
    stream = io.StringIO()
    return Console(file=stream, width=80, highlight=False, no_color=True), stream


def test_the_machine_fits_80_columns_in_both_languages(spoken):
    screen, stream = console()
    troubled = machine((*eight_h100()[:2], busy(gpu(2)), lost(3)), disk_free_bytes=GIB, environment={"RANK": "0"})
    show_machine(judged(troubled), screen)
    lines = stream.getvalue().splitlines()
    assert all(cell_len(line) <= 80 for line in lines if not line.startswith("    "))  # commands are never wrapped
    assert any(line.startswith("! ") and "RANK=0" in line for line in lines)
    assert sum("H100 80GB HBM3 ·" in line for line in lines) == 3
    assert "✓" in stream.getvalue()


def test_the_machine_in_one_line_names_its_gpus(spoken):
    screen, stream = console()
    show_machine_line(machine(eight_h100()), screen)
    assert "8 × H100 80GB HBM3" in stream.getvalue()


def test_the_plan_fits_80_columns_in_both_languages(spoken):
    config = RunConfig(train=TrainConfig(steps=1000), lr=LrConfig(schedule="cosine", warmup_samples=1_000_000))
    recipe = Recipe(name="tiny", section=Section, task="tiny.task")
    loaded = LoadedConfig(config=config, recipe=recipe, origins={})
    made = make_plan(loaded, machine(eight_h100()), recipe)
    screen, stream = console()
    show_plan(made, "tiny", screen)
    lines = stream.getvalue().splitlines()
    assert all(cell_len(line) <= 80 for line in lines)
    assert len([line for line in lines if line.strip()]) >= len(made.rows) + 2
    assert "plan/warmup-too-long" in stream.getvalue()


def test_check_prints_one_json_object():
    done = CliRunner().invoke(check, ["--json"])
    found = json.loads(done.stdout)
    assert found["schema"] == "machine/1"
    assert MachineReport.from_json(found).cores == found["cores"]


@pytest.mark.parametrize("as_json", [False, True])
def test_check_ends_with_3_when_something_stops_a_run(monkeypatch, as_json):
    bare = judged(machine(framework=Framework(python="/opt/python", python_version="3.12.4")))
    monkeypatch.setattr(sys.modules["headway.cli.check"], "find_machine", lambda *args, **more: bare)
    done = CliRunner().invoke(check, ["--json"] if as_json else [])
    if as_json:
        assert done.exit_code == 3
    else:
        assert isinstance(done.exception, CheckError) and done.exception.exit_code == 3
        assert "/opt/python -m pip install" in done.output


def test_plan_prints_one_json_object_that_reads_back():
    done = CliRunner().invoke(plan, ["nanochat", "parallel.gpus=0", "train.steps=5", "--json"])
    found = json.loads(done.stdout)
    assert found["schema"] == "plan/1"
    assert Plan.from_json(found).total_steps == 5
    assert {row["key"]: row["origin"] for row in found["rows"]}["steps"] == "command line"


def test_plan_refuses_the_guides_example_in_the_guides_words():
    words = ["nanochat", "preset=balanced", "--device_batch_size=16", "--total_batch_size=49152", "parallel.gpus=0"]
    done = CliRunner().invoke(plan, words)
    assert isinstance(done.exception, PlanError) and done.exception.exit_code == 4
    assert "--device_batch_size=12 --total_batch_size=49152" in done.exception.hint("en")


@pytest.mark.parametrize("command", [check, plan], ids=["check", "plan"])
def test_help_ends_with_an_example_in_both_languages(command, spoken):
    shown = CliRunner().invoke(command, ["--help"]).output
    assert f"headway {command.name}" in shown.partition({"en": "Example:", "zh": "示例："}[spoken])[2]


def test_neither_stage_nor_command_imports_a_framework():
    code = "import sys, headway.cli.check, headway.cli.plan; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
