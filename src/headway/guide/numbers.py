"""The guide's own numbers, planned before anything starts: on the cards it is written for where there are none here."""

from __future__ import annotations

import contextlib
import json
import subprocess
from collections.abc import Mapping, Sequence
from typing import Any

from headway.errors import HeadwayError
from headway.guide.follow import headway
from headway.guide.log import GuideLog
from headway.guide.size import load
from headway.guide.trouble import Advice, facts_of, find_trouble, write_trouble
from headway.messages import hint, say


def judge(
    log: GuideLog, advice: Advice, source: str, words: Sequence[str], *options: str
) -> tuple[int, dict[str, Any]]:
    """Return the exit code of `headway plan` and the plan; why it refuses, or what it warns of, is in the log.

    Any: JSON.
    """
    done = subprocess.run(
        headway("plan", *options, source, *words, "--json"), capture_output=True, text=True, check=False
    )
    if done.returncode:
        for line in done.stderr.splitlines():
            log.write(line)
        facts: Mapping[str, object] = {}
        with contextlib.suppress(HeadwayError):  # a config that cannot be read has no numbers to show
            facts = facts_of(load(source, words).config)
        write_trouble(log, advice, find_trouble(done.stderr.splitlines(), None), facts)
        return done.returncode, {}
    plan: dict[str, Any] = json.loads(done.stdout)
    for warning in plan["warnings"]:
        log.write(f"{say(warning['code'], **warning['facts'])} [{warning['code']}]", "WARN")
        for number, line in enumerate(hint(warning["code"], **warning["facts"]).splitlines()):
            log.write(f"{'    ' if number else '  → '}{line.strip()}")
    return 0, plan
