"""The command of a Kubernetes manifest: `command:` and `args:`, as a block or in brackets, as one shell line."""

from __future__ import annotations

import re
import shlex

_KEY = re.compile(r"^(?P<indent>[ ]*)(?:- )?(?P<key>command|args):[ \t]*(?P<rest>[^\n]*)\n?", re.MULTILINE)
_ITEM = re.compile(r"^(?P<indent>[ ]*)-[ \t]+(?P<item>[^\n]+)$")
_INLINE = re.compile(r"\"((?:[^\"\\\n]|\\.)*)\"|'([^'\n]*)'|([^\s,\[\]\"']+)")
_MAX_ITEMS = 400


def read_manifest(text: str) -> str | None:
    """Return what a manifest's first container runs, or None for any other text.

    Read line by line: the examples of documentation are cut short and seldom whole YAML.
    """
    keys = list(_KEY.finditer(text))
    if not keys or not re.search(r"^(?:apiVersion|kind|spec|containers|[ ]+image):", text, re.MULTILINE):
        return None
    words = _items(text, keys[0])
    if keys[0]["key"] == "command" and len(keys) > 1 and keys[1]["key"] == "args":
        words += _items(text, keys[1])
    # `- torchrun train.py` is one word to Kubernetes; its author means a line.
    return words[0] if len(words) == 1 else shlex.join(words) if words else None


def _items(text: str, key: re.Match[str]) -> list[str]:
    rest = key["rest"].strip()
    if rest.startswith("["):
        end = text.find("]", key.start("rest"))
        inside = text[key.start("rest") : end if end > 0 else None]
        return [one[1] or one[2] or one[3] or "" for one in _INLINE.finditer(inside)][:_MAX_ITEMS]
    items: list[str] = []
    for line in text[key.end() :].splitlines()[:_MAX_ITEMS]:
        found = _ITEM.match(line)
        if found is None or len(found["indent"]) < len(key["indent"]):
            break
        plain = re.sub(r"\s#.*", "", found["item"]).strip()
        quoted = _INLINE.fullmatch(plain)
        items.append(plain if quoted is None else quoted[1] or quoted[2] or quoted[3] or "")
    return items
