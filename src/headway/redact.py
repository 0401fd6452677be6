"""Texts as they may be written down or shown: secrets are hidden by value, by shape, and by the name before them.

What the values are is known to the process that was started with them, and to nobody later: so the supervisor hides
them when it writes the run's log, and no reader needs to know them (decision 0033).
"""

from __future__ import annotations

import base64
import json
import os
import re
import urllib.parse
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from headway.secret import find_shapes, is_reference, mask_secrets, name_of_secret

_DOTS = "…"
_KEY_ENDINGS = (
    *("_API_KEY", "_ACCESS_KEY", "_SECRET_KEY", "_PASS", "_PASSWD", "_PWD", "_PWD_SECRET", "_DSN", "_COOKIE", "_SAS"),
    *("_WEBHOOK", "_WEBHOOK_URL", "_ALERT_TO", "_CONNECTION_STRING"),
)
_SHORTEST = 6
"""A shorter value is not a secret worth its name, and would be found in every text."""
_LONGEST = 1 << 16
_HINT = re.compile(
    r"token|secret|passw|passcode|passphrase|credential|key|pwd|pass\b|jwt|-p|-a|-u|webhook|_dsn|cookie|_sas|connection_",
    re.IGNORECASE,
)
"""Only a text with one of these words can hold a value by the name of a secret."""
_VALUE = r"(\\{1,3}[\"'][^\"'\n]{1,400}[\"']|\"[^\"\n]{1,400}\"|'[^'\n]{1,400}'|[^\s\"',;)\]}]{1,400})"
_NAMED_VALUE = re.compile(r"([A-Za-z_][\w.-]{0,80})(\\{0,3}[\"']?\s{0,3}[=:]\s{0,3})" + _VALUE)
_FLAG_VALUE = re.compile(r"((?<!\S)--?[A-Za-z][\w.-]{0,80})(\s{1,3})(?!-)" + _VALUE)
_LISTED_VALUE = re.compile(r"((?<=[\"'])--?[A-Za-z][\w.-]{0,80})([\"'],\s{0,3})(?![\"']-)" + _VALUE)
"""As programs print their own arguments: `['--password', 'value']`."""
_NETRC = re.compile(r"(\blogin\s{1,9}\S{1,200}\s{1,9}password)(\s{1,9})(\S{1,400})")
_ELEMENT = re.compile(r"(<[\w:.-]{0,80}(?:password|passwd|token|secret|apikey)>)([^<]{1,400})", re.IGNORECASE)
_KEY_END = re.compile(r"\A[^-]*?(?:-----END [A-Z ]{0,40}PRIVATE KEY-----)", re.DOTALL)
"""The rest of a private key whose beginning was cut off."""
_NUMBER = re.compile(r"\d{1,8}")
_SIGNS = re.compile(r"[!@#$%^&*?~]")
_PASSWORD_FLAGS = {"-p": re.compile(r"\bsshpass\b|\b(?:docker|podman) login\b"), "-a": re.compile(r"\bredis-cli\b")}
_ATTACHED = re.compile(r"(\b(?:mysql|mysqldump|mariadb)\b[^\n;|&]{0,400}?\s-p)([^\s\"']{1,200})")
"""`mysql -pPASSWORD`: the one habit where flag and value are one word."""
_PAIR_FLAGS = frozenset({"-u", "--user", "--proxy-user"})
_seen: set[str] = set()
"""Secrets among the arguments of this process."""
_last: list[Any] = []
"""The variables and arguments that were asked about last, and the spellings of the secrets among them."""


def redact(text: str, environ: Mapping[str, str] | None = None) -> str:
    """Return a text to be written down or shown: without values of secret variables, known shapes, and named values.

    Args:
        environ: where secret variables are looked for; none: in our own environment.
    """
    return _redact(text, environ, None)


def redact_words(words: Sequence[str], environ: Mapping[str, str] | None = None) -> list[str]:
    """Return arguments to be written down: the word behind `--password` is one too.

    What is hidden here is hidden in every later text of this process: a program may print its own arguments.
    """
    found: list[str] = []
    line = " ".join(words)
    for flag, word in zip(["", *words], words, strict=False):
        hidden = _behind_flag(line, flag, word)
        if hidden is None:
            found.append(_redact(word, environ, _seen))
        else:
            kept, value = hidden
            found.append(f"{kept}{_DOTS}")
            if _is_worth(value):
                _seen.add(value)
    return found


