"""What may be expanded ahead, how torchrun reads its flags, and what a clean file leaves to bash."""

from __future__ import annotations

import pytest

from headway.adopt import (
    check,
    find_command,
    find_paste,
    read_bash,
    read_elastic,
    stay_in_front,
    understand,
    write_clean,
)


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("python x.py", "python"),
        ("A=1 B='x y' python x.py $LR ${A:-b c} \"$Q\" *.txt {1..3} ~/d $((2*3))", "python"),
        ("\n# first\n  python x.py \\\n --a 1 # why; not\n\n", "python"),
        ("$PYTHON x.py", "$PYTHON"),
        ("'/my tools/python' x.py", "'/my"),
        ("python x.py ${A:-${B:-$C}}", "python"),
        ("python x.py $'a\\'b\\n' c", "python"),
        ("python x.py cost$ 'a;b' \"a|b\" a\\;b", "python"),
    ],
)
def test_one_plain_command_is_found(text, command):
    place = find_command(text)
    assert place is not None and text[place:].startswith(command)


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "A=1",
            "# only",
            "a; b",
            "a && b",
            "a | b",
            "a &",
            "a > f",
            "a 2>&1",
            "a < f",
            "(a)",
            "{ a; }",
            "a\nb",
            "! a",
        ),
        *(
            "a $(b)",
            "a `b`",
            "a <(b)",
            'a "$(b)"',
            'a $"b"',
            "a $[1+1]",
            "a $$",
            "a $!",
            "a $PPID",
            "a $BASHPID",
        ),
        *(
            "a ${B:-'c'}",
            "a ${B:-`c`}",
            "a ${B",
            "a 'b",
            'a "b',
            "a ${RANDOM}",
            "time a",
            "if a; then b; fi",
            "[[ a ]]",
        ),
        *(
            "A[0]=1 a",
            "A=(1 2) a",
            "f() { a; }",
            "function f { a; }",
            "a <<E\nE",
            "a $(( b=1 ))",
            "a ${@}",
            "py\\\nthon x",
        ),
    ],
)
def test_everything_else_is_left_to_bash(text):
    assert find_command(text) is None


def test_several_commands_in_the_background_are_all_waited_for():
    assert stay_in_front("a & b &") == ("a & b &\nwait", True)


def test_only_an_ampersand_that_ends_the_text_is_cut():
    assert stay_in_front("nohup a > f 2>&1 & \n") == ("nohup a > f 2>&1", True)
    for text in ("a && b", "a 2>&1", "a \\&", "a &&", "a ';&'", "a >&", "a & b", "a |&"):
        assert stay_in_front(text) == (text, False)


def test_flags_of_torchrun_are_read_as_torchrun_reads_them():
    line = read_elastic(("torchrun", "--nproc-per-node", "2", "--role=r", "-m", "pkg", "--nproc_per_node", "9"), {})
    assert line is not None and not line.keeps
    assert (line.num_ranks, line.role, line.kind, line.entry) == ("2", "r", "module", "pkg")
    assert line.args == ("--nproc_per_node", "9")
    line = read_elastic(
        ("python", "-u", "-m", "torch.distributed.launch", "--no_python", "p", "a"), {"PET_MAX_RESTARTS": "4"}
    )
    assert line is not None and (line.kind, line.entry, line.uses_env, line.max_restarts) == ("command", "p", False, 4)


@pytest.mark.parametrize(
    ("words", "environ", "keeps"),
    [
        (("--log-dir", "L", "x.py"), {}, "--log-dir"),
        (("-r", "3", "x.py"), {}, "--redirects"),
        (("x.py",), {"PET_TEE": "3"}, "PET_TEE"),
        (("x.py",), {"PET_MODULE": "yes"}, "PET_MODULE"),
        (("x.py",), {"PYTHON_EXEC": "/p"}, "PYTHON_EXEC"),
        (("--rdzv-backend=etcd", "x.py"), {}, "--rdzv-backend"),
        (("--node_rank=1", "x.py"), {}, "--node-rank"),
        (("--max-restarts=-1", "x.py"), {}, "--max-restarts"),
    ],
)
def test_what_only_torchrun_can_do_keeps_it(words, environ, keeps):
    line = read_elastic(("torchrun", *words), environ)
    assert line is not None and line.keeps == keeps


def test_an_interpreter_or_a_program_that_is_no_launcher_is_not_read_as_one():
    for words in (("python", "x.py"), ("python", "-c", "-m", "torch.distributed.run"), ("python",), ("run",), ()):
        assert read_elastic(words, {}) is None


def clean(text):
    meaning = understand(text)
    return write_clean(meaning.launch, check(meaning), one_line=meaning.one_line, defaulted=meaning.defaulted)


@pytest.mark.parametrize(
    "text",
    [
        "CUDA_VISIBLE_DEVICES=${GPUS:-0} python x.py --lr ${LR:-0.1} ~/d g/*.bin",
        "python -W ignore -u x.py a",
        "python3.11 x.py",
        "env -u X python x.py",
        "torchrun --log-dir L --redirects 3 x.py",
        "accelerate launch --num_processes 2 x.py",
        "torchrun --nnodes=2 --nproc_per_node=8 x.py",
        "python x.py $(date) > log 2>&1",
        "cd sub && python x.py \\\n  --lr 1",
        "python -u x.py '```sh\npython\n```' ${NOPE:-\"a b\"}",
    ],
)
def test_a_clean_file_holds_the_command_where_fields_cannot(text):
    written = clean(text)
    assert read_bash(written) == text
    assert understand(written).launch == understand(text).launch


def test_a_clean_file_holds_fields_where_they_say_all():
    for text in ("A=1 python x.py --a 'b c'", "torchrun --nproc_per_node=2 --master_port=29501 x.py a"):
        assert read_bash(clean(text)) is None
    assert read_bash(clean("MY_API_KEY=sk-abcdefghijklmnopqrstuvwx python x.py ${LR:-1}")) is None


def test_a_clean_file_of_a_script_names_what_only_a_shell_or_the_environment_knows():
    written = clean("cd /x\npython x.py --lr ${LR:-0.1} g/*.bin 'q*'\necho done\n")
    assert 'patterns:\n  - "g/*.bin"\n' in written and "defaults for LR" in written


@pytest.mark.parametrize(
    "argument", ["It’s a test", "“助手”", "$ ls\n> x", "```sh\nx\n```", "%run a.py\n!ls", "a\r\nb", "> python x.py"]
)
def test_what_is_quoted_is_not_tidied(argument):
    launch = understand(f"python x.py --prompt '{argument}'" if "'" not in argument else "").launch
    assert launch is not None and launch.args == ("--prompt", argument)


def test_marks_of_a_paste_are_found_outside_of_quotes():
    assert find_paste("a\n$ python x.py") == ("adopt/slip-marks", 2)
    assert find_paste("python “x”") == ("adopt/slip-typographic", 1)
    assert find_paste("python x.py \\\r\n a") == ("adopt/slip-crlf", 1)
    assert find_paste("python x.py '“x”' \"$ ls\n$ a\"") is None
