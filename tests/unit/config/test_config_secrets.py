"""Secrets are refused wherever they are, and no message holds one."""

from __future__ import annotations

import pytest

from headway.config import ConfigErrors
from headway.secret import find_secret, mask_secrets, name_of_secret

TAIL = "Ab3dEf6hIj9kLm2nOp5qRs8t"
SHAPES = {
    f"hf_{TAIL}": "HF_TOKEN",
    f"sk-{TAIL}": "OPENAI_API_KEY",
    f"sk-ant-{TAIL}": "ANTHROPIC_API_KEY",
    f"ghp_{TAIL}": "GITHUB_TOKEN",
    "AKIAIOSFODNN7EXAMPLE": "AWS_ACCESS_KEY_ID",
    "-----BEGIN OPENSSH PRIVATE KEY-----": "chmod 600",
    "https://user:hunter22@host/x": ".netrc",
}


@pytest.mark.parametrize(("secret", "way"), SHAPES.items())
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.yaml", "out: '{}'\n"),
        ("a.yaml", "unknown_thing: ['x', '{}']\n"),
        ("a.yaml", "extra: {{deep: ['{}']}}\n"),
        ("a.json", '{{"name": "{}"}}'),
        ("a.toml", 'env.python = "{}"\n'),
        ("a.py", "data = '{}'\n"),
    ],
)
def test_a_secret_is_refused_by_its_shape_with_the_right_way(refuse, secret, way, name, text):
    error = refuse(name, text.format(secret))
    assert [p.code.partition("-in-")[0] for p in error.problems] == ["config/secret"]
    for lang in ("en", "zh"):
        assert way in error.text(lang)
        assert TAIL not in error.text(lang)
        assert "hunter22" not in error.text(lang)
    assert secret not in repr(error.problems)


@pytest.mark.parametrize(
    ("text", "variable"),
    [
        ("hf_token: hunter2hunter2", "HF_TOKEN"),
        ("wandb: {api_key: 0123456789abcdef0123456789abcdef01234567}", "WANDB_API_KEY"),
        ("wandbApiKey: hunter2hunter2", "WANDB_API_KEY"),
        ("smtp: {password: hunter2hunter2}", "SMTP_PASSWORD"),
        ("extra: {client_secret: hunter2hunter2}", "CLIENT_SECRET"),
        ("task: {access_token: hunter2hunter2}", "ACCESS_TOKEN"),
    ],
)
def test_a_secret_is_refused_by_the_name_of_its_key(refuse, text, variable):
    error = refuse("a.yaml", text)
    assert [p.code for p in error.problems] == ["config/secret"]
    assert f"environment variable {variable} " in error.text()
    assert "hunter2" not in error.text() + repr(error.problems)
    assert "0123456789abcdef" not in error.text() + repr(error.problems)


@pytest.mark.parametrize(
    "given",
    [
        [f"out=hf_{TAIL}"],
        [f"--nope=hf_{TAIL}"],
        ["hf_token=" + TAIL],
        ["--hf-token", TAIL],
        ["--api_key", TAIL],
        [f"hf_{TAIL}"],
        [f"depth=hf_{TAIL}"],
        [f"lr.milestones=[hf_{TAIL}"],
    ],
)
def test_secrets_on_the_command_line_are_never_repeated(words, given):
    with pytest.raises(ConfigErrors) as refused:
        words(*given)
    assert TAIL not in refused.value.text() + repr(refused.value.problems)


def test_a_secret_in_a_variable_is_refused(words):
    with pytest.raises(ConfigErrors) as refused:
        words(HEADWAY_SET_OUT=f"hf_{TAIL}")
    assert [(str(p.place), p.code) for p in refused.value.problems] == [
        ("environment HEADWAY_SET_OUT", "config/secret")
    ]


def test_broken_files_do_not_show_their_secrets(refuse):
    for name, text in (
        ("a.yaml", f"a: &hf_{TAIL} [1\n"),
        ("b.yaml", f"a: *hf_{TAIL}\n"),
        ("c.json", f'{{"a": hf_{TAIL}}}'),
        ("d.toml", f"a = hf_{TAIL}\n"),
        ("e.py", f"a = hf_{TAIL}\n"),
        ("f.yaml", f"hf_{TAIL}: 1\n"),
    ):
        error = refuse(name, text)
        assert TAIL not in error.text() + repr(error.problems), name


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("total_tokens", 49152),
        ("eval_tokens", "10"),
        ("task.pad_token", "<pad>"),
        ("eos_token", "<|end|>"),
        ("tokenizer", "gpt2"),
        ("token_file", "/home/me/token"),
        ("token_bytes", "x"),
        ("hf_token", ""),
        ("hf_token", None),
        ("hf_token", "${HF_TOKEN}"),
        ("hf_token", "$HF_TOKEN"),
        ("keyboard", "us"),
        ("monkey", "x"),
        ("url", "https://host:8080/a@b"),
        ("name", "task-sk-1"),
        ("name", "hf_small"),
        ("risk", "disk-usage"),
    ],
)
def test_what_only_looks_like_a_secret_passes(key, value):
    assert find_secret(key, value) is None


def test_names_and_masks():
    assert name_of_secret("a.b.SECRET") is not None
    assert name_of_secret("apikey") is not None
    assert name_of_secret("") is None
    assert mask_secrets(f"x hf_{TAIL} y") == "x … y"
