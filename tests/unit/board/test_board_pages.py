"""Every page of the board, drawn without a script, in both languages."""

from __future__ import annotations

import functools
import json
import re

import pytest

from fakes.asgi import ask
from fakes.run_fixture import FakeRun
from headway.messages import LANGUAGES
from headway.process import make_lease
from headway.telemetry import DeviceLog
from headway.ui.board import make_app
from headway.ui.board.app import TABS
from headway.ui.board.logs import first_error, read_window, search
from headway.ui.board.store import run_id
from headway.ui.sparkline import read_sparkline

DONE, LIVE, FAILED = "done_nanochat_1", "live_nanochat_2", "failed_atlas_3"


@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize("name", [DONE, LIVE, FAILED])
@pytest.mark.parametrize("tab", TABS)
def test_every_page_of_every_run_is_drawn(board, tab, name, lang):
    answer = board.run(name, "" if tab == "overview" else f"/{tab}", accept_language=lang)
    assert answer.code == 200 and f'<html lang="{lang}"' in answer.text
    assert name in answer.text and "{{" not in answer.text
    assert 'aria-current="page"' in answer.text


def test_the_table_has_every_run_with_state_step_and_curve(board):
    page = board.get("/").text
    assert page.count('class="spark"') == 3
    assert [f'href="/run/{run_id(name)}"' in page for name in (DONE, LIVE, FAILED)] == [True] * 3
    assert {"running", "done", "failed"} <= set(re.findall(r'class="chip (\w+)"', page))


def test_a_search_and_a_state_leave_what_they_name(board):
    assert run_id(FAILED) in board.get("/?q=atlas").text and run_id(DONE) not in board.get("/?q=atlas").text
    assert run_id(DONE) not in board.get("/?state=failed").text
    assert "No run matches" in board.get("/?q=nothing-like-it").text


def test_the_overview_draws_the_loss_as_the_address_asks(board):
    plain = board.run(DONE).text
    drawn = {query: board.run(DONE, query).text for query in ("?x=time", "?x=tokens", "?log=1", "?smooth=off")}
    curves = {page: re.findall(r'<path class="curve s0" d="([^"]+)"', page)[0] for page in (plain, *drawn.values())}
    assert len(set(curves.values())) == 4  # tokens are steps in another unit
    assert ">800k</text>" in drawn["?x=tokens"] and ">800k</text>" not in plain
    assert board.run(DONE, "?x=nonsense&smooth=9&log=x").text.count("<svg") == plain.count("<svg")


def test_devices_findings_and_incidents_are_shown(board):
    devices = board.run(DONE, "/devices").text
    assert "NVIDIA H20" in devices and "7 ann python 70000" in devices and 'class="h5"' in devices
    findings = board.run(FAILED, "/findings").text
    assert "GPU 1 stopped answering (lost)" in findings and "OutOfMemoryError" in findings
    assert "nvidia-smi -q -i 1" in findings


def test_a_checkpoint_has_the_command_that_resumes_from_it(board):
    assert f"headway resume {DONE} --step 400" in board.run(DONE, "/checkpoints").text


def test_compare_overlays_runs_and_names_the_step_where_they_part(empty):
    for name in ("a", "b"):
        fake = FakeRun(empty.out / name)
        fake.begin()
        fake.train(1, 1, 30)
        fake.end()
    path = empty.out / "b" / "ranks" / "0" / "metrics.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    lines[20] = re.sub(r'"loss":[^,]+', '"loss":9.5', lines[20])
    path.write_text("".join(lines))
    page = empty.get(f"/compare?runs={run_id('a')},{run_id('b')},unknown").text
    assert "before step 21" in page
    drawn = re.findall(r'data-figure="(\w+)".*?</figure>', page, re.DOTALL)
    assert drawn == ["loss", "speed", "norm", "lr"] and len(re.findall(r'<path class="curve s[04]"', page)) == 8
    told = json.loads(empty.get(f"/api/compare?runs={run_id('a')},{run_id('b')}").text)
    assert [line["label"] for line in told["figures"][0]["lines"]] == ["a", "b"] and len(told["axes"]) == 2


def test_the_script_is_told_every_figure_that_the_server_draws(board):
    for tab, api in (("", "curves"), ("/devices", "devices")):
        drawn = re.findall(r'data-figure="([\w-]+)"', board.run(DONE, tab).text)
        told = json.loads(board.get(f"/api/run/{run_id(DONE)}/{api}", accept_language="zh").text)
        assert len(drawn) >= 4 and sorted(one["key"] for one in told["figures"]) == sorted(drawn)
    curves = json.loads(board.get(f"/api/run/{run_id(DONE)}/curves").text)
    (axes,) = curves["axes"]
    assert [axes[name][-1] for name in ("step", "samples", "tokens")] == [400, 6400, 819200]
    lines = {line["kind"]: line for line in curves["figures"][0]["lines"]}
    mean, every = lines["mean"], lines["every"]
    assert mean["y"] == every["y"] and len(mean["x"]) == 400, "a short run is told step by step, unsmoothed"


def test_numbers_are_there_as_json_and_for_prometheus(board):
    runs = json.loads(board.get("/api/runs").text)["runs"]
    assert {one["state"] for one in runs} == {"running", "done", "failed"}
    assert json.loads(board.get(f"/api/run/{run_id(DONE)}").text)["step"] == 400
    curve = json.loads(board.get(f"/api/run/{run_id(DONE)}/metrics").text)
    assert len(curve["step"]) == len(curve["loss"]) == 400
    text = board.get("/metrics").text
    assert 'headway_runs{state="done"} 1.0' in text and f'headway_step{{run="{LIVE}"}} 120.0' in text


