"""Which process of a run is which rank: a launcher inside of the run says it, what was set around the run does not."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from headway.launch.hook import HOOK_SITE, hook_environment, read_error

spec = importlib.util.spec_from_file_location("hook_under_test", HOOK_SITE / "_headway_hook.py")
hook = importlib.util.module_from_spec(spec)
spec.loader.exec_module(hook)

POD = {"RANK": "0", "WORLD_SIZE": "2"}
SLURM = {"SLURM_PROCID": "0", "SLURM_JOB_ID": "7", "ENVIRONMENT": "BATCH"}
ELASTIC = {"LOCAL_RANK": "0", "TORCHELASTIC_RUN_ID": "none"}


@pytest.mark.parametrize(
    ("outside", "inside", "claimed", "rank"),
    [
        ({}, {"RANK": "3"}, None, "3"),
        (POD, {}, None, None),
        (SLURM, {}, None, None),
        (POD, {"RANK": "0", **ELASTIC}, None, "0"),
        ({**POD, "RANK": "1"}, {"RANK": "1", **ELASTIC}, None, "1"),
        (POD, {"RANK": "5", "LOCAL_RANK": "5", "TORCHELASTIC_RUN_ID": "none"}, None, "5"),
        (SLURM, {"RANK": "1", "LOCAL_RANK": "1"}, None, "1"),
        (POD, {"OMPI_COMM_WORLD_RANK": "1"}, None, "1"),
        (SLURM, {"SLURM_PROCID": "0", "SLURM_STEP_ID": "4"}, None, "0"),
        ({"SLURM_PROCID": "1"}, {}, "0", None),
        (POD, {"LOCAL_RANK": "1"}, "0", "1"),
        (POD, {"HEADWAY_RANK": "0"}, None, "0"),
    ],
)
def test_only_a_launcher_inside_of_the_run_gives_ranks(outside, inside, claimed, rank) -> None:
    assert hook.find_rank({**outside, **inside}, outside, claimed) == rank


def run_hooked(tmp_path: Path, code: str, around: dict[str, str], inside: dict[str, str], **options) -> None:
    clean = {name: value for name, value in os.environ.items() if name not in (*hook.RANK_NAMES, *hook.JOBS)}
    environ = {**clean, **around}
    environ |= hook_environment(tmp_path, 1, environ) | {"HEADWAY_HOOK_FAMILY": "1"} | inside
    subprocess.run([sys.executable, "-c", code], env=environ, check=False, stderr=subprocess.DEVNULL, **options)


@pytest.mark.parametrize("around", [POD, SLURM])
def test_the_launcher_does_not_take_the_place_of_rank_0_whose_traceback_counts(tmp_path: Path, around) -> None:
    launcher = (
        "import os, subprocess, sys\n"
        "env = {**os.environ, 'RANK': '0', 'LOCAL_RANK': '0', 'TORCHELASTIC_RUN_ID': 'none'}\n"
        "subprocess.run([sys.executable, '-c', 'raise KeyError(42)'], env=env)\n"
        "raise SystemError('ChildFailedError')\n"
    )
    run_hooked(tmp_path, launcher, around, {})
    told = read_error(tmp_path / "ranks" / "0", 1)
    assert told is not None and told["type"] == "KeyError"


@pytest.mark.parametrize("job", [{"SLURM_JOB_ID": "8", "ENVIRONMENT": "BATCH"}, {"PBS_JOBID": "9"}])
def test_a_job_that_the_script_submits_is_not_watched(tmp_path: Path, job: dict[str, str]) -> None:
    code = "import os, json; print(json.dumps(sorted(n for n in os.environ if n.startswith(('HEADWAY_', 'TORCH_FR')))))"
    out = tmp_path / "out"
    with out.open("w") as file:
        run_hooked(tmp_path, code, {}, {"RANK": "0", **job}, stdout=file)
    assert json.loads(out.read_text()) == []
    assert not (tmp_path / "ranks").exists()


def test_what_srun_starts_from_outside_of_a_job_is_watched(tmp_path: Path) -> None:
    run_hooked(tmp_path, "raise KeyError(1)", {}, {"SLURM_JOB_ID": "8", "SLURM_PROCID": "1"})
    told = read_error(tmp_path / "ranks" / "1", 1)
    assert told is not None and told["type"] == "KeyError"


def test_a_closed_stderr_does_not_switch_the_hook_off(tmp_path: Path) -> None:
    environ = {**os.environ, **hook_environment(tmp_path, 1, {}), "RANK": "3"}
    code = "raise KeyError(1)"
    subprocess.run(["sh", "-c", 'exec "$0" -c "$1" 2>&-', sys.executable, code], env=environ, check=False)
    told = read_error(tmp_path / "ranks" / "3", 1)
    assert told is not None and told["type"] == "KeyError"


def test_links_in_the_place_of_the_hooks_files_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "ranks" / "0").mkdir(parents=True)
    for name in ("heartbeat", "stacks"):
        (tmp_path / f"secret-{name}").write_text("precious")
        (tmp_path / "ranks" / "0" / name).symlink_to(tmp_path / f"secret-{name}")
    run_hooked(tmp_path, "pass", {}, {"RANK": "0"})
    assert (tmp_path / "secret-heartbeat").read_text() == (tmp_path / "secret-stacks").read_text() == "precious"
