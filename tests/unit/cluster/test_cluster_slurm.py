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
