"""Every text in both languages, in one hand; every code that is used exists and gets its facts."""

from __future__ import annotations

import pytest
from message_rules import (
    all_texts,
    check_chinese,
    check_english,
    check_facts,
    check_shape,
    check_uses,
    load_catalogue,
    placeholders,
)
from message_uses import Use, find_uses, literals, uses_in

from headway.messages import Text, fill, hint, say
from headway.messages.diagnose import RULES_FOLDER

COMPUTED = {
    "alert/word-": "what an alert is about, by its kind",
    "atlas/filmed-": "how a filmed episode ended, by a word",
    "board/axis-": "axes of a plot, by their names",
    "board/by-": "axes of a plot, by their names",
    "board/host-": "readings of the host, by their names",
    "board/smooth-": "kinds of smoothing, by their names",
    "board/tab-": "pages of a run, by their names",
    "checkpoint/head-": "columns of a table, in a loop",
    "checkpoint/note-": "marks of a checkpoint, in a loop",
    "cli/metavar-": "words for click's types, by their names",
    "config/place-": "layers of a config, by their names",
    "config/type-": "kinds of value, by their names",
    "diagnose/": "classes of failure; `classify` names them without the stage",
    "diagnose/foreign-": "classes of failure, with advice for a script that has no config of ours",
    "diagnose/hang-": "classes of standing still; `judge_hang` names them",
    "guide/unused-": "why a setting is not used, by a word",
    "machine/row-": "rows of a table, in a loop",
    "plan/from-": "layers and rules a value may come from",
    "plan/holder-": "who holds memory, by the forecast's names",
    "plan/row-": "rows of the plan; the plan keeps their keys",
    "plan/value-memory-": "verdicts of a forecast",
    "report/lane-": "lanes of the time line, in a loop",
    "report/part-": "parts of a step, by their columns",
    "report/row-": "rows of a table, in a loop",
    "report/share-": "parts of the wall time, by their columns",
    "report/verdict-": "states of a run",
    "run/column-": "columns of a table, in a loop",
    "run/hang-": "what is done about a hang, by the policy's name",
    "tune/ending-": "how a probe ended, by the record's names",
    "ui/explain-": "whom a fix is for, by the rules' names",
    "ui/sure-": "how sure a diagnosis is, by the record's names",
    "ui/ago-": "units of time, in a loop",
    "rehearse/fault-": "faults, by their names",
    "rehearse/fsync-": "what a sync promises, by a word",
    "rehearse/head-": "columns of a table, in a loop",
    "rehearse/state-": "how a fault ended, by a word",
    "replay/part-": "how a micro-batch failed, by a word",
    "replay/sample-": "how a sample failed, by a word",
    "ui/phase-": "phases of a rank, by the heartbeat's names",
    "ui/compare-": "columns of a table, in a loop",
    "cluster/column-": "columns of a table, in a loop",
    "ui/runs-": "columns of a table, in a loop",
    "ui/state-": "states of a run",
    "ui/watch-": "rows of a table, in a loop",
    "watch/col-": "columns of a table, in a loop",
    "watch/page-": "pages of the view, by their names",
    "watch/sent-": "what was asked for, by a word",
    "watch/sure-": "what was asked for, by a word",
}
"""The only codes that are put together at run time: their fixed beginnings, each with its reason."""

RULES = frozenset(path.stem for path in RULES_FOLDER.glob("*.toml"))
"""Findings in logs: files name their codes."""
BUILT_REST = frozenset({"eval-every", "save-every", "fp32-cpu"})
"""Ends of computed codes that no constant of the source spells: `f"{key}-every"`, and fp32 with `-cpu` on CPU."""


@pytest.fixture(scope="module")
def catalogue():
    return load_catalogue()


@pytest.fixture(scope="module")
def uses(catalogue):
    return find_uses(frozenset(catalogue))


def test_every_stage_has_both_languages_with_the_same_facts(catalogue):
    assert len(catalogue) >= 14 and len(all_texts(catalogue)) > 600
    assert "\n".join(check_shape(catalogue)) == ""


def test_english_follows_the_house_style(catalogue):
    assert "\n".join(check_english(catalogue)) == ""


def test_chinese_is_chinese_with_its_own_punctuation_and_one_word_for_one_thing(catalogue):
    assert "\n".join(check_chinese(catalogue)) == ""


def test_every_code_of_the_source_exists_and_every_text_is_used(catalogue, uses):
    assert len(uses) > 600
    assert "\n".join(check_uses(catalogue, uses, COMPUTED, literals() | BUILT_REST | RULES)) == ""


def test_whoever_names_a_code_hands_over_its_facts(catalogue, uses):
    assert sum(use.facts is not None and bool(use.speaker) for use in uses) > 300
    assert "\n".join(check_facts(catalogue, uses)) == ""


def test_every_text_can_be_filled_in(catalogue):
    class Any(dict):
        def __missing__(self, key):
            return f"<{key}>"

    for code, text in all_texts(catalogue).items():
        for part in (text.en, text.zh, text.en_hint, text.zh_hint):
            filled = fill(part, Any(), "en")
            assert all(f"<{name}>" in filled for name in placeholders(part)), code


