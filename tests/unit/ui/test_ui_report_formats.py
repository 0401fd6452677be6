"""The report as Markdown and JSON, its slider, and the samples it carries."""

from __future__ import annotations

import base64
import json
import re

import pytest

from fakes.run_fixture import FakeRun, write_run
from headway.messages import language, set_language
from headway.ui.report import gather, render, write_report
from headway.ui.report.moments import list_moments

EVIL = "</pre><script>alert(1)</script>| # [x](javascript:alert(1)) `"


def test_the_slider_has_moments_from_the_first_step_to_the_last_and_needs_no_script(tmp_path):
    run = write_run(tmp_path / "r")
    moments = list_moments(gather(run))
    assert (moments[0].step, moments[-1].step) == ("1", "400") and 40 <= len(moments) <= 48
    assert moments[0].height > 0.9 > 0.1 > moments[-1].height
    assert sum(num for one in moments for _, num in one.happened) >= 12 and any(one.is_bad for one in moments)
    page = write_report(run).read_text()
    assert page.count('type="radio" name="moment"') == len(moments) and page.count(" checked>") == 2
    assert "<script" not in page


def test_samples_are_inside_the_page_and_large_ones_are_left_out(tmp_path):
    run = write_run(tmp_path / "r")
    folder = run.root / "predictions"
    folder.mkdir()
    picture = b"\x89PNG\r\n\x1a\n" + bytes(1000)
    (folder / "poster.png").write_bytes(picture)
    (folder / "huge.png").write_bytes(bytes(300 << 10))
    (folder / "story.txt").write_text(EVIL)
    page = write_report(run).read_text()
    assert re.findall(r'src="data:image/png;base64,([^"]+)"', page) == [base64.b64encode(picture).decode()]
    assert "huge.png" not in page and "&lt;script&gt;alert(1)" in page and "<script" not in page
    assert "img-src data:" in page


@pytest.mark.parametrize(("lang", "heading"), [("en", "## Checkpoints"), ("zh", "## 检查点")])
def test_markdown_speaks_one_language_and_nothing_of_a_run_becomes_markup(tmp_path, lang, heading):
    fake = FakeRun(tmp_path / "r")
    fake.begin()
    fake.train(1, 1, 100)
    fake.crash(1, 0, EVIL, EVIL)
    fake.run.log.write_text(f"[0] {EVIL}\n```\n")
    fake.end("failed", 5)
    before = language()
    set_language(lang)
    try:
        text = render(gather(fake.run), "md")
    finally:
        set_language(before)
    assert heading in text and "<span" not in text
    outside = re.sub(r"^(`{3,})text\n.*?^\1$", "", text, flags=re.DOTALL | re.MULTILINE)
    assert "<script>" not in outside and not re.search(r"(?<!\\)\]\(", outside)
    tables = [line for line in outside.splitlines() if line.startswith("|")]
    assert len(tables) > 20 and all(line.endswith("|") for line in tables)


def test_json_has_curve_checkpoints_and_incidents_also_for_a_run_of_a_script(tmp_path):
    told = json.loads(render(gather(write_run(tmp_path / "r")), "json"))
    assert told["schema"] == "report/2" and len(told["curve"]["step"]) == 400
    assert [one["step"] for one in told["checkpoints"] if one["is_there"]] == [300, 400]
    assert told["incidents"][0]["class"] == "rank-killed" and told["state"]["state"] == "done"
    bare = FakeRun(tmp_path / "s")
    bare.event("run_started", command=["headway", "run", "python", "train.py"])
    told = json.loads(render(gather(bare.run), "json"))
    assert told["curve"] == {"step": [], "loss": []}
    assert told["state"]["recipe"] == "nanochat" and told["devices"] == []


def test_no_format_tells_a_secret(tmp_path):
    token = "hf_" + "Q7zR" * 6
    fake = FakeRun(tmp_path / "r")
    fake.begin()
    fake.train(1, 1, 20)
    fake.crash(1, 0, f"login failed for {token}", f"login(token='{token}')")
    fake.end("failed", 5)
    fake.run.log.write_text(f"[0] using {token}\n")
    fake.run.command.write_text(fake.run.command.read_text().replace('"headway",', f'"headway", "{token}",', 1))
    fake.run.job.write_text(fake.run.job.read_text().replace('"seed": 0', '"seed": 0, "api_token": "plain-words"'))
    facts = gather(fake.run)
    for how in ("html", "md", "json"):
        text = render(facts, how)
        assert token not in text and "plain-words" not in text, how
