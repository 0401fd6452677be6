"""The full-screen view: at every size, in both languages, by its keys; and its parts as plain text."""

from __future__ import annotations

import asyncio
import html
import re

import pytest

from fakes.run_fixture import FakeRun, write_live_run, write_run
from headway.messages import language, say, set_language
from headway.telemetry import DeviceLog, EventLog, RunDir
from headway.ui.terminal.live import LiveApp
from headway.ui.terminal.live import app as live_app
from headway.ui.terminal.live.draw import filter_log
from headway.ui.terminal.live.plot import draw_bar, draw_curve
from headway.ui.terminal.live.snapshot import read_snapshot

SIZES = [(80, 24), (160, 50), (200, 60)]


def make_live(out):
    run = write_live_run(out / "20261118-030405_nanochat_7f01")
    log = DeviceLog(run.devices)
    log.about(
        {"cores": 2, "mem": 8 << 30, "gpus": [{"i": 0, "name": "NVIDIA H20", "mem": 96 << 30, "power_cap": 500.0}]}
    )
    log.add(
        {"t": 1.0, "gpus": [{"i": 0, "util": 71, "mem": 70 << 30, "temp": 86, "power": 400.0}, {"i": 1, "lost": True}]}
    )
    log.close()
    events = EventLog(run.events)
    events.append("finding", code="devices/gpu-silent", key="1", facts={"gpu": 1, "why": "lost"}, since=1.0)
    events.close()
    run.log.write_text("[0] first line\n[1] ValueError: bad\n[0] \x1b[31mred\n")
    return run


def screen_of(app):
    """Return what is on the screen as text."""
    picture = app.export_screenshot()
    return html.unescape(re.sub(r"<[^>]+>", "\n", picture)).replace("\xa0", " ")


def show(out, run, size, *keys):
    """Run the view, press keys, and return what it showed."""

    async def act():
        app = LiveApp(out, run)
        async with app.run_test(size=size) as pilot:
            for _ in range(100):
                await pilot.pause(0.05)
                if app._view is not None or app._rows:
                    break
            for key in keys:
                await pilot.press(key)
            await pilot.pause(0.1)
            return screen_of(app), app

    return asyncio.run(act())


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("size", SIZES)
def test_the_first_screen_has_verdict_progress_curves_and_keys(tmp_path, size, lang):
    run = make_live(tmp_path)
    set_language(lang)
    text, _ = show(tmp_path, run, size)
    for words in (
        "20261118-030405_nanochat_7f01",
        say("ui/state-running"),
        "120/400",
        "q quit" if lang == "en" else "q 退出",
    ):
        assert words in text, words
    assert say("watch/findings", num=1)[:8] in text
    assert any("\u2800" < letter < "\u28ff" for letter in text), "no curve"
    assert ("NVIDIA H20" in text) == (size[0] >= 120)


@pytest.mark.parametrize("size", SIZES)
def test_every_page_shows_its_own(tmp_path, size):
    run = make_live(tmp_path)
    wanted = {
        "2": "time/step",
        "3": "86 °C ≤80",
        "4": "ValueError: bad",
        "5": "headway resume",
        "6": "GPU 1 stopped answering",
    }
    for key, words in wanted.items():
        text, _ = show(tmp_path, run, size, key)
        assert words in text, key
        assert "\x1b" not in text


def test_the_language_changes_and_help_is_shown(tmp_path):
    run = make_live(tmp_path)
    text, _ = show(tmp_path, run, (100, 30), "l")
    assert language() == "zh" and say("watch/page-checkpoints", "zh") in text
    set_language("en")
    text, _ = show(tmp_path, run, (100, 30), "question_mark")
    assert "filters the log by words" in text


def test_stopping_and_saving_are_asked_twice_and_go_to_the_supervisor(tmp_path, monkeypatch):
    run, asked = make_live(tmp_path), []
    monkeypatch.setattr(live_app, "request_stop", lambda run: asked.append("stop"))
    monkeypatch.setattr(live_app, "request_save", lambda run: asked.append("save"))
    text, _ = show(tmp_path, run, (100, 30), "s")
    assert say("watch/sure-stop") in text and asked == []
    show(tmp_path, run, (100, 30), "s", "escape", "y")
    assert asked == []
    text, _ = show(tmp_path, run, (100, 30), "w", "y")
    assert asked == ["save"] and say("watch/sent-save") in text
    show(tmp_path, run, (100, 30), "s", "y")
    assert asked == ["save", "stop"]


def test_a_filter_leaves_the_lines_it_names(tmp_path):
    run = make_live(tmp_path)
    text, _ = show(tmp_path, run, (100, 30), "slash", *"rank:1", "enter")
    assert "ValueError: bad" in text and "first line" not in text
    lines = ["[0] a", "[1] KeyError", "[1] b"]
    assert filter_log(lines, "level:error") == ["[1] KeyError"]
    assert filter_log(lines, "rank:1 B") == ["[1] b"]
    assert filter_log(lines, "") == lines


def test_without_a_run_all_are_listed_and_enter_opens_one(tmp_path):
    write_run(tmp_path / "20261101-000000_a_0001")
    make_live(tmp_path)
    text, _ = show(tmp_path, None, (100, 30))
    assert "2 runs in" in text and "1 training" in text and "20261101-000000_a_0001" in text
    text, app = show(tmp_path, None, (100, 30), "down", "enter")
    assert app._run is not None


def test_hostile_names_and_lines_do_not_steer_the_terminal(tmp_path):
    fake = FakeRun(tmp_path / "evil [bold]x \x1b[2J")
    fake.begin()
    fake.train(1, 1, 20)
    fake.event("finding", code="[red]x", key="", facts={"a": "[b]"})
    fake.crash(1, 0, "[link=javascript:x]y[/link] \x1b]0;owned\x07", "")
    fake.end("failed", 5)
    fake.run.log.write_text("[0] [/nonsense] \x1b[31m [blink]\n")
    for key in "16":
        text, _ = show(tmp_path, fake.run, (100, 30), key)
        assert "\x1b" not in text and "evil [bold]x" in text


def test_a_snapshot_of_an_empty_or_damaged_run_is_shown(tmp_path):
    (tmp_path / "r" / "ranks").mkdir(parents=True)
    (tmp_path / "r" / "events.jsonl").write_bytes(b'{"kind":"finding","facts":3}\nnonsense\n')
    view = read_snapshot(RunDir(tmp_path / "r"))
    assert view.loss == [] and len(view.findings) == 1
    text, _ = show(tmp_path, RunDir(tmp_path / "r"), (80, 24))
    assert say("watch/no-curve") in text


def test_a_curve_fills_its_box_and_keeps_its_ends():
    lines = draw_curve([5.0, 1.0, 3.0], 40, 4)
    assert len(lines) == 4 and lines[0].startswith("5 ") and lines[-1].startswith("1 ")
    assert all(len(line) == 40 for line in lines)
    assert draw_curve([1.0], 40, 3) == ["", "", ""] and "*" in "".join(draw_curve([1, 2], 30, 3, is_ascii=True))
    assert draw_curve([2.0, 2.0, float("nan")], 30, 2)[0].startswith("2 ")
    assert (draw_bar(0.5, 4), draw_bar(float("nan"), 3)) == ("██░░", "░░░")


def test_the_memory_of_a_gpu_is_called_so_in_chinese(tmp_path):
    run = make_live(tmp_path)
    set_language("zh")
    text, _ = show(tmp_path, run, (160, 50), "3")
    assert "显存" in text
