"""Runs of other users in a shared folder (issue 10, item 9): one clear word each, and the rest stays readable."""

import os
import tempfile
from pathlib import Path

import pytest

from fakes.run_fixture import write_run
from headway.errors import UsageError
from headway.telemetry import find_run, list_closed, list_rows, read_beat, run_state

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
NOBODY = 65534


@pytest.fixture
def shared():
    """A folder with a run that may be read, one whose files are private, and one that is closed."""
    # Not below pytest's own folder, which every session of pytest closes to others again.
    with tempfile.TemporaryDirectory(dir="/tmp") as temp:
        os.chmod(temp, 0o755)
        yield make_shared(Path(temp))


def make_shared(tmp_path):
    for name in ("20261118-000001_open_0001", "20261118-000002_files_0002", "20261118-000003_closed_0003"):
        write_run(tmp_path / "runs" / name)
    os.chmod(tmp_path / "runs", 0o755)
    for path in (tmp_path / "runs").rglob("*"):
        os.chmod(path, 0o755 if path.is_dir() else 0o644)
    for path in (tmp_path / "runs" / "20261118-000002_files_0002").rglob("*"):
        if path.is_file():
            os.chmod(path, 0o600)
    os.chmod(tmp_path / "runs" / "20261118-000003_closed_0003", 0o700)
    heartbeat = tmp_path / "runs" / "20261118-000001_open_0001" / "ranks" / "0" / "heartbeat"
    os.chmod(heartbeat, 0o600)
    return tmp_path / "runs"


def as_nobody(call):
    """Return what a call says in a child that owns nothing."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.setgid(NOBODY)
        os.setuid(NOBODY)
        try:
            said = repr(call())
        except BaseException as err:
            said = f"{type(err).__name__} {err.code if isinstance(err, UsageError) else err}"
        os.write(write, said.encode())
        os._exit(0)
    os.close(write)
    with open(read, "rb") as file:
        said = file.read().decode()
    os.waitpid(pid, 0)
    return said


def test_the_folder_lists_what_may_be_read_and_names_the_rest(shared):
    said = as_nobody(lambda: ([row.name for row in list_rows(shared)], list_closed(shared)))
    assert said == repr((["20261118-000001_open_0001"], ["20261118-000002_files_0002", "20261118-000003_closed_0003"]))


@pytest.mark.parametrize("name", ["files", "closed"])
def test_a_private_run_is_refused_by_name(shared, name):
    assert as_nobody(lambda: find_run(name, shared)) == "UsageError telemetry/closed"


def test_a_private_heartbeat_is_only_absent(shared):
    run = find_run("open", shared)
    assert as_nobody(lambda: read_beat(run.heartbeat(0))) == "None"
    assert as_nobody(lambda: run_state(run).state) == repr(run_state(run).state)
