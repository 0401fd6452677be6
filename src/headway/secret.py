"""Tokens, keys and passwords: told by their shape, or by the name of their key. They never belong into a config."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Secret:
    """What kind of secret a value is and which environment variable carries it instead."""

    kind: str
    """Message code of its name."""
    variable: str
    code: str = "config/secret"
    """Message code of the refusal: not every secret is passed by environment."""


_SHAPES: tuple[tuple[re.Pattern[str], Secret], ...] = (
    (re.compile(r"\bhf_[A-Za-z0-9]{16,}"), Secret("config/secret-hugging-face", "HF_TOKEN")),
    (re.compile(r"\bsk-ant-[\w-]{16,}"), Secret("config/secret-anthropic", "ANTHROPIC_API_KEY")),
    (re.compile(r"\bsk-[A-Za-z0-9_-]{20,}"), Secret("config/secret-openai", "OPENAI_API_KEY")),
    (re.compile(r"\b(?:gh[opsu]_[A-Za-z0-9]{20,}|github_pat_\w{20,})"), Secret("config/secret-github", "GITHUB_TOKEN")),
    (re.compile(r"\bglpat-[\w-]{16,}"), Secret("config/secret-gitlab", "GITLAB_TOKEN")),
    (re.compile(r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"), Secret("config/secret-aws", "AWS_ACCESS_KEY_ID")),
    (re.compile(r"\bxox[abprs]-[\w-]{10,}"), Secret("config/secret-slack", "SLACK_TOKEN")),
    (re.compile(r"\bAIza[\w-]{30,}"), Secret("config/secret-google", "GOOGLE_API_KEY")),
    (
        re.compile(r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY(?:.*?-----END|.*)", re.DOTALL),
        Secret("config/secret-private-key", "", "config/secret-in-file"),
    ),
    (
        re.compile(r"(?<=://)[^\s/@:]{0,200}:[^\s/@]{1,200}(?=@)"),
        Secret("config/secret-password", "", "config/secret-in-address"),
    ),
)
_WORDS = frozenset({"token", "secret", "password", "passwd", "apikey", "credential", "credentials", "passphrase"})
_PAIRS = frozenset({("api", "key"), ("access", "key"), ("private", "key"), ("auth", "key"), ("secret", "key")})
_NOT_THE_THING = frozenset(
    {"file", "path", "dir", "name", "names", "env", "id", "ids", "type", "types", "bytes", "count", "num", "len"}
    | {"length", "size", "dim", "drop", "budget", "mask"}
)
"""A key that ends so holds a place, a name or a number, not the secret (`token_file`, `token_bytes`)."""
_MARKS = frozenset(
    {"pad", "eos", "bos", "unk", "mask", "cls", "sep", "image", "special", "start", "end", "stop", "begin", "eot"}
    | {"prefix", "suffix"}
)
"""`pad_token` and its kin are entries of a vocabulary."""
_KEY_ENDINGS = ("_API_KEY", "_ACCESS_KEY", "_SECRET_KEY", "_PASS", "_PASSWD", "_PWD_SECRET")
_SHORTEST = 6
"""A shorter value is no secret worth its name, and would be found in every text."""
_HINT = re.compile(r"token|secret|passw|passphrase|credential|key", re.IGNORECASE)
"""Only a text with one of these words can hold a value by the name of a secret."""
_VALUE = r"(\"[^\"\n]{1,400}\"|'[^'\n]{1,400}'|[^\s\"',;)\]}]{1,400})"
_NAMED_VALUE = re.compile(r"([A-Za-z_][\w.-]{0,80})([\"']?\s{0,3}[=:]\s{0,3})" + _VALUE)
_FLAG_VALUE = re.compile(r"((?<!\S)--?[A-Za-z][\w.-]{0,80})(\s{1,3})(?!-)" + _VALUE)
_LISTED_VALUE = re.compile(r"((?<=[\"'])--?[A-Za-z][\w.-]{0,80})([\"'],\s{0,3})(?![\"']-)" + _VALUE)
"""As programs print their own arguments: `['--password', 'value']`."""
_seen: set[str] = set()
"""Secrets among the arguments of this process."""
_REFERENCE = re.compile(r"\$\{?\w+\}?")


def mask_secrets(text: str) -> str:
    """Return the text with whatever looks like a secret replaced by dots."""
    for shape, _ in _SHAPES:
        text = shape.sub("…", text)
    return text


def redact(text: str, environ: Mapping[str, str] | None = None) -> str:
    """Return a text to be written down or shown: without values of secret variables, known shapes, and named values.

    Args:
        environ: where secret variables are looked for; none: in our own environment.
    """
    for value in _secret_values(os.environ if environ is None else environ):
        text = text.replace(value, "…")
    text = mask_secrets(text)
    if not _HINT.search(text):
        return text
    return _LISTED_VALUE.sub(_hide_named, _FLAG_VALUE.sub(_hide_named, _NAMED_VALUE.sub(_hide_named, text)))


def redact_words(words: Sequence[str], environ: Mapping[str, str] | None = None) -> list[str]:
    """Return arguments to be written down: the word behind `--password` is one too.

    What is hidden here is hidden in every later text of this process: a program may print its own arguments.
    """
    found = []
    for flag, word in zip(["", *words], words, strict=False):
        name, sign, value = word.partition("=")
        is_behind = flag.startswith("-") and "=" not in flag and not word.startswith("-")
        if is_behind and name_of_secret(flag.lstrip("-")) is not None:
            found.append("…")
            _remember(word)
        else:
            found.append(redact(word, environ))
            if sign and " " not in word and found[-1] == f"{name}=…":
                _remember(value)
    return found


def _remember(value: str) -> None:
    if len(value) >= _SHORTEST and value != "…" and not _REFERENCE.fullmatch(value):
        _seen.add(value)


def _secret_values(environ: Mapping[str, str]) -> list[str]:
    """Return the values of variables that are secrets by their name, the longest first."""
    found = _seen | {
        value
        for name, value in environ.items()
        if len(value) >= _SHORTEST and (name_of_secret(name) is not None or name.upper().endswith(_KEY_ENDINGS))
    }
    return sorted(found, key=len, reverse=True)


def _hide_named(found: re.Match[str]) -> str:
    name, sign, value = found[1], found[2], found[3]
    if name_of_secret(name.lstrip("-")) is None:
        # `KeyError: 'password=…'`: the value may hold a name and a value of its own.
        return f"{name}{sign}{_NAMED_VALUE.sub(_hide_named, value)}"
    if _REFERENCE.fullmatch(value.strip("\"'")):
        return found[0]
    # "unexpected token: end of file" is prose, and the reader needs it.
    is_prose = ":" in sign and value[0] not in "\"'" and not (len(value) > 7 and any(map(str.isdigit, value)))
    return found[0] if is_prose else f"{name}{sign}…"


def find_secret(key: str, value: object) -> Secret | None:
    """Return what kind of secret a value is, or None."""
    if not isinstance(value, str) or not value.strip() or _REFERENCE.fullmatch(value.strip()):
        return None
    for shape, secret in _SHAPES:
        if shape.search(value):
            return secret
    return name_of_secret(key)


def name_of_secret(key: str) -> Secret | None:
    """Return what the value of a key of this name must be a secret for, or None (`total_tokens` is none)."""
    outer, _, leaf = key[-160:].rpartition(".")
    words = _split_name(leaf)
    if not words or words[-1] in _NOT_THE_THING:
        return None
    if len(words) > 1 and words[-1] == "token" and words[-2] in _MARKS:
        return None
    if _WORDS.isdisjoint(words) and _PAIRS.isdisjoint(itertools.pairwise(words)):
        return None
    if len(words) == 1 or tuple(words) in _PAIRS:
        # `wandb.api_key` is known as WANDB_API_KEY, not as API_KEY.
        words = [*(word for word in _split_name(outer.rpartition(".")[2]) if word != "task"), *words]
    return Secret("config/secret-by-name", "_".join(words).upper())


def _split_name(name: str) -> list[str]:
    return [word.lower() for word in re.findall(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])", name)]
