"""The report: right, complete, one file, and harmless whatever a run wrote."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from fakes.run_fixture import UNIGRAM_BPB, FakeRun, bpb_at, write_live_run, write_run
from headway.cli.report import report
from headway.telemetry import MetricsWriter, RunDir, write_json
from headway.ui.report import find_gains, gather, write_report
from headway.ui.report.axis import pick_ticks
from headway.ui.report.thin import bin_means, smooth, thin

HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)></title></style></pre>{{ 7*7 }}&amp;"


class Page(HTMLParser):
    """Tags, attributes and text of a page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.names: set[str] = set()
        self.values: list[str] = []
        self.words: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.names |= {name for name, _ in attrs}
        self.values += [value or "" for _, value in attrs]

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def page_of(run: RunDir) -> Page:
    return Page(write_report(run).read_text(encoding="utf-8"))


def test_the_verdict_comes_first_and_says_by_how_much_the_baseline_is_beaten(tmp_path: Path) -> None:
    text = "".join(page_of(write_run(tmp_path / "r")).words)
    gain = f"{100 * (UNIGRAM_BPB - bpb_at(400)) / UNIGRAM_BPB:.1f}"
    said = f"{gain}% better than the unigram baseline (4.312)"
    assert said in text and text.index("done: 400 of 400 steps") < text.index(said) < text.index("Timeline")
    assert f"比 unigram 基线（4.312）好 {gain}%" in text


def test_the_report_holds_plan_timeline_checkpoints_config_machine_and_incident(tmp_path: Path) -> None:
    page = page_of(write_run(tmp_path / "r"))
    text = "".join(page.words)
    for part in ("steps repeated", "run.yaml:7:3", "AMD EPYC 7B13", "headway train nanochat", "KeyboardInterrupt"):
        assert (part in text) == (part != "KeyboardInterrupt")
    assert "rank 1 was killed by signal 9" in text and 'File "loop.py", line 88' in text
    assert page.tags.count("figure") == 7 and page.tags.count("svg") == 9 + 48
    assert text.count("pruned") >= 2


def test_the_page_is_one_file_without_script_or_anything_loaded(tmp_path: Path) -> None:
    html = write_report(write_run(tmp_path / "r")).read_text(encoding="utf-8")
    page = Page(html)
    assert not {"script", "link", "img", "iframe", "object", "embed", "base", "form"} & set(page.tags)
    assert not any(name.startswith("on") or name in ("src", "href", "style") for name in page.names)
    assert "http:" not in html and "https:" not in html and "url(" not in html and "@import" not in html


def test_the_content_policy_allows_exactly_our_style(tmp_path: Path) -> None:
    html = write_report(write_run(tmp_path / "r")).read_text(encoding="utf-8")
    (style,) = re.findall(r"<style>(.*?)</style>", html, re.S)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = next(value for value in Page(html).values if value.startswith("default-src"))
    assert policy.startswith(f"default-src 'none'; style-src 'sha256-{digest}';")


def test_hostile_strings_are_shown_as_text_everywhere(tmp_path: Path) -> None:
    fake = FakeRun(tmp_path / HOSTILE.replace("/", "_"))
    fake.event("run_started", command=["headway", HOSTILE])
    fake.event("baseline", measures={f"{HOSTILE}_{HOSTILE}": 3.0})
    fake.train(1, 1, 60)
    fake.event("validation", step=60, measures={HOSTILE: 1.0}, best=True, measure=HOSTILE)
    fake.event("warning", code=HOSTILE, facts={HOSTILE: HOSTILE})
    fake.event("warning", code="report/rank", facts={"rank": HOSTILE})
    fake.event("guard", step=3, rank=HOSTILE, what=HOSTILE, policy=HOSTILE)
    fake.crash(1, 0, HOSTILE, HOSTILE)
    for path in (fake.run.machine, fake.run.origins):
        write_json(
            path, {"host": HOSTILE, HOSTILE: HOSTILE, "lr.base": HOSTILE, "gpus": [{"index": HOSTILE, "name": HOSTILE}]}
        )
    write_json(fake.run.command, {"argv": [HOSTILE], "commit": HOSTILE, "diff": HOSTILE, "cwd": HOSTILE})
    job = {
        "recipe": HOSTILE,
        "config": {HOSTILE: HOSTILE},
        "plan": {"rows": [{"key": HOSTILE, "value": HOSTILE, "origin": "x"}]},
    }
    write_json(fake.run.job, job)
    write_json(fake.run.plan, job["plan"])
    fake.run.log.write_bytes(HOSTILE.encode() + b"\x1b[31m\xff\n")
    fake.end("failed", 5, why=HOSTILE)
    page = page_of(fake.run)
    assert not {"script", "img"} & set(page.tags) and page.tags.count("style") == 1 and page.tags.count("title") >= 1
    assert "onerror" not in page.names
    assert "".join(page.words).count("<script>alert(1)</script>") >= 20
    assert "\x1b" not in "".join(page.words) and ">49&" not in "".join(page.words)


