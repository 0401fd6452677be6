"""What is written down holds no secret, is not open to all, and is not written through planted links."""

from __future__ import annotations

import base64
import json
import urllib.parse
from dataclasses import replace
from pathlib import Path

import pytest

from headway.launch import ForeignLine
from headway.launch.foreign.exec import _program
from headway.launch.foreign.line import LineProgram
from headway.launch.history import History
from headway.launch.job import Job, write_job
from headway.launch.outcome import SilentObserver
from headway.launch.output import AppendFile, RankOutput
from headway.launch.program import Seat
from headway.redact import hide_known, redact, redact_lines, redact_words
from headway.telemetry import EventLog, HeartbeatWriter, MetricsWriter, RunDir, list_rows, new_run_dir

ENVIRON = {"WANDB_API_KEY": "canary-0123456789", "HOME": "/home/user", "DB_PASSWORD": "hunter22"}


@pytest.mark.parametrize(
    "text",
    [
        "WANDB_API_KEY=abcdef python x.py",
        "python x.py --password hunter3 --lr 1",
        "python x.py --hf_token=abcdef",
        "git clone https://user:canary@host/x",
        "ValueError: login with canary-0123456789 failed",
        '+api_key: "canaryword"',
        "Authorization with hf_abcdefghijklmnopqrst",
    ],
)
def test_secrets_are_told_by_name_shape_and_value(text: str) -> None:
    hidden = redact(text, ENVIRON)
    assert "…" in hidden
    assert not any(word in hidden for word in ("abcdef", "hunter", "canary"))


@pytest.mark.parametrize(
    "text",
    [
        "SyntaxError: unexpected token: end of file",
        "python x.py --max_tokens 512 --pad_token <pad> --key-frames 3",
        "KeyError: 'loss'",
        "token count = 5",
        "--token-file /run/secrets/hf",
    ],
)
def test_words_that_only_sound_like_secrets_stay(text: str) -> None:
    assert redact(text, ENVIRON) == text


def test_the_word_behind_a_secret_flag_is_left_out() -> None:
    words = ["python", "x.py", "--password", "P", "--hf_token=abcdef", "--lr", "0.1"]
    assert redact_words(words, {}) == ["python", "x.py", "--password", "…", "--hf_token=…", "--lr", "0.1"]


