"""What the system refuses on a user's path is told as that: no traceback, no talk of a bug, in both languages."""

from __future__ import annotations

import errno
import json
import math
import os
import subprocess
import sys
import tracemalloc
from pathlib import Path

import pytest

from fakes.run_fixture import write_run
from headway.cli.bilingual import echo_json
from headway.cli.main import main, root
from headway.cli.os_error import refuse_os_error
from headway.messages import set_language
from headway.telemetry import read_json


@pytest.fixture(autouse=True)
def in_english():
    yield
    set_language("en")  # a command sets it for its process, and the next test is in the same one


def told(words: list[str], capsys) -> tuple[int, str]:
    with pytest.raises(SystemExit) as end:
        main(words)
    return int(end.value.code or 0), capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        ["report", "--to", "{file}/sub/r.html"],
        ["export", "--to", "{file}/sub"],
        ["new", "nanochat", "{file}/sub/project"],
        ["run", "--out", "{file}/sub", "true"],
        ["run", "--out", "/proc/nowhere", "true"],
        ["report", "--to", "/proc/nowhere/r.html"],
    ],
    ids=lambda words: words[0] + words[-1],
)
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_target_that_cannot_be_written_is_named(tmp_path: Path, monkeypatch, capsys, words, lang: str) -> None:
    monkeypatch.chdir(tmp_path)
    write_run(tmp_path / "runs" / "20260101-000000_a_0000")
    (tmp_path / "file").write_text("x")
    given = [word.replace("{file}", str(tmp_path / "file")) for word in words]
    code, text = told([*given[:1], *(["--lang", lang] if words[0] != "run" else []), *given[1:]], capsys)
    assert code in (2, 3)
    assert "Traceback" not in text and "cli/path-" in text


def test_a_full_disk_and_a_file_that_is_being_written_are_told_in_the_users_words() -> None:
    full = refuse_os_error(OSError(errno.ENOSPC, "No space left on device"))
    assert full is not None and full.code == "cli/disk-full"
    temp = refuse_os_error(PermissionError(errno.EACCES, "denied", "/x/.report.html.4711"))
    assert temp is not None and temp.facts["path"] == "/x/report.html"
    assert refuse_os_error(OSError(errno.ECONNRESET, "reset")) is None


def test_a_deleted_working_directory_is_said_to_be_gone(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    words = f"cd {gone} && rmdir {gone} && exec {sys.executable} -P -m headway run true"
    done = subprocess.run(["sh", "-c", words], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "cli/no-working-directory" in done.stderr and "Traceback" not in done.stderr


def test_adopt_reads_a_pipe_that_is_not_utf8(tmp_path: Path) -> None:
    text = "# 训练\ntorchrun --nproc_per_node=2 train.py\n".encode("gbk")
    words = [sys.executable, "-P", "-m", "headway", "adopt", "-", "--json"]
    done = subprocess.run(words, input=text, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    assert json.loads(done.stdout)


def test_a_measure_that_is_no_number_leaves_eval_json_readable(tmp_path: Path, monkeypatch, capfd) -> None:
    monkeypatch.chdir(tmp_path)
    write_run(tmp_path / "runs" / "20260101-000000_a_0000")
    answer = {"step": 4, "measures": {"mse": math.nan, "top": math.inf}, "trial": {}}
    monkeypatch.setattr("headway.cli.eval.ask_trained", lambda place, request: answer)
    with pytest.raises(SystemExit) as end:
        main(["eval", "--json"])
    measures = json.loads(capfd.readouterr().out, parse_constant=pytest.fail)["measures"]
    assert not end.value.code and measures == {"mse": "NaN", "top": "Infinity"}


def test_json_for_other_programs_has_no_bare_nan_and_takes_any_text(capfd) -> None:
    echo_json({"loss": math.nan, "best": [math.inf, -math.inf], "name": os.fsdecode(b"\xff"), "zh": "训练"})
    text = capfd.readouterr().out
    assert json.loads(text, parse_constant=pytest.fail)["best"] == ["Infinity", "-Infinity"]
    assert "训练" in text


def test_a_package_that_is_not_installed_is_told_as_that_and_not_as_a_bug(monkeypatch, capsys) -> None:
    def needs_pictures(*_: object, **__: object) -> None:
        raise ModuleNotFoundError("No module named 'PIL'", name="PIL")

    monkeypatch.setattr(root, "main", needs_pictures)
    code, text = told(["plan"], capsys)
    assert code == 3
    assert f"{sys.executable} -m pip install pillow" in text and "cli/package-missing" in text and "bug" not in text


def test_tfnet_is_read_and_planned_without_pillow() -> None:
    program = (
        "import sys; sys.modules['PIL'] = None\n"
        "from headway.task import find_recipe; from headway.recipes.tfnet import synthetic\n"
        "print(find_recipe('tfnet').name)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "tfnet"), done.stderr


def test_a_limit_of_memory_is_told_as_that_and_a_small_record_needs_little(monkeypatch, capsys, tmp_path: Path) -> None:
    def starve(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr(root, "main", starve)
    code, text = told(["runs"], capsys)
    assert code == 3 and "cli/no-memory" in text and "bug" not in text
    (tmp_path / "job.json").write_text("{}")
    tracemalloc.start()
    read_json(tmp_path / "job.json")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1 << 20


def test_ctrl_c_while_the_command_is_being_loaded_is_an_end_without_a_traceback():
    code = (
        "import builtins, sys; real = builtins.__import__\n"
        "def load(name, *rest):\n"
        "    if name == 'click': raise KeyboardInterrupt\n"
        "    return real(name, *rest)\n"
        "builtins.__import__ = load; sys.argv = ['headway', 'runs']; import headway.__main__"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "")
