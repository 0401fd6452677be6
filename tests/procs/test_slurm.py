"""A real Slurm of two nodes on this host: a job that is stopped is queued again and its run ends bit-equal."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from fakes.launches import ROOT, wait_until
from headway.cluster import query_job
from headway.telemetry import RunDir, read_events

TINY = ROOT / "tests/fakes/tiny"
SCRIPT = str(ROOT / "scripts/slurm_cluster.sh")
WORDS = (str(TINY), "parallel.cpus=1", "train.steps=60", "save.every=10", "task.sleep_s=0.1")


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    folder = tmp_path_factory.mktemp("slurm")
    done = subprocess.run([SCRIPT, "start", str(folder)], capture_output=True, text=True, timeout=60, check=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SLURM_CONF", str(folder / "slurm.conf"))
        try:
            if done.returncode == 77:
                pytest.skip(f"NO REAL SLURM WAS TESTED: {done.stderr.strip()}")
            assert done.returncode == 0, done.stderr
            yield
        finally:
            subprocess.run([SCRIPT, "stop", str(folder)], timeout=60, check=False)


def submit(folder: Path, *words: str) -> tuple[str, Path]:
    command = [sys.executable, "-m", "headway", "submit", "--slurm", "--json", "--cpus-per-task", "2", "--", *words]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "HEADWAY_CLAIMS": str(folder / "claims")}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    return answer["job"], Path(answer["folder"])


def wait_end(job: str, output: Path) -> str:
    deadline = time.monotonic() + 150
    while time.monotonic() < deadline:
        found = query_job(job)
        if found and found.state in ("COMPLETED", "FAILED", "CANCELLED", "NODE_FAIL"):
            return found.state
        time.sleep(0.5)  # each answer is a process, and Slurm starts a job that was queued again after some seconds
    raise AssertionError(f"job {job} is {found}: {output.read_text()}")


def weights(run: Path) -> dict[str, str]:
    """Return the hash of every tensor file without its header, which names the run."""
    files = sorted((run / "checkpoints/step-00000060").rglob("*.safetensors"))
    assert files
    contents = {file.name: file.read_bytes() for file in files}
    return {
        name: hashlib.sha256(data[8 + int.from_bytes(data[:8], "little") :]).hexdigest()
        for name, data in contents.items()
    }


@pytest.mark.slow
def test_a_job_that_is_stopped_is_queued_again_and_ends_bit_equal(slurm, tmp_path):
    folder = tmp_path / "a 中 $x'"
    folder.mkdir()
    job, place = submit(folder, "train", *WORDS)
    output, named = place / f"output-{job}.log", place / f"run-{job}"
    wait_until(named.exists, "the name of the run")
    run = RunDir(Path(named.read_text()))
    wait_until(
        lambda: any(event["kind"] == "checkpoint_committed" for event in read_events(run.events)), "a checkpoint"
    )
    subprocess.run(["scancel", "--signal=TERM", job], check=True, timeout=30)
    assert wait_end(job, output) == "COMPLETED", output.read_text()
    text = output.read_text()
    assert f"job {job} is queued again at step" in text
    assert [event["kind"] for event in read_events(run.events)].count("run_resumed") == 1, text
    alone = folder / "alone"
    command = [sys.executable, "-m", "headway", "train", *WORDS[:-1], "out=alone"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "HEADWAY_CLAIMS": str(folder / "claims")}
    subprocess.run(command, cwd=folder, env=environment, check=True, timeout=120, capture_output=True)
    (undisturbed,) = alone.glob("2*")
    assert weights(run.root) == weights(undisturbed)


@pytest.mark.slow
def test_a_line_of_ones_own_runs_with_its_words_as_they_are(slurm, tmp_path):
    words = ["a b", "中 $HOME", "it's", 'q"q', "x\n#SBATCH --partition=none", "*", ""]
    script = tmp_path / "say.py"
    script.write_text("import json, sys\nopen('said.json', 'w').write(json.dumps(sys.argv[1:]))\n")
    job, place = submit(tmp_path, "run", "--no-training", "python", "say.py", *words)
    output = place / f"output-{job}.log"
    assert wait_end(job, output) == "COMPLETED", output.read_text()
    assert json.loads((tmp_path / "said.json").read_text()) == words
