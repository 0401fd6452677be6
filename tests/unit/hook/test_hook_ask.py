"""Who may ask a rank for its flight recorder: its own user and root, and nobody often (issue 10, item 11)."""

import importlib.util
import os
import socket
import time
from pathlib import Path

import pytest

import headway.launch.hook

SITE = Path(headway.launch.hook.__file__).parent / "site" / "_headway_hook.py"


@pytest.fixture
def hook():
    spec = importlib.util.spec_from_file_location("_hook_asked", SITE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def asked(hook):
    ask = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    ask.setsockopt(socket.SOL_SOCKET, hook.SO_PASSCRED, 1)
    name = f"\0headway-test-ask-{os.getpid()}-{time.monotonic_ns()}"
    ask.bind(name)
    yield ask, name
    ask.close()


def send(name, uid, times=1):
    pid = os.fork()
    if pid == 0:
        if uid is not None:
            os.setgid(uid)
            os.setuid(uid)
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as ask:
            ask.setblocking(False)
            for _ in range(times):
                try:
                    ask.sendto(b"flight", name)
                except BlockingIOError:
                    break
        os._exit(0)
    os.waitpid(pid, 0)


def test_our_own_user_is_answered(hook, asked):
    ask, name = asked
    send(name, None)
    assert hook.is_asked(ask) is True


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_another_user_is_not_answered(hook, asked):
    ask, name = asked
    send(name, 65534, times=5)
    if os.getuid() == 0:
        assert hook.is_asked(ask) is False
    send(name, 65534, times=3)
    send(name, None)
    assert hook.is_asked(ask) is True


def test_a_flood_is_read_at_once_and_then_not_for_a_while(hook, asked, monkeypatch):
    ask, name = asked
    answered = []
    waits = []

    def sleep(seconds):
        waits.append(seconds)
        if len(waits) == 3:
            raise SystemExit
        send(name, None, times=9)

    monkeypatch.setattr(hook, "tell_flight", answered.append)
    monkeypatch.setattr(hook.time, "sleep", sleep)
    send(name, None, times=9)
    with pytest.raises(SystemExit):
        hook.answer(ask, None)
    assert len(answered) == 3 and waits == [hook.ANSWER_EVERY_S] * 3
