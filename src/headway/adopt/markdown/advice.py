"""Advice that does nothing, or that only works on its author's machine."""

from __future__ import annotations

import re
from collections.abc import Iterator

from headway.adopt.finding import Finding
from headway.adopt.markdown.blocks import SHELL
from headway.adopt.markdown.facts import Facts

_MEMORY = re.compile(r"OOM|显存|内存|memory", re.IGNORECASE)
_LESS = re.compile(r"(?:减小|减少|降低|reduce|lower|decrease)\s*`?total_batch_size", re.IGNORECASE)
_PERSONAL = re.compile(r"^\s*cd\s+((?:/home/[\w.-]+|/root|/Users/[\w.-]+)\S*)")
_LIBERO_STEPS = 1_000
"""Steps after which a LIBERO episode ends and a further one raises."""


def check_advice(facts: Facts) -> list[Finding]:
    """Return advice that does not do what it is given for."""
    rules = (_total_batch, _data_parallel, _accumulation, _utilisation, _paths, _environment, _episode)
    return [finding for rule in rules for finding in rule(facts)]


def _total_batch(facts: Facts) -> Iterator[Finding]:
    for block in facts.blocks:
        if _MEMORY.search(block.heading + block.text):
            for number, line in enumerate(block.text.splitlines(), start=block.first_line):
                if _LESS.search(line):
                    yield Finding("no_effect", "adopt/guide-total-batch-memory", number, line.strip())


def _data_parallel(facts: Facts) -> Iterator[Finding]:
    for number, match in facts.find(r"(?<!Distributed)\bDataParallel\b"):
        yield Finding("harmful", "adopt/guide-data-parallel", number, match[0])
        return


def _accumulation(facts: Facts) -> Iterator[Finding]:
    if any("accum" in key.name for key in facts.keys):
        return
    for number, match in facts.find(r"(?:梯度累积|gradient accumulation)\W{0,6}(?:自动|automatic)\S*"):
        yield Finding("no_effect", "adopt/guide-accumulation", number, match[0])


def _utilisation(facts: Facts) -> Iterator[Finding]:
    for number, match in facts.find(r"(?:目标|target)\W{0,4}GPU\W{0,3}(?:利用率|util\w*)\W{0,6}(\d+)"):
        yield Finding("no_effect", "adopt/guide-utilisation", number, match[0])


def _paths(facts: Facts) -> Iterator[Finding]:
    seen: set[str] = set()
    for block in facts.blocks:
        for number, line in enumerate(block.text.splitlines(), start=block.first_line):
            match = _PERSONAL.match(line)
            if block.language in SHELL and match and match[1] not in seen:
                seen.add(match[1])
                yield Finding("harmful", "adopt/guide-personal-folder", number, line.strip(), facts={"path": match[1]})


def _environment(facts: Facts) -> Iterator[Finding]:
    for number, match in facts.find(r"^\s*conda activate ([\w.-]+)"):
        yield Finding("kept", "adopt/guide-conda", number, match[0].strip(), facts={"name": match[1]})
        return


def _episode(facts: Facts) -> Iterator[Finding]:
    for launch in facts.meaning.launches:
        words = list(launch.args)
        values = {word.lstrip("-"): words[place + 1] for place, word in enumerate(words[:-1]) if word.startswith("--")}
        rounds, steps = values.get("max_steps", ""), values.get("exec_horizon", "")
        if values.get("benchmark", "").startswith("libero") and rounds.isdigit() and steps.isdigit():
            total = int(rounds[:6]) * int(steps[:6])
            if total > _LIBERO_STEPS:
                numbers = {"rounds": rounds, "steps": steps, "total": total, "limit": _LIBERO_STEPS}
                shown = f"--max_steps {rounds} --exec_horizon {steps}"
                yield Finding("contradictory", "adopt/guide-episode", launch.line, shown, facts=numbers)
