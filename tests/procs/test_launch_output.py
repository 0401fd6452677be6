"""What ranks print, kept whole and in bounds, whatever they print and whatever the run is called."""

from __future__ import annotations

import os

import pytest

from fakes.launches import fault, finish, launched, make_run


def test_every_line_is_in_the_ranks_file_and_in_the_merged_log(tmp_path):
    run = make_run(tmp_path, steps=200, step_s=0)
    finish(run)
    merged = run.log.read_text().splitlines()
    for rank in (0, 1):
        own = run.stdout(rank).read_text().splitlines()
        assert own == [f"rank {rank} step {step}" for step in range(1, 201)]
        assert [line.partition(f"[{rank}] ")[2] for line in merged if f" [{rank}] " in line] == own


def test_lines_of_a_rank_that_dies_are_kept_to_the_last(tmp_path):
    run = make_run(tmp_path, steps=200, step_s=0, faults=[fault("fail", rank=1, step=150)])
    finish(run)
    own = run.stdout(1).read_text()
    assert "rank 1 step 149\n" in own
    assert own.endswith("ValueError: labels are out of range\n")


def test_a_long_line_is_whole_in_the_ranks_file_and_cut_in_the_log(tmp_path):
    run = make_run(tmp_path, world_size=1, steps=3, faults=[fault("print_long_line", step=2)])
    assert finish(run).process.returncode == 0
    assert max(len(line) for line in run.stdout(0).read_bytes().split(b"\n")) == 10 << 20
    merged = run.log.read_bytes().split(b"\n")
    assert max(len(line) for line in merged) < 20_000
    assert sum(line.count(b"y") for line in merged) == 10 << 20
    assert any(line.endswith(b"after the long line") for line in merged)


def test_a_flood_is_kept_and_does_not_grow_the_supervisor(tmp_path):
    megabytes = 200
    run = make_run(tmp_path, world_size=1, steps=30, step_s=0.02, faults=[fault("flood", step=9, megabytes=megabytes)])
    with launched(run) as launch:
        launch.wait_line("step 2")
        before = peak_bytes(launch.process.pid)
        launch.wait_line("step 9")
        after = peak_bytes(launch.process.pid)
        assert launch.wait() == 0
    assert run.stdout(0).stat().st_size > megabytes * 1_000_000
    assert run.log.read_bytes().count(b"x" * 99) == megabytes * 10_000
    assert after - before < 20 << 20


def peak_bytes(pid):
    """The most memory held so far; unlike ru_maxrss it starts afresh with the program."""
    with open(f"/proc/{pid}/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmHWM"))


def test_odd_bytes_are_kept_as_they_are(tmp_path):
    run = make_run(tmp_path, world_size=1, steps=3, faults=[fault("print_odd_bytes", step=2)])
    assert finish(run).process.returncode == 0
    assert b"\xff\xfe\x00bad\x1b]0;title\x07\rbar\n" in run.stdout(0).read_bytes()
    assert b"\xff\xfe\x00bad\x1b]0;title\x07\rbar\n" in run.log.read_bytes()


def test_escape_sequences_of_an_error_do_not_reach_the_terminal(tmp_path):
    run = make_run(tmp_path, steps=3, faults=[fault("fail", step=2, text="\x1b]0;stolen\x07\x1b[2J gone")])
    launch = finish(run)
    assert launch.process.returncode == 5
    assert "\x1b" not in launch.err
    assert "\\x1b]0;stolen\\x07" in launch.err


def test_a_rank_that_closes_its_output_goes_on(tmp_path):
    run = make_run(tmp_path, steps=9, faults=[fault("close_stdout", rank=1, step=2)])
    assert finish(run).process.returncode == 0


@pytest.mark.parametrize("name", ["two words", "训练 🚀", "line\nbreak", "-rf", "%s {} $HOME `id`", "x" * 240])
def test_odd_run_names_work(tmp_path, name):
    run = make_run(tmp_path, name, steps=5, faults=[fault("fail", rank=1, step=3)])
    launch = finish(run)
    assert launch.process.returncode == 5
    assert launch.events("incident")[0]["rank"] == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small disk needs root")
def test_a_full_log_disk_costs_lines_but_not_the_run(tmp_path):
    import subprocess

    run = make_run(tmp_path, world_size=1, steps=20, faults=[fault("flood", step=2, megabytes=3)])
    small = run.rank(0)
    small.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(small)], check=False)
    if mounted.returncode:
        pytest.skip("mounting is not allowed here")
    try:
        launch = finish(run)
        (warning,) = launch.events("warning")
    finally:
        subprocess.run(["umount", str(small)], check=True)
    assert launch.process.returncode == 0
    assert (warning["code"], "No space left" in warning["facts"]["why"]) == ("launch/log-gap", True)
    assert b"rank 0 step 20" in run.log.read_bytes()
