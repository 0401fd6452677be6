"""From a user's line to what is started."""

from __future__ import annotations

import sys

import pytest

from headway.adopt import check, understand, write_clean
from headway.cli.run_line import read_line
from headway.cli.run_screen import hang_table
from headway.errors import UsageError


@pytest.fixture(autouse=True)
def own_python_on_path(monkeypatch, tmp_path):
    for name in ("python", "torchrun", "accelerate"):
        program = tmp_path / name
        program.write_text(f"#!{sys.executable}\n")
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")


def test_a_torchrun_line_is_started_natively_with_the_launchers_python():
    read = read_line(["torchrun", "--nproc_per_node=4", "--max_restarts=3", "train.py", "--lr", "0.1"])
    assert read.is_native and read.is_distributed
    assert (read.num_ranks, read.restarts) == (4, 3)
    assert read.argv == (sys.executable, "-u", "train.py", "--lr", "0.1")


def write(tmp_path, line):
    meaning = understand(line)
    path = tmp_path / "launch.yaml"
    path.write_text(write_clean(meaning.launch, check(meaning)))
    return str(path)


@pytest.mark.parametrize(
    "line",
    [
        "FOO='a b' CUDA_VISIBLE_DEVICES=0,1 torchrun --nproc_per_node=2 train.py --name 'x y' --lr 1e-4",
        "torchrun --nproc_per_node=2 -m pkg.train x",
        "python -m torch.distributed.launch --nproc_per_node=2 train.py",
        "BAR=1 python train.py --flag",
    ],
)
def test_a_clean_file_is_started_like_the_line_it_came_from(tmp_path, line):
    typed, read = read_line([line]), read_line([write(tmp_path, line)])
    assert (read.argv, read.env, read.num_ranks) == (typed.argv, typed.env, typed.num_ranks)
    assert (read.is_native, read.local_rank_flag) == (typed.is_native, typed.local_rank_flag)


def test_a_clean_file_that_says_too_little_is_refused(tmp_path):
    for line, code in (
        ("torchrun --nproc_per_node=$N train.py", "run/clean-open"),
        ("accelerate launch train.py", "run/clean-launcher"),
    ):
        with pytest.raises(UsageError) as refused:
            read_line([write(tmp_path, line)])
        assert refused.value.code == code
    (tmp_path / "other.yaml").write_text("recipe: nanochat\n")
    with pytest.raises(UsageError) as refused:
        read_line([str(tmp_path / "other.yaml")])
    assert refused.value.code == "run/not-clean"


def test_a_module_stays_a_module():
    read = read_line(["torchrun", "--nproc_per_node=2", "-m", "pkg.train", "x"])
    assert read.argv[1:] == ("-u", "-m", "pkg.train", "x")


def test_a_plain_line_keeps_the_flags_of_python(tmp_path):
    read = read_line(["CUDA_VISIBLE_DEVICES=1 nohup python -W ignore -u train.py 'a b' > log.txt 2>&1 &"])
    assert read.is_native and not read.is_distributed
    assert read.argv == (str(tmp_path / "python"), "-W", "ignore", "-u", "train.py", "a b")
    assert read.env == {"CUDA_VISIBLE_DEVICES": "1"}


@pytest.mark.parametrize(
    "words",
    [
        ["accelerate", "launch", "--num_processes", "2", "train.py"],
        ["torchrun", "--nnodes=2", "--nproc_per_node=8", "train.py"],
        ["cd /x && torchrun train.py"],
        ["torchrun --nproc_per_node=$GPUS train.py"],
        ["python train.py | tee log"],
        ["torchrun", "--virtual-local-rank", "--nproc_per_node=2", "train.py"],
        ["torchrun", "--numa-binding=node", "--nproc_per_node=2", "train.py"],
    ],
)
def test_more_than_starting_ranks_here_is_left_to_the_lines_own_launcher(words):
    read = read_line(words)
    assert not read.is_native and read.why_original
    with pytest.raises(UsageError) as refused:
        read_line(words, "native")
    assert refused.value.code == "run/not-native"


def test_the_id_and_the_role_of_a_torchrun_line_are_kept():
    read = read_line(["torchrun", "--rdzv-id=77", "--role", "trainer", "train.py"])
    assert (read.run_id, read.role) == ("77", "trainer")


def test_the_original_launcher_can_be_asked_for(tmp_path):
    read = read_line(["torchrun", "--nproc_per_node=2", "train.py"], "original")
    assert read.argv == ("torchrun", "--nproc_per_node=2", "train.py")


def test_a_program_that_is_not_there_is_refused():
    with pytest.raises(UsageError) as refused:
        read_line(["no-such-program", "x"])
    assert refused.value.code == "run/no-program"


def test_the_table_of_a_hang_marks_the_odd_rank():
    base = {"state": "S", "step": 3, "phase": "collective", "collectives": 9, "collective": "barrier", "seconds": 12.0}
    ranks = [{**base, "rank": rank, "place": None} for rank in (0, 1)]
    lines = hang_table({"rank": 1, "ranks": ranks})
    assert [line[:3] for line in lines[1:]] == ["  0", "→ 1"]
