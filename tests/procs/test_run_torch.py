"""`headway run` on real two-rank torch jobs: steps seen by the hook, blame among ranks, hangs, other launchers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from fakes.run_command import finished, script

pytestmark = pytest.mark.slow

JOB = """
    import os, signal, sys, time
    import torch, torch.distributed as dist
    fault = sys.argv[1]
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(0 if fault == "empty" else 8):
        if step == 4 and rank == 1:
            if fault == "raise": raise ValueError("bad batch")
            if fault == "leave": sys.exit(0)
            if fault == "sleep": time.sleep(1000)
            if fault == "stop": os.kill(os.getpid(), signal.SIGSTOP)
            if fault == "kill" and os.environ["TORCHELASTIC_RESTART_COUNT"] == "0": os.kill(os.getpid(), 9)
        loss = model(torch.randn(8, 4)).pow(2).mean()
        loss.backward(); optimizer.step(); optimizer.zero_grad()
        dist.all_reduce(torch.ones(1))
    print("end")
    dist.destroy_process_group()
"""
TORCHRUN = ("torchrun", "--nproc_per_node=2")


def test_a_silent_job_is_done_and_its_steps_were_seen_by_the_hook(tmp_path):
    ran = finished(tmp_path, *TORCHRUN, script(tmp_path, JOB), "none")
    assert ran.process.returncode == 0, ran.err
    assert ran.events("run_ended")[0]["steps"] == 8
    assert "[0-1] end (×2)" in ran.out


@pytest.mark.parametrize(
    ("fault", "kind", "code"),
    [("raise", "python-exception", 1), ("leave", "early-exit", None), ("empty", "no-step", 5)],
)
def test_the_cause_is_named_and_not_its_echo(tmp_path, fault, kind, code):
    ran = finished(tmp_path, *TORCHRUN, script(tmp_path, JOB), fault)
    incident = ran.last_incident()
    assert (incident["rank"], incident["class"]) == (None if fault == "empty" else 1, kind), ran.err
    assert ran.process.returncode == code or (code is None and ran.process.returncode != 0)


@pytest.mark.parametrize(("fault", "kind"), [("sleep", "rank-behind"), ("stop", "rank-stopped")])
def test_a_hang_is_x_rayed_and_names_the_rank_the_others_wait_for(tmp_path, fault, kind):
    # A rank that sleeps may come back: it is waited for six times as long as one that a signal has stopped.
    after = {"sleep": "1.5", "stop": "3"}[fault]
    ran = finished(tmp_path, "--on-hang", "stop", "--hang-after", after, *TORCHRUN, script(tmp_path, JOB), fault)
    (hang,) = ran.events("hang")
    assert (hang["rank"], hang["class"]) == (1, kind)
    assert hang["ranks"][0]["place"].startswith("train.py:")
    if fault == "sleep":
        # Python has called 4; the rest is DDP's own, which only torch's flight recorder knows.
        assert hang["ranks"][0]["collectives"] > 8
        assert hang["ranks"][0]["collectives"] == hang["ranks"][1]["collectives"] + 1
    assert ran.process.returncode == 5
    assert ran.last_incident()["class"] == kind


def test_a_killed_rank_is_started_again_with_a_fresh_store(tmp_path):
    ran = finished(tmp_path, "--restarts", "1", *TORCHRUN, script(tmp_path, JOB), "kill")
    assert ran.process.returncode == 0, ran.err
    assert [event["rank"] for event in ran.events("incident")] == [1]


def test_under_its_own_launcher_the_first_failing_rank_is_still_named(tmp_path):
    torchrun = str(Path(sys.executable).parent / "torchrun")
    ran = finished(
        tmp_path,
        "--launcher",
        "original",
        torchrun,
        "--standalone",
        "--nproc_per_node=2",
        script(tmp_path, JOB),
        "raise",
        env={"RANK": "0", "WORLD_SIZE": "1", "SLURM_JOB_ID": "7", "SLURM_PROCID": "0"},  # of the allocation around it
    )
    assert ran.process.returncode == 1
    incident = ran.last_incident()
    assert (incident["rank"], incident["class"]) == (1, "python-exception")
    assert "ValueError: bad batch" in incident["traceback"]


ENVIRON = """
    import json, os
    told = {name: value for name, value in os.environ.items() if name.startswith(
        ("RANK", "LOCAL_", "WORLD_", "GROUP_", "ROLE_", "MASTER_", "TORCH", "OMP_", "NCCL_"))}
    print(json.dumps(told))
