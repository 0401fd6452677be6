"""How long a foreign run still takes."""

from __future__ import annotations

import io
import re

from headway.messages import set_language
from headway.telemetry import Beat
from headway.ui.terminal.pace import LinePace as Pace
from headway.ui.terminal.run_screen import LineScreen as RunScreen


def beat(step):
    return Beat(pid=1, attempt=1, phase="forward", step=step, samples=0, monotonic_ns=0, loss=0, lr=0, rate=0)


def test_a_total_and_a_rate_give_the_time_left():
    pace = Pace()
    assert pace.text() is None
    for second in range(5):
        pace.read(f"step {second * 10}/1000 | loss 2.5".encode())
        pace.step(second * 10, float(second))
    assert (pace.rate_s, pace.left_s()) == (10.0, 96.0)
    assert pace.text() == "step 40/1,000, loss 2.5, 10 steps/s, 1:36 left"


def test_without_a_total_nothing_is_promised():
    pace = Pace()
    pace.step(0, 0.0)
    pace.step(5, 90.0)
    assert pace.text() is None  # a minute and a half of imports is not the time of a step
    pace.step(10, 92.0)
    assert pace.text() == "step 10, 2.5 steps/s"
    set_language("zh")
    assert pace.text() == "第 10 步，2.5 步/秒"


def test_the_time_between_two_attempts_is_nobodys_step():
    screen = RunScreen(io.StringIO(), io.StringIO(), 1)
    screen._pace.step(3, 1.0)
    screen.event({"kind": "attempt_started", "attempt": 2})
    screen._pace.step(4, 100.0)
    assert screen._pace.rate_s is None
    screen._pace.step(5, 101.0)
    assert screen._pace.rate_s == 1.0


def test_where_the_lines_tell_an_end_their_own_count_is_taken():
    pace = Pace()
    for second in range(5):
        pace.read(f"Epoch {second + 1}/10 - loss: 0.5".encode())
        pace.step(second * 900, float(second))
    assert (pace.rate_s, pace.left_s()) == (1.0, 5.0)


def test_epochs_and_an_inner_bar_give_the_time_left():
    pace = Pace()
    pace.read(b"Starting training for 10 epochs...")
    for second in range(5):
        pace.read(f"Epoch 1: {second * 10}%|##| {second * 10}/100 [00:0{second}<00:09, 9.5it/s, loss=0.5]".encode())
        pace.step(second * 10, float(second))
    assert pace.left_s() == 96.0


def test_a_restart_begins_to_count_anew():
    pace = Pace()
    for at, step in ((0.0, 0), (1.0, 100), (2.0, 1)):
        pace.step(step, at)
    assert pace.rate_s is None


def test_only_the_last_minute_counts():
    pace = Pace()
    for at in range(200):
        pace.step(at if at < 100 else 100 + (at - 100) * 10, float(at))
    assert pace.rate_s == 10.0


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_terminal_shows_the_pace_in_one_place_until_the_job_draws_a_bar():
    out, err = io.StringIO(), Terminal()
    screen = RunScreen(out, err, 1)
    screen.tick([beat(0)])
    screen._pace.step(1, 0.0)
    screen.line(0, b"step 2/10: loss 1.0")
    screen.tick([beat(2)])
    assert re.search(r"\rstep 2/10, loss 1, \S+ steps/s", err.getvalue())
    screen.bar(0, b" 50%|#####     | 5/10 [00:01<00:01]")
    screen.tick([beat(5)])
    assert err.getvalue().endswith("5/10 [00:01<00:01]\x1b[K")


def test_a_flood_is_counted_and_not_one_line_of_it_is_lost_from_the_count():
    out, err = io.StringIO(), io.StringIO()
    screen = RunScreen(out, err, 1)
    for number in range(1000):
        screen.line(0, f"line {number}".encode())
    screen.skipped(5000)
    for _ in range(3):
        screen.tick([])
        screen.line(0, b"more")
    screen.close()
    told = sum(int(number) for number in re.findall(r"(\d+) more lines", err.getvalue()))
    assert out.getvalue().count("line") + told == 6000
    assert err.getvalue().count("more lines") == 1
