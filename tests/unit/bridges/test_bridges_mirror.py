"""Copies of checkpoints elsewhere: a folder, a host over ssh, a bucket; there, back, and what may be wrong there."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fakes.disks import make_checkpoint
from headway.bridges.mirror import fetch_run, open_store, refuse_mirror
from headway.bridges.mirror.copy import look, owner, prune_there, push_checkpoint, push_records, take_over
from headway.bridges.mirror.store import Store
from headway.checkpoint import list_checkpoints, verify_checkpoint
from headway.config import RunConfig, SaveConfig, parse_mirror
from headway.errors import CheckpointError, UsageError
from headway.telemetry import RunDir, write_json

SSH = '#!/bin/sh\nwhile [ $# -gt 2 ]; do shift; done\nexec sh -c "$2"\n'
"""Takes the options and the host of an ssh, and runs its script here."""
WAIT_S = 60.0


@pytest.fixture(scope="module", autouse=True)
def bucket() -> Iterator[str | None]:
    """Serve S3 on this host, as moto does it; autouse: it begins before a test's own guard looks for threads."""
    try:
        import boto3  # noqa: F401
        from moto.server import ThreadedMotoServer
    except ImportError:
        yield None
        return
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def s3(bucket: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let boto3 find that server, and make a bucket."""
    if bucket is None:
        pytest.skip("boto3 and moto are not installed")
    import boto3

    names = {"AWS_ENDPOINT_URL": bucket, "AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"}
    for name, value in {**names, "AWS_DEFAULT_REGION": "us-east-1"}.items():
        monkeypatch.setenv(name, value)
    boto3.client("s3").create_bucket(Bucket="lab")


@pytest.fixture(params=["folder", "ssh", pytest.param("s3", marks=pytest.mark.filterwarnings("ignore::Warning"))])
def store(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """Each kind of place, empty."""
    place = tmp_path / "place with 'a quote"
    place.mkdir()
    if request.param == "s3":
        request.getfixturevalue("s3")
        return opened(f"s3://lab/{tmp_path.name}/run")
    if request.param == "ssh":
        fake = tmp_path / "ssh"
        fake.write_text(SSH)
        fake.chmod(0o755)
        monkeypatch.setenv("HEADWAY_SSH", str(fake))
        return opened(f"ssh://someone@host:2222{place}")
    return opened(str(place))


def opened(text: str) -> Store:
    address = parse_mirror(text)
    assert address is not None
    return open_store(address)


def made_run(place: Path, *steps: int) -> RunDir:
    run = RunDir(place / "a_run")
    run.checkpoints.mkdir(parents=True)
    for step in steps:
        make_checkpoint(run.checkpoints, step)
    write_json(run.job, {"schema": "job/1"})
    run.events.write_text('{"seq":1,"kind":"run_started"}\n{"seq":2,"kind":"torn')
    return run


def push(store: Store, run: RunDir) -> None:
    for info in list_checkpoints(run.checkpoints):
        push_checkpoint(store, info.path, info.path.name, look(store))
    push_records(store, run)


def test_a_run_comes_back_verified_with_whole_lines_only(store, tmp_path):
    run = made_run(tmp_path, 10, 20)
    push(store, run)
    back = fetch_run(store, RunDir(tmp_path / "elsewhere" / "a_run"))
    assert back.step == 20 and back.damaged == []
    there = verify_checkpoint(back.run / "checkpoints" / "step-00000020")
    assert there == verify_checkpoint(run.checkpoints / "step-00000020")
    assert (back.run / "events.jsonl").read_text() == '{"seq":1,"kind":"run_started"}\n'
    assert fetch_run(store, RunDir(tmp_path / "older" / "a_run"), step=10).step == 10
    with pytest.raises(UsageError) as refused:
        fetch_run(store, RunDir(back.run))
    assert refused.value.code == "mirror/have-it" and "headway resume a_run" in refused.value.hint("en")


def test_what_is_there_already_is_not_sent_again_and_another_life_of_a_step_replaces_it(store, tmp_path):
    run = made_run(tmp_path, 10)
    path = run.checkpoints / "step-00000010"
    assert push_checkpoint(store, path, path.name, look(store)) > 0
    assert push_checkpoint(store, path, path.name, look(store)) == 0
    other = made_run(tmp_path / "other")
    again = make_checkpoint(other.checkpoints, 10, strategy="fsdp")
    assert push_checkpoint(store, again, again.name, look(store)) > 0
    push_records(store, other)
    back = fetch_run(store, RunDir(tmp_path / "back"))
    assert verify_checkpoint(back.run / "checkpoints" / "step-00000010").strategy == "fsdp"


def test_retention_applies_there_and_half_a_checkpoint_never_counts(store, tmp_path):
    run = made_run(tmp_path, 10, 20, 30, 40)
    push(store, run)
    store.remove(["checkpoints/step-00000040/manifest.b3"])
    assert list(look(store).checkpoints)[-1] == "step-00000030"
    assert prune_there(store, keep_last=1, keep_every=20, best_step=10) == []
    found = look(store)
    assert list(found.checkpoints) == ["step-00000010", "step-00000020", "step-00000030"] and found.partial == ()
    assert prune_there(store, keep_last=1, keep_every=None, best_step=None) == ["step-00000010", "step-00000020"]


def test_a_damaged_copy_is_skipped_for_an_older_one_and_leaves_nothing_behind(store, tmp_path):
    run = made_run(tmp_path, 10, 20)
    push(store, run)
    bad = tmp_path / "bad"
    bad.write_bytes(b"\0" * (run.checkpoints / "step-00000020" / "rank-00001.safetensors").stat().st_size)
    store.put(bad, "checkpoints/step-00000020/rank-00001.safetensors")
    back = fetch_run(store, RunDir(tmp_path / "elsewhere" / "a_run"))
    assert back.step == 10 and [name for name, _ in back.damaged] == ["step-00000020"]
    assert os.listdir(back.run / "checkpoints") == ["step-00000010"]
    with pytest.raises(CheckpointError) as refused:
        fetch_run(store, RunDir(tmp_path / "third" / "a_run"), step=20)
    assert refused.value.code == "mirror/all-damaged"


def test_whoever_copies_to_the_place_is_written_down(store):
    first = take_over(store)
    assert owner(store)["mark"] == first
    assert take_over(store) != first != owner(store)["mark"]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("s3://lab", "s3://lab"),
        ("s3://lab/a/b/", "s3://lab/a/b"),
        ("ssh://me@box:2222/data/runs", "ssh://me@box:2222/data/runs"),
        ("ssh://box/data", "ssh://box/data"),
        ("ssh://[fd00::1]:22/data", "ssh://[fd00::1]:22/data"),
        ("/mnt/backup/", "/mnt/backup"),
        ("backup", None),
        ("s3://", None),
        ("s3://Lab/x", None),
        ("s3://lab/../x", None),
        ("ssh://box", None),
        ("ssh://-oProxyCommand=x/data", None),
        ("ssh://-F@box/data", None),
        ("ssh://box:0/data", None),
        ("gs://lab/x", None),
        ("/mnt/a\nb", None),
    ],
)
def test_an_address_is_one_of_three_kinds(text, shown):
    found = parse_mirror(text)
    assert (None if found is None else str(found)) == shown


def test_an_address_with_a_password_is_refused_and_so_is_a_relative_folder():
    for text, code in (("s3://key:word@lab/x", "mirror/secret"), ("backup", "mirror/unknown")):
        with pytest.raises(ValueError, match="refused") as refused:
            RunConfig(save=SaveConfig(mirror=text))
        assert refused.value.errors()[0]["type"] == code  # type: ignore[attr-defined]


def test_a_disk_that_is_not_mounted_does_not_become_a_folder_of_this_one(tmp_path):
    with pytest.raises(UsageError) as refused:
        refuse_mirror(str(tmp_path / "not-mounted"))
    assert refused.value.code == "mirror/no-folder"
    gone = tmp_path / "disk"
    gone.mkdir()
    address = parse_mirror(str(gone))
    store = open_store(address.below("a_run"), top=address)
    push(store, made_run(tmp_path, 10))
    shutil.rmtree(gone)
    with pytest.raises(CheckpointError) as failed:
        push(store, made_run(tmp_path / "again", 10))
    assert failed.value.code == "mirror/no-folder" and not gone.exists()


class Serving:
    """The process beside a run."""

    def __init__(self, run: RunDir) -> None:
        command = [sys.executable, "-P", "-m", "headway.bridges.mirror.serve", str(run.root)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def end(self) -> list[dict]:
        said, _ = self.process.communicate(timeout=WAIT_S)
        return [json.loads(line) for line in said.splitlines()]


@pytest.fixture
def serve() -> Iterator[Callable[[RunDir], Serving]]:
    running: list[Serving] = []

    def begin(run: RunDir) -> Serving:
        running.append(Serving(run))
        return running[-1]

    yield begin
    for one in running:
        one.process.kill()
        one.process.communicate()


def mirrored_run(tmp_path: Path, *steps: int, **save: object) -> tuple[RunDir, Path]:
    run, place = made_run(tmp_path, *steps), tmp_path / "place"
    write_json(run.job, {"schema": "job/1", "config": {"save": {"mirror": str(place), **save}}})
    return run, place


def wait_until(is_true: Callable[[], object]) -> None:
    until = time.monotonic() + WAIT_S
    while not is_true():
        assert time.monotonic() < until, "waited in vain"
        time.sleep(0.05)


def test_the_process_copies_each_newest_checkpoint_and_the_records_at_the_end(tmp_path, serve):
    run, place = mirrored_run(tmp_path, 10, mirror_keep_last=1, keep_best=False)
    place.mkdir()
    serving = serve(run)
    wait_until(lambda: (place / "a_run" / "checkpoints" / "step-00000010" / "manifest.b3").exists())
    make_checkpoint(run.checkpoints, 20)
    wait_until(lambda: not (place / "a_run" / "checkpoints" / "step-00000010").exists())
    with run.events.open("a") as file:
        file.write('"}\n{"seq":3,"kind":"run_ended"}\n')
    told = serving.end()
    assert [(one["kind"], one["step"]) for one in told] == [("checkpoint_mirrored", 10), ("checkpoint_mirrored", 20)]
    assert "run_ended" in (place / "a_run" / "events.jsonl").read_text()
    assert os.listdir(place / "a_run" / "checkpoints") == ["step-00000020"]
    assert not (run.root / ".mirroring").exists()


def test_a_place_that_comes_late_is_tried_again_and_named_once(tmp_path, serve):
    run, place = mirrored_run(tmp_path, 10)
    serving = serve(run)
    assert serving.process.stdout is not None
    first = json.loads(serving.process.stdout.readline())
    assert first["code"] == "mirror/failing"
    place.mkdir()
    assert [one["kind"] for one in serving.end()] == ["checkpoint_mirrored"]


def test_a_run_continued_elsewhere_ends_the_copying_of_the_first_one(tmp_path, serve):
    run, place = mirrored_run(tmp_path, 10)
    place.mkdir()
    serving = serve(run)
    wait_until(lambda: (place / "a_run" / "checkpoints" / "step-00000010" / "manifest.b3").exists())
    address = parse_mirror(str(place / "a_run"))
    take_over(open_store(address))
    make_checkpoint(run.checkpoints, 20)
    assert serving.process.wait(WAIT_S) == 0
    assert "mirror/taken-over" in [one.get("code") for one in serving.end()]
    assert os.listdir(place / "a_run" / "checkpoints") == ["step-00000010"]
