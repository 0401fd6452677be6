"""Who hears a signal among the processes of a line."""

from __future__ import annotations

import signal

import pytest

from headway.launch.listeners import Process, choose_polite, find_listeners

TERM, INT, USR1, HUP = signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGHUP


def mask(*signums: int) -> int:
    return sum(1 << (signum - 1) for signum in signums)


def process(pid: int, parent: int, command: str, *catches: int, **facts: object) -> Process:
    base = {"group": 1, "session": 1, "state": "S", "uid": 0, "own_pid": pid, "command": command.encode() + b"\0"}
    return Process(pid=pid, parent=parent, catches=mask(*catches), **{**base, **facts})


def listeners(signum: int, *processes: Process, helpers: tuple[tuple[int, int], ...] = ()) -> list[int]:
    return find_listeners({one.pid: one for one in processes}, [1], signum, helpers)


SHELL = process(1, 0, "bash\0x.sh")
TRAINER = process(2, 1, "python\0train.py", INT, TERM, USR1, HUP)


@pytest.mark.parametrize("signum", [TERM, INT])
def test_a_stop_reaches_the_training_inside_a_shell_script(signum):
    assert listeners(signum, SHELL, TRAINER) == [1, 2]


@pytest.mark.parametrize("signum", [USR1, HUP])
def test_a_wish_goes_only_to_those_who_would_not_die_of_it(signum):
    assert listeners(signum, SHELL, TRAINER, process(3, 1, "python\0other.py", INT)) == [2]


def test_what_prints_the_output_lives_as_long_as_what_it_reads():
    assert listeners(TERM, SHELL, TRAINER, process(3, 1, "tee\0x.log")) == [1, 2]


@pytest.mark.parametrize("signum", [TERM, INT])
def test_a_data_loaders_process_is_left_alone(signum):
    top = process(1, 0, "python\0train.py", INT, TERM)
    worker = process(2, 1, "python\0train.py", INT, TERM)
    assert listeners(signum, top, worker, helpers=((2, 1),)) == [1]
    assert listeners(signum, top, worker) == [1, 2]  # a rank that the program has forked


def test_a_launcher_passes_it_on_by_itself():
    launcher = process(1, 0, "torchrun\0train.py", INT, TERM, HUP)
    rank = process(2, 1, "python\0train.py", INT, TERM, HUP, group=2, session=2)
    assert listeners(TERM, launcher, rank) == [1]
    assert listeners(INT, launcher, rank) == [1]
    assert listeners(HUP, launcher, rank) == [2]  # it would end its ranks, and nothing ends with a terminal


def test_a_shell_that_waits_for_a_command_in_front_cannot_pass_anything_on():
    trapping = process(1, 0, "bash\0x.sh", TERM)
    assert listeners(TERM, trapping, TRAINER) == [1, 2]
    behind = process(2, 1, "python\0train.py", TERM, ignores=mask(INT, signal.SIGQUIT))
    assert listeners(TERM, trapping, behind) == [1]


def test_a_save_is_not_torn_by_a_trap_that_passes_ctrl_c_on():
    passing = process(1, 0, "bash\0x.sh", INT, TERM, script=b"trap 'kill -INT $child' INT\npython train.py & child=$!")
    behind = process(2, 1, "python\0train.py", INT, TERM, ignores=mask(signal.SIGQUIT))
    assert listeners(INT, passing, behind) == [1]
    assert listeners(INT, passing, TRAINER) == [1, 2]  # in front of the shell, whose trap waits for its end
    silent = process(1, 0, "bash\0x.sh", INT, TERM, script=b"trap 'echo bye' INT\npython train.py & wait")
    assert listeners(INT, silent, behind) == [1, 2]


def test_a_trap_on_exit_is_no_trap_on_everything_it_catches():
    catches = (*(HUP, INT, TERM, USR1), signal.SIGVTALRM, signal.SIGXCPU)
    on_exit = process(1, 0, "bash\0x.sh", *catches, script=b"trap clean EXIT\npython train.py")
    assert listeners(USR1, on_exit, TRAINER) == [2]
    on_both = process(1, 0, "bash\0x.sh", *catches, script=b"trap clean EXIT; trap more USR1\npython train.py")
    assert listeners(USR1, on_both, TRAINER) == [1, 2]


def test_ranks_that_save_are_asked_before_the_program_that_would_take_them_with_it():
    top = process(1, 0, "python\0train.py", INT)
    ranks = [process(pid, 1, "python\0-c\0--multiprocessing-fork", INT, TERM) for pid in (2, 3)]
    assert listeners(TERM, top, *ranks) == [2, 3]
    assert listeners(TERM, top) == [1]


def test_timeout_would_ask_twice_so_its_command_is_asked():
    assert listeners(TERM, process(1, 0, "timeout\09\0python", TERM), process(2, 1, "python\0train.py", TERM)) == [2]


def test_a_stop_by_command_uses_the_signal_that_a_program_has_a_handler_for():
    shell, plain = process(1, 0, "bash\0x.sh", TERM), process(2, 1, "python\0train.py", INT)
    assert choose_polite({1: shell, 2: plain}) == INT
    assert choose_polite({1: shell, 2: TRAINER}) == TERM
    worker = process(3, 2, "python\0train.py", INT, TERM)
    assert choose_polite({1: shell, 2: plain, 3: worker}, {(3, 2)}) == INT
