"""The rules are data: every file is complete, speaks both languages in the house's words, and can be added to."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from headway.diagnosis import load_rules
from headway.diagnosis.rulebook import read_rule, required_texts
from headway.errors import ConfigError
from headway.messages import Text

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "messages"))
from message_rules import check_chinese, check_english, check_shape

RULES = load_rules().rules
CATEGORIES = {
    "batch-or-config",
    "ckpt-corrupt",
    "ckpt-key-mismatch",
    "cublas-cudnn-failure",
    "cuda-oom",
    "dataloader-worker-crash",
    "dataset-missing",
    "deepspeed-config",
    "device-side-assert",
    "disk-full",
    "driver-or-arch",
    "dtype-mismatch",
    "fork-cuda-init",
    "host-oom-killed",
    "hub-offline",
    "import-or-abi",
    "keyboard-interrupt",
    "libuv-unsupported",
    "mindspore",
    "nan-loss",
    "native-crash",
    "nccl-init-error",
    "nccl-timeout-hang",
    "permission-denied",
    "port-in-use",
    "python-user-bug",
    "rank-desync",
    "rendezvous-failure",
    "shm-too-small",
    "sigterm-preemption",
    "tokenizer-vocab",
    "too-many-open-files",
    "torch-compile-triton",
    "unused-parameters",
    "wandb-failure",
    "weights-only-load",
}
OWN = """
category = "my-cluster"
weight = 4
signs = ['FABRIC-9: link (?P<port>\\d+) is down']
words = ["fabric-9"]
[values]
port = 'link (\\d+)'
[text]
en = "the fabric lost a link: {text}"
zh = "网络链路中断：{text}"
[[fix]]
command = "reset-link {port}"
en = "reset link {port}"
zh = "重置链路 {port}"
"""


def test_every_category_has_a_rule():
    assert {rule.category for rule in RULES.values()} == CATEGORIES | {"unknown"}


def test_what_a_rule_explains_exists():
    wrong = [f"{rule.code}: {code}" for rule in RULES.values() for code in rule.explains if code not in RULES]
    assert wrong == []


def test_every_rule_says_what_to_do_and_its_own_text_needs_only_the_line():
    for rule in RULES.values():
        assert rule.fixes or rule.is_echo, rule.code
        assert set(re.findall(r"{(\w+)}", rule.en + rule.zh)) <= {"text", "type"}, rule.code


def test_all_fixes_follow_the_house_style_in_both_languages():
    texts = {f"diagnose/{rule.code}": Text(en=rule.en, zh=rule.zh) for rule in RULES.values()}
    for rule in RULES.values():
        for number, fix in enumerate(rule.fixes):
            texts[f"diagnose/{rule.code}-fix-{number}"] = Text(en=fix.en, zh=fix.zh)
    catalogue = {"diagnose": texts}
    found = [*check_shape(catalogue), *check_english(catalogue), *check_chinese(catalogue)]
    assert "\n".join(found) == ""


def test_values_of_fixes_are_extracted_or_known_of_a_run():
    known = {"text", "type", "rank", "run", "per_device", "half", "workers", "lr_tenth"}
    for rule in RULES.values():
        for fix in rule.fixes:
            assert fix.fields() <= known | set(rule.values), (rule.code, fix.fields())


def test_each_named_reproducer_exists():
    named = {rule.reproducer for rule in RULES.values() if rule.reproducer}
    assert len(named) > 0
    for path in named:
        assert (Path(__file__).resolve().parents[3] / path).is_file(), path


@pytest.mark.parametrize(
    ("pattern", "texts"),
    [
        (r"(?i)CUDA out of memory", ("cuda out of memory",)),
        (r"\[Errno 28\]", ("[errno 28]",)),
        (r"foo(?:bar|baz) qux", (" qux",)),
        (r"ab?c+defg", ("defg",)),
        (r"first|second\d", ("first", "second")),
        (r"\w+|second", ()),
        (r"a.{0,40}bcd", ("bcd",)),
    ],
)
def test_the_plain_text_that_every_match_holds_is_found(pattern, texts):
    assert required_texts(pattern) == texts


def test_no_sign_is_missed_because_of_its_plain_text():
    lines = [
        "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB",
        "OSError: [Errno 28] No space left on device: 'x'",
        "[Errno 98] Address already in use",
        "RuntimeError: Expected to have finished reduction in the prior iteration before starting a new one.",
        "slurmstepd: error: *** JOB 1 ON a CANCELLED AT 2024-01-01 DUE TO TIME LIMIT ***",
    ]
    for rule in RULES.values():
        for sign in rule.signs:
            for line in lines:
                if sign.pattern.search(line):
                    assert sign.find(line, line.lower()) is not None, (rule.code, sign.pattern.pattern)


def test_a_rule_of_the_user_is_added_and_may_replace_one_of_ours(tmp_path):
    (tmp_path / "fabric.toml").write_text(OWN)
    (tmp_path / "disk-full.toml").write_text(OWN)
    book = load_rules(tmp_path)
    assert book.rules["fabric"].category == book.rules["disk-full"].category == "my-cluster"
    assert load_rules().rules["disk-full"].category == "disk-full"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("category = [", "diagnose/rule-unreadable"),
        (OWN + "\nwieght = 3\n", "diagnose/rule-wrong"),
        (OWN.replace("signs", "sings"), "diagnose/rule-wrong"),
        (OWN.replace("(?P<port>", "(?P<port"), "diagnose/rule-wrong"),
    ],
)
def test_a_rule_that_cannot_be_used_is_refused_with_its_place(tmp_path, text, code):
    path = tmp_path / "bad.toml"
    path.write_text(text)
    with pytest.raises(ConfigError) as refused:
        read_rule(path)
    assert refused.value.code == code and str(path) in refused.value.text()
