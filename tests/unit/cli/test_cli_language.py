"""Which language, which colour, and what is not imported."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import click
import pytest

from headway.cli.main import RUN_VALUES, _without, choose_language
from headway.cli.run import run
from headway.messages import follow_language, language, set_language


@pytest.mark.parametrize(
    ("argv", "environ", "wanted"),
    [
        ([], {}, "en"),
        ([], {"LANG": "zh_CN.UTF-8"}, "zh"),
        ([], {"LANG": "zh_CN.UTF-8", "LC_MESSAGES": "en_US.UTF-8"}, "en"),
        ([], {"LANG": "en_US.UTF-8", "LC_MESSAGES": "zh_TW.UTF-8"}, "zh"),
        ([], {"LANG": "zh_CN.UTF-8", "LC_MESSAGES": "zh_CN", "LC_ALL": "C"}, "en"),
        ([], {"LANG": "en_US.UTF-8", "LC_ALL": "zh_CN.UTF-8"}, "zh"),
        ([], {"LANG": "zh_CN.UTF-8", "LC_ALL": ""}, "zh"),
        (["--lang", "en", "runs"], {"LC_ALL": "zh_CN.UTF-8"}, "en"),
        (["runs", "--lang=zh"], {"LC_ALL": "en_US.UTF-8"}, "zh"),
    ],
)
def test_the_option_wins_over_the_locale_and_the_locale_has_its_order(argv, environ, wanted):
    assert choose_language(argv, environ) == wanted


@pytest.mark.parametrize(
    ("argv", "config", "wanted"),
    [(["train"], "zh", "zh"), (["train"], "auto", "en"), (["train", "--lang", "en"], "zh", "en")],
)
def test_the_config_has_its_say_unless_the_option_is_given(argv, config, wanted):
    set_language("en", is_chosen="--lang" in argv)
    try:
        follow_language(config)
        assert language() == wanted
    finally:
        set_language("en")


def headway(*words, cwd, **environ):
    """Run the real command with a clean environment."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("LC_", "LANG", "HEADWAY"))}
    for name in ("NO_COLOR", "FORCE_COLOR", "TERM", "COLUMNS"):
        kept.pop(name, None)
    return subprocess.run(
        [sys.executable, "-P", "-m", "headway", *words],
        capture_output=True,
        encoding="utf-8",
        env=kept | environ,
        cwd=cwd,
        check=False,
    )


def test_the_command_follows_the_locale(tmp_path):
    said = headway("runs", cwd=tmp_path, LANG="zh_CN.UTF-8").stderr
    assert said.strip() == "runs 中还没有训练；开始训练：headway train"
    assert headway("runs", cwd=tmp_path, LANG="zh_CN.UTF-8", LC_ALL="C.UTF-8").stderr.startswith("no runs in runs")
    assert "no runs" in headway("runs", "--lang", "en", cwd=tmp_path, LC_ALL="zh_CN.UTF-8").stderr


def test_colour_is_off_without_a_terminal_and_when_it_is_not_wanted(tmp_path):
    assert "\x1b[" not in headway("check", cwd=tmp_path).stdout
    assert "\x1b[" in headway("check", "--color", "always", cwd=tmp_path, TERM="xterm").stdout
    assert "\x1b[" in headway("check", "--color", "always", cwd=tmp_path, TERM="xterm", NO_COLOR="1").stdout
    assert "\x1b[" not in headway("check", cwd=tmp_path, TERM="xterm", NO_COLOR="1", FORCE_COLOR="1").stdout
    assert "\x1b[" not in headway("check", "--color", "never", cwd=tmp_path, TERM="xterm", FORCE_COLOR="1").stdout


LIGHT = ["torch", "mindspore", "pydantic", "rich", "numpy", "jinja2", "difflib"]
HEAVY = ["torch", "mindspore"]
PROBE = """
import json, sys
sys.argv = ["headway", *json.loads(sys.argv[1])]
from headway.cli import main
try:
    main()
finally:
    print(json.dumps(sorted({name.partition(".")[0] for name in sys.modules})), file=sys.stderr)
"""


@pytest.mark.parametrize(
    ("words", "unwanted"),
    [
        (["--help"], LIGHT),
        (["--version"], LIGHT),
        (["train", "--help"], HEAVY),
        (["check"], HEAVY),
        (["plan"], HEAVY),
        (["runs"], HEAVY),
        (["config", "show"], HEAVY),
        (["config", "explain", "lr.base"], HEAVY),
    ],
    ids=" ".join,
)
def test_the_control_side_imports_no_framework_and_help_next_to_nothing(tmp_path, words, unwanted):
    done = subprocess.run(
        [sys.executable, "-P", "-c", PROBE, json.dumps(words)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    imported = set(json.loads(done.stderr.splitlines()[-1]))
    assert {"headway", "click"} <= imported
    assert imported.isdisjoint(unwanted)


@pytest.mark.parametrize(
    ("argv", "language", "rest"),
    [
        (["run", "--cpus", "2", "--lang", "zh", "python", "x.py"], "zh", ["run", "--cpus", "2", "python", "x.py"]),
        (["run", "--cpus=2", "--lang=zh", "python", "x.py"], "zh", ["run", "--cpus=2", "python", "x.py"]),
        (["run", "python", "x.py", "--lang", "fr"], "en", ["run", "python", "x.py", "--lang", "fr"]),
        (["run", "--gpus", "2", "run", "--lang", "fr"], "en", ["run", "--gpus", "2", "run", "--lang", "fr"]),
    ],
)
def test_our_own_options_may_follow_an_option_with_a_value_and_the_lines_own_are_left_alone(argv, language, rest):
    assert choose_language(argv, {}) == language
    assert _without(argv, ("--lang", "--color")) == rest


def test_every_option_of_run_that_takes_a_value_is_known():
    taking = {name for one in run.params if isinstance(one, click.Option) and not one.is_flag for name in one.opts}
    assert taking == set(RUN_VALUES)