"""


def test_the_ranks_see_the_environment_that_torchrun_itself_gives(tmp_path):
    name = script(tmp_path, ENVIRON)
    line = ("torchrun", "--standalone", "--rdzv-id=7", "--role=trainer", name)
    torchrun = [str(Path(sys.executable).parent / "torchrun"), *line[1:]]
    number = {"PET_NPROC_PER_NODE": "2"}  # as Kubeflow's operator says it
    theirs = subprocess.run(
        torchrun, cwd=tmp_path, env={**os.environ, **number}, capture_output=True, text=True, check=True
    ).stdout
    ran = finished(tmp_path, *line, env=number)
    assert ran.run.ranks() == [0, 1]
    own = json.loads(ran.run.stdout(0).read_text())
    (their,) = [one for one in map(json.loads, theirs.splitlines()) if one["RANK"] == "0"]
    # Ours is the port, the store and where recorders dump; --standalone makes up an id of its own.
    free = {"MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_MAX_RESTARTS"}
    assert their.keys() - own.keys() <= {
        "TORCHELASTIC_USE_AGENT_STORE",
        "TORCHELASTIC_ERROR_FILE",
        "TORCHELASTIC_SIGNALS_TO_HANDLE",
    }
    assert own.keys() - their.keys() <= {"TORCH_FR_DUMP_TEMP_FILE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE", *free}
    same = (own.keys() & their.keys()) - free
    assert {name: own[name] for name in same} == {name: their[name] for name in same}
    assert len(same) >= 10


def test_a_script_without_a_rank_behind_a_shell_is_watched_once_it_trains(tmp_path):
    script(
        tmp_path,
        """
        import subprocess, sys, torch
        weight = torch.nn.Parameter(torch.ones(2))
        optimizer = torch.optim.SGD([weight], lr=0.1)
        for _ in range(7):
            weight.sum().backward(); optimizer.step()
        raise ValueError("after seven")
        """,
    )
    (tmp_path / "go.sh").write_text("python -c 'print(1)'\npython train.py\n")
    ran = finished(tmp_path, "go.sh")
    assert ran.process.returncode == 1
    assert ran.events("run_ended")[0]["steps"] == 7
    incident = ran.last_incident()
    assert (incident["rank"], incident["step"]) == (0, 7)
    assert "after seven" in incident["traceback"]


def test_a_rank_that_saves_or_works_alone_is_not_taken_for_a_hang(tmp_path):
    name = script(
        tmp_path,
        """
        import time
        import torch, torch.distributed as dist
        dist.init_process_group("gloo")
        rank = dist.get_rank()
        for step in range(4):
            if step == 2 and rank == 0:
                time.sleep(5)  # a long save, while the others wait
            dist.all_reduce(torch.ones(1))
        dist.destroy_process_group()
        if rank == 0:
            time.sleep(5)  # a last validation, after the others have left
        print("end", flush=True)
        """,
    )
    ran = finished(tmp_path, "--no-training", "--on-hang", "stop", "--hang-after", "2", *TORCHRUN, name)
    assert ran.process.returncode == 0, ran.err
    assert ran.events("hang") == []
    assert "listens on port" in ran.err  # torch's store, on every interface


def test_a_script_out_of_memory_starts_again_with_the_numbers_its_user_has_named(tmp_path):
    """Rank 1 has memory for three samples at a time; the script continues from its own checkpoint."""
    text = """
        import argparse, os
        import torch, torch.distributed as dist
        words = argparse.ArgumentParser()
        words.add_argument("--batch-size", type=int); words.add_argument("--accum", type=int)
        args = words.parse_args()
        dist.init_process_group("gloo")
        torch.manual_seed(0)
        net = torch.nn.Linear(4, 1)
        model = torch.nn.parallel.DistributedDataParallel(net)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        first = 0
        if os.path.exists("own.pt"):
            saved = torch.load("own.pt"); net.load_state_dict(saved["net"]); first = saved["step"]
        for step in range(first, 8):
            if step >= 4 and dist.get_rank() == 1 and args.batch_size > 3:
                raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")
            data = torch.randn(8, 4, generator=torch.Generator().manual_seed(step))
            for part in data.split(args.batch_size):
                (model(part).pow(2).sum() / 8).backward()
            optimizer.step(); optimizer.zero_grad()
            if dist.get_rank() == 0:
                torch.save({"net": net.state_dict(), "step": step + 1}, "own.pt")
            dist.barrier()
        print("sizes", args.batch_size, args.accum, os.environ["LEFT_ALONE"])
        dist.destroy_process_group()
    """
    knob = ("--oom-knob", "batch_size/2,accum*2")
    words = (*knob, *TORCHRUN, script(tmp_path, text), "--batch-size", "8", "--accum=1")
    ran = finished(tmp_path, *words, env={"LEFT_ALONE": "8"})
    assert ran.process.returncode == 0, ran.out
    assert "sizes 2 4 8" in ran.out
    assert [(one["rank"], one["class"], one["action"]) for one in ran.events("incident")] == [
        (1, "device-out-of-memory", "restart")
    ] * 2
    changes = [one["facts"]["changes"] for one in ran.events("warning") if one["code"] == "launch/knobs-turned"]
    assert changes == ["batch_size 8 → 4, accum 1 → 2", "batch_size 4 → 2, accum 2 → 4"]
    assert ran.events("run_ended")[0]["state"] == "done"
    stored = json.loads(ran.run.job.read_text())["foreign"]
    assert stored["argv"][-3:] == ["--batch-size", "2", "--accum=4"] and stored["line"].endswith("--accum=1")
