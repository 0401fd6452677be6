"""The border to the terminal (issue 10, items 16 and 18): nothing steers it, and nobody who stops reading stops us."""

import io
import json
import os
import re
import sys
import time

import click
import pytest

from headway.cli.main import main
from headway.ui import output
from headway.ui.console_safe import SafeConsole
from headway.ui.output import ReaderGone, clean_output, clean_streams, trusted, unblocked_streams

HOSTILE = ("\x1b[2J", "\x1b]0;title\x07", "a\rb", "\x9b31m", "\u202egnp", "\x08\x08", "\x1b[31mred")


@pytest.mark.parametrize("evil", HOSTILE)
@pytest.mark.parametrize(
    "words",
    [
        ("config", "show", "{}=1"),
        ("config", "explain", "lr{}"),
        ("train", "x{}", "--dry-run"),
        ("runs", "--out", "{}"),
        ("report", "{}"),
        ("run", "--dry-run", "python", "x.py", "--{}"),
        ("nonsense{}",),
        ("resume", "{}", "--runs", "{}"),
    ],
)
def test_no_word_that_is_typed_steers_the_terminal(capsys, tmp_path, monkeypatch, words, evil):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit):
        main([word.format(evil) for word in words])
    said = "".join(capsys.readouterr())
    assert said.strip() and not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]", said)


def test_control_characters_are_shown_and_line_ends_stay():
    assert clean_output("a\tb\n\x1b[31m\x9b\u202e") == "a\tb\n\\x1b[31m\\x9b\\u202e"


def test_json_stays_json(capfdbinary):
    with clean_streams():
        click.echo(json.dumps({"name": "\x9b2J\u202e\x1b"}, ensure_ascii=False).encode())
    said = capfdbinary.readouterr().out
    assert json.loads(said) == {"name": "\x9b2J\u202e\x1b"} and b"\xc2\x9b" not in said


def test_a_console_draws_its_own_colours_and_nothing_else():
    stream = io.StringIO()
    console = SafeConsole(
        file=stream, force_terminal=True, color_system="standard", markup=False, emoji=False, highlight=False
    )
    console.print("a\x1b[2Jb [/bold] :x:", style="red")
    assert "\x1b[31m" in stream.getvalue() and "\x1b[2J" not in stream.getvalue()
    assert "a\\x1b[2Jb [/bold] :x:" in stream.getvalue()


def test_the_stream_behind_the_border_is_found():
    plain = sys.stdout
    with clean_streams():
        assert sys.stdout is not plain and trusted(sys.stdout) is plain
    assert sys.stdout is plain


def pipe_as_stdout(monkeypatch):
    read, write = os.pipe()
    stream = io.TextIOWrapper(io.FileIO(write, "wb"), encoding="utf-8", write_through=True)
    monkeypatch.setattr(sys, "stdout", stream)
    return read, stream


def test_a_reader_that_has_gone_is_told_as_such(monkeypatch):
    read, stream = pipe_as_stdout(monkeypatch)
    os.close(read)
    with clean_streams(), pytest.raises(ReaderGone):
        sys.stdout.write("x\n")
        sys.stdout.flush()
    monkeypatch.undo()
    stream.detach().close()


def test_an_unread_pipe_does_not_block(monkeypatch):
    monkeypatch.setattr(output, "_PATIENCE_S", 0.2)
    read, stream = pipe_as_stdout(monkeypatch)
    began = time.monotonic()
    with unblocked_streams():
        for _ in range(200):
            sys.stdout.write("x" * 9999 + "\n")
        assert time.monotonic() - began < 10
    os.close(read)
    monkeypatch.undo()
    stream.detach().close()


def test_what_nobody_has_read_never_reaches_a_later_file(monkeypatch, tmp_path):
    monkeypatch.setattr(output, "_PATIENCE_S", 0.1)
    read, stream = pipe_as_stdout(monkeypatch)
    with unblocked_streams():
        sys.stdout.write("x" * 200_000)
    number = stream.fileno()
    monkeypatch.undo()
    stream.detach().close()
    with open(tmp_path / "later", "wb") as later:
        assert later.fileno() == number
        os.close(read)
        time.sleep(0.3)
    assert not (tmp_path / "later").read_bytes()


def test_what_is_read_arrives_whole_and_in_order(monkeypatch):
    read, stream = pipe_as_stdout(monkeypatch)
    monkeypatch.setattr(sys, "stderr", stream)
    with unblocked_streams():
        for number in range(500):
            print(number, file=sys.stdout if number % 2 else sys.stderr)
    monkeypatch.undo()
    stream.close()
    with open(read, "rb") as file:
        assert file.read().split() == [b"%d" % number for number in range(500)]


def test_a_reader_that_goes_away_swallows_the_rest(monkeypatch):
    read, stream = pipe_as_stdout(monkeypatch)
    with unblocked_streams():
        os.close(read)
        for _ in range(50):
            print("x")
            time.sleep(0.001)
    monkeypatch.undo()
    stream.detach().close()
