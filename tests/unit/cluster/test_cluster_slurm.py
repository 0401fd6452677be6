"""The batch file, what Slurm says, sites, and when a stopped job goes back into the queue."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from headway.cluster import (
    End,
    JobState,
    Request,
    judge_end,
    note_end,
    parse_sacct,
    parse_squeue,
    read_site,
    refuse_request,
    write_script,
)
from headway.cluster.request import seconds_of
from headway.errors import UsageError

WORDS = ("run", "python", "a b", "中 $HOME `id`", "it's", 'q"q', "x\n#SBATCH --partition=none", "\\", "*", "")


def request(**changes):
    known = {
        "name": "my $job 中",
        "words": WORDS,
        "folder": Path("/shared/a b/runs"),
        "cwd": "/shared/a 'b'",
        "python": "/opt/my env/bin/python",
        "lang": "en",
        "grace_s": 30.0,
    }
    return Request(**{**known, **changes})


def test_the_file_is_bash_and_keeps_every_word(tmp_path):
    text = write_script(request())
    subprocess.run(["bash", "-n"], input=text, text=True, check=True)
    line = next(part for part in text.split("\nif [ -s")[:1])
    words = "words=" + line.split("words=", 1)[1]
    said = subprocess.run(
        ["bash", "-c", f"{words}\nprintf '%s\\0' \"${{words[@]}}\""], capture_output=True, check=True
    ).stdout
    assert tuple(said.decode().split("\0")[:-1]) == WORDS


def test_the_header_says_what_was_asked_and_nothing_else():
    text = write_script(request(name="tiny", nodes=2, gpus_per_node=8, time="2:00:00", options=("--constraint=h100",)))
    header = [line for line in text.splitlines() if line.startswith("#SBATCH --") and "none" not in line]
    assert header == [
        "#SBATCH --job-name=tiny",
        "#SBATCH --time=2:00:00",
        "#SBATCH --nodes=2",
        "#SBATCH --ntasks-per-node=1",
        "#SBATCH --gpus-per-node=8",
        "#SBATCH --signal=TERM@90",
        "#SBATCH --open-mode=append",
        "#SBATCH --output=output-%j.log",
        "#SBATCH --requeue",
        "#SBATCH --constraint=h100",
    ]


def test_only_our_own_runs_are_resumed():
    again = 'words=(resume "$(<"$run_file")")'
    assert again in write_script(request(words=("train", "tiny")))
    assert again not in write_script(request())


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"time": "soon"}, "cluster/bad-time"),
        ({"time": "1:30"}, "cluster/time-too-short"),
        ({"array": "0-9%"}, "cluster/bad-array"),
        ({"partition": "a\n#SBATCH --uid=0"}, "cluster/bad-value"),
        ({"options": ("--x\n",)}, "cluster/bad-value"),
        ({"folder": Path("/a/100%j")}, "cluster/bad-folder"),
        ({"words": ("run", "x.py", "--api-key", "hf_abcdefghijklmnopqrstuv")}, "cluster/secret"),
    ],
)
def test_what_slurm_would_read_differently_is_refused(changes, code):
    with pytest.raises(UsageError) as refused:
        refuse_request(request(**changes))
    assert refused.value.code == code and "hf_abc" not in str(refused.value)


def test_squeue_and_sacct_are_read():
    assert parse_squeue("12|PENDING|Resources\n13|RUNNING|None\n\n") == {
        "12": JobState(job="12", state="PENDING", reason="Resources"),
        "13": JobState(job="13", state="RUNNING", reason=None),
    }
    assert parse_sacct("14|CANCELLED by 1000|None\n")["14"].state == "CANCELLED"
    assert parse_squeue("") == {} == parse_squeue("slurm_load_jobs error")


def test_a_site_is_read_and_its_mistakes_are_named(tmp_path):
    file = tmp_path / "clusters.yaml"
    with pytest.raises(UsageError, match="cluster/no-sites"):
        read_site(file, "lab")
    file.write_text(
        "lab: {partition: gpu, nodes: 2, options: [--exclusive]}\nbad: {partitoin: gpu}\nodd: {nodes: two}\n"
    )
    assert read_site(file, "lab") == {"partition": "gpu", "nodes": 2, "options": ["--exclusive"]}
    for site, code in (("bad", "cluster/site-key"), ("odd", "cluster/site-value"), ("none", "cluster/no-site")):
        with pytest.raises(UsageError, match=code):
            read_site(file, site)


def test_a_job_without_progress_or_that_somebody_cancelled_is_not_queued_again(tmp_path):
    ends = [note_end(tmp_path, "7", End(exit_code=143, step=step)) for step in (10, 20, 20, 20, 20)]
    assert [judge_end(one, "RUNNING") for one in ends] == [None] * 4 + ["cluster/no-progress"]
    assert judge_end(ends[0], "CANCELLED") == judge_end(ends[0], None) == "cluster/not-running"


@pytest.mark.parametrize(
    ("time", "seconds"),
    [("90", 5400), ("1:30", 90), ("2:00:00", 7200), ("1-12", 129_600), ("1-0:30", 88_200), ("UNLIMITED", None)],
)
def test_a_time_limit_is_read_as_slurm_means_it(time, seconds):
    assert seconds_of(time) == seconds


def test_an_element_of_an_array_gets_its_number_and_a_run_file_of_its_own(tmp_path):
    words = ("train", "tiny", "seed={array}", "name=a {array} $b")
    text = write_script(request(words=words, array="0-3", folder=tmp_path, cwd=str(tmp_path), python="echo"))
    assert "#SBATCH --array=0-3" in text and "#SBATCH --output=output-%A_%a.log" in text
    text = text.replace("headway=(echo -P -m headway --lang en)", "headway=(printf '%s\\n')")
    text = 'srun() { while [[ $1 = --* ]]; do shift; done; "$@"; }\n' + text
    names = {"SLURM_JOB_ID": "14", "SLURM_ARRAY_JOB_ID": "12", "SLURM_ARRAY_TASK_ID": "2", "PATH": "/usr/bin:/bin"}
    done = subprocess.run(["bash", "-c", text], env=names, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        "train", "--run-file", str(tmp_path / "run-12_2"), "tiny", "seed=2", "name=a 2 $b",
    ]  # fmt: skip
