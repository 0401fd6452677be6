"""What is written down holds no secret, is not open to all, and is not written through planted links."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from headway.config import redact, redact_words
from headway.launch import Foreign
from headway.telemetry import EventLog, HeartbeatWriter, MetricsWriter, list_rows, new_run_dir

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
    foreign = Foreign(argv=("python", "x.py", "--password", "canary"), cwd="/", line="python x.py --password canary")
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
