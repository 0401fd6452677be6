"""The black box: it shows the same diagnosis elsewhere, holds no secret, and is refused whole when it is not ours."""

from __future__ import annotations

import io
import json
import shutil
import stat
import zipfile

import pytest

from fakes.run_fixture import make_plan_record
from headway.diagnosis import diagnose_run, load_rules, open_capsule, unpack_capsule, write_capsule
from headway.errors import CheckError
from headway.telemetry import MetricsWriter, RunDir, read_metrics, run_state, write_json

CANARIES = {
    "value": "sk-live-4f9a8b7c6d5e4f3a2b1c0d9e8f",
    "word": "Tr0ub4dor-and-3-canary",
    "hook": "https://hooks.slack.com/services/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",
    "env": "env-canary-value-998877",
}


@pytest.fixture
def failed(tmp_path, monkeypatch):
    monkeypatch.setenv("MY_API_TOKEN", CANARIES["env"])
    run = RunDir(tmp_path / "runs" / "20261118-100000_nanochat_ab12")
    run.rank(0).mkdir(parents=True)
    config = {"task": {"api_key": CANARIES["value"], "db": {"password": CANARIES["word"]}}}
    write_json(run.job, {"recipe": "nanochat", "config": config, "plan": make_plan_record().to_json()})
    write_json(run.plan, make_plan_record().to_json())
    diff = f"+++ b/.env\n+API_KEY={CANARIES['value']}\n+webhook={CANARIES['hook']}\n"
    write_json(run.command, {"argv": ["headway", "--password", CANARIES["word"]], "git": {"diff": diff}})
    run.config.write_text(f"task:\n  api_key: {CANARIES['value']}\n")
    run.log.write_text(
        f"[0] token={CANARIES['value']}\n[0] {CANARIES['env']}\n[0] RuntimeError: CUDA out of memory. Tried to\n" * 3
    )
    run.stdout(0).write_text("".join(CANARIES.values()))
    (run.root / "secrets.txt").write_text(CANARIES["word"])
    incident = {"class": "out-of-memory", "rank": 0, "code": "diagnose/out-of-memory", "text": CANARIES["hook"]}
    events = [
        {"seq": 1, "t": 1.0, "kind": "run_started", "password": CANARIES["word"]},
        {"seq": 2, "t": 2.0, "kind": "incident", "action": "stop", **incident, "facts": {}},
        {"seq": 3, "t": 3.0, "kind": "run_ended", "state": "failed", "exit_code": 5, "why": "launch/failed"},
    ]
    run.events.write_text("".join(json.dumps(one) + "\n" for one in events))
    metrics = MetricsWriter(run.metrics(0), 1)
    for step in range(1, 30):
        metrics.add(step, step * 16, 2.0, 0.1, 1.0, float(step), 1.0)
    metrics.close()
    return run


def test_a_black_box_shows_the_same_elsewhere_and_holds_no_canary(failed, tmp_path):
    box = write_capsule(failed, tmp_path / "box.zip")
    whole = b"".join(zipfile.ZipFile(box).read(name) for name in zipfile.ZipFile(box).namelist())
    assert [name for name, value in CANARIES.items() if value.encode() in whole] == []
    assert stat.S_IMODE(box.stat().st_mode) == 0o600
    shutil.rmtree(failed.root / "checkpoints", ignore_errors=True)
    with open_capsule(box) as run:
        there, here = diagnose_run(run, load_rules()), diagnose_run(failed, load_rules())
        assert there.cause and here.cause and there.cause.code == here.cause.code
        assert run_state(run).state == run_state(failed).state == "failed"
        assert list(read_metrics(run.metrics(0))["step"]) == list(read_metrics(failed.metrics(0))["step"])
        place = run.root
    assert not place.exists()


def _box(tmp_path, members, *, about=None, mode=0, cut=0):
    raw = io.BytesIO()
    with zipfile.ZipFile(raw, "w", zipfile.ZIP_DEFLATED) as box:
        for name, data in [("capsule.json", json.dumps(about or {"schema": "capsule/1", "run": "x"})), *members]:
            info = zipfile.ZipInfo(name)
            info.compress_type, info.external_attr = zipfile.ZIP_DEFLATED, mode << 16
            box.writestr(info, data)
    path = tmp_path / "bad.zip"
    path.write_bytes(raw.getvalue()[: len(raw.getvalue()) - cut])
    return path


@pytest.mark.parametrize(
    ("members", "more"),
    [
        ([("../evil", b"x")], {}),
        ([("run/../../evil", b"x")], {}),
        ([("/etc/evil", b"x")], {}),
        ([("run/ranks/0/../../../evil", b"x")], {}),
        ([("run/log\n", b"x")], {}),
        ([("run/task.py", b"import os")], {}),
        ([("run/log", b"/etc/passwd")], {"mode": stat.S_IFLNK | 0o777}),
        ([("run/log", b"x")], {"mode": stat.S_IFIFO | 0o777}),
        ([("run/log", b"\0" * (17 << 20))], {}),
        ([("run/job.json", b"[1]")], {}),
        ([("run/job.json", b"[" * 100_000)], {}),
        ([("run/log", b"x")], {"about": {"schema": "other/1"}}),
        ([("run/log", b"x" * 1000)], {"cut": 30}),
        ([(f"run/ranks/{n}/metrics.jsonl", b"") for n in range(900)], {}),
    ],
)
def test_a_hostile_black_box_is_refused_whole(tmp_path, members, more):
    into = tmp_path / "in" / "deep"
    with pytest.raises(CheckError) as refused:
        unpack_capsule(_box(tmp_path, members, **more), into)
    assert refused.value.code == "diagnose/capsule-refused"
    assert not into.exists() and not (tmp_path / "evil").exists()


def test_a_size_that_is_a_lie_and_a_name_that_is_a_path_do_no_harm(tmp_path):
    path = _box(tmp_path, [("run/log", b"A" * 5000)])
    data = bytearray(path.read_bytes())
    for mark, at in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):  # both headers say that it is short
        place = data.rindex(mark)
        data[place + at : place + at + 4] = (10).to_bytes(4, "little")
    path.write_bytes(bytes(data))
    with pytest.raises(CheckError):
        unpack_capsule(path, tmp_path / "a")
    named = _box(tmp_path, [], about={"schema": "capsule/1", "run": "../../evil"})
    assert unpack_capsule(named, tmp_path / "b").root == tmp_path / "b" / "capsule"
