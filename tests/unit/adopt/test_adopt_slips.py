"""Lines as people paste them: prompts, slips of the pen, things left out."""

from __future__ import annotations

import pytest

from headway.adopt import understand


@pytest.mark.parametrize(
    "line",
    [
        "shell$ torchrun t.py --x 1",
        "~/proj$ torchrun t.py --x 1",
        "PS C:\\work> torchrun t.py --x 1",
        "(base) C:\\work\\a b>torchrun t.py --x 1",
        "➜  proj git:(main) ✗ torchrun t.py --x 1",
        ">>> torchrun t.py --x 1",
    ],
)
def test_a_prompt_is_no_part_of_the_line(line):
    launch = understand(line).launch
    assert (launch.launcher, launch.entry.name, launch.args) == ("torchrun", "t.py", ("--x", "1"))


@pytest.mark.parametrize("line", ["export A = 4", "export A= 4", "export A =4", "A = 4\nexport A"])
def test_blanks_beside_an_equals_sign_are_read_as_meant_and_reported(line):
    meaning = understand(f"{line}\npython t.py")
    assert meaning.launch.env == {"A": "4"}
    assert ("adopt/slip-spaced-equals", 1) in meaning.slips


def test_an_assignment_of_another_language_is_no_slip():
    assert understand("lr = 4\npython t.py").slips == ()


@pytest.mark.parametrize("line", ["export OUT='path\"", "export OUT = 'path\"", "OUT=\"path'\nexport OUT"])
def test_two_halves_of_different_quotes_close_each_other(line):
    meaning = understand(f'{line}\npython t.py --out $OUT --name "x"')
    assert meaning.launch.args == ("--out", "path", "--name", "x")
    assert "adopt/slip-open-quote" in {code for code, _ in meaning.slips}


def test_dots_on_a_deeper_line_stand_for_further_arguments():
    text = "ray job submit -- python -m app \\\n    a=1\n    ...\n\npython t.py\n...\n"
    launches = understand(text).launches
    assert [launch.args for launch in launches] == [("a=1", "..."), ()]


def test_placeholders_of_several_words_end_where_their_bracket_does():
    launch = understand("mpirun -np [num procs] -ppn [GPUs of a node] -hostfile [hosts] [MPI flags] bash run.sh").launch
    assert (launch.entry.name, launch.hostfile, launch.world_size) == ("run.sh", "[hosts]", None)
    assert understand("mpirun <common parameters> --bind-to core <program>").launch.entry.name == "<program>"


def test_blanks_inside_a_placeholder_do_not_split_a_variable():
    launch = understand(
        'DATA=<path and prefix>_text\nC="your config.yaml"\naccelerate launch --config_file $C t.py $DATA'
    )
    assert (launch.launch.launcher_config, launch.launch.args) == ("your config.yaml", ("<path and prefix>_text",))


def test_a_module_without_its_interpreter_is_the_launcher_it_names():
    assert understand("torch.distributed.run --nproc_per_node=2 t.py").launch.launcher == "torchrun"


def test_a_notebook_keeps_the_first_dashes_for_itself():
    launch = understand("%run -m torch.distributed.launch -- --nproc_per_node=8 t.py A b").launch
    assert (launch.launcher, launch.nproc_per_node, launch.args) == ("torch.distributed.launch", 8, ("A", "b"))


@pytest.mark.parametrize("text", ["accelerate launch -h", "deepspeed\nfairscale\n", "srun --pty bash --job-name x ..."])
def test_a_launcher_that_is_only_named_or_asked_launches_nothing(text):
    assert understand(text).launches == ()


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        ("./write_hostfile.sh\npython -m app.dataset -n 8\ntorchrun t.py", "t.py"),
        ("bash data/get_coco.sh --val\npython val.py", "val.py"),
        ("bash x/expand.sh\nllamafactory-cli train a.yaml", "llamafactory-cli train"),
        ("bash x/train.sh\nllamafactory-cli train a.yaml", "x/train.sh"),
        ("python create_data.py\npython tools/sample_dataset.py", "create_data.py"),
        ("python train_dataset.py\npython eval.py", "train_dataset.py"),
        ("python -u process_data.py\ndeepspeed main.py", "main.py"),
    ],
)
def test_what_prepares_does_not_count_as_the_launch(text, counts):
    assert understand(text).launch.entry.name == counts


def test_a_flag_that_python_does_not_have_is_the_scripts_own():
    assert understand("horovodrun -np 4 python --fp16-allreduce t.py -x").launch.args == ("--fp16-allreduce", "-x")


def test_a_windows_script_is_read_with_its_own_variables():
    text = (
        'REM torchrun --nproc_per_node=9 x.py\nset GPUS=2\nset "OUT=a b"\ntorchrun --nproc_per_node %GPUS% t.py %OUT%'
    )
    launch = understand(text).launch
    assert (launch.nproc_per_node, launch.args) == (2, ("a", "b"))
    assert launch.env == {"GPUS": "2", "OUT": "a b"}


def test_a_container_sets_its_variables_anew():
    launch = understand("dir='dir=/app'\nsudo docker --gpus all run --env=$dir img bash -c 'bash $dir/t.sh'").launch
    assert (launch.entry.name, launch.env) == ("/app/t.sh", {"dir": "/app"})
    assert launch.wrappers == ("sudo", "docker run", "bash -c")


def test_a_help_text_goes_on_behind_its_brackets():
    launch = understand(
        "python -m paddle.distributed.launch [-h] [--log_dir DIR]\n      [--gpus GPUS]\n      script ..."
    ).launch
    assert (launch.launcher, launch.entry.name, launch.args) == ("paddle", "script", ("...",))


def test_a_comment_between_a_variable_and_its_command_does_not_part_them():
    meaning = understand("A=1 \\\n# the words behind the second\npython t.py ${@:2}")
    assert meaning.launch.env == {"A": "1"}
    assert [code for code, _ in meaning.slips] == ["adopt/slip-comment-inside"]


def test_a_comment_behind_a_whole_command_ends_it():
    launches = understand("python t.py lr=1 \\\n# next\npython u.py").launches
    assert [launch.entry.name for launch in launches] == ["t.py", "u.py"]
