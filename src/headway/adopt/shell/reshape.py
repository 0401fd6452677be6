"""What `${NAME%.py}`, `${NAME/a/b}`, `${NAME,,}` and `${NAME:1:2}` make of a value that is known."""

from __future__ import annotations

import re
from fnmatch import translate


def change(text: str, rest: str) -> str | None:
    """Return a text after `%suffix`, `#prefix`, `/a/b`, `^^`, `,,` or `:start:length`; None for anything else."""
    if rest in ("^^", ",,"):
        return text.upper() if rest == "^^" else text.lower()
    if match := re.fullmatch(r":\s*(\d{1,6})(?::(\d{1,6}))?", rest):
        start = int(match[1])
        return text[start : start + int(match[2])] if match[2] else text[start:]
    if "$" in rest or len(text) > 2000 or len(rest) > 200:
        return None
    if match := re.fullmatch(r"(//?)((?:\\.|[^/\\])+)/?(.*)", rest, re.DOTALL):
        pattern = _glob(match[2])
        replacement = match[3]
        return pattern.sub(lambda _: replacement, text, count=1 if match[1] == "/" else 0)
    if match := re.fullmatch(r"(%%?|##?)(.+)", rest, re.DOTALL):
        return _strip(text, match[1], match[2])
    return None


def _glob(pattern: str) -> re.Pattern[str]:
    plain = re.sub(r"\\(.)", r"\1", pattern) if not re.search(r"[*?\[]", pattern) else None
    # The anchors that fnmatch adds are taken off again, because a part is looked for.
    return re.compile(re.escape(plain) if plain is not None else translate(pattern)[4:-3], re.DOTALL)


def _strip(text: str, sign: str, pattern: str) -> str:
    whole = re.compile(translate(pattern), re.DOTALL)
    places = range(len(text) + 1)
    if sign[0] == "%":
        starts = [at for at in places if whole.match(text[at:])]
        return text[: (starts[0] if sign == "%%" else starts[-1])] if starts else text
    ends = [at for at in places if whole.match(text[:at])]
    return text[(ends[-1] if sign == "##" else ends[0]) :] if ends else text
