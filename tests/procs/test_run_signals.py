"""`headway run` and what asks it to stop or to save: shell scripts, spawned ranks, batch systems, other users."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from fakes.launches import ROOT, wait_until
from fakes.run_command import finished, running, script
from headway.telemetry import RunDir, is_supervised, run_state

SAVER = """
    import multiprocessing, os, signal, sys, time

    def save(signum, frame):
        time.sleep(0.7)
        print("saved", flush=True)
        open("saved-" + signal.Signals(signum).name, "a").write("x")
        if signum in (signal.SIGINT, signal.SIGTERM):
            sys.exit(0)

    def work(parent):
        while os.getppid() == parent:
            time.sleep(0.05)

    def lost(*_):
        raise RuntimeError("a data loader process was killed")

    if "loader" in sys.argv:
        multiprocessing.get_context("fork").Process(target=work, args=(os.getpid(),), daemon=True).start()
        signal.signal(signal.SIGCHLD, lost)
    for name in sys.argv[1].split(","):
        signal.signal(getattr(signal, name), save)
    print("ready", flush=True)
    while True:
        time.sleep(0.02)
"""
root_only = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to be somebody else")


def saved(folder):
    return sorted((path.name, path.read_text()) for path in folder.glob("saved-*"))


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_a_stop_reaches_the_training_inside_a_shell_script_and_gives_it_the_grace(tmp_path, name):
    saver = script(tmp_path, SAVER, "saver.py")
    (tmp_path / "grace.sh").write_text(f"echo start\npython {saver} SIGINT,SIGTERM loader 2>&1 | tee out.log\n")
    with running(tmp_path, "--no-training", "bash", "grace.sh") as ran:
        ran.wait_line("ready")
        ran.process.send_signal(getattr(signal, name))
        assert ran.wait() == {"SIGINT": 130, "SIGTERM": 143}[name]
    assert saved(tmp_path) == [(f"saved-{name}", "x")]
    assert "saved" in (tmp_path / "out.log").read_text()
    assert "headway resume" not in ran.err  # it would refuse: only the script knows how it continues
    assert ran.events("run_ended")[0]["why"] == "launch/foreign-stopped"


def test_one_rank_saves_while_the_others_are_gone_already(tmp_path):
    name = script(
        tmp_path,
        """
        import os, signal, sys, time
        def save(*_):
            time.sleep(1.5)
            print("saved", flush=True)
            sys.exit(0)
        if os.environ["RANK"] == "0":
            signal.signal(signal.SIGTERM, save)
        print("ready", flush=True)
        time.sleep(100)
        """,
    )
    with running(tmp_path, "--no-training", "torchrun", "--nproc_per_node=2", name) as ran:
        ran.wait_line("[0] ready")
        ran.wait_line("[1] ready")
        ran.process.send_signal(signal.SIGTERM)
        assert ran.wait() == 143
    assert "[0] saved" in ran.run.log.read_text()


def test_a_batch_system_warns_first_and_the_run_continues_until_it_is_ended(tmp_path):
    saver = script(tmp_path, SAVER, "saver.py")
    (tmp_path / "x.sh").write_text(f"trap 'echo over' EXIT\npython {saver} SIGUSR1,SIGTERM\n")
    with running(tmp_path, "--no-training", "bash", "x.sh") as ran:
        ran.wait_line("ready")
        ran.process.send_signal(signal.SIGUSR2)  # nobody listens to this one, and nobody dies of it
        ran.process.send_signal(signal.SIGUSR1)
        wait_until(lambda: saved(tmp_path), "a save")
        assert ran.process.poll() is None
        ran.process.send_signal(signal.SIGTERM)
        assert ran.wait() == 143
    assert saved(tmp_path) == [("saved-SIGTERM", "x"), ("saved-SIGUSR1", "x")]
    codes = [event["code"] for event in ran.events("warning")]
    assert codes == ["launch/signal-unheard", "launch/signal-passed"]


def test_headway_stop_asks_with_the_signal_that_the_program_answers(tmp_path):
    saver = script(tmp_path, SAVER, "saver.py")
    with running(tmp_path, "--no-training", "python", saver, "SIGTERM") as ran:
        ran.wait_line("ready")
        stop = [sys.executable, "-m", "headway", "stop", str(ran.run.root)]
        asked = subprocess.run(
            stop, env={**os.environ, "PYTHONPATH": str(ROOT / "src")}, capture_output=True, text=True
        )
        assert asked.returncode == 0, asked.stderr
        assert ran.wait() == 130
    assert saved(tmp_path) == [("saved-SIGTERM", "x")]


@pytest.mark.parametrize("code", [0, 3])
def test_a_line_that_goes_to_the_background_is_waited_for(tmp_path, code):
    (tmp_path / "x.sh").write_text(f"nohup sh -c 'sleep 1; echo done > done; exit {code}' > /dev/null 2>&1 &\n")
    ran = finished(tmp_path, "bash", "x.sh")
    assert (tmp_path / "done").exists()
    assert ran.process.returncode == code
    assert "are still running; waiting for them" in ran.err
    assert ran.events("run_ended")[0]["state"] == ("failed" if code else "done")


HASTY = "import headway.launch.background as wait; wait._IDLE_S = 1.0; import headway.__main__ as it; it.main()"
"""Half a minute is long for a test."""


@pytest.mark.parametrize(
    ("options", "left", "code", "named"),
    [
        ((), "sleep 300", 5, "left processes behind that were idle for 30 s and were ended"),
        ((), "python -m http.server -b 127.0.0.1 0", 0, "were asked to end"),
        (("--no-training",), "sleep 3", 0, "waiting for them"),
    ],
)
def test_what_a_training_leaves_idle_is_ended_named_and_not_called_done(tmp_path, options, left, code, named):
    steps = "".join(f"echo step {step}/3 loss 0.{step}\n" for step in (1, 2, 3))
    (tmp_path / "x.sh").write_text(f"{steps}{left} > /dev/null 2>&1 &\nsleep 0.2\n")
    with running(tmp_path, *options, "bash", "x.sh", program=HASTY) as ran:
        assert ran.wait() == code, ran.err
    assert named in ran.err
    assert left.split()[-1] in ran.err
    assert ran.events("run_ended")[0]["state"] == ("failed" if code else "done")


def test_a_run_in_a_container_of_the_same_name_lives_and_is_stopped_from_outside(tmp_path):
    if os.geteuid() != 0 or subprocess.run(["unshare", "--pid", "--fork", "true"]).returncode:
        pytest.skip("needs root, to make a PID namespace")
    saver = script(tmp_path, SAVER, "saver.py")
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "HEADWAY_CLAIMS": str(tmp_path / "claims")}
    inside = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"]
    line = [sys.executable, "-m", "headway", "run", "--no-training", "--out", "runs", "python", saver, "SIGINT"]
    process = subprocess.Popen(
        [*inside, *line], cwd=tmp_path, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        wait_until(lambda: "ready" in "".join(path.read_text() for path in tmp_path.glob("runs/*/log")), "ready")
        run = RunDir(next(tmp_path.glob("runs/2*")))
        other = "from pathlib import Path; from headway.telemetry import *; print(run_state(RunDir(Path(%r))).state)"
        shown = [sys.executable, "-c", other % str(run.root)]
        sibling = subprocess.run([*inside, *shown], env=environment, capture_output=True, text=True)
        assert sibling.stdout.strip() == "running", sibling.stderr
        stop = [*inside, sys.executable, "-m", "headway", "stop", str(run.root)]
        refused = subprocess.run(stop, env=environment, capture_output=True, text=True)
        assert (refused.returncode, "launch/stop-elsewhere" in refused.stderr) == (2, True), refused.stderr
        assert run_state(run).state == "running"
        stopped = subprocess.run(stop[len(inside) :], env=environment, capture_output=True, text=True)
        assert stopped.returncode == 0, stopped.stderr
        assert process.wait(30) == 130
        assert not is_supervised(run)
    finally:
        process.kill()
        process.wait()


@pytest.fixture
def shared():
    """A folder that every user can write to; the parents of tmp_path are root's alone."""
    folder = Path(tempfile.mkdtemp(dir="/var/tmp", prefix="headway-shared-"))
    folder.chmod(0o777)
    yield folder
    shutil.rmtree(folder)


