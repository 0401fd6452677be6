"""`headway check` with another machine in place of this one, and with a config."""

from __future__ import annotations

import json
import os

import test_machine_dumps as samples
from click.testing import CliRunner

from headway.cli.check import check, checkpoint_size
from headway.cli.plan import plan
from headway.errors import CheckError, UsageError


def test_a_recorded_output_stands_in_by_file_and_by_pipe(tmp_path):
    place = tmp_path / "smi.txt"
    place.write_text(samples.LONG)
    by_file = CliRunner().invoke(check, ["--machine", str(place), "--out", str(tmp_path)])
    by_pipe = CliRunner().invoke(check, ["--machine", "-", "--out", str(tmp_path), "--json"], input=samples.LONG)
    assert "Tesla V100-SXM2-32GB" in by_file.output and "[machine/gpu-hot]" in by_file.output
    codes = {finding["code"] for finding in json.loads(by_pipe.output)["findings"]}
    assert {"machine/gpu-hot", "machine/gpu-throttled", "machine/stands-in"} <= codes


def test_what_check_prints_stands_in_for_another_machine(tmp_path):
    first = CliRunner().invoke(check, ["--on", "8xH20", "--out", str(tmp_path), "--json"])
    place = tmp_path / "machine.json"
    place.write_text(first.output)
    again = CliRunner().invoke(check, ["--machine", str(place), "--json"])
    assert len(json.loads(again.output)["gpus"]) == 8
    assert again.exit_code == 0


def test_a_plan_is_made_for_a_machine_that_is_not_here():
    done = CliRunner().invoke(plan, ["nanochat", "train.steps=5", "--on", "8xH20", "--json"])
    found = json.loads(done.stdout)
    assert (found["world_size"], found["precision"]) == (8, "bf16")


def test_two_machines_at_once_and_files_of_nothing_are_refused(tmp_path):
    both = CliRunner().invoke(check, ["--on", "8xH20", "--machine", "x"])
    assert isinstance(both.exception, UsageError)
    empty = tmp_path / "empty.txt"
    empty.write_text("hello\n")
    refused = CliRunner().invoke(check, ["--machine", str(empty)])
    gone = CliRunner().invoke(check, ["--machine", str(tmp_path / "gone")])
    assert isinstance(refused.exception, CheckError) and refused.exception.code == "machine/record-unknown"
    assert isinstance(gone.exception, CheckError) and gone.exception.code == "machine/record-unreadable"


def test_a_config_is_checked_with_its_data(tmp_path):
    done = CliRunner().invoke(check, ["nanochat", "parallel.gpus=9", f"out={tmp_path}", "--json"])
    codes = {finding["code"] for finding in json.loads(done.output)["findings"]}
    assert done.exit_code == 3 and codes & {"machine/too-few-gpus", "machine/torch-cannot-gpu"}


def test_the_size_of_the_next_checkpoint_is_that_of_the_newest(tmp_path):
    assert checkpoint_size(tmp_path) is None
    for step, length in ((10, 5), (20, 700)):
        folder = tmp_path / "run" / "checkpoints" / f"step-{step:08d}"
        folder.mkdir(parents=True)
        (folder / "weights.safetensors").write_bytes(b"x" * length)
        os.utime(folder, (step, step))
    assert checkpoint_size(tmp_path) == 700
