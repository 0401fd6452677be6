"""The board in a real browser over real sockets: drawn, live, by keyboard, without scripts, and under attack."""

from __future__ import annotations

import io
import json
import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import psutil
import pytest
from PIL import Image

from fakes.run_fixture import FakeRun, write_live_run, write_run
from headway.telemetry import EventLog, MetricsWriter
from headway.ui.board.app import BUILT
from headway.ui.board.store import run_id

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
EVIL = "<img src=x onerror=alert(document.domain)><script>alert(1)<∕script>'\"${7*7}{{7*7}}"
DONE, LIVE = "done_nanochat_1", "live_nanochat_2"


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    folder = tmp_path_factory.mktemp("board") / "runs"
    write_run(folder / DONE)
    write_live_run(folder / LIVE)
    evil = FakeRun(folder / EVIL)
    evil.begin()
    evil.train(1, 1, 40)
    evil.event("validation", step=40, measures={EVIL: 1.0}, best=True, measure=EVIL)
    evil.event("finding", code="devices/xid", key="0", facts={"gpu": EVIL, "xid": EVIL}, since=evil.t)
    evil.crash(1, 0, EVIL, EVIL)
    evil.run.log.write_text(f"[0] {EVIL}\n[0] \x1b]0;owned\x07 javascript:alert(1)\n")
    (evil.run.root / "predictions").mkdir()
    (evil.run.root / "predictions" / "page.txt").write_text(EVIL)
    (evil.run.root / "predictions" / "fake.png").write_text(
        "<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>"
    )
    evil.end("failed", 5, EVIL)
    return folder


@pytest.fixture(scope="module")
def server(out, tmp_path_factory):
    state = tmp_path_factory.mktemp("state")
    command = [sys.executable, "-m", "headway", "board", "--runs", str(out), "--port", "0", "--json"]
    env = {**os.environ, "XDG_STATE_HOME": str(state)}
    with (
        (state / "errors").open("wb") as errors,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, stdin=subprocess.DEVNULL, env=env) as process,
    ):
        told = json.loads(process.stdout.readline())
        yield {
            **told,
            "pid": process.pid,
            "token": (state / "headway" / "board-token").read_text().strip(),
            "errors": state / "errors",
        }
        process.terminate()


@pytest.fixture(scope="module")
def browser():
    if CHROMIUM is None:
        pytest.skip("NO CHROMIUM ON THIS MACHINE: the board is not tried in a browser (apt install chromium)")
    api = pytest.importorskip("playwright.sync_api", reason="NO PLAYWRIGHT: the board is not tried in a browser")
    with api.sync_playwright() as driver:
        found = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield found
        found.close()


@pytest.fixture
def visit(browser, server):
    """Open pages as the owner; whatever a console says or a script asks for is kept."""
    kept = []
    trouble = []

    def make(**settings):
        context = browser.new_context(**settings)
        host = server["address"]
        context.add_cookies(
            [{"name": f"headway-board-{host.rpartition(':')[2]}", "value": server["token"], "url": host}]
        )
        kept.append(context)
        page = context.new_page()
        page.on("console", lambda one: trouble.append(one.text) if one.type == "error" else None)
        page.on("pageerror", lambda err: trouble.append(str(err)))
        page.on("dialog", lambda one: (trouble.append(f"dialog {one.message}"), one.dismiss()))
        page.on("request", lambda one: trouble.append(one.url) if not one.url.startswith(host) else None)
        page.trouble = trouble
        return page

    yield make
    for context in kept:
        context.close()


def pages(name):
    tabs = ("", "/ranks", "/devices", "/logs", "/checkpoints", "/findings", "/plan", "/samples", "/config")
    return [f"/run/{run_id(name)}{tab}" for tab in tabs]


def test_the_board_listens_on_loopback_alone(server):
    # 127.0.0.2 is this machine as well: a server on every address answers there, one on 127.0.0.1 does not.
    port = int(server["address"].rpartition(":")[2])
    socket.create_connection(("127.0.0.1", port), timeout=5).close()
    with socket.create_server(("0.0.0.0", 0)) as open_to_all:
        socket.create_connection(("127.0.0.2", open_to_all.getsockname()[1]), timeout=5).close()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.2", port), timeout=5)
    assert server["token"] not in " ".join(psutil.Process(server["pid"]).cmdline())


