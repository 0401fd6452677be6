"""The moving line: right numbers, right width, never garbled."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Iterator

import pytest

from headway.messages import set_language
from headway.telemetry import Beat
from headway.ui.terminal.progress_line import ProgressLine, clock_text, fit_line
from headway.ui.text import cell_width, clean_text, fit_text


class Clock:
    """A clock that the test turns."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def beat(step: int, attempt: int = 1, phase: str = "forward", rate: float = 0.0) -> Beat:
    return Beat(
        pid=1, attempt=attempt, phase=phase, step=step, samples=step * 16, monotonic_ns=0, loss=2.345, lr=0.1, rate=rate
    )


@pytest.fixture
def chinese() -> Iterator[None]:
    set_language("zh")
    yield
    set_language("en")


def run_steps(line: ProgressLine, clock: Clock, steps: range, *, attempt: int = 1, step_s: float = 0.5) -> None:
    for step in steps:
        clock.now += step_s
        line.update([beat(step, attempt), beat(step + 1, attempt)], ("bpb", 1.91))


def last_line(stream: io.StringIO) -> str:
    return re.split(r"[\r\n]", stream.getvalue().rstrip("\n"))[-1].replace("\x1b[K", "")


def test_the_line_tells_step_loss_validation_speed_and_time_left() -> None:
    stream, clock = io.StringIO(), Clock()
    line = ProgressLine(stream, total_steps=400, tokens_per_sample=128, is_terminal=True, clock=clock)
    run_steps(line, clock, range(1, 121))
    line.close()
    assert last_line(stream) == "step 120/400 30% | loss 2.345 | val bpb 1.91 | 4.1k tok/s | ETA 2:20"


def test_the_line_speaks_chinese_and_counts_wide_characters(chinese: None) -> None:
    stream, clock = io.StringIO(), Clock()
    line = ProgressLine(stream, total_steps=400, tokens_per_sample=None, is_terminal=True, clock=clock)
    run_steps(line, clock, range(1, 121))
    line.close()
    assert last_line(stream) == "步 120/400 30% | 损失 2.345 | 验证 bpb 1.91 | 32 样本/秒 | 剩余 2:20"
    assert cell_width("剩余 2:20") == 9


def test_time_of_validation_and_saving_is_not_the_steps_own() -> None:
    stream, clock = io.StringIO(), Clock()
    line = ProgressLine(stream, total_steps=100, is_terminal=True, clock=clock)
    run_steps(line, clock, range(1, 51))
    for _ in range(20):
        clock.now += 5.0
        line.update([beat(50, phase="eval")])
    clock.now += 0.5
    line.update([beat(51)])
    line.close()
    assert "ETA 0:25" in last_line(stream)


def test_a_restart_begins_the_measure_anew_and_time_left_is_never_negative() -> None:
    stream, clock = io.StringIO(), Clock()
    line = ProgressLine(stream, total_steps=100, is_terminal=True, clock=clock)
    run_steps(line, clock, range(1, 81))
    clock.now += 60.0
    line.update([beat(0, attempt=2, phase="start")])
    run_steps(line, clock, range(60, 70), attempt=2, step_s=1.0)
    assert "step 69/100 69%" in last_line(stream) and "ETA 0:31" in last_line(stream)
    run_steps(line, clock, range(100, 105), attempt=2)
    line.close()
    assert "ETA 0:00" in last_line(stream) and "100%" in last_line(stream)


def test_the_slowest_rank_counts() -> None:
    stream = io.StringIO()
    line = ProgressLine(stream, total_steps=10, is_terminal=True, clock=Clock())
    line.update([beat(7), beat(5), beat(6)])
    assert last_line(stream).startswith("step 5/10")


def test_a_line_above_clears_the_moving_one_and_draws_it_again() -> None:
    stream = io.StringIO()
    line = ProgressLine(stream, total_steps=10, is_terminal=True, clock=Clock())
    line.update([beat(5)])
    drawn = last_line(stream)
    line.say("checkpoint at step 5")
    assert stream.getvalue().endswith(f"\r\x1b[Kcheckpoint at step 5\n{drawn}")


def test_without_a_terminal_a_plain_line_comes_every_30_seconds() -> None:
    stream, clock = io.StringIO(), Clock()
    line = ProgressLine(stream, total_steps=400, is_terminal=False, clock=clock)
    run_steps(line, clock, range(1, 201))
    line.say("saved")
    line.close()
    lines = stream.getvalue().splitlines()
    assert len(lines) == 6 and "\r" not in stream.getvalue() and "\x1b" not in stream.getvalue()
    assert lines[-2] == "saved" and lines[-1].startswith("step 200/400 50%")


@pytest.mark.parametrize("width", [1, 8, 20, 40, 60])
def test_a_narrow_terminal_gets_a_line_that_fits(monkeypatch: pytest.MonkeyPatch, chinese: None, width: int) -> None:
    monkeypatch.setattr("shutil.get_terminal_size", lambda: os.terminal_size((width, 24)))
    stream, clock = io.StringIO(), Clock()
    line = ProgressLine(stream, total_steps=400, is_terminal=True, clock=clock)
    run_steps(line, clock, range(1, 121))
    drawn = [part.replace("\x1b[K", "") for part in stream.getvalue().split("\r")]
    assert drawn and all(cell_width(part) < max(width, 1) for part in drawn)


def test_step_and_time_left_are_the_last_to_go() -> None:
    assert fit_line("step 1/2 | loss 3 | 4 tok/s | ETA 0:05", 22) == "step 1/2 | ETA 0:05"


def test_escape_sequences_and_controls_are_disarmed() -> None:
    hostile = "\x1b]0;title\x07a\x1b[31mred\x1b[2J\x9b5n\x1bPq\x1b\\b\tc\rd\x00\u202e"
    shown = clean_text(hostile)
    assert shown == "ared\\x9b5nb    c\\rd\\x00\\u202e"
    assert not re.search(r"[\x00-\x1f\x7f-\x9f]", shown)


def test_texts_are_cut_at_whole_characters() -> None:
    assert fit_text("训练完成", 5) == "训练…"
    assert fit_text("abc", 3) == "abc" and fit_text("abcd", 3) == "ab…" and fit_text("abc", 0) == ""


@pytest.mark.parametrize(
    ("seconds", "text"), [(-3, "0:00"), (41.2, "0:42"), (7385, "2:03:05"), (3 * 86400 + 60, "3 d 0:01")]
)
def test_time_left_is_read_like_a_clock(seconds: float, text: str) -> None:
    assert clock_text(seconds) == text
