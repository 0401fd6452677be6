"""The gate in front of the board: who may ask, for what, and what never comes out."""

from __future__ import annotations

import os
import re
import stat
import subprocess
import sys
import time
from dataclasses import replace
from urllib.parse import quote

import pytest

from fakes.asgi import ask
from fakes.run_fixture import FakeRun, write_run
from headway.errors import UsageError
from headway.telemetry import list_rows
from headway.ui.board import Gate, find_token, make_app, serve
from headway.ui.board.auth import OPEN
from headway.ui.board.logs import read_window
from headway.ui.board.serve import Place, hosts_of
from headway.ui.board.store import run_id
from headway.ui.samples import list_samples, read_picture

TOKEN = "t" * 43
HOSTS = frozenset({"127.0.0.1:8787", "localhost:8787", "[::1]:8787"})
CANARY = "canary-7c1e55d2"


def routes(look):
    """Return an address for every route of the application itself."""
    found = [route.path for route in look.app.routes]
    assert len(found) >= 12
    values = {"{run}": run_id("done_nanochat_1"), "{number:int}": "0", "{tab}": "logs", "{name}": "board.css"}
    for name, value in values.items():
        found = [path.replace(name, value) for path in found]
    return found


def test_without_the_token_every_route_is_401(board):
    for path in (*routes(board), "/nothing", OPEN + "guess", "//", "/static/../../auth.py"):
        answer = board.bare(path)
        assert answer.code == 401, path
        assert "nanochat" not in answer.text
    wrong = "headway-board-8787=" + "x" * 43
    assert {board.bare(path, cookie=wrong).code for path in routes(board)} == {401}
    assert board.bare("/", authorization="Bearer " + TOKEN[:-1]).code == 401
    assert board.bare("/", authorization="Bearer " + TOKEN).code == 200


@pytest.mark.parametrize(
    "host",
    [
        "",
        "evil.example",
        "localhost.evil:8787",
        "localhost:8788",
        "localhost",
        "127.0.0.1.:8787",
        "localhost.:8787",
        "127.0.0.1:8787.evil",
        "[::1]:80",
        "::1:8787",
        "0.0.0.0:8787",
        "user@localhost:8787",
        "localhost:8787 ",
        "127.1:8787",
        "2130706433:8787",
    ],
)
def test_a_foreign_host_is_403_even_with_the_token(board, host):
    for path in routes(board):
        assert board.get(path, host=host).code == 403, path


def test_two_hosts_are_refused_and_ours_are_taken(board):
    for host in HOSTS:
        assert board.get("/api/runs", host=host).code == 200
    assert board.get("/api/runs", host="LOCALHOST:8787").code == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "FOO"])
@pytest.mark.parametrize("origin", [None, "https://evil.example", "null", "http://127.0.0.1:8787"])
def test_nothing_but_get_is_taken_from_whatever_origin(board, method, origin):
    headers = {} if origin is None else {"origin": origin}
    assert {board.get(path, method=method, **headers).code for path in routes(board)} == {403}


def test_a_get_from_another_origin_is_refused(board):
    for origin in ("https://evil.example", "null", "http://localhost.evil:8787", "file://"):
        assert board.get("/api/runs", origin=origin).code == 403
    assert board.get("/api/runs", origin="http://localhost:8787").code == 200


def test_a_code_opens_once_and_not_after_its_time():
    now = [0.0]
    gate = Gate(_never, token=TOKEN, hosts=HOSTS, cookie="c", clock=lambda: now[0])
    code = gate.make_code()
    answer = ask(gate, OPEN + code)
    assert (answer.code, answer.headers["location"]) == (303, "/")
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie and "samesite=strict" in cookie and TOKEN in answer.headers["set-cookie"]
    assert ask(gate, OPEN + code).code == 401
    late = gate.make_code()
    now[0] = 601.0
    assert ask(gate, OPEN + late).code == 401
    live = gate.make_code()
    for at in range(31):
        ask(gate, f"{OPEN}wrong{at}")
    assert ask(gate, OPEN + live).code == 401, "a code still works after thirty wrong ones"


async def _never(scope, receive, send):
    raise AssertionError("nobody comes here")


def test_every_answer_is_strict_about_scripts_frames_types_and_referrers(board):
    for path in (*routes(board), "/nothing"):
        for answer in (board.get(path), board.bare(path)) if path != "/stream" else (board.bare(path),):
            policy = answer.headers["content-security-policy"]
            assert "default-src 'none'" in policy and "script-src 'self'" in policy and "unsafe" not in policy
            assert "frame-ancestors 'none'" in policy
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert answer.headers["referrer-policy"] == "no-referrer"
            assert not any(name.startswith("access-control") for name in answer.headers)