def test_lone_surrogates_and_numbers_that_are_none_do_not_stop_the_report(tmp_path: Path) -> None:
    fake = FakeRun(tmp_path / "r")
    fake.event("run_started", command=["\udcff"])
    writer = MetricsWriter(fake.run.metrics(0), 1)
    for step in range(1, 20):
        bad = float("nan") if step % 3 else float("inf")
        writer.add(step, step * 16, bad, 0.1, bad, 1.0 + step, 0.1, *[float("nan")] * 7)
    writer.close()
    fake.event("validation", step=10, measures={"bpb": float("nan")}, best=False)
    fake.end("failed", 5, why="loss is not a number \udcff")
    assert "loss is not a number ?" in "".join(page_of(fake.run).words)


@pytest.mark.parametrize("kind", ["empty", "one step", "planned only"])
def test_a_run_with_next_to_nothing_has_a_report(tmp_path: Path, kind: str) -> None:
    if kind == "empty":
        (tmp_path / "r" / "ranks").mkdir(parents=True)
        run = RunDir(tmp_path / "r")
        os.utime(run.root, (1.0, 1.0))
    else:
        fake = FakeRun(tmp_path / "r")
        fake.begin()
        if kind == "one step":
            fake.train(1, 1, 1)
        fake.events.close()
        run = fake.run
    assert "lost at step" in "".join(page_of(run).words)


def test_a_running_run_has_a_report_too(tmp_path: Path) -> None:
    assert "still running: 120 of 400 steps" in "".join(page_of(write_live_run(tmp_path / "r")).words)


def test_work_done_twice_is_counted_and_a_worse_result_is_called_worse(tmp_path: Path) -> None:
    assert gather(write_run(tmp_path / "r")).redone_steps == 62
    fake = FakeRun(tmp_path / "s")
    fake.event("baseline", measures={"chance_accuracy": 0.5, "other_loss": 1.0})
    fake.event("validation", step=1, measures={"accuracy": 0.4}, best=True, measure="accuracy", sense="max")
    fake.end("done")
    (gain,) = find_gains(gather(fake.run))
    assert (gain.name, round(gain.share, 3)) == ("chance", -0.2)
    assert "20.0% worse than the chance baseline (0.5)" in "".join(page_of(fake.run).words)


def test_the_command_writes_the_file_and_tells_json(tmp_path: Path) -> None:
    write_run(tmp_path / "20260101-000000_one_aaaa")
    path = tmp_path / "20260101-000000_one_aaaa" / "report.html"
    dry = CliRunner().invoke(report, ["aaaa", "--out", str(tmp_path), "--dry-run"])
    assert dry.output == f"would write {path}\n" and not path.exists()
    data = json.loads(CliRunner().invoke(report, ["aaaa", "--out", str(tmp_path), "--json"]).output)
    assert data["schema"] == "report/1" and data["path"] == str(path) and path.exists()
    assert data["state"]["best"]["value"] == bpb_at(400) and data["gains"][0]["baseline"] == "unigram"
    plain = CliRunner().invoke(report, ["aaaa", "--out", str(tmp_path), "--to", str(tmp_path / "x" / "y.html")])
    assert plain.exit_code == 0 and (tmp_path / "x" / "y.html").exists()


@given(st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=3000), st.integers(10, 700))
def test_thinning_keeps_ends_extremes_and_order(values: list[float], num: int) -> None:
    y = np.array(values)
    x, kept = thin(np.arange(len(y), dtype=float), y, num)
    assert len(x) <= max(num, 5) and (np.diff(x) > 0).all()
    assert kept.min() == y.min() and kept.max() == y.max() and x[0] == 0 and x[-1] == len(y) - 1


def test_one_spike_in_a_million_survives_thinning_and_a_gap_stays_a_gap() -> None:
    y = np.zeros(1_000_000)
    y[654_321], y[777_777] = 9.0, np.nan
    x, kept = thin(np.arange(len(y), dtype=float), y)
    assert len(x) <= 600 and x[np.nanargmax(kept)] == 654_321 and np.isnan(kept).sum() == 1


