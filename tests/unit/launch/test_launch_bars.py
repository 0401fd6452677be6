"""Bars that draw themselves again, and logs that keep head and tail."""

from __future__ import annotations

from headway.launch.output import AppendFile, LineCutter, RankOutput


def test_of_a_bar_only_the_last_state_becomes_a_line():
    cutter = LineCutter(folds_bars=True)
    assert cutter.feed(b"\r 10%|#  | 1/10\r 20%|## | 2/10") == []
    assert cutter.bar() == b" 20%|## | 2/10"
    assert cutter.feed(b"\r100%|###| 10/10\nnext\n") == [b"100%|###| 10/10", b"next"]


def test_a_bar_of_any_length_takes_little_memory_and_stays_one_line():
    cutter = LineCutter(folds_bars=True)
    for n in range(20_000):
        assert cutter.feed(b"\r%5d/20000 [00:00]" % n) == []
    assert len(cutter._rest) < 200
    assert cutter.feed(b"\n") == [b"19999/20000 [00:00]"]


def test_windows_line_ends_are_no_bar():
    assert LineCutter(folds_bars=True).feed(b"one\r\ntwo\r\n") == [b"one\r", b"two\r"]


def test_the_state_of_a_bar_reaches_the_watcher_while_it_is_drawn(tmp_path):
    seen = []
    files = [AppendFile(tmp_path / name, lambda path, err: None) for name in ("own", "merged")]
    output = RankOutput(0, *files, lambda rank, lines: None, lambda rank, state: seen.append(state))
    output.feed(b"\r1/3")
    output.feed(b"\r2/3")
    output.close()
    files[1].close()
    assert seen == [b"1/3", b"2/3"]
    assert (tmp_path / "own").read_bytes() == b"\r1/3\r2/3"


def test_a_flood_keeps_its_head_and_its_tail(tmp_path):
    file = AppendFile(tmp_path / "log", lambda path, err: None, head_bytes=10_000)
    for n in range(10_000):
        file.write(b"line %05d\n" % n)
    file.close()
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["log", "log.tail", "log.tail.old"]
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) < 31_000
    assert (tmp_path / "log").read_bytes().startswith(b"line 00000\n")
    assert b"goes on in log.tail" in (tmp_path / "log").read_bytes()
    assert ((tmp_path / "log.tail.old").read_bytes() + (tmp_path / "log.tail").read_bytes()).endswith(b"line 09999\n")