@root_only
def test_a_process_of_another_user_is_named_and_nothing_breaks(tmp_path):
    """Without the right to kill, root is to another user's process what a user is to one of sudo."""
    run = [sys.executable, "-m", "headway", "run", "--no-training", "--grace", "1", "--out", "runs"]
    line = "echo start; setpriv --reuid=65534 --clear-groups sleep 8; true"
    process = subprocess.Popen(
        ["setpriv", "--bounding-set=-kill", "--inh-caps=-kill", *run, "bash", "-c", line],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        wait_until(lambda: "start" in "".join(path.read_text() for path in tmp_path.glob("runs/*/log")), "start")
        time.sleep(0.5)
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=60)
    finally:
        process.kill()
        process.communicate()
    assert process.returncode == 143, err
    assert "Traceback" not in err
    assert "belong to another user" in err


@root_only
def test_stopping_another_users_run_is_refused_with_what_to_type(shared):
    saver = script(shared, SAVER, "saver.py")
    with running(shared, "--no-training", "python", saver, "SIGINT", env={"HEADWAY_SHARE_RUNS": "1"}) as ran:
        ran.wait_line("ready")
        stop = [sys.executable, "-m", "headway", "stop", str(ran.run.root)]
        refused = subprocess.run(
            ["setpriv", "--reuid=65534", "--clear-groups", *stop],
            env={**os.environ, "PYTHONPATH": str(ROOT / "src"), "HOME": str(shared)},
            capture_output=True,
            text=True,
        )
        assert refused.returncode == 2, refused.stderr
        assert "launch/stop-not-ours" in refused.stderr
        assert "sudo -u root headway stop" in refused.stderr
        ran.process.send_signal(signal.SIGINT)
        assert ran.wait() == 130


