"""Commands on streams that cannot show all of a text."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest


def run(*words, cwd, **env):
    command = [sys.executable, "-m", "headway", *words]
    done = subprocess.run(
        command, cwd=cwd, env={**os.environ, "HOME": str(cwd), **env}, capture_output=True, timeout=120
    )
    assert b"Traceback" not in done.stderr, done.stderr
    return done


@pytest.mark.parametrize("encoding", ["gbk", "latin-1", "ascii", "cp1252"])
def test_what_a_stream_cannot_show_is_written_as_something_alike(tmp_path, encoding):
    done = run("check", cwd=tmp_path, PYTHONIOENCODING=encoding)
    assert done.returncode == 0, done.stderr
    assert "ready" in done.stdout.decode(encoding)


def test_chinese_that_cannot_be_shown_is_english(tmp_path):
    assert b"ready" in run("--lang", "zh", "check", cwd=tmp_path, PYTHONIOENCODING="ascii").stdout
    assert "本机就绪" in run("--lang", "zh", "check", cwd=tmp_path, PYTHONIOENCODING="gbk").stdout.decode("gbk")


def test_json_stays_exact_on_a_stream_of_ascii(tmp_path):
    place = tmp_path / "目录😀"
    done = run("check", "--out", str(place), "--json", cwd=tmp_path, PYTHONIOENCODING="ascii")
    assert json.loads(done.stdout)["out"] == str(place)


def test_a_working_directory_that_is_no_text_is_no_bug(tmp_path):
    place = os.fsencode(tmp_path) + b"/\xff\xfe"
    os.mkdir(place)
    done = run("check", cwd=os.fsdecode(place))
    assert done.returncode == 0, done.stderr
