"""Processes that a line leaves behind."""

from __future__ import annotations

from headway.diagnosis import ExitStatus
from headway.launch.background import BackgroundWait, name_processes
from headway.launch.listeners import Process


def left(pid: int = 2**22 + 7, cpu_s: float = 0.0, words: bytes = b"train.py\0--lr\0") -> dict[int, Process]:
    """No kernel gives a number as large as this."""
    facts = {"parent": 1, "group": 1, "session": 1, "state": "S", "uid": 0, "own_pid": pid}
    return {pid: Process(pid=pid, command=b"/usr/bin/python\0" + words, cpu_s=cpu_s, **facts)}


def test_what_nothing_has_trained_before_is_waited_for_without_end():
    wait = BackgroundWait(has_trained=False)
    assert [wait.look(left(), (), now) for now in (0.0, 100.0, 10_000.0)] == ["wait"] * 3
    assert wait.look({}, (), 10_001.0) == "over"


def test_an_idle_helper_is_asked_to_go_once_training_is_over():
    wait = BackgroundWait(has_trained=True)
    assert wait.look(left(), (), 0.0) == "wait"
    assert wait.look(left(), (), 29.0) == "wait"
    assert wait.look(left(), (), 31.0) == "ask"
    assert wait.look(left(), (), 33.0) == "wait"
    assert wait.look(left(), (), 37.0) == "over"


def test_one_that_works_or_trains_is_waited_for():
    wait = BackgroundWait(has_trained=True)
    assert [wait.look(left(cpu_s=now / 10), (), now) for now in (0.0, 20.0, 40.0, 60.0)] == ["wait"] * 4
    pid = next(iter(left()))
    assert [wait.look(left(cpu_s=6.0), [pid], now) for now in (100.0, 200.0)] == ["wait"] * 2


def test_a_bad_end_in_the_background_is_kept():
    wait = BackgroundWait(has_trained=False)
    wait.look(left(11), (), 0.0)
    wait.hear_end(11, ExitStatus(code=0))
    wait.hear_end(12, ExitStatus(code=9))  # nobody that was left behind
    assert wait.status is None
    wait.hear_end(11, ExitStatus(code=3))
    assert wait.status == ExitStatus(code=3)


def test_processes_are_named_by_number_and_words():
    assert name_processes(left(11)) == "11 python train.py --lr"
    assert "\x1b" not in name_processes(left(11, words=b"\x1b[2Jx\0"))
    assert "hunter2" not in name_processes(left(11, words=b"--password\0hunter2\0"))