def remember_secrets(environ: Mapping[str, str]) -> None:
    """Hide the secrets of another environment, too, in every later text: the one that our ranks get."""
    for name, value in environ.items():
        _seen.update(one for one in _within(value, is_secret=_is_secret_name(name)) if _is_worth(one))


def redact_lines(lines: Sequence[str]) -> list[str]:
    """Return the last lines of a log to be shown; a private key goes over many of them."""
    whole = mask_secrets("\n".join(lines))
    if "PRIVATE KEY" in whole:
        whole = _KEY_END.sub(_DOTS, whole)
    return [redact(line) for line in whole.split("\n")]


def hide_known(data: bytes) -> bytes:
    """Return output of a program without the secrets this process was started with, in any of their usual spellings.

    Nothing is guessed here: whatever else looks like a secret stays.
    """
    for value in _known_bytes(_known(os.environ)):
        if value in data:
            data = data.replace(value, _DOTS.encode())
    return data


def _redact(text: str, environ: Mapping[str, str] | None, learned: set[str] | None) -> str:
    if learned is not None:
        _hide_named(text, learned)  # before anything in it is hidden: a secret may hold a shorter one
        learned.update(value for value in find_shapes(text) if _is_worth(value))
    for value in _known(os.environ if environ is None else environ):
        if value in text:
            text = text.replace(value, _DOTS)
    text = _ELEMENT.sub(rf"\1{_DOTS}", _NETRC.sub(rf"\1\2{_DOTS}", mask_secrets(text)))
    return _hide_named(_ATTACHED.sub(rf"\1{_DOTS}", text), None)


def _hide_named(text: str, learned: set[str] | None) -> str:
    """Hide values by the name before them; remember those that are worth it."""
    if not _HINT.search(text):
        return text

    def hide(found: re.Match[str]) -> str:
        name, sign, value = found[1], found[2], found[3]
        bare = value.lstrip("\\").strip("\"'").rstrip("\\")
        is_secret = _is_secret_name(name.lstrip("-")) or _is_password_flag(text, name, bare)
        if not is_secret:
            # `KeyError: 'password=…'`: the value may hold a name and a value of its own.
            return f"{name}{sign}{_NAMED_VALUE.sub(hide, value)}"
        # "unexpected token: end of file" is prose, and the reader needs it.
        is_prose = ":" in sign and value[0] not in "\\\"'" and not (len(value) > 7 and any(map(str.isdigit, value)))
        if is_prose or is_reference(bare):
            return found[0]
        if learned is not None and _is_worth(bare):
            learned.add(bare)
        return f"{name}{sign}{_DOTS}"

    return _LISTED_VALUE.sub(hide, _FLAG_VALUE.sub(hide, _NAMED_VALUE.sub(hide, text)))


def _behind_flag(line: str, flag: str, word: str) -> tuple[str, str] | None:
    """Return what stays of a word that follows the flag of a secret, and the secret; None: it is not a secret."""
    if _ATTACHED.fullmatch(f"{line[:300]} {word}") and word.startswith("-p"):
        return "-p", word[2:]
    if not flag.startswith("-") or "=" in flag or word.startswith("-") or is_reference(word):
        return None
    if _is_secret_name(flag.lstrip("-")) or _is_password_flag(line, flag, word):
        return "", word
    user, sign, password = word.partition(":")
    if flag in _PAIR_FLAGS and sign and len(password) >= _SHORTEST and "/" not in word:
        return f"{user}:", password
    return None


def _is_password_flag(text: str, flag: str, value: str) -> bool:
    program = _PASSWORD_FLAGS.get(flag)
    return program is not None and (is_random(value) or program.search(text) is not None)