@pytest.mark.alone
def test_512_ranks_start_are_heard_and_leave_nothing(tmp_path):
    words = ("--no-training", "torchrun", "--nproc_per_node=512", "--no-python", "sleep", "1000")
    with running(tmp_path, *words) as ran:
        started = ran.wait_event("attempt_started")
        assert len(set(started["pids"])) == 512
        began = time.monotonic()
        ran.process.send_signal(signal.SIGINT)
        assert ran.wait() == 130
        assert time.monotonic() - began < 25
    assert ran.events("run_ended")[0]["why"] == "launch/foreign-stopped"


@pytest.mark.alone
def test_a_stop_is_heard_while_hundreds_of_ranks_start(tmp_path):
    words = ("--no-training", "torchrun", "--nproc_per_node=400", "--no-python", "sleep", "1000")
    with running(tmp_path, *words) as ran:
        wait_until(lambda: len(list(ran.run.root.glob("ranks/*/stdout.log"))) == 400, "an attempt")
        ran.process.send_signal(signal.SIGTERM)
        assert ran.wait() == 143


def test_text_of_another_encoding_in_the_checkout_does_not_stop_a_run(tmp_path):
    git = ["git", "-c", "user.name=x", "-c", "user.email=x@y", "-C", str(tmp_path)]
    subprocess.run([*git, "init", "-q"], check=True)
    (tmp_path / "notes.txt").write_bytes("旧\n".encode("gbk"))
    subprocess.run([*git, "add", "-A"], check=True)
    subprocess.run([*git, "commit", "-qm", "x"], check=True)
    (tmp_path / "notes.txt").write_bytes("新的\n".encode("gbk"))
    ran = finished(tmp_path, "--no-training", "true")
    assert ran.process.returncode == 0, ran.err
    assert "notes.txt" in json.loads(ran.run.command.read_text())["git"]["diff"]