def test_a_fact_may_be_called_code_or_lang():
    assert say("cli/child-failed", "en", code=9).endswith("with exit code 9")
    assert hint("cli/child-failed", "zh", code=9) == "原因见上面的输出"


GOOD = Text(en="{num} files are gone", zh="少了 {num} 个文件", en_hint="type: ls", zh_hint="运行：ls")


@pytest.mark.parametrize(
    ("check", "code", "text", "said"),
    [
        (check_shape, "b/x", GOOD, "a code of headway.recipes.a.texts is a/what"),
        (check_shape, "a/x", Text(en="gone", zh=" "), "a text is empty"),
        (check_shape, "a/x", Text(en="gone", zh="没了", en_hint="type: ls"), "one language only"),
        (check_shape, "a/x", Text(en="{a} gone", zh="{b} 没了"), "the facts differ"),
        (check_shape, "a/x", Text(en="gone", zh="没了", en_hint="ls {a}", zh_hint="运行 ls"), "the facts differ"),
        (check_english, "a/x", Text(en="Files are gone", zh="少了文件"), "begins with a capital"),
        (check_english, "a/x", Text(en="files are gone.", zh="少了文件"), "ends with a full stop"),
        (check_english, "a/x", Text(en="please look", zh="看看"), "a word we do not use"),
        (
            check_english,
            "a/x",
            Text(en="gone", zh="没了", en_hint="Invalid path", zh_hint="看看"),
            "a word we do not use",
        ),
        (
            check_english,
            "a/x",
            Text(en="Do it.\n\n  headway x", zh="做。\n\n示例：\n  headway x"),
            "end with an example",
        ),
        (check_english, "a/x", Text(en="do it\n\nExample:\n  headway x", zh="做\n\n示例：\n  headway x"), "a sentence"),
        (check_chinese, "a/x", Text(en="gone", zh="gone"), "both languages say"),
        (check_chinese, "a/x", Text(en="gone", zh="lost"), "no Chinese"),
        (check_chinese, "a/x", Text(en="gone, all", zh="没了,全部"), "half-width"),
        (check_chinese, "a/x", Text(en="gone: {a}", zh="没了: {a}"), "half-width"),
        (check_chinese, "a/x", Text(en="gone ({a})", zh="没了({a})"), "half-width"),
        (check_chinese, "a/x", Text(en="2 files", zh="2个文件"), "no space between"),
        (check_chinese, "a/x", Text(en="gone, all", zh="没了， 全部"), "a space where"),
        (check_chinese, "a/x", Text(en="gone", zh="没了。"), "full stop"),
        (check_chinese, "a/x", Text(en="look", zh="请查看"), "no 请"),
        (check_chinese, "a/x", Text(en="the run directory", zh="运行目录"), "'运行目录': write 训练目录"),
        (check_chinese, "a/x", Text(en="unknown key", zh="未知的键"), "'键': write 配置项"),
        (check_chinese, "a/x", Text(en="{num} GPUs", zh="{num} 个 GPU"), "'个 GPU': write 张"),
        (check_english, "a/x", Text(en="memory a rank", zh="每 rank 内存"), "'memory a rank': write 'per', not 'a'"),
        (check_english, "a/x", Text(en="this is no number", zh="这不是数"), "'is no n': write X is not a Y"),
        (check_english, "a/x", Text(en="training goes on", zh="训练继续"), "'goes on': write continues"),
    ],
)
def test_a_broken_text_is_found(check, code, text, said):
    found = list(check({"a": {code: text}}))
    assert any(said in one for one in found), found
    assert list(check({"a": {"a/x": GOOD}})) == []


def test_codes_that_lead_nowhere_are_found_in_the_source():
    source = """
def go(kind):
    facts = {"num": 1}
    say("a/known", num=2)
    say("a/missing")
    raise UsageError("a/known", other=3)
    Finding(code="a/known", facts=facts)
    say(f"a/part-{kind}")
    "the word one is here"
"""
    uses = uses_in(source, "go.py", frozenset({"a"}))
    texts = {"a": {"a/known": GOOD, "a/unused": GOOD, "a/part-one": GOOD, "a/part-two": GOOD}}
    found = list(check_uses(texts, uses, {"a/gone-": "nobody"}, frozenset({"one"})))
    assert found == [
        "go.py:5: no text a/missing",
        "go.py:8: family a/part- is not listed",
        "family a/gone- is listed, but nothing computes it",
        "a/unused: never used",
        "a/part-two: never used",
    ]
    assert list(check_facts(texts, uses)) == ["go.py:6: a/known lacks num"]


def test_facts_are_read_through_names_and_both_sides_of_a_condition():
    source = """
def go(x, more):
    facts = {"a": 1}
    facts = {**facts}
    facts["b"] = 2
    say("a/one" if x else "a/two", **facts)
    say("a/three", **more)
    code = "a/four" if x else "a/five"
    raise PlanError(code, c=1)
"""
    uses = {use.code: use for use in uses_in(source, "go.py", frozenset({"a"}))}
    assert uses["a/one"].facts == uses["a/two"].facts == {"a", "b"}
    assert (uses["a/five"].speaker, uses["a/five"].facts) == ("PlanError", {"c"})
    assert uses["a/three"] == Use("go.py", 7, "a/three", speaker="say", facts=None)
