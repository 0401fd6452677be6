from __future__ import annotations

import os

from hypothesis import given
from hypothesis import strategies as st

from headway.launch.output import LINE_BYTES, AppendFile, LineCutter, RankOutput, read_ready


@given(st.lists(st.binary(max_size=40)))
def test_lines_do_not_depend_on_how_the_bytes_arrive(chunks):
    cutter = LineCutter()
    lines = [line for chunk in chunks for line in cutter.feed(chunk)]
    assert b"\n".join([*lines, *(cutter.finish() or [b""])]) == b"".join(chunks)


def test_a_line_without_end_is_cut_and_never_held():
    cutter = LineCutter()
    pieces = [piece for _ in range(100) for piece in cutter.feed(b"z" * 10_000)] + cutter.finish()
    assert b"".join(pieces) == b"z" * 1_000_000
    assert max(map(len, pieces)) == LINE_BYTES


def test_the_tail_stays_small(tmp_path):
    seen = []
    files = [AppendFile(tmp_path / name, lambda path, err: None) for name in ("own", "merged")]
    output = RankOutput(3, *files, lambda rank, lines: seen.extend((rank, line) for line in lines))
    for number in range(3000):
        output.feed(b"%060d\n" % number)
    output.feed(b"no end")
    assert len(output.tail()) == 1 << 16
    output.close()
    files[1].close()
    assert seen[0] == (3, b"%060d" % 0)
    assert seen[-1] == (3, b"no end")
    assert (tmp_path / "merged").read_bytes().endswith(b" [3] no end\n")


def test_a_gap_is_told_once_and_marked_when_writing_works_again(tmp_path):
    told = []
    file = AppendFile(tmp_path / "log", lambda path, err: told.append(err.errno))
    good, file._fd = file._fd, os.open("/dev/full", os.O_WRONLY)
    file.write(b"lost\n")
    file.write(b"lost too\n")
    os.close(file._fd)
    file._fd = good
    file.write(b"back\n")
    file.close()
    assert told == [28]
    assert (tmp_path / "log").read_bytes().endswith(b"bytes could not be written here]\nback\n")


def test_a_link_in_place_of_a_log_is_refused(tmp_path):
    (tmp_path / "log").symlink_to(tmp_path / "elsewhere")
    try:
        AppendFile(tmp_path / "log", lambda path, err: None)
    except OSError:
        assert not (tmp_path / "elsewhere").exists()
    else:
        raise AssertionError("the link was followed")


def test_reading_ready_stops_at_the_limit_and_knows_the_end():
    read, write = os.pipe2(os.O_NONBLOCK)
    os.write(write, b"abcdef")
    assert read_ready(read, 4) == (b"abcd", False)
    assert read_ready(read, 4) == (b"ef", False)
    os.close(write)
    assert read_ready(read, 4) == (b"", True)
    os.close(read)
