"""A guide in: its launches and findings out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from headway.adopt.finding import Finding
from headway.adopt.lint import check
from headway.adopt.lint.context import Version
from headway.adopt.lint.variables import KNOWN
from headway.adopt.markdown.advice import check_advice
from headway.adopt.markdown.batches import check_batches
from headway.adopt.markdown.blocks import SHELL, Block, hide_comments, read_blocks, read_keys, read_tables
from headway.adopt.markdown.facts import Facts
from headway.adopt.markdown.figures import check_figures
from headway.adopt.markdown.formats import check_formats
from headway.adopt.record import Launch, Meaning, Setting
from headway.adopt.understand import choose_launch, understand

_FENCE = re.compile(r"^[ \t]*(?:```|~~~)", re.MULTILINE)
_HEADING = re.compile(r"^#{1,6} \S|^\w[^\n]*\n(?:={3,}|-{3,})[ \t]*$", re.MULTILINE)
_MENTION = re.compile(r"(?<![\w$])([A-Z][A-Z0-9_]{2,})=([\w.,:/-]+)")


@dataclass(frozen=True, slots=True)
class Guide:
    """What a guide launches, and what was found in it."""

    meaning: Meaning
    findings: tuple[Finding, ...]


def is_guide(text: str, name: str = "") -> bool:
    """Return whether a text is a guide rather than a script: by its name, or by fenced blocks under a heading."""
    if name.lower().endswith((".md", ".markdown", ".mdx")):
        return True
    return len(_FENCE.findall(text)) >= 2 and _HEADING.search(text) is not None


def read_guide(text: str, *, torch: Version | None = None) -> Guide:
    """Return the launches of all shell blocks together, and every finding in the order of the lines."""
    text = hide_comments(text.replace("\r\n", "\n"))
    blocks = read_blocks(text)
    meanings = [_read_block(block) for block in blocks if block.language in SHELL]
    meaning = _join(meanings)
    seen = {(one.name, one.line) for one in meaning.settings}
    mentioned = [one for one in _mentions(text) if (one.name, one.line) not in seen]
    # Variables of one block meet the launches of that block; where it has none, those of the whole guide.
    findings: list[Finding] = []
    for one in meanings:
        launches = one.launches or meaning.launches
        found = check(replace(one, launches=launches, primary=0 if launches else None), torch=torch)
        findings += [finding for finding in found if one.launches or not _is_about_launch(finding)]
    findings += [
        finding
        for finding in check(Meaning(launches=meaning.launches, settings=tuple(mentioned)), torch=torch)
        if not _is_about_launch(finding)
    ]
    keys = tuple(key for block in blocks for key in read_keys(block))
    facts = Facts(text=text, blocks=blocks, keys=keys, tables=tuple(read_tables(text)), meaning=meaning)
    for rule in (check_formats, check_batches, check_advice, check_figures):
        findings += rule(facts)
    return Guide(meaning, tuple(sorted(_once(findings), key=lambda one: one.line)))


def _is_about_launch(finding: Finding) -> bool:
    return "launcher" in finding.facts or finding.code == "adopt/secret-in-args"


def _once(findings: Iterable[Finding]) -> list[Finding]:
    return list({(one.code, one.line, one.subject): one for one in findings}.values())


def _read_block(block: Block) -> Meaning:
    """Read one shell block and count its lines from the top of the guide."""
    found = understand(block.text, has_lone_command=False)
    offset = block.first_line - 1
    return replace(
        found,
        launches=tuple(replace(one, line=one.line + offset) for one in found.launches),
        settings=tuple(replace(one, line=one.line + offset) for one in found.settings),
        slips=tuple((code, line + offset) for code, line in found.slips),
    )


def _join(meanings: Sequence[Meaning]) -> Meaning:
    launches = [launch for one in meanings for launch in one.launches]
    primary = _most_telling(launches)
    if primary is not None:
        # A block of nothing but exports is meant for the launches of the other blocks.
        shared = {s.name: s.value for one in meanings if not one.launches for s in one.settings if _is_shared(s)}
        launches[primary] = replace(launches[primary], env={**shared, **launches[primary].env})
    return Meaning(
        launches=tuple(launches),
        primary=primary,
        settings=tuple(setting for one in meanings for setting in one.settings),
        slips=tuple(slip for one in meanings for slip in one.slips),
        used=frozenset().union(*(one.used for one in meanings)),
    )


def _is_shared(setting: Setting) -> bool:
    """Debugging switches are shown for the day when something fails, not for every run."""
    return setting.is_exported and not setting.name.startswith(("NCCL_", "CUDA_LAUNCH", "TORCH_DISTRIBUTED_DEBUG"))


def _most_telling(launches: Sequence[Launch]) -> int | None:
    """Return the launch that says most: one by a launcher, then a training script with arguments, then any."""

    def rank(place: int) -> tuple[bool, bool, int]:
        launch = launches[place]
        name = launch.entry.name if launch.entry is not None else ""
        is_shown = launch.launcher not in ("python", "other") and launch.entry is not None
        is_direct = launch.launcher == "python" and "train" in name and bool(launch.args)
        return (not is_shown, not is_direct, place)

    best = min(range(len(launches)), key=rank, default=None)
    return best if best is None or rank(best)[:2] != (True, True) else choose_launch(launches)


def _mentions(text: str) -> list[Setting]:
    """Return variables that prose tells the reader to set."""
    found = []
    for number, line in enumerate(text.splitlines(), start=1):
        for match in _MENTION.finditer(line):
            if match[1] in KNOWN and match[1] != "CUDA_VISIBLE_DEVICES":
                found.append(Setting(match[1], match[2].rstrip(".,:"), number, is_exported=True))
    return found
