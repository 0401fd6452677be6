"""What people write about runs, the form for a new one, and in what the surroundings of runs differ."""

from __future__ import annotations

import json
import shlex

import pytest
from click.testing import CliRunner

from fakes.asgi import ask
from fakes.run_fixture import FakeRun
from headway.cli.note import note
from headway.telemetry import changed_note, read_note
from headway.telemetry.notes import Note
from headway.ui.board import make_app
from headway.ui.board.form import describe_form
from headway.ui.board.store import run_id


def a_run(out, name):
    fake = FakeRun(out / name)
    fake.begin()
    fake.train(1, 1, 10)
    return fake


def test_a_note_is_written_shown_searched_and_changed(empty):
    fake = a_run(empty.out, "r")
    a_run(empty.out, "other")
    words = ["r", "larger <b>batch", "--tag", "baseline", "--tag", "8k", "--runs", str(empty.out)]
    assert "would" not in CliRunner().invoke(note, [*words, "--dry-run"]).output and read_note(fake.run) == Note()
    told = json.loads(CliRunner().invoke(note, [*words, "--json"]).stdout)
    assert (told["text"], told["tags"]) == ("larger <b>batch", ["baseline", "8k"])
    page = empty.get("/?q=BASELINE").text
    assert run_id("r") in page and run_id("other") not in page and "larger &lt;b&gt;batch" in page
    assert run_id("r") in empty.get("/?q=larger").text and "8k" in empty.run("r").text
    CliRunner().invoke(note, ["r", "--untag", "8k", "--runs", str(empty.out)])
    assert read_note(fake.run) == Note(text="larger <b>batch", tags=("baseline",))
    assert "headway note r" in empty.run("r", "/config").text


@pytest.mark.parametrize("text", ["{", "[]", '{"text": 3, "tags": "x"}', '{"tags": [1, null, ""]}'])
def test_a_damaged_note_is_an_empty_one(tmp_path, text):
    fake = FakeRun(tmp_path / "r")
    (fake.run.root / "note.json").write_text(text)
    assert read_note(fake.run) == Note()


def test_tags_are_few_short_and_once():
    note = changed_note(Note(), None, [*map(str, range(50)), "7", " ", "x" * 99], [])
    assert len(note.tags) == 20 and len(set(note.tags)) == 20
    assert changed_note(note, "t" * 5000, [], ["3"]).text == "t" * 2000


def test_the_form_is_off_unless_asked_for_and_only_shows_a_command(empty, tmp_path):
    assert empty.get("/new").code == 404 and "/new" not in empty.get("/").text
    app = make_app(empty.out, has_form=True)
    page = ask(app, "/new?recipe=nanochat&steps=60&more=save.every%3D50%0Anonsense").text
    assert "headway train nanochat steps=60 save.every=50" in page and "nonsense" in page
    assert 'method="get"' in page and "post" not in page.lower()


@pytest.mark.parametrize("value", ["$(id)", "; rm -rf /", "a b", "`id`", "'", "x\n& id", "\x1b[31m"])
def test_what_is_typed_into_the_form_is_one_word_of_the_command(value):
    told = describe_form({"recipe": value, "steps": value, "more": f"a.b={value}"})
    words = shlex.split(told["command"])
    assert words[:3] == ["headway", "train", "atlas"] and "\n" not in told["command"] and "\x1b" not in told["command"]
    assert all("=" in word for word in words[3:]) and len(words) <= 5


def test_runs_side_by_side_tell_what_differs_around_them(empty):
    for name, cpu in (("a", "AMD EPYC 7B13"), ("b", "Kunpeng 920")):
        fake = a_run(empty.out, name)
        machine = json.loads(fake.run.machine.read_text())
        fake.run.machine.write_text(
            json.dumps({**machine, "cpu": {"model": cpu}, "memory_free_bytes": len(name + cpu)})
        )
        fake.run.command.write_text(json.dumps({"argv": ["x"], "commit": f"c0ffee{name}", "env": ["HOME", cpu[:3]]}))
    page = empty.get(f"/compare?runs={run_id('a')},{run_id('b')}").text
    for word in ("machine: cpu.model", "Kunpeng 920", "code: commit", "c0ffeeb", "variable: AMD"):
        assert word in page, word
    assert "memory_free" not in page and "variable: HOME" not in page


def test_the_note_is_told_in_words(empty):
    a_run(empty.out, "r")
    said = CliRunner().invoke(note, ["r", "warmer", "--tag", "8k", "--runs", str(empty.out)])
    assert (said.exit_code, said.output.splitlines()) == (0, ["tags: 8k", "warmer"])