def is_random(value: str) -> bool:
    """Say whether a value looks made by a password generator: `-p 8080` and `-p resnet50` do not."""
    kinds = (any(map(str.islower, value)), any(map(str.isupper, value)), any(map(str.isdigit, value)))
    if "/" in value or "." in value or "=" in value:
        return False
    return (len(value) >= 12 and all(kinds)) or (len(value) >= 8 and sum(kinds) >= 2 and bool(_SIGNS.search(value)))


def _is_worth(value: str) -> bool:
    """Say whether a value can be looked for: not a number or a path, which texts hold for other reasons."""
    is_odd = not _SHORTEST <= len(value) <= _LONGEST or value == _DOTS or is_reference(value)
    is_path = value.startswith(("/", "~", ".")) and os.path.exists(os.path.expanduser(value))
    return not (is_odd or _NUMBER.fullmatch(value) or is_path or value.lower() in ("enabled", "disabled", "default"))


def _known(environ: Mapping[str, str]) -> tuple[str, ...]:
    # Asked at every line a rank prints: comparing the raw variables takes a few µs, decoding them all a hundred.
    raw = getattr(environ, "_data", environ)
    if not _last or _last[0] != (raw, _seen):
        _last[:] = [(dict(raw), set(_seen)), _spell_all(frozenset(_seen), tuple(environ.items()))]
    found: tuple[str, ...] = _last[1]
    return found


@lru_cache(maxsize=8)
def _known_bytes(values: tuple[str, ...]) -> tuple[bytes, ...]:
    return tuple(value.encode("utf-8", "surrogateescape") for value in values)


@lru_cache(maxsize=8)
def _spell_all(seen: frozenset[str], environ: tuple[tuple[str, str], ...]) -> tuple[str, ...]:
    """Return every spelling of every secret that is known, the longest first."""
    values = set(seen)
    for name, value in environ:
        values.update(_within(value, is_secret=_is_secret_name(name)))
    found = {spelling for value in filter(_is_worth, values) for spelling in _spell(value)}
    return tuple(sorted(found, key=lambda one: (-len(one), one)))


def _is_secret_name(name: str) -> bool:
    return name_of_secret(name) is not None or name.upper().replace("-", "_").endswith(_KEY_ENDINGS)


def _within(value: str, *, is_secret: bool) -> Iterable[str]:
    """Return the secrets a variable holds: itself, a line or a member of it, the password of an address."""
    if "://" in value and "@" in value:
        with_password = urllib.parse.urlsplit(value.strip()) if len(value) < _LONGEST else None
        if with_password is not None and "@" in with_password.netloc:
            yield with_password.netloc.rpartition("@")[0].partition(":")[2]
    if value.lstrip().startswith("{") and len(value) < _LONGEST:
        yield from _members(_parsed(value))
    if is_secret:
        yield value.strip()
        if "\n" in value.strip():
            yield from (line.strip() for line in value.splitlines() if len(line.strip()) >= 16 and "-----" not in line)


def _parsed(value: str) -> Any:
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return None


def _members(tree: Any, depth: int = 0) -> Iterable[str]:
    if not isinstance(tree, dict) or depth > 4:
        return
    for name, one in tree.items():
        if isinstance(one, str) and _is_secret_name(name):
            yield from _within(one, is_secret=True)
        else:
            yield from _members(one, depth + 1)


def _spell(value: str) -> Iterable[str]:
    """Return the ways programs print a value: as it is, in JSON, in an address, in base64 with anything before it."""
    yield value
    yield json.dumps(value)[1:-1]
    yield repr(value)[1:-1]
    for safe in ("", "/"):
        yield urllib.parse.quote(value, safe=safe, errors="surrogateescape")
    yield urllib.parse.quote_plus(value, errors="surrogateescape")
    data = value.encode("utf-8", "surrogateescape")
    for shift in range(3):
        # Of three bytes come four letters: cut those that also hold bits of what is before or behind.
        letters = base64.b64encode(b"\0" * shift + data).decode().rstrip("=")
        whole = letters[(0, 2, 3)[shift] : len(letters) - (1 if (shift + len(data)) % 3 else 0)]
        if len(whole) >= _SHORTEST + 2:
            yield whole
            yield whole.replace("+", "-").replace("/", "_")