def test_pages_have_no_inline_script_style_or_handler_and_load_only_from_here(board):
    for path in (*(path for path in routes(board) if path != "/stream"), f"/run/{run_id('failed_atlas_3')}/findings"):
        text = board.get(path).text
        if "<html" not in text:
            continue
        scripts = set(re.findall(r"<script[^>]*>[^<]*", text))
        own = {'<script src="/static/board.js" defer>', '<script src="/static/charts.js" type="module">'}
        assert scripts <= own and '<script src="/static/board.js" defer>' in scripts
        assert " style=" not in text and "<style" not in text and " onclick" not in text and "javascript:" not in text
        assert "http://" not in text and "https://" not in text


def test_limits_on_address_and_body(board):
    assert board.get("/?q=" + "x" * 3000).code == 414
    assert board.get("/", content_length="5").code == 413
    assert board.get("/", transfer_encoding="chunked").code == 413
    assert board.get("/?at=" + "9" * 400).code == 200


TRAVERSAL = [
    f"{lead}{dots * depth}{end}"
    for lead in ("", "/", "a/")
    for dots in ("../", "..\\", "%2e%2e/", "..%2f", "%252e%252e%252f", "..;/", "....//", "\u2024\u2024/")
    for depth in (1, 3, 6)
    for end in ("secret.txt", "secret.txt%00.png", "secret.txt;x")
]


def test_no_traversal_leaves_the_runs(empty):
    (empty.out.parent / "secret.txt").write_text(CANARY)
    run = write_run(empty.out / "r")
    (run.root / "predictions").mkdir()
    (run.root / "predictions" / "link.txt").symlink_to(empty.out.parent / "secret.txt")
    (run.root / "predictions" / "link.png").symlink_to(empty.out.parent / "secret.txt")
    (run.root / "ranks" / "7").symlink_to(empty.out.parent)
    assert len(TRAVERSAL) >= 200
    one = run_id("r")
    for at, word in enumerate(TRAVERSAL):
        shapes = ["/{}", "/run/{}/logs", f"/run/{one}/{{}}", f"/run/{one}/sample/{{}}", "/static/{}", "/api/run/{}"]
        path = shapes[at % len(shapes)].format(word)
        for given in (path, f"/run/{one}/logs?rank={quote(word)}", f"/compare?runs={quote(word)}"):
            assert CANARY not in empty.get(given).text, given
    assert CANARY not in empty.run("r", "/samples").text
    assert empty.get(f"/run/{one}/sample/0").code == 404


def test_a_log_that_is_a_link_or_a_pipe_is_not_read(empty):
    run = write_run(empty.out / "r")
    (empty.out.parent / "secret.txt").write_text(CANARY)
    run.log.unlink()
    os.mkfifo(run.log)
    began = time.monotonic()
    assert empty.run("r", "/logs").code == 200
    assert time.monotonic() - began < 5


def test_secrets_of_log_config_command_and_incident_are_hidden(empty):
    token = "hf_" + "Q7zR" * 6
    fake = FakeRun(empty.out / "r")
    fake.begin()
    fake.train(1, 1, 20)
    fake.crash(1, 0, f"HfHubHTTPError: token {token}", f"Traceback\n  login(token='{token}')")
    fake.end("failed", 5)
    fake.run.log.write_text(f"[0] using {token}\n[0] --password hunter2-long-one\n")
    command = fake.run.command.read_text().replace('"headway",', f'"headway", "--api-key={token}",', 1)
    fake.run.command.write_text(command)
    job = fake.run.job.read_text().replace('"seed": 0', f'"seed": 0, "api_token": "{token}"')
    fake.run.job.write_text(job)
    tabs = ("", "/ranks", "/logs", "/logs?q=using", "/findings", "/config", "/plan", "/samples")
    paths = [f"/run/{run_id('r')}{tab}" for tab in tabs]
    paths += [path.replace(run_id("done_nanochat_1"), run_id("r")) for path in routes(empty) if path != "/stream"]
    for path in (*paths, f"/compare?runs={run_id('r')},{run_id('r')}"):
        body = empty.get(path).body
        assert token.encode() not in body and b"hunter2-long-one" not in body, path


def test_the_token_file_is_private_and_an_unsafe_one_is_refused(tmp_path):
    folder = tmp_path / "state" / "headway"
    token = find_token(folder)
    assert len(token) >= 43 and find_token(folder) == token
    assert stat.S_IMODE((folder / "board-token").stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    (folder / "board-token").chmod(0o644)
    with pytest.raises(UsageError) as refused:
        find_token(folder)
    assert refused.value.code == "board/token-unsafe"
    (folder / "board-token").unlink()
    (folder / "board-token").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UsageError):
        find_token(folder)
    assert not (tmp_path / "elsewhere").exists()


def test_only_loopback_names_mean_a_board_on_loopback():
    hosts = hosts_of(Place(host="127.0.0.1", port=9))
    assert hosts == {"127.0.0.1:9", "localhost:9", "[::1]:9"}
    assert hosts_of(Place(host="10.0.0.5", port=9)) == {"10.0.0.5:9"}


