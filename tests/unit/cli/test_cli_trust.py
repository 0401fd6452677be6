"""Reading runs no code (issue 10, item 21): what only a file names has to be trusted, what is typed is."""

import json
import os
import shutil
from pathlib import Path

import pytest

from fakes.run_fixture import write_run
from headway.cli.main import main
from headway.config import is_trusted, read_trusted, trust

TINY = Path(__file__).parents[2] / "fakes" / "tiny"


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder with a recipe that leaves a mark when it is run, a config that names it, and an empty home."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.delenv("HEADWAY_TRUST", raising=False)
    monkeypatch.chdir(tmp_path)
    shutil.copytree(TINY, tmp_path / "own", ignore=shutil.ignore_patterns("__pycache__"))
    with (tmp_path / "own" / "preset.py").open("a") as file:
        file.write(f"\nopen({str(tmp_path / 'mark')!r}, 'w').close()\n")
    (tmp_path / "job.yaml").write_text("recipe: ./own\n")
    return tmp_path


def run(capsys, *words):
    with pytest.raises(SystemExit) as end:
        main(list(words))
    said = capsys.readouterr()
    return end.value.code, said.out + said.err


@pytest.mark.parametrize("words", [("config", "show"), ("plan", "--no-trace"), ("check",)])
def test_reading_a_config_runs_nothing_and_says_what_to_type(capsys, place, words):
    code, said = run(capsys, *words, "job.yaml")
    assert code == 2 and "cli/untrusted" in said and f"headway trust {place / 'own'}" in said
    assert not (place / "mark").exists()


def test_trust_is_given_once_and_taken_back(capsys, place):
    assert run(capsys, "trust", "./own", "--dry-run")[0] == 0 and not read_trusted()
    assert run(capsys, "trust", "./own")[0] == 0
    assert run(capsys, "config", "show", "job.yaml")[0] == 0 and (place / "mark").exists()
    assert str(place / "own") in run(capsys, "trust")[1]
    assert json.loads(run(capsys, "trust", "--json")[1])["paths"] == [str(place / "own")]
    assert run(capsys, "trust", "--forget", "own")[0] == 0
    assert run(capsys, "config", "show", "job.yaml")[0] == 2
    assert run(capsys, "trust", "--forget", "own")[0] == 2


@pytest.mark.parametrize(
    "words", [("./own",), ("job.yaml", "recipe=own"), ("recipe=./own",), ("--set", "recipe=./own")]
)
def test_what_is_typed_is_consent_and_is_remembered(capsys, place, words):
    assert run(capsys, "config", "show", *words)[0] == 0
    assert is_trusted(place / "own")


def test_a_folder_covers_what_is_below_it_and_a_link_does_not_help(place):
    trust(place / "home")
    assert is_trusted(place / "home" / "a" / "b") and not is_trusted(place / "own")
    (place / "home").mkdir(exist_ok=True)
    (place / "home" / "link").symlink_to(place / "own")
    assert not is_trusted(place / "home" / "link")


def test_a_list_of_somebody_else_trusts_nothing(place, monkeypatch):
    trust(place / "own")
    monkeypatch.setattr(os, "geteuid", lambda: 4711)
    os.chown(place / "home" / ".config" / "headway" / "trusted", 4712, -1)
    assert read_trusted() == []


def test_a_variable_names_more(place, monkeypatch):
    monkeypatch.setenv("HEADWAY_TRUST", f"{place / 'own'}:relative")
    assert is_trusted(place / "own") and not is_trusted(place / "relative")


def test_an_interpreter_that_a_file_names_is_not_started(capsys, place):
    (place / "x").write_text(f"#!/bin/sh\ntouch {place / 'mark'}\n")
    (place / "x").chmod(0o755)
    (place / "job.yaml").write_text("env:\n  python: ./x\n")
    code, said = run(capsys, "plan", "job.yaml")
    assert code == 2 and "cli/untrusted" in said and not (place / "mark").exists()


@pytest.mark.parametrize("command", ["eval", "predict", "resume"])
def test_a_received_run_runs_nothing(capsys, place, command):
    received = write_run(place / "runs" / "20261118-000000_tiny_0001")
    job = json.loads(received.job.read_text())
    received.job.write_text(json.dumps({**job, "recipe": str(place / "own")}))
    received.config.write_text(f"recipe: {place / 'own'}\n")
    code, said = run(capsys, command, "20261118-000000_tiny_0001")
    assert code == 2 and "cli/untrusted" in said, said
    assert not (place / "mark").exists()
