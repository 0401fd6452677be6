"""Processes that a line leaves behind."""

from __future__ import annotations

import os
import socket

from headway.diagnosis import ExitStatus
from headway.launch.background import BackgroundWait, find_helpers, name_processes, read_servers
from headway.launch.listeners import Process, read_processes


def left(pid: int = 2**22 + 7, words: bytes = b"python\0train.py\0--lr\0", **facts) -> dict[int, Process]:
    """No kernel gives a number as large as this."""
    facts = {"parent": 1, "group": 1, "session": 1, "state": "S", "uid": 0, "own_pid": pid, **facts}
    return {pid: Process(pid=pid, command=b"/usr/bin/" + words, **facts)}


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
    assert list(wait.cut) == list(left())


def test_a_slow_upload_is_waited_for():
    wait = BackgroundWait(has_trained=True)
    looks = [wait.look(left(moved_bytes=int(now * 1e6)), (), now) for now in (0.0, 20.0, 40.0, 60.0)]
    assert looks == ["wait"] * 4


def test_what_serves_or_shows_has_no_work_that_its_end_could_cut_off():
    tree = {
        **left(11, b"bash\0start_tensorboard.sh\0"),
        **left(12, b"python\0tensorboard\0", parent=11),
        **left(13, b"nvidia-smi\0dmon\0"),
        **left(14, b"tmux\0new\0"),
        **left(15, b"bash\0", parent=14),
    }
    assert find_helpers(tree, servers={12, 14}) == {11, 12, 13, 14}


def test_a_server_is_known_by_the_socket_it_listens_on():
    with socket.create_server(("127.0.0.1", 0)):
        assert read_servers([os.getpid()]) == {os.getpid()}
    with socket.socket(socket.AF_UNIX) as named:
        named.bind(f"\0headway-test-{os.getpid()}")
        assert read_servers([os.getpid()]) == set()
        named.listen()
        assert read_servers([os.getpid()]) == {os.getpid()}


def test_the_bytes_that_a_process_moves_are_read():
    before = read_processes([os.getpid()])[os.getpid()].moved_bytes
    with open("/dev/zero", "rb", 0) as zeros:
        zeros.read(1 << 20)
    assert read_processes([os.getpid()])[os.getpid()].moved_bytes - before >= 1 << 20


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
    assert "\x1b" not in name_processes(left(11, words=b"python\0\x1b[2Jx\0"))
    assert "hunter2" not in name_processes(left(11, words=b"python\0--password\0hunter2\0"))