def test_the_printed_address_opens_once_and_leaves_no_token_in_the_address(browser, server):
    context = browser.new_context()
    page = context.new_page()
    page.goto(server["open"])
    assert page.url == server["address"] + "/" and page.locator("table.runs tbody tr").count() == 3
    (cookie,) = [one for one in context.cookies() if one["value"] == server["token"]]
    assert cookie["httpOnly"] and cookie["sameSite"] == "Strict"
    assert page.evaluate("document.cookie") == ""
    context.close()
    other = browser.new_context()
    assert other.new_page().goto(server["open"]).status == 401
    other.close()


def test_the_board_writes_down_neither_its_token_nor_a_code(visit, server):
    page = visit()
    page.goto(server["address"])
    assert page.evaluate("document.referrer") == "" and server["token"] not in page.content()
    written = server["errors"].read_text()
    assert server["token"] not in written and server["open"].rpartition("/")[2] not in written


@pytest.mark.parametrize(("width", "theme", "lang"), [(390, "dark", "zh"), (820, "light", "en"), (1440, "dark", "en")])
def test_every_page_fits_without_an_error(visit, server, width, theme, lang):
    page = visit(viewport={"width": width, "height": 900})
    for path in ("/", f"/compare?runs={run_id(DONE)},{run_id(LIVE)}", "/machine", *pages(LIVE)):
        page.goto(f"{server['address']}{path}{'&' if '?' in path else '?'}theme={theme}&lang={lang}")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path
        dark = page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(14, 17, 22)"
        assert dark == (theme == "dark")
        shown = page.locator("main").inner_text()
        assert ("训练" in shown) == (lang == "zh"), path
    assert page.trouble == []


def test_charts_are_really_drawn_also_without_scripts(visit, server):
    page = visit(viewport={"width": 1200, "height": 900}, java_script_enabled=False)
    page.goto(f"{server['address']}/run/{run_id(DONE)}?theme=light")
    image = page.locator("figure svg").first.screenshot()
    assert count_blue(image) > 300, "the loss curve has no pixels"
    assert page.locator("svg").count() > 8
    page.goto(f"{server['address']}/run/{run_id(DONE)}/logs?q=ready")
    assert page.locator("ol.lines li").count() == 2


def count_colour(png):
    """Return how many pixels are neither grey nor white."""
    pixels = np.asarray(Image.open(io.BytesIO(png)).convert("RGB")).astype(int)
    return int((pixels.max(axis=2) - pixels.min(axis=2) > 60).sum())


def count_blue(png):
    pixels = np.asarray(Image.open(io.BytesIO(png)).convert("RGB")).astype(int)
    return int(((pixels[..., 2] > pixels[..., 0] + 60) & (pixels[..., 2] > pixels[..., 1] + 40)).sum())


NEEDS_CHARTS = pytest.mark.skipif(
    not (BUILT / "charts.js").is_file(),
    reason="THE CHARTS ARE NOT BUILT: npm --prefix web run setup:dev (Node.js 20 or newer)",
)


@NEEDS_CHARTS
def test_charts_are_drawn_read_zoomed_and_kept_in_the_address(visit, server):
    page = visit(viewport={"width": 1300, "height": 900})
    page.goto(f"{server['address']}/run/{run_id(DONE)}?theme=light")
    page.wait_for_selector("figure[data-figure=loss] canvas")
    figures = page.locator("figure[data-figure]")
    assert page.locator(".chart canvas").count() == figures.count() >= 7
    for at in range(figures.count()):
        assert count_colour(figures.nth(at).locator("canvas").screenshot()) > 60, f"chart {at} has no pixels"
    page.evaluate("scrollTo(0, 0)")
    area = page.locator("figure[data-figure=loss] .u-over").bounding_box()
    page.mouse.move(area["x"] + area["width"] / 2, area["y"] + 40)
    tip = page.locator("figure[data-figure=loss] .chart-tip")
    tip.get_by_text("smoothed").wait_for(timeout=10_000)
    assert abs(int(tip.inner_text().split()[0]) - 200) <= 2
    page.mouse.move(area["x"] + area["width"] * 0.25, area["y"] + 40)
    page.mouse.down()
    page.mouse.move(area["x"] + area["width"] * 0.5, area["y"] + 60, steps=4)
    page.mouse.up()
    page.wait_for_function("location.hash.startsWith('#z=')")
    page.locator("[data-choice='log=1']").click()
    page.locator("[data-choice='x=time']").click()
    assert "x=time" in page.url and "log=1" in page.url and "#z" not in page.url
    page.reload()
    page.wait_for_selector(".chart canvas")
    assert page.locator("[data-choice='x=time'][aria-current]").count() == 1
    page.locator("figure[data-figure=loss] .chart").focus()
    for key in ("ArrowRight", "+", "+"):
        page.keyboard.press(key)
    page.wait_for_function("location.hash.startsWith('#z=')")
    page.keyboard.press("Escape")
    page.wait_for_function("location.hash === ''")
    assert page.trouble == []


