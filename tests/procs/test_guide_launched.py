"""Guide scripts under a real launcher: torchrun starts them once a rank, one of them leads."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

SCRIPT = """
import json, os, sys, time
from pathlib import Path
from headway.errors import UsageError
from headway.guide import lead_or_follow

place, how = Path(sys.argv[1]), sys.argv[2]

def lead(ranks):
    left = sorted(name for name in os.environ if name.startswith(("MASTER_", "TORCHELASTIC_")) or name.endswith("RANK"))
    (place / "led").write_text(json.dumps({"pid": os.getpid(), "ranks": ranks, "left": left}))
    if how == "wait":
        time.sleep(60)
    if how == "refuse":
        raise UsageError("recipes/folder-not-empty", folder=place)
    return int(how)

local = os.environ["LOCAL_RANK"]
(place / f"pid-{local}").write_text(str(os.getpid()))
code = lead_or_follow(lead)
(place / f"code-{local}").write_text(str(code))
sys.exit(code)
"""


@pytest.fixture
def launch(tmp_path):
    script = tmp_path / "main.py"
    script.write_text(SCRIPT)

    def start(how, ranks=2):
        words = ["--standalone", f"--nproc_per_node={ranks}", str(script), str(tmp_path), how]
        env = {**os.environ, "OMP_NUM_THREADS": "1"}
        command = [sys.executable, "-m", "torch.distributed.run", *words]
        return subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    return start


def _wait(is_true, seconds=90):
    deadline = time.monotonic() + seconds
    while not is_true():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.05)


def _is_alive(pid):
    try:
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


def test_one_process_leads_with_all_ranks_and_the_others_end_with_its_code(launch, tmp_path):
    done = launch("0", ranks=3)
    output = done.communicate(timeout=120)[0]
    assert done.returncode == 0, output
    led = (tmp_path / "led").read_text()
    assert '"ranks": 3' in led and '"left": []' in led
    assert [(tmp_path / f"code-{rank}").read_text() for rank in range(3)] == ["0"] * 3


def test_the_leaders_failure_is_the_launchers_failure(launch, tmp_path):
    done = launch("refuse")
    output = done.communicate(timeout=120)[0]
    assert done.returncode != 0 and "folder-not-empty" in output


def test_a_killed_launcher_leaves_nobody_behind(launch, tmp_path):
    launcher = launch("wait")
    _wait(lambda: (tmp_path / "led").exists() and (tmp_path / "pid-1").exists())
    pids = [int((tmp_path / f"pid-{rank}").read_text()) for rank in range(2)]
    assert all(_is_alive(pid) for pid in pids)
    launcher.send_signal(signal.SIGKILL)
    launcher.wait(30)
    launcher.stdout.close()
    _wait(lambda: not any(_is_alive(pid) for pid in pids), 30)