def test_prometheus_reads_dcgms_names_with_types_and_help(empty):
    fake = FakeRun(empty.out / 'a "run"')
    fake.train(1, 1, 5)
    log = DeviceLog(fake.run.devices)
    log.add(
        {"t": 1.0, "gpus": [{"i": 0, "util": 97.0, "mem": 3 << 30, "temp": 61, "sm": 50.0, "tensor": 25.0, "xid": 31}]}
    )
    log.close()
    lease = {**make_lease(), "attempt": 1}
    fake.run.lease.write_text(json.dumps(lease))
    text = empty.bare("/metrics", authorization=f"Bearer {'t' * 43}").text
    found = read_exposition(text)
    wanted = {"GPU_UTIL": 97.0, "FB_USED": 3072.0, "GPU_TEMP": 61.0, "XID_ERRORS": 31.0}
    assert {name: found[f"DCGM_FI_DEV_{name}"][0][1] for name in wanted} == wanted
    assert found["DCGM_FI_PROF_SM_ACTIVE"][0] == ({"gpu": "0", "run": 'a "run"'}, 0.5)
    assert empty.bare("/metrics").code != 200, "nobody reads it without the token"


def read_exposition(text):
    """Read the text as Prometheus does: HELP and TYPE once and before the samples, which are together."""
    found, kind, told = {}, None, set()
    assert text.endswith("\n")
    for line in text.splitlines():
        if line.startswith("# HELP "):
            kind = line.split(" ", 3)[2]
            assert kind not in told and line.split(" ", 3)[3]
            told.add(kind)
        elif line.startswith("# TYPE "):
            assert line.split(" ")[2:] == [kind, "gauge"]
        else:
            name, labels, value = re.fullmatch(r"(\w+)(?:\{(.*)\})? (\S+)", line).groups()
            assert name == kind
            pairs = re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', labels or "")
            found.setdefault(name, []).append(({key: one.replace('\\"', '"') for key, one in pairs}, float(value)))
    return found


def test_without_the_built_script_the_page_stays_and_says_how_to_get_it(board, tmp_path, monkeypatch):
    monkeypatch.setattr("headway.ui.board.app.BUILT", tmp_path)
    look = functools.partial(ask, make_app(board.out))
    page = look(f"/run/{run_id(DONE)}").text
    assert "charts.js" not in page and "npm --prefix" in page and page.count("<svg") > 8
    assert look("/static/charts.js").code == 404


def test_what_is_not_there_is_404_and_says_so(board):
    for path in ("/nothing", "/run/000000000000", f"/run/{run_id(DONE)}/nothing", "/static/app.py", "/run/../x"):
        assert board.get(path).code == 404
    assert board.get(f"/run/{run_id(DONE)}/sample/7").code == 404


def test_a_log_is_read_in_windows_folded_searched_and_jumped_into(tmp_path):
    fake = FakeRun(tmp_path / "r")
    lines = [f"[{at % 2}] step {at} loss" for at in range(20_000)]
    lines[15_000] = "[1] ValueError: this one"
    lines[15_001:15_003] = ["[0] the same", "[1] the same"]
    fake.run.log.write_text("\n".join(lines) + "\n")
    last = read_window(fake.run, None, None)
    assert last.lines[-1].text == "[1] step 19999 loss" and 0 < len(last.lines) <= 400 and last.end == last.size
    at = first_error(fake.run, None)
    window = read_window(fake.run, None, at)
    assert window.lines[0].text == "[1] ValueError: this one" and window.lines[0].level == "bad"
    assert (window.lines[1].text, window.lines[1].times) == ("[0] the same", 2)
    assert [line.text for line in search(fake.run, None, "VALUEerror").lines] == ["[1] ValueError: this one"]
    assert search(fake.run, None, "step").is_cut and first_error(FakeRun(tmp_path / "s").run, None) is None


def test_a_private_key_over_several_lines_is_hidden(tmp_path):
    fake = FakeRun(tmp_path / "r")
    key = "-----BEGIN RSA PRIVATE KEY-----\nMIIEabcdefgh\nqwertyuiop\n-----END RSA PRIVATE KEY-----"
    fake.run.log.write_text(f"before\n{key}\nafter\n")
    shown = [line.text for line in read_window(fake.run, None, None).lines]
    assert shown[0] == "before" and shown[-1] == "after" and "MIIE" not in " ".join(shown)


def test_a_sparkline_of_a_long_run_reads_little_and_keeps_the_shape(tmp_path):
    path = tmp_path / "metrics.jsonl"
    path.write_text("".join(f'{{"a":1,"step":{at},"loss":{5 - at / 20_000}}}\n' for at in range(60_000)))
    values = read_sparkline(path)
    assert len(values) == 32 and values == sorted(values, reverse=True)
    assert values[0] == 5.0 and values[-1] < 2.1
    assert read_sparkline(tmp_path / "absent") == []


def test_an_empty_folder_says_how_to_begin(empty):
    assert "headway train" in empty.get("/").text


def test_pages_are_small(board):
    import gzip

    for path in ("/", f"/run/{run_id(DONE)}", f"/run/{run_id(DONE)}/devices"):
        weight = len(gzip.compress(board.get(path).body)) + sum(
            len(gzip.compress(board.get(f"/static/{name}").body)) for name in ("board.css", "board.js", "report.css")
        )
        assert weight < 300_000
