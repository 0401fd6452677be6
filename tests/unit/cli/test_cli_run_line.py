"""From a user's line to what is started."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from headway.adopt import check, read_line, understand, write_clean
from headway.errors import UsageError
from headway.ui.terminal.run_screen import hang_table

TORCHRUN = "from torch.distributed.run import main\n"


@pytest.fixture(autouse=True)
def own_programs_on_path(monkeypatch, tmp_path):
    for name, text in (("torchrun", TORCHRUN), ("accelerate", "")):
        program = tmp_path / name
        program.write_text(f"#!{sys.executable}\n{text}")
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{Path(sys.executable).parent}:/usr/bin:/bin")
    for name in ("BASH_ENV", "PYTHON_EXEC", "LR", "NGPU"):
        monkeypatch.delenv(name, raising=False)


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
    assert (read.is_native, read.has_macros) == (typed.is_native, typed.has_macros)


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


def test_a_plain_line_is_started_word_for_word():
    read = read_line(["CUDA_VISIBLE_DEVICES=1 python -W ignore -u train.py 'a b' \\\n  c # why"])
    assert read.is_native and not read.is_distributed
    assert read.argv == ("python", "-W", "ignore", "-u", "train.py", "a b", "c")
    assert read.env["CUDA_VISIBLE_DEVICES"] == "1" and read.set_names == ["CUDA_VISIBLE_DEVICES"]


def test_words_of_the_users_shell_are_never_read_again():
    odd = [
        "<s>",
        "</s>",
        ">=2.0",
        "&",
        "It\u2019s a test",
        "\u201c\u52a9\u624b\u201d",
        "$ ls\r\n> x",
        "%run a",
        "${LR:-1}",
        "*",
        "~",
    ]
    read = read_line(["python", "args.py", *odd])
    assert read.argv == ("python", "args.py", *odd) and not read.notes


def test_a_text_is_expanded_with_the_real_environment(monkeypatch, tmp_path):
    for name, value in {"GPUS": "3", "NGPU": "3", "LR": "0.5", "DEBUG": "1", "HOME": "/h"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.bin").touch()
    tail = "train.py --lr ${LR:-0.1} ${DEBUG:+--debug} $((2*3)) ~/d *.bin {1..3}"
    expected = ("train.py", "--lr", "0.5", "--debug", "6", "/h/d", "a.bin", "1", "2", "3")
    read = read_line([f"CUDA_VISIBLE_DEVICES=${{GPUS:-0}} python {tail}"])
    assert read.argv == ("python", *expected) and read.env["CUDA_VISIBLE_DEVICES"] == "3"
    read = read_line([f"torchrun --nproc_per_node=${{NGPU:-1}} {tail}"])
    assert (read.num_ranks, read.argv[2:]) == (3, expected)


@pytest.mark.parametrize(
    "text",
    [
        "python x.py > out.log 2>&1",
        "(python x.py)",
        "python x.py $(date)",
        "python x.py | tee log",
        "A=1; python x.py $A",
        "time python x.py",
        "python x.py --pid $$",
        "f() { python x.py; }; f",
        "cat <<E\n$HOME\nE",
        "python x.py\r\n--lr 1",
        "if true; then python x.py; fi",
    ],
)
def test_a_text_that_is_more_than_one_plain_command_is_run_by_bash_as_written(text):
    read = read_line([text])
    assert read.argv == ("bash", "-c", text) and not read.is_native


def test_what_a_paste_brought_along_is_told_and_kept():
    read = read_line(["python x.py --prompt \u201chello\u201d"])
    assert read.argv[-1] == "\u201chello\u201d" and "headway adopt 'python x.py" in read.notes[0]
    with pytest.raises(UsageError) as refused:
        read_line(["$ python x.py"])
    assert refused.value.code == "run/pasted" and "headway adopt '$ python x.py' --to" in refused.value.hint()
    assert not read_line(["python x.py --prompt '\u201c\u52a9\u624b\u201d'"]).notes


def test_an_ampersand_at_the_end_is_left_out_and_told():
    read = read_line(["nohup python x.py > out.log 2>&1 &"])
    assert read.argv == ("bash", "-c", "nohup python x.py > out.log 2>&1") and "--detach" in read.notes[0]


@pytest.mark.parametrize(
    ("words", "argv"),
    [
        (["env", "-u", "X", "bash", "x.sh"], ("env", "-u", "X", "bash", "x.sh")),
        (["stdbuf", "-oL", "bash", "x.sh"], ("stdbuf", "-oL", "bash", "x.sh")),
        (["env", "-C", "d", "python", "x.py"], ("env", "-C", "d", "python", "x.py")),
        (["nohup", "python", "x.py"], ("nohup", "python", "x.py")),
        (["ulimit", "-n"], ("bash", "-c", '"$@"', "bash", "ulimit", "-n")),
        (["time", "A=a b", "env", "c"], ("bash", "-c", "time A='a b' \"$@\"", "bash", "env", "c")),
    ],
)
def test_wrappers_keep_their_flags(words, argv):
    assert read_line(words).argv == argv


def test_an_env_that_only_sets_variables_does_not_keep_ranks_from_being_started():
    read = read_line(["env", "A=1", "B=b c", "torchrun", "--nproc_per_node=2", "x.py"])
    assert read.is_native and read.num_ranks == 2
    assert read.set_names == ["A", "B"] and read.env["B"] == "b c"
    assert read_line(["env A=1 python x.py"]).argv == ("python", "x.py")
    assert read_line(["env", "A=1", "sh", "-c", "x"]).argv == ("env", "A=1", "sh", "-c", "x")


@pytest.mark.parametrize("program", ["ipython", "pypy3"])
def test_another_interpreter_is_started_as_it_is(tmp_path, program):
    (tmp_path / program).write_text("#!/bin/sh\n")
    (tmp_path / program).chmod(0o755)
    assert read_line([program, "x.py", "a"]).argv == (program, "x.py", "a")


def test_variables_of_the_cluster_count_as_flags_of_torchrun(monkeypatch):
    monkeypatch.setenv("PET_NPROC_PER_NODE", "2")
    monkeypatch.setenv("PET_NNODES", "1")
    assert read_line(["torchrun", "train.py"]).num_ranks == 2
    assert read_line(["torchrun", "--nproc_per_node=3", "train.py"]).num_ranks == 3
    monkeypatch.setenv("PET_NNODES", "2")
    read = read_line(["torchrun", "train.py"])
    assert not read.is_native and "2" in read.why_original
    assert read_line(["torchrun", "--nnodes=1", "train.py"]).is_native
    assert read_line(["PET_NNODES=1 torchrun train.py"]).is_native


def test_a_program_called_torchrun_that_is_not_torchs_is_started_itself(tmp_path):
    for text in (f"#!{sys.executable}\nprint()\n", "#!/bin/sh\nexec torchrun.real\n"):
        (tmp_path / "torchrun").write_text(text)
        read = read_line(["torchrun", "--nproc_per_node=2", "train.py"])
        assert not read.is_native and read.argv[0] == "torchrun"


def test_a_module_called_torch_in_the_way_is_run_as_the_line_says(tmp_path, monkeypatch):
    words = ["python", "-m", "torch.distributed.run", "--nproc_per_node=2", "train.py"]
    assert read_line(words).is_native
    (tmp_path / "own" / "torch" / "distributed").mkdir(parents=True)
    (tmp_path / "own" / "torch" / "__init__.py").touch()
    (tmp_path / "own" / "torch" / "distributed" / "run.py").touch()
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "own"))
    assert read_line(words).argv == tuple(words)


def test_the_rank_comes_before_the_first_argument():
    launch = ["python", "-m", "torch.distributed.launch"]
    assert read_line([*launch, "--no_python", "prog", "a", "b"]).argv == (
        "prog",
        "--local-rank=${local_rank}",
        "a",
        "b",
    )
    assert read_line([*launch, "x.py", "a"]).argv[1:] == ("-u", "x.py", "--local-rank=${local_rank}", "a")
    assert read_line([*launch, "--use_env", "-m", "x", "a"]).argv[1:] == ("-u", "-m", "x", "a")


@pytest.mark.parametrize(
    "words",
    [
        ["accelerate", "launch", "--num_processes", "2", "train.py"],
        ["torchrun", "--nnodes=2", "--nproc_per_node=8", "train.py"],
        ["cd /x && torchrun train.py"],
        ["torchrun", "--log-dir", "L", "--redirects", "3", "train.py"],
        ["torchrun", "-t", "3", "train.py"],
        ["torchrun", "--nproc_per_node=0", "train.py"],
        ["torchrun", "--help"],
        ["torchrun", "--nproc", "2", "train.py"],
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
