# ruff: noqa: E501 - tables of lines read best unbroken
"""Whatever the text, it is read to its end: no crash, no endless work, the same answer twice."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from headway.adopt import check, read_guide, understand, write_clean

PARTS = st.sampled_from(
    [
        "torchrun", "python", "-m", "accelerate launch", "deepspeed", "srun", "bash -c", "--nproc_per_node", "=", "2", "$N",
        "${A:-", "}", "$(", ")", "$((", "))", "`", "'", '"', "\\", "\\\n", "\n", ";", "&&", "|", "<", ">", "2>&1", "<<EOF\n",
        "EOF\n", "for i in", "do", "done", "if [", "]", "then", "else", "fi", "case x in", "esac", ";;", "{", "f() {", "(", "[",
        "#", "#SBATCH -N 2\n", "export A=", "A=(", "A+=", "A=$A$A", "eval", "train.py", "...", "--", " ", "\t", "\r\n", "```\n",
        "mpirun -np", "-H a:4", "msrun_launcher.sh", "dist_train.sh", "ray job submit", "nohup", "docker run", "${A[@]}", "中",
        "while", "until", "function", "select", "!", "time", "${A%%*}", "${A//a/b}", "--include a:0@b", "\x00", "\ud800",
    ]
)  # fmt: skip
TEXTS = st.one_of(
    st.text(max_size=200), st.lists(PARTS, max_size=60).map("".join), st.lists(PARTS, max_size=40).map(" ".join)
)


@settings(max_examples=400, deadline=None)
@given(TEXTS)
@example("torchrun;nohup")
def test_any_text_is_read_and_judged_without_a_crash(text):
    meaning = understand(text)
    findings = check(meaning, torch=(2, 15))
    for launch in meaning.launches:
        json.dumps(launch.to_json())
        assert write_clean(launch, findings).startswith("schema: launch/1\n")
    assert understand(text) == meaning


@settings(max_examples=150, deadline=None)
@given(
    st.lists(
        st.one_of(TEXTS, st.just("\n```bash\n"), st.just("\n# h\n"), st.just("| a | b |\n|---|---|\n")), max_size=8
    )
)
def test_any_guide_is_read_without_a_crash(parts):
    for finding in read_guide("".join(parts)).findings:
        assert finding.text() and finding.line >= 1


@pytest.mark.parametrize(
    "text",
    [
        "$(" * 30_000, '"$(' * 20_000, "${" * 30_000, "`" * 60_001, "(" * 60_000, "if " * 20_000, "a\n\n" * 20_000,
        "a" + "\n" * 60_000 + "--x", "<" * 60_000, "[a|" * 20_000, "f() { " * 10_000, "case x in " * 6_000,
        "for a in 1 2 3 4; do " * 40 + "c; " + "done; " * 40, "A=$A$A;" * 9_000, "eval " * 12_000 + "x",
        "f() { f; f; }\nf\n", "x" * 60_000, "'" * 60_001, "bash -c " * 8_000, "A=(" * 20_000, "\\\n" * 30_000,
        "x <<E\n" * 10_000, "$((" + "(" * 60_000, "a " * 30_000, "nohup " * 10_000 + "x", "A=1 " * 15_000 + "c",
        "export A=$A\n" * 5_000, "c " + "${A:-" * 10_000, "1x" * 30_000,
    ],
    ids=lambda text: repr(text[:12]),
)  # fmt: skip
@pytest.mark.timeout(20)
def test_hostile_texts_cost_no_more_than_honest_ones(text):
    understand(text)