def test_hostile_names_and_values_stay_text(empty):
    evil = '"><script>alert(1)</script><img src=x onerror=alert(1)>\u202e'
    fake = FakeRun(empty.out / evil.replace("/", "\u2215"))
    fake.begin()
    fake.train(1, 1, 20)
    fake.event("validation", step=20, measures={evil: 1.0, "</svg><script>": "x"}, best=True, measure=evil)
    fake.event("finding", code=evil, key=evil, facts={evil: evil})
    fake.event("warning", code="launch/log-gap", facts={"path": evil, "why": evil})
    fake.crash(1, 0, evil, evil)
    fake.end("failed", 5, evil)
    fake.run.log.write_text(f"[0] {evil}\n[0] \x1b]8;;javascript:alert(1)\x07x\x1b[31m\n")
    name = fake.run.name
    for path in ("/", "/machine", f"/compare?runs={run_id(name)}"):
        assert "<script>alert" not in empty.get(path).text and "<img src=x" not in empty.get(path).text
    for tab in (
        "",
        "/ranks",
        "/logs",
        "/logs?q=script",
        "/findings",
        "/config",
        "/checkpoints",
        "/samples",
        "/devices",
    ):
        text = empty.run(name, tab).text
        assert "<script>alert" not in text and "<img src=x" not in text and "\x1b" not in text, tab
        assert "</svg><script>" not in text
    lines = empty.get("/metrics").text.splitlines()
    assert all(line.startswith(("#", "headway_", "DCGM_")) for line in lines)


def test_a_sample_that_becomes_a_link_after_it_was_listed_is_not_read(empty):
    run = write_run(empty.out / "r")
    secret = empty.out.parent / "secret.png"
    secret.write_text(CANARY)
    (run.root / "samples").mkdir()
    picture = run.root / "samples" / "a.png"
    picture.write_bytes(b"picture")
    (sample,) = list_samples(run)
    assert read_picture(sample) == b"picture"
    picture.unlink()
    picture.symlink_to(secret)
    assert read_picture(sample) is None
    (run.root / "samples").rename(run.root / "moved")
    (run.root / "samples").symlink_to(empty.out.parent)
    secret.rename(empty.out.parent / "a.png")
    assert read_picture(sample) is None, "a folder on the way has become a link"


@pytest.mark.skipif(os.getuid() != 0, reason="ONLY ROOT CAN BECOME ANOTHER USER: their reading is not tried")
def test_another_user_cannot_read_the_token(tmp_path):
    for folder in (tmp_path, tmp_path.parent, tmp_path.parent.parent):
        folder.chmod(0o755)
    path = tmp_path / "state" / "headway"
    find_token(path)
    steal = "import os, sys; os.setgroups([]); os.setgid(65534); os.setuid(65534); print(open(sys.argv[1]).read())"
    stolen = subprocess.run(
        [sys.executable, "-c", steal, str(path / "board-token")], capture_output=True, text=True, check=False
    )
    assert stolen.stdout == "" and "PermissionError" in stolen.stderr


def test_streams_lines_labels_and_headers_are_limited(empty, monkeypatch):
    run = write_run(empty.out / "r")
    run.log.write_text("[0] " + "x" * 100_000 + "\n")
    assert max(len(line.text) for line in read_window(run, None, None).lines) <= 2000
    rows = [replace(row, state="running", name=f"live{at}") for at in range(70) for row in list_rows(empty.out)]
    monkeypatch.setattr("headway.ui.board.store.list_rows", lambda out: rows)
    labels = set(re.findall(r'headway_step\{run="([^"]+)"', empty.get("/metrics").text))
    assert len(labels) == 64
    monkeypatch.setattr("headway.ui.board.app._MOST_STREAMS", 0)
    assert empty.get("/stream").code == 503
    assert serve._MOST_HEADER <= 1 << 16 and serve._MOST_CLIENTS <= 1024


def test_there_is_nothing_to_control(board):
    """No route changes anything: all are GET, and the words of control are 404 whoever asks."""
    assert {tuple(sorted(route.methods)) for route in board.app.routes} == {("GET", "HEAD")}
    for word in ("stop", "save", "start", "run", "delete", "control", "new"):
        assert board.get(f"/api/run/{run_id('done_nanochat_1')}/{word}").code == 404
        assert board.get(f"/{word}").code == 404


@pytest.mark.parametrize("num", ["NaN", '"x"', "1e400", "null", "-3"])
def test_a_reading_with_an_odd_count_of_readings_is_shown(tmp_path, num):
    """Issue 10: `ValueError` on the page of the devices."""
    run = write_run(tmp_path / "runs" / "odd_1")
    run.devices.write_text(f'{{"t": 1760000000, "n": {num}, "host": {{"cpu": 4.0}}}}\n')
    assert ask(make_app(tmp_path / "runs"), f"/run/{run_id('odd_1')}/devices").code == 200
