"""Records that are damaged, and an end that goes wrong (issue 10, items 6, 17 and 24): a clear word, the right code."""

import io
import json
import os
import shutil

import pytest

from fakes.run_fixture import write_run
from headway.cli.finish import say_ending
from headway.cli.main import main
from headway.errors import UsageError
from headway.launch import Outcome
from headway.planner import Plan
from headway.telemetry import EventLog, read_events, require_record

NAME = "20261118-000000_tiny_0001"


def spoil(path, way):
    if way in ("folder", "fifo", "zero", "gone"):
        path.unlink()
        if way != "gone":
            {"folder": path.mkdir, "fifo": lambda: os.mkfifo(path), "zero": lambda: path.symlink_to("/dev/zero")}[way]()
        return
    texts = {
        "torn": path.read_text()[:50],
        "deep": "[" * 200_000,
        "list": "[]",
        "null": "null",
        "huge": '{"world_size": 1' + "0" * 5000 + "}",
        "wrong": json.dumps({"world_size": {"a": []}}),
    }
    path.write_text(texts[way])


@pytest.mark.parametrize("way", ["torn", "deep", "list", "null", "huge", "wrong", "folder", "fifo", "zero", "gone"])
def test_a_record_that_is_needed_is_refused_by_name(tmp_path, way):
    run = write_run(tmp_path / NAME)
    spoil(run.plan, way)
    with pytest.raises(UsageError) as refused:
        require_record(run.plan, Plan.from_json)
    assert refused.value.code.startswith("telemetry/record-") and str(run.plan) in refused.value.text()


@pytest.mark.parametrize(
    "file", ["job.json", "plan.json", "machine.json", "command.json", "events.jsonl", "ranks/0/metrics.jsonl"]
)
@pytest.mark.parametrize("way", ["torn", "wrong", "folder", "fifo", "zero"])
def test_every_viewer_copes_with_every_damaged_file(capsys, tmp_path, monkeypatch, file, way):
    monkeypatch.chdir(tmp_path)
    run = write_run(tmp_path / "runs" / NAME)
    spoil(run.root / file, way)
    for words in (("runs",), ("watch", NAME, "--once"), ("report", NAME), ("export", NAME)):
        with pytest.raises(SystemExit) as end:
            main(list(words))
        said = capsys.readouterr()
        assert end.value.code in (0, 2, 3, 5), (words, said.err)


@pytest.mark.parametrize("state", ["done", "failed"])
def test_nothing_after_the_end_changes_the_outcome(tmp_path, monkeypatch, state):
    run = write_run(tmp_path / NAME)
    shutil.rmtree(run.root)
    stream = io.StringIO()
    outcome = Outcome(
        state=state, exit_code=0, steps=3, attempts=1, why="launch/done", facts={"run": NAME}, incident=None
    )
    say_ending(run, outcome, stream)
    assert "the report could not be written" in stream.getvalue()


def test_the_history_can_be_ended_on_a_full_disk(tmp_path, monkeypatch):
    log = EventLog(tmp_path / "events.jsonl")
    log.append("run_started")
    blocks = (tmp_path / "events.jsonl").stat().st_blocks * 512
    if blocks < 100_000:
        pytest.skip("this file system reserves nothing")
    assert (tmp_path / "events.jsonl").stat().st_size < 1000
    log.append("run_ended", state="done")
    log.close()
    assert [event["kind"] for event in read_events(tmp_path / "events.jsonl")] == ["run_started", "run_ended"]


@pytest.mark.parametrize(
    "words", [("adopt", "/proc/kmsg"), ("adopt", "{fifo}"), ("plan", "--machine", "{fifo}"), ("guide", "x", "y")]
)
def test_what_is_no_file_is_refused_at_once(capsys, tmp_path, monkeypatch, words):
    monkeypatch.chdir(tmp_path)
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(SystemExit) as end:
        main([word.format(fifo=tmp_path / "fifo") for word in words])
    assert end.value.code in (2, 3) and "error:" in capsys.readouterr().err


def test_a_name_that_is_no_folder_is_told_as_such(capsys):
    with pytest.raises(SystemExit):
        main(["config", "show", "name=a/b"])
    assert "becomes part of a folder name" in capsys.readouterr().err
