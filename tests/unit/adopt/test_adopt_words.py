"""Shell text into words, and words into what they say."""

from __future__ import annotations

import pytest

from headway.adopt.shell.arithmetic import evaluate
from headway.adopt.shell.expand import Variables, expand_words
from headway.adopt.shell.follow import walk
from headway.adopt.shell.lexer import read_words
from headway.adopt.shell.tokens import Operator, Word


def words(text: str) -> list[str]:
    return [one.text for one in expand_words([t for t in read_words(text).tokens if isinstance(t, Word)], Variables())]


def started(text: str) -> list[list[str]]:
    return [[word.text for word in command.words] for command in walk(text).commands]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a 'b c' \"d e\" f\\ g", ["a", "b c", "d e", "f g"]),
        ("--x='1'\"2\"3", ["--x=123"]),
        ("a \\\n  b", ["a", "b"]),
        ("a#b # c", ["a#b"]),
        ('"a \\"b\\" \\$c"', ['a "b" $c']),
        ("'a \\\n b'", ["a \\\n b"]),
        ("'' \"\"", ["", ""]),
        ("don't", ["don't"]),
        ("<path> [a|b] {c|d}", ["<path>", "[a|b]", "{c|d}"]),
        ('$X ${Y:-1} ${Z:-$W} "$@"', ["$X", "1", "$W", "$@"]),
    ],
)
def test_words_are_read_as_bash_reads_them(text, expected):
    assert words(text) == expected


def test_redirects_and_their_numbers_are_no_words():
    tokens = read_words("a 2>&1 >>x <y b &> z").tokens
    assert [token.plain for token in tokens if isinstance(token, Word)] == ["a", "b"]
    assert [token.sign for token in tokens if isinstance(token, Operator)] == [">&", ">>", "<", "&>"]


def test_a_heredoc_is_skipped_and_the_next_command_is_not():
    assert started("cat <<'EOF' > f\ntorchrun x.py\nEOF\npython y.py") == [["cat"], ["python", "y.py"]]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("a \\   # why\n  b", "adopt/slip-after-backslash"),
        ("a \\\n# --x \\\n --b", "adopt/slip-comment-inside"),
        ("a\n  --b", "adopt/slip-no-backslash"),
    ],
)
def test_a_slip_is_read_as_meant_and_noted(text, code):
    lexed = read_words(text)
    assert [token.plain for token in lexed.tokens if isinstance(token, Word)][-1].strip("-") == "b"
    assert [slip.code for slip in lexed.slips] == [code]
    assert not any(isinstance(token, Operator) for token in lexed.tokens)


def test_a_comment_behind_the_last_continuation_ends_the_command():
    assert started("a x \\\n# end\nb y") == [["a", "x"], ["b", "y"]]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2 * (3 + 4)", 14),
        ("N % 3 - -1", 3),
        ("$N / 2", 4),
        ("-7 / 2", -3),
        ("1 << 70", None),
        ("x[0]", None),
        ("1 / 0", None),
        ("(" * 500, None),
        ("9" * 400, None),
    ],
)
def test_arithmetic_is_worked_out_or_left_alone(text, expected):
    assert evaluate(text, {"N": 8}) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A=1; B=$A$A; c $B", ["c", "11"]),
        ("A='x y'; c $A \"$A\"", ["c", "x", "y", "x y"]),
        ("A=(x 'y z'); A+=(w); c \"${A[@]}\" ${#A[@]} ${A[1]}", ["c", "x", "y z", "w", "3", "y", "z"]),
        ("A=(--x '--y z'); c ${A[@]}", ["c", "--x", "--y", "z"]),
        (
            "A=/p/q.tar.gz; c ${A##*/} ${A%.*} ${A%%.*} ${A/q/r} ${A:1:1}",
            ["c", "q.tar.gz", "/p/q.tar", "/p/q", "/p/r.tar.gz", "p"],
        ),
        ("N=2; c $((N * 4)) $((M + 1))", ["c", "8", "$((M + 1))"]),
        ("A=$(date); c $A", ["c", "$A"]),
        ("A=a; A+=b; c ${A:-z} ${B:=q} $B", ["c", "ab", "q", "q"]),
        ('if [ -z "$G" ]; then G=8; fi; c $G', ["c", "8"]),
        ('G=1; if [ "$1" = x ]; then G=8; fi; c $G', ["c", "$G"]),
        ("if [ $# -lt 1 ]; then G=7; exit 1; fi; c $G", ["c", "$G"]),
        ("N=4; if [ $N -gt 2 ]; then G=big; else G=small; fi; c $G", ["c", "big"]),
        ("f() { c $2 $1; }; f a b", ["c", "b", "a"]),
        ("X='c a b'; eval $X", ["c", "a", "b"]),
        ("( A=1 ); c $A", ["c", "$A"]),
        ("A=($(ls)); c ${#A[@]} $((${#A[@]} * 2)) ${A[1]}", ["c", "${#A[@]}", "$((${#A[@]} * 2))", "${A[1]}"]),
    ],
)
def test_variables_are_followed_as_far_as_the_text_gives_them(text, expected):
    assert started(text)[-1] == expected


def test_a_loop_over_known_items_runs_once_for_each():
    assert started("for i in 1 2; do c $i; done") == [["c", "1"], ["c", "2"]]
    assert started("for i in {1..3}; do c $i; done") == [["c", "1"], ["c", "2"], ["c", "3"]]


def test_a_loop_over_unknown_items_is_read_once_with_its_variable_open():
    assert started("for i in $(ls) ; do c $i; done") == [["c", "$i"]]
    assert started("for f in *.yaml; do c $f; done") == [["c", "$f"]]


def test_only_exported_variables_reach_a_command():
    command = walk("A=1\nexport B=2 C=3\nunset C\nD=4 c").commands[0]
    assert {name: value.text for name, value in command.env.items()} == {"B": "2", "D": "4"}


def test_a_value_that_doubles_is_cut_off():
    text = "A=xxxxxxxxxxxxxxxx\n" + "A=$A$A\n" * 60 + "c $A"
    assert 0 < len(started(text)[0][1]) <= 64 * 1024