def test_means_of_stretches_keep_the_sum_and_smoothing_has_no_lag() -> None:
    values = np.arange(1000, dtype=float)
    assert bin_means(values, 10).mean() == pytest.approx(values.mean())
    assert smooth(values) == pytest.approx(values)
    assert np.isfinite(smooth(np.where(values % 7 == 0, np.nan, values))[1:]).all()


@given(st.floats(-1e4, 1e4), st.floats(1e-3, 1e6))
def test_ticks_lie_inside_the_range(low: float, span: float) -> None:
    high = low + span
    ticks = pick_ticks(low, high)
    assert 1 <= len(ticks) <= 12 and ticks == sorted(ticks)
    assert all(low - span * 1e-6 <= tick <= high + span * 1e-6 for tick in ticks) or high == low


@pytest.mark.parametrize(("seconds", "tick"), [(0.004, "4 ms"), (0.8, "800 ms"), (8.0, "8 s"), (80.0, "80 s")])
def test_the_time_of_a_step_has_the_unit_a_person_would_use(tmp_path: Path, seconds: float, tick: str) -> None:
    fake = FakeRun(tmp_path / "r")
    fake.event("run_started", command=[])
    writer = MetricsWriter(fake.run.metrics(0), 1)
    for step in range(1, 11):
        writer.add(step, step * 16, 1.0, 0.1, 1.0, 1.0 + step, seconds, 0.0, seconds, 0.0, 0.0, 0.0)
    writer.close()
    fake.event("run_ended", 10.0, state="done", exit_code=0, steps=10)
    fake.events.close()
    words = [word.strip() for word in page_of(fake.run).words]
    assert tick in words
    assert not any(re.fullmatch(r"\de\+\d+ m?s", word) for word in words)


def test_steps_that_cannot_tell_their_split_do_not_thin_it_out(tmp_path: Path) -> None:
    fake = FakeRun(tmp_path / "r")
    fake.event("run_started", command=[])
    writer = MetricsWriter(fake.run.metrics(0), 1)
    for step in range(1, 101):
        split = (0.01, 0.03, 0.05, 0.0, 0.01) if step % 20 == 0 else (0.0,) * 5
        writer.add(step, step * 16, 1.0, 0.1, 1.0, 1.0 + step, 0.1, *split)
    writer.close()
    fake.event("run_ended", 10.0, state="done", exit_code=0, steps=100)
    fake.events.close()
    steps = gather(fake.run).steps
    assert steps is not None and steps.is_told.sum() == 5
    text = re.sub(r"\s+", " ", " ".join(page_of(fake.run).words))
    assert "backward takes 50%" in text and re.search(r"backward 反向 50\.0 % 5\.0 s", text)


def test_the_plan_table_speaks_both_languages_and_keeps_what_it_does_not_know(tmp_path: Path) -> None:
    run = write_run(tmp_path / "r")
    rows = [
        {"key": "ranks", "value": "2", "origin": "command line"},
        {"key": "device", "value": "cpu", "origin": "", "origin_code": "plan/from-no-gpu", "facts": {}},
        {"key": "warmup", "value": "64 <b>", "origin": "run.yaml:3:1", "value_code": "plan/gone", "facts": "odd"},
    ]
    write_json(run.plan, {"rows": rows})
    text = write_report(run).read_text(encoding="utf-8")
    assert '<span lang="en">command line</span><span lang="zh">命令行</span>' in text
    assert '<span lang="en">no GPU here</span><span lang="zh">本机没有 GPU</span>' in text
    assert "64 &lt;b&gt;" in text and "run.yaml:3:1" in text and "64 <b>" not in text


def test_the_wall_time_holds_every_session_also_those_after_a_resume_and_a_kill(tmp_path: Path) -> None:
    fake = FakeRun(tmp_path / "r")
    fake.event("run_started", command=[])
    fake.event("attempt_started", 1.0, attempt=1)
    fake.event("run_ended", 99.0, state="interrupted", exit_code=130, steps=5)
    fake.event("run_resumed", 5000.0, command=[], changes={})
    fake.event("attempt_started", 2.0, attempt=2)
    fake.event("checkpoint_committed", 18.0, step=7)
    fake.event("run_resumed", 5000.0, command=[], changes={})  # the session before was killed outright
    fake.event("run_ended", 10.0, state="done", exit_code=0, steps=9)
    fake.events.close()
    assert gather(fake.run).wall_s == pytest.approx(100.0 + 20.0 + 10.0)