def test_history_and_job_file_hold_no_secret_but_the_rank_gets_it(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("WANDB_API_KEY", "canary-0123456789")
    log = EventLog(tmp_path / "events.jsonl")
    log.append("incident", text="bad key canary-0123456789", facts={"x": ["--password", "canary"]}, command=["-p"])
    log.close()
    foreign = ForeignLine(
        argv=("python", "x.py", "--password", "canary"), cwd="/", line="python x.py --password canary"
    )
    assert "canary" not in (tmp_path / "events.jsonl").read_text() + json.dumps(foreign.to_json())
    assert foreign.argv[-1] == "canary"


def test_a_new_run_directory_is_private_unless_the_user_says_otherwise(tmp_path: Path, monkeypatch) -> None:
    assert new_run_dir(tmp_path, "a").root.stat().st_mode & 0o777 == 0o700
    monkeypatch.setenv("HEADWAY_SHARE_RUNS", "1")
    assert new_run_dir(tmp_path, "b").root.stat().st_mode & 0o055


def test_links_planted_in_a_run_are_not_written_through(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("precious")
    run = new_run_dir(tmp_path / "runs", "a")
    run.rank(0).mkdir()
    for place in (run.heartbeat(0), run.metrics(0), run.events, tmp_path / "runs" / "index.sqlite"):
        place.symlink_to(precious)
    with pytest.raises(OSError):
        HeartbeatWriter(run.heartbeat(0), 1)
    metrics = MetricsWriter(run.metrics(0), 1)
    metrics.add(1, 1, 1.0, 1.0, 1.0, 1.0, 1.0)
    metrics.close()
    log = EventLog(run.events)
    log.append("run_started", command=[])
    log.close()
    list_rows(tmp_path / "runs")
    assert precious.read_text() == "precious"


def test_a_secret_argument_stays_hidden_when_the_program_prints_it() -> None:
    redact_words(["x.py", "--password", "canary-arg-99", "--hf_token=canary-arg-98"], {})
    assert redact("ValueError: canary-arg-99 and canary-arg-98", {}) == "ValueError: … and …"


def test_a_printed_list_of_arguments_hides_the_value_behind_a_flag():
    text = "['job.py', '--password', 'abcDEF123457', '--lr', '0.1']"
    assert redact(text, {}) == "['job.py', '--password', …, '--lr', '0.1']"


def test_a_secret_inside_the_text_of_an_error_is_hidden():
    assert redact("KeyError: 'db_password=glpat-HX34CG3dz'", {}) == "KeyError: 'db_password=…'"
    assert redact("a=" * 300 + "b", {}) == "a=" * 300 + "b"


BODY = "Zx9kQ2mT7vLp4RwB8nYc"
PEM = f"-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA{BODY}\n{BODY}MIIEpAIBAAKCAQEA\n-----END RSA PRIVATE KEY-----"


@pytest.mark.parametrize(
    "text",
    [
        f"https://hooks.slack.com/services/T000/B000/{BODY}",
        f"https://open.feishu.cn/open-apis/bot/v2/hook/{BODY}",
        f"https://oapi.dingtalk.com/robot/send?access_token={BODY}",
        f"https://qyapi.weixin.qq.com/cgi-bin/webhook/send?key={BODY}",
        f"https://discord.com/api/webhooks/123456/{BODY}",
        f"https://x.blob.core.windows.net/a?sv=2020&sig={BODY}%3D",
        f"DefaultEndpointsProtocol=https;AccountName=x;AccountKey={BODY}==;EndpointSuffix=core",
        f"curl -H 'Authorization: Bearer {BODY}' https://x",
        f"Authorization: Basic {BODY}",
        f"token eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.{BODY}",
        f"machine api.wandb.ai login user password {BODY}",
        f"<settings><password>{BODY}</password></settings>",
        f'{{\\"password\\": \\"{BODY}\\"}}',
        f"mysql -h db -p{BODY} train",
        f"sshpass -p {BODY} ssh node",
        f"python x.py -p {BODY}",
        f"MYSQL_PWD={BODY} python x.py",
        PEM,
    ],
)
def test_secrets_in_more_shapes_are_hidden(text: str) -> None:
    hidden = redact(text, {})
    assert BODY not in hidden and "…" in hidden


@pytest.mark.parametrize(
    "text", ["python x.py -p 8080 -a resnet50 -u user", "docker run -p 8080:80 x", "-p gpu_partition_a100"]
)
def test_short_flags_of_other_things_stay(text: str) -> None:
    assert redact(text, {}) == text and redact_words(text.split(), {}) == text.split()


def test_short_flags_of_passwords_are_hidden_among_arguments() -> None:
    assert redact_words(["curl", "-u", f"me:{BODY}", "-p", "80"], {}) == ["curl", "-u", "me:…", "-p", "80"]
    assert redact_words(["mysql", "-h", "db", f"-p{BODY}"], {}) == ["mysql", "-h", "db", "-p…"]
    assert redact_words(["bash", "-c", f"DB_PASSWORD='{BODY}9' python x.py"], {})[-1] == "DB_PASSWORD=… python x.py"
    assert redact(f"it said {BODY}9", {}) == "it said …"  # from inside of the shell text
    redact_words(["x.py", "--data", "https://user:inTheArgument7@host/x"], {})
    assert redact("it said inTheArgument7", {}) == "it said …"


def test_a_private_key_over_many_lines_of_a_log_is_hidden_also_where_its_beginning_is_cut_off() -> None:
    lines = ["before", *PEM.split("\n"), "after"]
    assert BODY not in "".join(redact_lines(lines))
    assert redact_lines(lines)[0] == "before" and redact_lines(lines)[-1] == "after"
    assert BODY not in "".join(redact_lines(lines[2:]))


def test_known_values_are_hidden_in_every_usual_spelling(monkeypatch) -> None:
    value = 'p&s/w"rd+Zx9kQ2mT7vLp4'
    monkeypatch.setenv("DB_PASSWORD", value)
    monkeypatch.setenv("DATABASE_URL", "postgres://me:inTheAddress7@host/db")
    monkeypatch.setenv("GCP_JSON", json.dumps({"type": "service_account", "client_secret": "inTheJson77"}))
    monkeypatch.setenv("SIGN_PRIVATE_KEY", PEM)
    spelled = [value, json.dumps(value), urllib.parse.quote(value), urllib.parse.quote(value, safe="")]
    spelled += [base64.b64encode(f"{'u' * n}:{value}".encode()).decode() for n in range(4)]
    for text in (*spelled, "login inTheAddress7", "got inTheJson77", *PEM.split("\n")[1:3]):
        assert "…" in hide_known(text.encode()).decode()
        assert not any(part in hide_known(text.encode()).decode() for part in (value, "inThe", BODY, "vLp4"))
    assert hide_known(b"step 1 loss 0.5") == b"step 1 loss 0.5"


def test_a_path_or_a_number_by_the_name_of_a_secret_is_left_in_the_log(monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path))
    monkeypatch.setenv("MAX_TOKEN", "100000")
    text = f"reads {tmp_path} at step 100000".encode()
    assert hide_known(text) == text


def test_the_merged_log_holds_no_secret_of_the_run_and_the_ranks_own_file_is_byte_for_byte(tmp_path, monkeypatch):
    monkeypatch.setenv("WANDB_API_KEY", "canary-0123456789")
    own, merged = (AppendFile(tmp_path / name, lambda *_: None) for name in ("stdout.log", "log"))
    shown: list[bytes] = []
    output = RankOutput(0, own, merged, lambda rank, lines: shown.extend(lines))
    output.feed(b"key canary-0123")
    output.feed(b"456789\nnext\n")
    output.close()
    merged.close()
    assert (tmp_path / "stdout.log").read_bytes() == b"key canary-0123456789\nnext\n"
    assert "key …\n" in (tmp_path / "log").read_text() and "next" in (tmp_path / "log").read_text()
    assert shown == [b"key canary-0123456789", b"next"]  # the terminal shows what the program printed


@pytest.mark.parametrize("more", [0, 30_000])
def test_a_rank_gets_its_whole_line_without_the_directory_or_too_long_for_a_packet(tmp_path, more: int) -> None:
    argv = ("python", "x.py", "--password", "canary-word-1", *["汉字"] * more)
    line = ForeignLine(argv=argv, cwd="/")
    job = Job(program=line, world_size=1, threads=1, devices=None, restarts=0, grace_s=1.0)
    job = replace(job, environment={"SOME_TOKEN": "canary-inline-2"})
    run = RunDir(tmp_path)
    seat = Seat(attempt=1, rank=0, local_rank=0, world_size=1, port=2)
    log = EventLog(run.events)
    order = LineProgram(run, job, line, History(log, SilentObserver())).order(seat).call
    log.close()
    assert len(json.dumps(dict(order))) < 1 << 17
    if more:
        write_job(run, job)
        assert "canary" not in run.job.read_text()
    assert _program(dict(order)) == (list(argv), "/", False)
    assert hide_known(b"printed canary-inline-2") == "printed …".encode()


@pytest.mark.parametrize(
    "text",
    [
        "FEISHU_WEBHOOK=canary-31415 python job.py | cat",
        "python a.py --alert-webhook canary-31415 | tee log",
        "SENTRY_DSN='canary-31415' bash -c 'python x.py'",
        "export AZURE_SAS=canary-31415; python x.py",
        "SESSION_COOKIE=canary-31415 python x.py",
    ],
)
def test_a_secret_in_the_text_of_a_shell_line_is_told_by_the_end_of_its_name(text):
    assert "canary" not in redact(text, {})
    assert "canary" not in " ".join(redact_words(["bash", "-c", text], {}))
    assert "canary" not in " ".join(redact_words(text.split(), {}))


def test_words_that_only_end_alike_are_shown():
    for text in ("the webhook: none", "cookie jar", "connection_refused", "python x.py --compass north --bypass 1"):
        assert redact(text, {}) == text
