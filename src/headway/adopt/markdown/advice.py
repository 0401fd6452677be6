"""Advice that does nothing, or that only works on its author's machine."""

from __future__ import annotations

import re
from collections.abc import Iterator

from headway.adopt.finding import Finding
from headway.adopt.markdown.blocks import SHELL
from headway.adopt.markdown.facts import Facts

_MEMORY = re.compile(r"OOM|显存|内存|memory", re.IGNORECASE)
_LESS = re.compile(
    r"(?:减小|减少|降低|reduce|lower|decrease)\s*(?:the\s+)?`?-{0,2}(?:total|global|effective)[_ -]?batch",
    re.IGNORECASE,
)
_MICRO = re.compile(r"(?:micro|device|per[_ -]gpu)\w*[_ -]batch|batch_size_per_(?:gpu|device)", re.IGNORECASE)
_PERSONAL = re.compile(r"^\s*cd\s+((?:/home/[\w.-]+|/root|/Users/[\w.-]+)\S*)")
_ANYBODYS = re.compile(r"/root/?$|/root/autodl-|/(?:home|Users)/(?:user(?:name)?|you\w*|me|xxx+)(?:/|$)", re.IGNORECASE)
"""Folders that every reader has: a cloud's own, and names that stand for the reader's."""
_DATA_PARALLEL = re.compile(
    r"\bnn\.DataParallel\(|(?<!Distributed)\bDataParallel\b\**[:：]?\s*(?:自动|使用|automatic|uses?\b)"
    r"|(?:使用|采用|通过|using|with|via)\s*`?(?:torch\.)?(?:nn\.)?DataParallel\b(?!`?\s*\(DP\))",
    re.IGNORECASE,
)
_AGAINST = re.compile(
    r"不推荐|不建议|不要|避免|而不是|缺点|不如"
    r"|instead|rather than|avoid|not recommend|do not|don't|deprecated|slower|\bvs\b"
)
_PROMISED = re.compile(
    r"(?:梯度累[积加]|gradient accumulation)\W{0,6}(?:自动|automatic)\S*"
    r"|(?:自动(?!梯度)[^\n，。|]{0,20}梯度累[积加]|automatic gradient accumulation(?! is))",
    re.IGNORECASE,
)
_UTILISATION = re.compile(
    r"(?:目标|target)\W{0,4}GPU\W{0,3}(?:利用率|util\w*)\W{0,6}(\d+)"
    r"|GPU\s*(?:利用率|utili[sz]ation)[^\n|]{0,40}?(?:目标|target)\W{0,6}(\d+)",
    re.IGNORECASE,
)
_MADE = re.compile(r"(?:conda|mamba)\s+(?:env\s+)?create|environment\.ya?ml|pip3? install|setup\.sh|uv (?:sync|pip)")


def check_advice(facts: Facts) -> list[Finding]:
    """Return advice that does not do what it is given for."""
    rules = (_total_batch, _data_parallel, _accumulation, _utilisation, _paths, _environment)
    return [finding for rule in rules for finding in rule(facts)]


def _total_batch(facts: Facts) -> Iterator[Finding]:
    """Where a batch per device is set as well, the total one only changes how often gradients are added up."""
    if not _MICRO.search(facts.text):
        return
    for block in facts.blocks:
        if _MEMORY.search(block.heading + block.text):
            for number, line in enumerate(block.text.splitlines(), start=block.first_line):
                if _LESS.search(line):
                    yield Finding("no_effect", "adopt/guide-total-batch-memory", number, line.strip())
    inside = {line for one in facts.blocks for line in range(one.first_line, one.first_line + one.text.count("\n") + 1)}
    for number, line in facts.lines():
        if number not in inside and _LESS.search(line) and _MEMORY.search(line):
            yield Finding("no_effect", "adopt/guide-total-batch-memory", number, line.strip())


def _data_parallel(facts: Facts) -> Iterator[Finding]:
    """Said of a guide that uses it, not of one that compares it or advises against it."""
    for number, line in facts.lines():
        match = _DATA_PARALLEL.search(line)
        if match and not _AGAINST.search(line):
            yield Finding("harmful", "adopt/guide-data-parallel", number, match[0].strip("*:： "))
            return


def _accumulation(facts: Facts) -> Iterator[Finding]:
    if any("accum" in key.name for key in facts.keys):
        return
    for number, match in facts.find(_PROMISED):
        yield Finding("no_effect", "adopt/guide-accumulation", number, match[0])


def _utilisation(facts: Facts) -> Iterator[Finding]:
    for number, match in facts.find(_UTILISATION):
        yield Finding("no_effect", "adopt/guide-utilisation", number, match[0])


def _paths(facts: Facts) -> Iterator[Finding]:
    seen: set[str] = set()
    for block in facts.blocks:
        for number, line in enumerate(block.text.splitlines(), start=block.first_line):
            match = _PERSONAL.match(line)
            if block.language in SHELL and match and match[1] not in seen and not _ANYBODYS.match(match[1]):
                seen.add(match[1])
                yield Finding("harmful", "adopt/guide-personal-folder", number, line.strip(), facts={"path": match[1]})


def _environment(facts: Facts) -> Iterator[Finding]:
    if _MADE.search(facts.text):
        return
    for number, match in facts.find(r"^\s*conda activate (?!your|my|<)([\w.-]+)"):
        yield Finding("kept", "adopt/guide-conda", number, match[0].strip(), facts={"name": match[1]})
        return
