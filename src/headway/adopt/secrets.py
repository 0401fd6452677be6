"""Secrets on a command line: found, and never shown again."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from headway.adopt.record import Launch
from headway.config import Secret, find_secret, mask_secrets

_KEY_NAME = re.compile(r"\w+_key", re.IGNORECASE)
_KEY = re.compile(r"(?=.*\d)[A-Za-z0-9_-]{32,}")
"""`--wandb_key` alone may be the name of a column; with a long word of letters and digits it is a key."""


_SERVICES = frozenset(
    {"hf", "hub", "hugging", "face", "huggingface", "wandb", "swanlab", "modelscope", "openai", "anthropic", "kaggle"}
    | {"comet", "neptune", "clearml", "github", "gh", "gitlab", "slack", "telegram", "aws", "azure", "bot", "app"}
    | {"auth", "access", "api", "bearer", "user", "login", "jwt", "session", "refresh", "client", "service", "secret"}
    | {"push", "read", "write"}
)
"""`hub_token` opens a door; `placeholder_token` and `image_patch_token` are words of a vocabulary."""
_STAND_IN = re.compile(
    r"[<\[{].*[>\]}]|(?:hf_|sk-)?[xX*.…]{2,}|(?:your|my|put|insert|enter|replace|paste|the)[ _-].*|.*[ _-]here"
    r"|.*(?:你的|替换).*|true|false|none|null|yes|no|-?\d{1,6}(?:\.\d+)?",
    re.IGNORECASE,
)
"""Where a secret would be, but none is."""


def find_kept_secret(name: str, value: str) -> Secret | None:
    """Return what kind of secret a variable of this name carries, or None.

    `export WANDB_API_KEY=your_key` counts: whoever follows it puts a key into a file.
    """
    secret = find_secret(name, value)
    words = re.findall(r"[a-z0-9]+", name.lower())
    is_word = len(words) > 1 and "token" in words and _SERVICES.isdisjoint(words)
    is_by_name = secret is not None and secret.kind == "config/secret-by-name"
    return None if is_by_name and is_word and not _KEY.fullmatch(value) else secret


@dataclass(frozen=True, slots=True)
class Exposed:
    """A secret among the arguments."""

    place: int
    """Of the word that holds it."""
    name: str
    """The flag before it, as written, or an empty text."""
    variable: str
    """The environment variable that carries it instead."""


def find_exposed(args: Sequence[str]) -> Iterator[Exposed]:
    """Return the secrets among arguments: by the name of their flag, or by their shape."""
    for place, word in enumerate(args):
        name, sign, value = word.partition("=") if word.startswith("-") or "=" in word else ("", "", word)
        flag = name
        if not sign and place and args[place - 1].startswith("--") and "=" not in args[place - 1]:
            flag, value = args[place - 1], word
        bare = flag.lstrip("-").replace("-", "_")
        is_value = not value.startswith("-") and not _STAND_IN.fullmatch(value.strip())
        secret = find_kept_secret(bare, value) if is_value else None
        if secret is not None:
            yield Exposed(place, flag, secret.variable or "HF_TOKEN")
        elif _KEY_NAME.fullmatch(bare) and _KEY.fullmatch(value):
            yield Exposed(place, flag, f"{bare.upper().removesuffix('KEY').removesuffix('API_').rstrip('_')}_API_KEY")


def hide_secrets(launch: Launch) -> Launch:
    """Return the launch with every secret replaced by the variable that should carry it."""
    args = [mask_secrets(word) for word in launch.args]
    for one in find_exposed(launch.args):
        name, sign, _ = launch.args[one.place].partition("=")
        is_joined = bool(sign) and name == one.name
        args[one.place] = f"{name}=${{{one.variable}}}" if is_joined else f"${{{one.variable}}}"
    env = {name: "…" if find_kept_secret(name, value) else mask_secrets(value) for name, value in launch.env.items()}
    options = {name: mask_secrets(value) for name, value in launch.options.items()}
    return replace(launch, args=tuple(args), env=env, options=options)
