"""One question to a child interpreter: whatever the child does, there is an answer or a reason."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

import pytest

from headway.ask import Asked, ask

ECHO = "import json, sys\nprint('noise'); print(json.dumps({'got': json.load(sys.stdin)['x']}))"


def asked(source: str, within_s: float | None = 30.0, **facts):
    return ask(sys.executable, {"x": 5}, source=source, within_s=within_s, **facts)


def test_the_last_line_is_the_answer() -> None:
    told = asked(ECHO)
    assert (told.value, told.exit_code) == ({"got": 5}, 0)


def test_a_question_may_be_larger_than_an_argument_or_a_pipe() -> None:
    told = ask(sys.executable, {"x": "a" * 3_000_000}, source=ECHO, within_s=30)
    assert len(told.value["got"]) == 3_000_000


@pytest.mark.parametrize(
    ("source", "why", "code"),
    [
        ("raise KeyError('x')", "KeyError: 'x'", 1),
        ("print('only words')", "only words", 0),
        ("import os; os._exit(3)", "exit code 3", 3),
        ("import os; os.kill(os.getpid(), 9)", "exit code -9", -9),
    ],
)
def test_a_child_without_an_answer_says_why(source: str, why: str, code: int) -> None:
    told = asked(source)
    assert (told.value, told.why, told.exit_code) == (None, why, code)


def test_a_child_that_takes_too_long_is_ended_with_all_it_has_started(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    source = f"""
import os, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
open({str(pid)!r}, "w").write(str(child.pid))
time.sleep(60)
"""
    with Asked(sys.executable, {}, source=source) as child:
        while not (pid.exists() and pid.read_text()):
            time.sleep(0.01)
        assert child.answer(0.05).exit_code is None
    place = Path(f"/proc/{pid.read_text()}/stat")
    for _ in range(500):  # killed; init may take a moment to reap it
        if not place.exists() or place.read_text().rpartition(")")[2].split()[0] == "Z":
            return
        time.sleep(0.01)
    raise AssertionError("it still lives")


def test_a_process_left_behind_with_the_streams_does_not_delay_the_answer() -> None:
    source = f"import subprocess, sys\nsubprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n{ECHO}"
    began = time.monotonic()
    assert asked(source).value == {"got": 5}
    assert time.monotonic() - began < 30


def test_a_file_in_the_working_directory_stands_in_for_no_module(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit('the wrong json')")
    (tmp_path / "headway.py").write_text("raise SystemExit('the wrong headway')")
    monkeypatch.chdir(tmp_path)
    assert asked(ECHO).value == {"got": 5}
    told = ask(sys.executable, {"lang": "en"}, module="headway.machine.first_batch_child", within_s=60)
    assert "the wrong" not in told.errors and "stored" in told.why  # it was found, and misses its question


def test_an_interpreter_older_than_safe_paths_is_asked_too(tmp_path: Path, monkeypatch) -> None:
    old = tmp_path / "python3.8"
    refuse = 'if [ "$1" = -P ]; then echo "Unknown option: -P" >&2; exit 2; fi'
    old.write_text(f'#!/bin/sh\n{refuse}\nexec {sys.executable} "$@"\n')
    old.chmod(0o755)
    (tmp_path / "json.py").write_text("raise SystemExit('the wrong json')")
    monkeypatch.chdir(tmp_path)
    assert ask(str(old), {"x": 5}, source=ECHO, within_s=30).value == {"got": 5}


def test_an_interpreter_that_is_not_there_is_an_os_error() -> None:
    with pytest.raises(OSError, match="No such file"):
        ask("/no/such/python", {}, source=ECHO)


def test_errors_are_heard_line_by_line_and_a_last_line_without_its_end_too() -> None:
    heard: list[bytes] = []
    source = f"import sys\nsys.stderr.write('one\\ntwo\\nthree'); sys.stderr.flush()\n{ECHO}"
    assert asked(source, within_s=None, hear=heard.append).value == {"got": 5}
    assert b"".join(heard).split() == [b"one", b"two", b"three"]


MODULE = """
from headway.ask import take_question

question, send = take_question()
print("printed by the code that was called", flush=True)
send({"got": question["x"], "asker": question["asker"]})
"""


def test_a_module_answers_whatever_the_code_it_calls_prints(tmp_path: Path) -> None:
    (tmp_path / "answering.py").write_text(MODULE)
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    told = ask(sys.executable, {"x": "ü"}, module="answering", within_s=60, env=env)
    assert told.value == {"got": "ü", "asker": os.getpid()} and json.loads(told.said) == told.value
