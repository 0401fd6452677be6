"""The guard of tests/conftest.py sees everything a test can leave behind, and what it can put back is put back."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import pytest

from fakes import leaks
from fakes.leaks import no_leaks


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setattr(leaks, "PATIENCE_S", 0.1)


def leaves(what: str):
    return pytest.raises(AssertionError, match=what)


def test_a_variable_is_told_and_put_back(monkeypatch):
    monkeypatch.setenv("LEAK_CHANGED", "old")
    monkeypatch.setenv("LEAK_DELETED", "old")
    with leaves("LEAK_CHANGED is 'new', was 'old'; .*LEAK_DELETED is None.*LEAK_MADE is 'new', was None"), no_leaks():
        os.environ["LEAK_CHANGED"] = os.environ["LEAK_MADE"] = "new"
        del os.environ["LEAK_DELETED"]
    assert (os.environ["LEAK_CHANGED"], os.environ["LEAK_DELETED"]) == ("old", "old")
    assert "LEAK_MADE" not in os.environ


def test_the_current_folder_is_told_and_put_back(tmp_path):
    before = os.getcwd()
    with leaves(f"current folder is {tmp_path}"), no_leaks():
        os.chdir(tmp_path)
    assert os.getcwd() == before


def test_a_thread_is_told():
    end = threading.Event()
    thread = threading.Thread(target=end.wait, name="left alone")
    try:
        with leaves("thread 'left alone' lives on"), no_leaks():
            thread.start()
    finally:
        end.set()
        thread.join()


def test_a_child_and_a_grandchild_that_lost_its_parent_are_told(tmp_path):
    lines = (
        "import subprocess, sys",
        "sleep = [sys.executable, '-c', 'import time; time.sleep(60)']",
        "print(subprocess.Popen(sleep, stdout=subprocess.DEVNULL).pid)",
    )
    with leaves(rf"lives on in {tmp_path}.*time.sleep"), no_leaks(own=lambda: tmp_path):
        command = [sys.executable, "-c", "\n".join(lines)]
        done = subprocess.run(command, cwd=tmp_path, stdout=subprocess.PIPE, check=True, text=True)
    os.kill(int(done.stdout), 9)
    with leaves("process .* lives on: .*time.sleep"), no_leaks():
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    child.kill()
    child.wait()


def test_a_file_is_told(tmp_path):
    with leaves(f"file {tmp_path}/here was made outside"), no_leaks(tmp_path):
        (tmp_path / "here").touch()


def test_what_ends_in_time_or_was_there_before_is_no_leak(tmp_path):
    (tmp_path / "old").touch()
    with no_leaks(tmp_path, own=lambda: tmp_path):
        threading.Thread(target=lambda: None).start()
        subprocess.run(["true"], cwd=tmp_path, check=True)
        (tmp_path / "new").touch()
        (tmp_path / "new").unlink()
