"""`headway rehearse` raises real faults on a real run."""

from __future__ import annotations

import json
import os
import subprocess
import sys


def rehearse(place, *words, lang="en"):
    (place / "scratch").mkdir(exist_ok=True)
    env = {**os.environ, "TMPDIR": str(place / "scratch")}
    command = [sys.executable, "-m", "headway", "--lang", lang, "rehearse", *words]
    return subprocess.run(command, cwd=place, capture_output=True, text=True, timeout=300, check=False, env=env)


def test_a_run_survives_what_is_done_to_it(tmp_path):
    done = rehearse(tmp_path, "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(done.stdout)
    assert found["schema"] == "rehearse/1" and found["survived"] and found["data_exact"] and found["log"] is None
    states = {one["fault"]: one["state"] for one in found["faults"]}
    assert states == dict.fromkeys(("kill", "stop", "port", "disk", "memory", "terminal", "flip"), "survived")
    process_faults = [one for one in found["faults"] if one["fault"] in ("kill", "stop", "memory")]
    assert all(one["redone"] <= 1 and one["recover_s"] > one["detect_s"] > 0 for one in process_faults)
    assert next(one for one in found["faults"] if one["fault"] == "flip")["code"] == "rehearse/older-checkpoint"
    assert found["storage"]["torn"] == 0 and not list((tmp_path / "runs").iterdir())


def test_a_fault_that_ends_the_run_is_not_survived(tmp_path):
    done = rehearse(tmp_path, "launch.restarts=0", "--fault", "kill", "--fault", "port", lang="zh")
    assert done.returncode == 5, done.stdout + done.stderr
    assert "失败" in done.stdout and "0/1" in done.stdout
