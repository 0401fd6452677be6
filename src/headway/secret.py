"""Tokens, keys and passwords: told by their shape, or by the name of their key. They never belong into a config."""

from __future__ import annotations

import itertools
import re
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
        re.compile(r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY(?:.*?-----END[A-Z -]{0,60}|.*)", re.DOTALL),
        Secret("config/secret-private-key", "", "config/secret-in-file"),
    ),
    (
        re.compile(r"(?<=://)[^\s/@:]{0,200}:[^\s/@]{1,200}(?=@)"),
        Secret("config/secret-password", "", "config/secret-in-address"),
    ),
)
_OTHER_SHAPES = tuple(
    re.compile(shape)
    for shape in (
        r"\b(?:npm_|dckr_pat_|nvapi-|gsk_|pplx-|r8_|ghr_|glrt-|xapp-|ya29\.|pypi-|[sr]k_live_|wandb_v1_)[\w-]{16,}",
        r"\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]{4,}",  # JSON web token
        r"\bSG\.[\w-]{16,}\.[\w-]{16,}",  # SendGrid
        r"\b(?:LTAI|AKID)[A-Za-z0-9]{16,}\b",  # Aliyun, Tencent
        r"\b\d{8,10}:[A-Za-z0-9_-]{35}\b",  # Telegram
        r"(?<=hooks\.slack\.com/services/)[\w/-]{10,}",
        r"(?<=/open-apis/bot/v2/hook/)[\w-]{8,}",  # Feishu, Lark
        r"(?<=/cgi-bin/webhook/send\?key=)[\w-]{8,}",  # WeCom
        r"(?<=/api/webhooks/)\d+/[\w-]{8,}",  # Discord
        r"(?i)(?<=[?&;])(?:sig|signature|x-amz-signature|x-amz-security-token)=[^&\s\"']{6,}",
        r"(?i)(?<=\bbearer )[\w.~+/=-]{8,}",
        r"(?i)(?<=authorization: )(?:(?:basic|token|digest|bot) )?[\w.~+/=:-]{6,}",
    )
)
"""Hidden where text is shown; a config may hold them (the address of a webhook is a setting)."""
_WORDS = frozenset(
    {"token", "secret", "password", "passwd", "apikey", "credential", "credentials", "passphrase", "jwt", "passcode"}
)
_PAIRS = frozenset(
    {("api", "key"), ("access", "key"), ("private", "key"), ("auth", "key"), ("secret", "key"), ("account", "key")}
    | {("shared", "key"), ("storage", "key"), ("subscription", "key"), ("signing", "key"), ("encryption", "key")}
    | {(who, "pass") for who in ("db", "user", "smtp", "mail", "redis", "mysql", "pg", "root", "admin", "ftp", "ssh")}
    | {(who, "pwd") for who in ("db", "user", "smtp", "mail", "redis", "mysql", "pg", "root", "admin", "ftp", "ssh")}
)
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
_REFERENCE = re.compile(r"\$\{?\w+\}?")


def mask_secrets(text: str) -> str:
    """Return the text with whatever looks like a secret replaced by dots."""
    for shape, _ in _SHAPES:
        text = shape.sub("…", text)
    for shape in _OTHER_SHAPES:
        text = shape.sub("…", text)
    return text


def find_shapes(text: str) -> list[str]:
    """Return what in a text has the shape of a secret; of `user:password@host` the password too."""
    found = [one[0] for shape in (*(shape for shape, _ in _SHAPES), *_OTHER_SHAPES) for one in shape.finditer(text)]
    return [*found, *(one.partition(":")[2] for one in found if ":" in one and "-----" not in one)]


def is_reference(value: str) -> bool:
    """Say whether a value only names where the secret is: `$HF_TOKEN`."""
    return _REFERENCE.fullmatch(value) is not None


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