@NEEDS_CHARTS
def test_runs_lie_over_each_other_and_devices_are_charts(visit, server):
    page = visit(viewport={"width": 1300, "height": 900})
    page.goto(f"{server['address']}/compare?runs={run_id(DONE)},{run_id(LIVE)}&x=tokens")
    page.wait_for_selector("figure[data-figure=loss] canvas")
    assert page.locator(".chart").count() >= 3 and page.trouble == []


@pytest.mark.slow
def test_no_page_has_a_serious_fault_of_access(visit, server):
    source = Path(__file__).parents[2] / "web" / "node_modules" / "axe-core" / "axe.min.js"
    if not source.is_file():
        pytest.skip("NO AXE-CORE: the pages are not tried for access (npm --prefix web run setup:dev)")
    page = visit(viewport={"width": 1300, "height": 900})
    found = set()
    overview, *_, config = pages(DONE)
    light = ("/", "/machine", overview, f"{overview}/logs", f"{overview}/findings", config)
    for theme, paths in (("light", light), ("dark", (f"/run/{run_id(LIVE)}", f"{overview}/checkpoints"))):
        for path in paths:
            page.goto(f"{server['address']}{path}?theme={theme}")
            page.evaluate(source.read_text())
            told = page.evaluate("axe.run(document, {resultTypes: ['violations'], runOnly: ['wcag2a', 'wcag2aa']})")
            found |= {
                (one["id"], path.rpartition("/")[2], theme, one["nodes"][0]["html"][:140])
                for one in told["violations"]
                if one["impact"] in ("serious", "critical")
            }
    assert found == set()


def test_a_live_page_follows_the_run(visit, server, out):
    page = visit(viewport={"width": 1000, "height": 800})
    page.goto(f"{server['address']}/run/{run_id(LIVE)}")
    page.wait_for_selector("#live:not([hidden])")
    assert "120" in page.locator(".head").inner_text()
    page.evaluate("window.stays = true")
    root = out / LIVE
    writer = MetricsWriter(root / "ranks" / "0" / "metrics.jsonl", 1)
    for step in range(121, 131):
        writer.add(step, step * 16, 1.25, 0.01, 0.5, 1_760_000_100.0 + step, 0.1)
    writer.close()
    log = EventLog(root / "events.jsonl")
    log.append("finding", code="devices/disk-low", key="", facts={"free": "1.5 GiB"}, since=time.time())
    log.close()
    page.locator(".head", has_text="130").wait_for(timeout=20_000)
    page.locator(".finding", has_text="only 1.5 GiB left").first.wait_for(timeout=20_000)
    assert page.evaluate("window.stays") is True, "the page was loaded again and not kept up to date"
    assert page.trouble == []


def test_hostile_names_metrics_and_lines_run_nothing(visit, server):
    page = visit(viewport={"width": 1200, "height": 900})
    for path in ("/", "/machine", f"/compare?runs={run_id(EVIL)},{run_id(DONE)}", *pages(EVIL)):
        page.goto(server["address"] + path)
        assert page.locator("img[src='x']").count() == 0 and page.locator("main script").count() == 0, path
        assert "49" not in page.title()
    page.goto(f"{server['address']}/run/{run_id(EVIL)}")
    assert EVIL in page.locator("h1").inner_text()
    assert [one for one in page.trouble if "dialog" in one or "alert" in one] == []


def test_the_policy_stops_an_inline_script(visit, server):
    page = visit()
    page.goto(server["address"])
    page.evaluate(
        "() => { const one = document.createElement('script'); one.textContent = 'window.ran = 1';"
        " document.body.append(one); const image = document.createElement('div');"
        " image.setAttribute('onclick', 'window.ran = 1'); document.body.append(image); image.click(); }"
    )
    assert page.evaluate("window.ran === undefined")
    assert any("Content Security Policy" in one for one in page.trouble)


def test_keys_alone_reach_a_run_and_its_pages(visit, server):
    page = visit(viewport={"width": 1200, "height": 900})
    page.goto(server["address"])
    page.keyboard.press("/")
    page.keyboard.type("done")
    page.keyboard.press("Enter")
    page.wait_for_url("**/?q=done*")
    for _ in range(40):
        page.keyboard.press("Tab")
        if DONE in page.evaluate("document.activeElement.textContent"):
            break
    page.keyboard.press("Enter")
    page.wait_for_url("**/run/*")
    page.keyboard.press("]")
    page.wait_for_url("**/ranks")
    assert page.trouble == []
