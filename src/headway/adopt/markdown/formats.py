"""Files that a guide shows and that a strict reader refuses or reads otherwise."""

from __future__ import annotations

import re
from collections.abc import Iterator

from headway.adopt.finding import Finding
from headway.adopt.markdown.facts import Facts

_STRING = re.compile(r'"(?:\\.|[^"\\])*"')
_YAML_TEXT = re.compile(r"[-+]?\d+[eE][-+]?\d+")
"""YAML 1.1 wants a dot in a number with an exponent, and a sign before it; without them it reads text."""


def check_formats(facts: Facts) -> list[Finding]:
    """Return what is wrong with the files the guide shows."""
    return [*_json_comments(facts), *_yaml_numbers(facts)]


def _json_comments(facts: Facts) -> Iterator[Finding]:
    for block in facts.blocks:
        # What leaves something out is an example of a reply or a record, not a file to be written.
        if block.language != "json" or re.search(r"\.\.\.|…|:\s*<\w+>", block.text):
            continue
        for number, line in enumerate(block.text.splitlines(), start=block.first_line):
            if re.search(r"//|#", _STRING.sub('""', line)):
                yield Finding("harmful", "adopt/guide-json-comment", number, line.strip())
                break


def _yaml_numbers(facts: Facts) -> Iterator[Finding]:
    for key in facts.keys:
        if key.block.language in ("yaml", "yml") and _YAML_TEXT.fullmatch(key.value):
            better = re.sub(r"(\d+)[eE]([-+]?)", lambda match: f"{match[1]}.0e{match[2] or '+'}", key.value)
            facts_of = {"key": key.name, "value": key.value, "better": better}
            yield Finding("harmful", "adopt/guide-yaml-number", key.line, f"{key.name}: {key.value}", facts=facts_of)
