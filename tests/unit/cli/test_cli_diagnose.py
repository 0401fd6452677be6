"""`headway diagnose` and `headway explain`: exit codes, JSON, both languages, secrets, escapes, rules of one's own."""

from __future__ import annotations

import io
import json
import sys

import pytest

from fakes.run_fixture import write_run
from headway.cli import main
from headway.telemetry import RunDir

OOM = "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 79.10 GiB total capacity)\n"
OWN = """
category = "my-cluster"
signs = ['FABRIC-9 error on (\\S+)']
[values]
port = 'error on (\\S+)'
[text]
en = "the fabric failed: {text}"
zh = "网络出错：{text}"
[[fix]]
command = "reset-link {port}"
en = "reset it"
zh = "重置"
"""


@pytest.fixture(autouse=True)
def _home(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)


def run(capsys, *words):
    with pytest.raises(SystemExit) as end:
        main(list(words))
    said = capsys.readouterr()
    return end.value.code, said.out, said.err


def test_a_failed_log_gives_cause_evidence_and_fixes(tmp_path, capsys):
    (tmp_path / "a.log").write_text(f"step 1\n{OOM}")
    code, out, _ = run(capsys, "diagnose", "a.log")
    assert code == 5
    assert out.startswith("root cause: the GPU ran out of memory: ") and "[diagnose/device-out-of-memory]" in out
    assert "line 2: RuntimeError: CUDA out of memory" in out and "  1. lower the batch size per GPU" in out
    assert "根本原因：GPU 显存不足" in run(capsys, "--lang", "zh", "diagnose", "a.log")[1]


def test_a_healthy_log_is_no_failure(tmp_path, capsys):
    (tmp_path / "a.log").write_text("step 1 loss 2.0\nstep 2 loss 1.9\n")
    assert run(capsys, "diagnose", "a.log")[:2] == (0, "no failure found in 2 lines of log\n")


def test_json_has_both_languages_and_hides_secrets(tmp_path, capsys):
    (tmp_path / "a.log").write_text("ValueError: bad login, password=hunter2secret for \x1b]0;title\x07 user\n")
    code, out, _ = run(capsys, "diagnose", "a.log", "--json")
    data = json.loads(out)
    assert (code, data["schema"], data["failed"]) == (5, "diagnose/1", True)
    assert data["causes"][0]["category"] == "python-user-bug" and data["causes"][0]["evidence"][0]["line"] == 1
    shown = out + run(capsys, "diagnose", "a.log")[1]
    assert "hunter2secret" not in shown and "\x1b" not in shown


def test_a_pipe_is_read(monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(OOM.encode())))
    assert run(capsys, "diagnose", "-")[0] == 5


def test_a_log_that_is_missing_is_refused(capsys):
    code, _, err = run(capsys, "diagnose", "nowhere.log")
    assert code == 2 and "nowhere.log" in err


def test_rules_of_the_user_are_used_and_wrong_ones_named(tmp_path, capsys):
    folder = tmp_path / "config" / "headway" / "rules"
    folder.mkdir(parents=True)
    (folder / "fabric.toml").write_text(OWN)
    (tmp_path / "a.log").write_text("FABRIC-9 error on mlx5_0\n")
    code, out, _ = run(capsys, "diagnose", "a.log")
    assert code == 5 and "the fabric failed" in out and "reset-link mlx5_0" in out
    (folder / "bad.toml").write_text("category = 3")
    code, _, err = run(capsys, "diagnose", "a.log", "--rules", str(folder))
    assert code == 2 and "bad.toml" in err and "[diagnose/rule-wrong]" in err


def test_a_run_of_ours_is_known_by_its_supervisor_and_its_log(tmp_path, capsys):
    place = RunDir(tmp_path / "runs" / "one")
    place.root.mkdir(parents=True)
    place.job.write_text(json.dumps({"recipe": "nanochat"}))
    place.plan.write_text(json.dumps({"micro_batch": 8, "workers": 2, "world_size": 1}))
    facts = {"attempt": 1, "rank": 1, "class": "device-out-of-memory", "code": "diagnose/device-out-of-memory"}
    events = [
        {"kind": "attempt_started", "t": 1.0, "seq": 0},
        {"kind": "incident", "t": 2.0, "seq": 1, "facts": {"text": OOM.strip(), "type": ""}, **facts},
        {"kind": "run_ended", "t": 3.0, "seq": 2, "state": "failed", "exit_code": 5},
    ]
    place.events.write_text("".join(json.dumps(event) + "\n" for event in events))
    place.log.write_text(f"[rank1]: {OOM}")
    code, out, _ = run(capsys, "diagnose", "one")
    assert code == 5 and "headway resume one batch.per_device=4" in out and "line 1 (rank 1)" in out
    code, _, err = run(capsys, "diagnose", "one", "--apply")
    assert code == 2 and "headway resume one batch.per_device=4" in err


def test_apply_shows_the_difference_and_writes_it(tmp_path, capsys):
    test_a_run_of_ours_is_known_by_its_supervisor_and_its_log(tmp_path, capsys)
    (tmp_path / "my.yaml").write_text("recipe: nanochat\nbatch:\n  per_device: 8  # mine\n")
    (tmp_path / "runs" / "one" / "command.json").write_text(json.dumps({"argv": ["headway", "train", "my.yaml"]}))
    code, out, err = run(capsys, "diagnose", "one", "--apply")
    assert code == 2 and "+  per_device: 4  # mine" in out and "[cli/not-applied]" in err
    assert "per_device: 8" in (tmp_path / "my.yaml").read_text()
    assert run(capsys, "diagnose", "one", "--apply", "--yes")[0] == 5
    assert (tmp_path / "my.yaml").read_text() == "recipe: nanochat\nbatch:\n  per_device: 4  # mine\n"


def test_a_code_is_explained(capsys):
    code, out, _ = run(capsys, "explain", "[diagnose/disk-full]")
    assert code == 0 and out.startswith("diagnose/disk-full\n  the disk is full") and "headway ckpt prune" in out
    assert run(capsys, "explain", "disk-full", "--json")[1].startswith("{")
    assert "diagnose/arch-not-built" in run(capsys, "explain", "driver-or-arch")[1]
    assert "plan/does-not-fit" in run(capsys, "explain", "plan/does-not-fit")[1]
    assert len(run(capsys, "explain")[1].splitlines()) > 60
    assert run(capsys, "explain", "no-such")[0] == 2


def test_a_run_that_did_not_fail_says_how_it_is(tmp_path, capsys):
    place = write_run(tmp_path / "runs" / "20261118-030405_nanochat_7f01")
    code, told, _ = run(capsys, "diagnose", place.root.name, "--runs", str(tmp_path / "runs"))
    assert code == 0 and told.startswith("run 20261118-030405_nanochat_7f01: done\nno failure found in")
