"""A saving process is killed with SIGKILL: at random times, at every call, at every system call."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fakes import save_loop
from fakes.disks import make_checkpoint
from headway.checkpoint import find_resumable, list_checkpoints, sweep, verify_checkpoint

LOOP = Path(__file__).parent.parent / "fakes" / "save_loop.py"
STRACE = shutil.which("strace")


def environment() -> dict[str, str]:
    tests = str(LOOP.parent.parent)
    source = str(LOOP.parent.parent.parent / "src")
    return {**os.environ, "PYTHONPATH": os.pathsep.join((source, tests))}


def committed(text: str) -> int:
    """Return the newest step that the process called committed."""
    words = [line.split() for line in text.splitlines()]
    return max((int(word[1]) for word in words if word[0] == "checkpoint_committed"), default=0)


def check(root: Path, told: int) -> int:
    """Return the step that resume finds; every listed checkpoint newer than the told one is whole."""
    found = find_resumable(root)
    step = found.manifest.step if found.manifest else 0
    assert step >= told, (step, told, sorted(os.listdir(root)))
    assert not found.skipped
    for info in list_checkpoints(root):
        verify_checkpoint(info.path)
    return step


def test_sigkill_at_random_times_keeps_every_committed_step(tmp_path):
    root, chance, told, kills = tmp_path / "checkpoints", random.Random(11), 0, 0
    for _ in range(12):
        process = subprocess.Popen(
            [sys.executable, LOOP, root, "1000"], stdout=subprocess.PIPE, text=True, env=environment()
        )
        assert process.stdout is not None
        first = process.stdout.readline()
        time.sleep(chance.random() * 0.15)
        process.send_signal(signal.SIGKILL)
        rest = process.communicate()[0]
        kills += process.returncode == -signal.SIGKILL
        told = max(told, committed(first + rest))
        told = check(root, told)
        sweep(root, 1)
        assert not [name for name in os.listdir(root) if "tmp" in name or "trash" in name]
    assert kills == 12 and told >= 12


def save_in_a_fork(root: Path, number: int) -> tuple[int, str]:
    """Save one step in a child that is killed at its call `number`; return its exit code and what it printed."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(writer, 1)
        sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
        try:
            save_loop.main([str(root), "1", str(number)])
        finally:
            os._exit(0)
    os.close(writer)
    with open(reader) as printed:
        text = printed.read()
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), text


def test_sigkill_at_every_call_of_a_save_leaves_the_old_or_the_new(tmp_path):
    deaths, steps = 0, []
    for number in range(1, 1000):
        root = tmp_path / str(number)
        make_checkpoint(root, 1)
        code, text = save_in_a_fork(root, number)
        steps.append(check(root, max(1, committed(text))))
        if "ended" in text:
            break
        assert code == -signal.SIGKILL, (number, code, text)
        deaths += 1
    # Every call of the save was a place of death, until one more than it has: then it ended.
    assert "ended" in text and deaths == number - 1 >= 25
    assert steps == sorted(steps) and set(steps) == {1, 2}


@pytest.mark.skipif(STRACE is None, reason="strace is not installed")
@pytest.mark.parametrize("call", ["openat", "write", "fsync", "rename", "mkdir", "unlink,unlinkat"])
def test_sigkill_at_the_nth_system_call_leaves_the_old_or_the_new(tmp_path, call):
    deaths = 0
    for number in (1, 2, 3, 5, 8, 13):
        root = tmp_path / str(number)
        make_checkpoint(root, 1)
        line = [STRACE, "-f", "-qq", "-o", "/dev/null", "-e", f"trace={call}"]
        line += ["-e", f"inject={call}:signal=KILL:when={number}", sys.executable, LOOP, root, "1"]
        # Only calls on the folder count, not the interpreter's own.
        for place in paths_of(root, 2):
            line[1:1] = ["-P", str(place)]
        ended = subprocess.run(line, capture_output=True, text=True, env=environment(), check=False, timeout=120)
        if "ptrace" in ended.stderr and "Operation not permitted" in ended.stderr:
            pytest.skip("strace may not trace here")
        check(root, max(1, committed(ended.stdout)))
        if ended.returncode == 0:
            break
        assert ended.returncode in (-signal.SIGKILL, 128 + signal.SIGKILL), ended.stderr
        deaths += 1
    assert deaths >= 1, ended.stderr


def paths_of(root: Path, step: int) -> list[Path]:
    temp, final = root / f"step-{step:08d}.tmp-1", root / f"step-{step:08d}"
    files = [f"rank-0000{rank}.{end}" for rank in (0, 1) for end in ("safetensors", "json", "json.new")]
    old = root / "step-00000001"
    inside = [folder / name for folder in (temp, old) for name in (*files, "manifest.json", "manifest.b3")]
    return [root, temp, final, old, root / "latest.new", root / "latest", *inside]


def test_a_file_size_limit_is_told_and_keeps_the_old_checkpoint(tmp_path):
    make_checkpoint(tmp_path, 1)
    line = [sys.executable, LOOP, tmp_path, "1", "fsize=2048"]
    ended = subprocess.run(line, capture_output=True, text=True, env=environment(), check=False, timeout=60)
    assert "checkpoint_failed 2 checkpoint/file-limit" in ended.stdout or "checkpoint/rank-failed" in ended.stdout
    assert "ended" in ended.stdout and check(tmp_path, 1) == 1
    assert sorted(os.listdir(tmp_path)) == ["latest", "step-00000001", "step-00000002.dropped-1"]


@pytest.fixture
def small_disk(tmp_path):
    place = tmp_path / "small"
    place.mkdir()
    line = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(place)]
    if os.geteuid() != 0 or shutil.which("mount") is None or subprocess.run(line, capture_output=True).returncode:
        pytest.skip("a small disk can only be mounted by root")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def test_a_really_full_disk_keeps_the_old_checkpoint_and_saves_again_once_there_is_room(small_disk):
    root = small_disk / "checkpoints"
    make_checkpoint(root, 1)
    filler = small_disk / "filler"
    with filler.open("wb", buffering=0) as file, pytest.raises(OSError, match="No space"):
        while True:
            file.write(bytes(4096))
    line = [sys.executable, LOOP, root, "1"]
    ended = subprocess.run(line, capture_output=True, text=True, env=environment(), check=False, timeout=60)
    assert "checkpoint_failed 2 checkpoint/disk-full" in ended.stdout, ended.stderr
    assert check(root, 1) == 1 and not [name for name in os.listdir(root) if "tmp" in name]
    filler.unlink()
    ended = subprocess.run(line, capture_output=True, text=True, env=environment(), check=False, timeout=60)
    assert "checkpoint_committed 2" in ended.stdout and check(root, 2) == 2
