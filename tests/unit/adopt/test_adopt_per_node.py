"""An Accelerate line on several nodes: its launcher once per node, each told its place."""

from __future__ import annotations

import pytest

from headway.adopt import read_line
from headway.errors import UsageError


@pytest.fixture
def accelerate(tmp_path):
    program = tmp_path / "accelerate"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    return {"PATH": str(tmp_path)}


def test_the_line_is_started_on_each_node_with_its_number(accelerate):
    line = ("accelerate", "launch", "--num_processes", "4", "train.py", "--cost", "$5")
    read = read_line(line, environ=accelerate, num_nodes=2)
    assert read.spans_nodes and not read.is_native
    assert read.argv[1:] == (
        *("launch", "--num_processes", "4", "--num_machines=2", "--machine_rank=${node}"),
        *("--main_process_ip=${address}", "--main_process_port=${port}", "--num_processes=8"),
        *("train.py", "--cost", "$$5"),
    )


def test_a_count_over_all_nodes_stays(accelerate):
    line = ("accelerate", "launch", "--num_machines=2", "--num_processes=8", "-m", "pkg.train", "x")
    argv = read_line(line, environ=accelerate, num_nodes=2).argv
    assert argv[-3:] == ("--num_processes=8", "pkg.train", "x")


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("--num_machines=3", "--num_processes=6", "train.py"), "nodes/line-nodes"),
        (("train.py",), "nodes/line-processes"),
    ],
)
def test_what_every_node_must_know_is_asked_for(accelerate, words, code):
    with pytest.raises(UsageError) as refused:
        read_line(("accelerate", "launch", *words), environ=accelerate, num_nodes=2)
    assert refused.value.code == code


def test_on_one_node_the_line_stays_as_it_is(accelerate):
    read = read_line(("accelerate", "launch", "train.py"), environ=accelerate)
    assert not read.spans_nodes and read.argv[1:] == ("launch", "train.py")
